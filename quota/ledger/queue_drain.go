package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// afterCommand runs at the end of every command that made a queue dirty or a dynamic node idle, and of every command
// while nodes are on hold. It grants waiting requests that fit now, in the order of the queue, which establishes I7,
// and removes idle dynamic nodes.
func (l *Ledger) afterCommand() {
	if len(l.forest.onHold) > 0 {
		l.continueDrains()
	}
	l.drainQueue()
	for l.forest.removeIdleNodes() && len(l.queue.queuesForLedger) > 0 {
		l.queue.markDirty(l.queue.queuesForLedger[0])
		l.drainQueue()
	}
	l.announceDrained()
}

// drainQueue retries blocked requests in queue order until no queue is dirty. Its cost grows with the requests that
// might fit, not with all that wait.
func (l *Ledger) drainQueue() {
	for l.queue.dirty.Len() > 0 {
		bq := l.queue.dirty.First()
		alt := l.queue.nextCandidate(bq)
		switch {
		case alt == nil:
			l.queue.clearDirty(bq)
		case alt.turn != bq.next:
			bq.next = alt.turn
			l.queue.dirty.Push(bq)
		default:
			bq.from = alt.turn.Next()
			l.tryAdmit(alt)
		}
	}
}

// nextCandidate is the next waiter of a dirty queue that might fit; nil if there is none. The alternatives of a request
// do not block each other.
func (q *waitQueue) nextCandidate(bq *blockerQueue) *alternative {
	if bq.tree == nil && bq != &q.unassigned && q.allocations.held.Len() >= q.bounds.Held {
		return nil
	}
	if bq.isHold && bq.node.hold != nil && !bq.retryAll {
		return nil // with retryAll a limit may have changed that is then the blocker
	}
	if bq.retryAll || bq.ignoresLimits() {
		return bq.within(quota.MaxAmount, bq.from)
	}
	next := bq.within(bq.capacity(), bq.from)
	if firm := bq.blockingHead(q.now.At); next != nil && firm != nil && firm.of != next.of &&
		firm.turn.Before(next.turn) {
		return nil
	}
	return next
}

// tryAdmit grants a waiting request one of its alternatives if that fits. Otherwise the alternative stays in its queue
// if that blocker still blocks it, or moves to the queue of its first blocker.
func (l *Ledger) tryAdmit(alt *alternative) {
	t, d, full := l.judgeAlternative(alt)
	switch {
	case full:
		t.rollback()
		l.queue.changeQueue(alt, blocker{}, 0)
	case d.Granted:
		l.preferGentler(alt, &t)
		l.grantWaiter(alt.of, &t)
	case !l.queue.isStillBlocked(alt, t.allocation, d.Violations):
		key := l.queue.blockerOf(t.allocation, d.Violations)
		l.queue.changeQueue(alt, key, t.amountNeeded(key))
		l.revokeFor(alt.of, &t)
	default:
		l.revokeFor(alt.of, &t)
	}
}

// judgeAlternative decides a waiting request for one of its alternatives like a new one, but at its place in the queue.
// full is true if only a bound of the ledger blocks it. If it is granted, the caller must commit or roll back, as after
// decide.
func (l *Ledger) judgeAlternative(alt *alternative) (t tx, d quota.Decision, full bool) {
	if alt.of.isResize() {
		return l.judgeResize(alt)
	}
	a, refused := l.placeAlternative(alt)
	if refused != nil {
		return tx{ledger: l}, quota.Decision{}, true
	}
	t = l.beginTx(a)
	d = t.decide()
	if d.Granted && asksForRanges(alt.wanted) {
		request := alt.asked()
		t, d = l.widen(t, d, request.Steps(), func(step int) (*Allocation, *quota.Error) {
			return l.placeAlternativeAtStep(alt, step)
		})
	}
	return t, d, d.Granted && !t.hasRoom()
}

// placeAlternative finds the nodes of an alternative of a waiting request. A configuration that makes it invalid ends
// it, so the only remaining reason for a refusal is the bound of nodes. Of ranges it has the least amounts.
func (l *Ledger) placeAlternative(alt *alternative) (*Allocation, *quota.Error) {
	return l.placeAlternativeAtStep(alt, 0)
}

// placeAlternativeAtStep is placeAlternative with the amounts after so many steps of the ranges.
func (l *Ledger) placeAlternativeAtStep(alt *alternative, step int) (*Allocation, *quota.Error) {
	request := alt.asked()
	a, refused := l.placeAtStep(&request, step)
	if refused != nil {
		return nil, refused
	}
	record := alt.of.record
	a.owner, a.more.waiting, a.more.resized = record.owner, record.more.waiting, alt.resized
	a.more.preempted, a.more.room = record.more.preempted, record.more.room
	for i := range a.claims {
		a.claims[i].asked = alt.claims[i].asked
	}
	return a, nil
}

func (q *waitQueue) changeQueue(alt *alternative, key blocker, need quota.Amount) {
	if alt.blockedIn.blocker == key && alt.blockedIn != &q.unassigned {
		return
	}
	q.leaveQueue(alt)
	q.joinQueue(alt, key, need)
}

// grantWaiter grants a waiting request what a transaction has decided.
func (l *Ledger) grantWaiter(w *waiter, t *tx) {
	a := t.allocation
	since := max(1, w.record.more.waiting.since.At) // 0 means never
	if t.change != nil {
		t.change.commit(since)
		return
	}
	l.queue.removeWaiter(w)
	a.more.waiting = nil
	l.markUnclaimed(a, keepSpan(&w.request))
	t.commit(since)
}

// markUnclaimed makes what was granted from the queue end after the keep span unless its caller claims it.
func (l *Ledger) markUnclaimed(a *Allocation, keep quota.Span) {
	b := a.more.lease
	switch {
	case b != nil && b.ttl > 0:
		keep = min(b.ttl, keep)
	case b == nil:
		b = &lease{}
		a.more.lease = b
	}
	b.unclaimed = true
	b.expires = l.now.At + quota.Instant(keep)
}

// blockerOf returns the first blocker of a denied request.
func (q *waitQueue) blockerOf(a *Allocation, violations []quota.Violation) blocker {
	if len(violations) == 0 {
		root := a.claims[0].at.tree.root
		return blocker{tree: root.tree, node: root}
	}
	if i := q.neverFits(violations); i >= 0 {
		return q.asideKey(a, violations[i])
	}
	key := q.blockerFrom(a, violations[0])
	if key.isSoft() {
		key.node = q.softBlockerOf(a, key.node, violations)
	}
	return key
}

// neverFits is the index of the first violation that shows that a request cannot be granted as long as the limits are
// as they are, whatever is released; -1 if there is none. Of items that are made on demand only the most that there may
// be counts, because they come and go without a change of the configuration.
func (q *waitQueue) neverFits(violations []quota.Violation) int {
	return slices.IndexFunc(violations, q.isBeyondLimit)
}

// isBeyondLimit is true for such a violation. In a cohort the request could not be granted if nothing else were held.
func (q *waitQueue) isBeyondLimit(v quota.Violation) bool {
	if v.Kind != quota.OfItems {
		return v.NeverFits()
	}
	items := q.forest.trees[v.Tree].resource(v.Resource).Items
	return v.NeverFits() && (!items.OnDemand() || v.Requested > quota.Amount(items.MaxItems()))
}

// asideKey is the blocker of a request that is larger than the whole limit of a violation.
func (q *waitQueue) asideKey(a *Allocation, v quota.Violation) blocker {
	key := q.blockerFrom(a, v)
	key.isAside = true
	return key
}

// softBlockerOf is the node that stops a claim with soft borrowing: the first hard one with a violation from the
// claim's node up, or else the last one with a violation.
func (q *waitQueue) softBlockerOf(a *Allocation, n *node, violations []quota.Violation) *node {
	for _, v := range violations {
		key := q.blockerFrom(a, v)
		if !key.isSoft() || !n.borrowsFrom(key.node) {
			break
		}
		if n = key.node; n.spec.Hard {
			break
		}
	}
	return n
}

// blockerFrom returns the blocker for a violated limit. For a node that the request itself would create it uses the
// nearest existing node.
func (q *waitQueue) blockerFrom(a *Allocation, v quota.Violation) blocker {
	t := q.forest.trees[v.Tree]
	if v.Kind == quota.OfItems || v.Kind == quota.OfQueue && v.Item != "" {
		return a.itemBlocker(t, v)
	}
	key := blocker{tree: t, node: t.nearest(v.Node), holder: v.Holder, isHold: v.Kind == quota.OfHold}
	if v.Resource != "" && (key.node.borrows != policy.BorrowSoft || v.Holder.Kind != quota.TheNode) {
		key.resource = t.resource(v.Resource)
	}
	return key
}

// itemBlocker returns the blocker of a request for items: an item that it names, or a state.
func (a *Allocation) itemBlocker(t *tree, v quota.Violation) blocker {
	key := blocker{tree: t, resource: t.resource(v.Resource)}
	for i := range a.claims {
		c := &a.claims[i]
		if c.at.tree == t && slices.Contains(c.pickOf(v.Resource).Names, v.Item) {
			key.item = v.Item
			return key
		}
	}
	key.state = v.Item
	return key
}

// isStillBlocked is true if the blocker of an alternative's queue still blocks it.
func (q *waitQueue) isStillBlocked(alt *alternative, a *Allocation, violations []quota.Violation) bool {
	if alt.blockedIn == &q.unassigned {
		return false
	}
	key, aside := alt.blockedIn.blocker, q.neverFits(violations) >= 0
	switch {
	case key.tree == nil && q.allocations.held.Len() >= q.bounds.Held:
		return true // also if a limit was lowered meanwhile: it blocks no other request there
	case key.isAside != aside:
		return false
	case aside:
		return slices.ContainsFunc(violations, func(v quota.Violation) bool {
			return q.isBeyondLimit(v) && q.asideKey(a, v) == key
		})
	case alt.of.isResize() && alt.blockedIn.capacity() < alt.need:
		return true
	}
	for _, v := range violations {
		if q.blockerFrom(a, v) == key {
			return true
		}
	}
	return key == q.blockerOf(a, violations)
}

// clearAllDirty marks all queues clean. All waiters of a restored ledger were tried before its snapshot was taken.
func (q *waitQueue) clearAllDirty() {
	for q.dirty.Len() > 0 {
		q.clearDirty(q.dirty.First())
	}
}

// A lease in a tree with a grace span is not preempted at once (docs/adr/0028): its revocation is announced to the
// holder, and the request that needs the capacity waits until the lease has ended.

// deferForGrace finishes a transaction that would end leases to which a grace span applies. It reverts all steps and
// does not grant the request.
func (t *staged) deferForGrace(a *Allocation) (quota.Decision, bool) {
	told := t.findRevocations()
	if len(told) == 0 {
		return quota.Decision{}, false
	}
	t.rollback()
	return quota.Decision{Violations: t.ledger.violationsWithoutPreemption(a), Preempted: told}, true
}

// findRevocations notes the victims that are leases with a grace span, and returns them.
func (t *staged) findRevocations() []quota.Preempted {
	var told []quota.Preempted
	for i, v := range t.victims {
		if grace := t.ledger.forest.graceOf(v, t.preempted[i].Tree); grace > 0 {
			if r := t.preempted[i].Reason; r != nil {
				r.Grace = grace
			}
			t.revocations = append(t.revocations, pendingRevocation{v.fence, t.preempted[i]})
			told = append(told, t.preempted[i])
		}
	}
	return told
}

// pendingRevocation is a lease that must be revoked.
type pendingRevocation struct {
	fence uint64
	quota.Preempted
}

// graceOf is the grace span of a victim in a tree. It is 0 if the victim is not a lease or only reserved: a reservation
// ends at once, and its caller learns that from the confirmation.
func (f *forest) graceOf(victim *Allocation, tree string) quota.Span {
	if is := victim.lease(); !is.isRevocable() {
		return 0
	}
	return f.trees[tree].settings.Leases.Grace
}

// violationsWithoutPreemption lists the violations of a request that may not preempt.
func (e *environment) violationsWithoutPreemption(a *Allocation) []quota.Violation {
	violations := e.askerFor(a).decide(a.plainClaims())
	for i := range a.claims {
		if c := &a.claims[i]; c.isSoft() {
			violations = append(violations, c.inTheWay()...)
		}
	}
	return violations
}

// revokeFor revokes the leases that a waiting request would preempt, unless it already awaits revocations, perhaps for
// another alternative. Later requests in its queues may not take that capacity.
func (l *Ledger) revokeFor(w *waiter, t *tx) {
	if t.staged == nil || l.queue.revokedFor[w.record.id] > 0 {
		return
	}
	var revoked []quota.Preempted
	for _, v := range t.staged.revocations {
		victim, _ := l.allocations.held.Get(v.fence)
		if l.revokeLease(victim, w.record.id, l.forest.graceOf(victim, v.Tree), v.Reason) && v.Reason != nil {
			revoked = append(revoked, v.Preempted)
		}
	}
	if len(revoked) > 0 {
		is, more := *w.record, *w.record.more
		more.noteVictims(revoked)
		is.more = &more
		l.queue.replaceRecord(w, &is)
	}
}

// countRevocation counts a held lease under revocation, or with -1 its end. The waiter that needs the capacity must not
// be overtaken until the last one has ended.
func (q *waitQueue) countRevocation(a *Allocation, sign int) {
	by := a.lease().revokedBy
	if by == "" {
		return
	}
	if q.revokedFor == nil {
		q.revokedFor = map[string]int{}
	}
	if q.revokedFor[by] += sign; q.revokedFor[by] == 0 {
		delete(q.revokedFor, by)
	}
	preemptor := q.allocations.byID.Find(by)
	if preemptor == nil || preemptor.ended != nil {
		return
	}
	if resize := preemptor.waitingResize(); resize != nil {
		preemptor = resize
	}
	if preemptor.isWaiting() {
		q.markAwaiting(q.waiterOf(preemptor))
	}
}

// markAwaiting updates whether a request awaits revocations. When it stops waiting for them, the others in its queues
// are retried.
func (q *waitQueue) markAwaiting(w *waiter) {
	is := q.revokedFor[w.record.id] > 0
	for _, alt := range w.alternatives {
		switch {
		case is == alt.awaitsRevocation:
			continue
		case alt.blockedIn == &q.unassigned:
		case is:
			alt.blockedIn.revocationsPending++
		default:
			alt.blockedIn.revocationsPending--
			q.markDirty(alt.blockedIn)
		}
		alt.awaitsRevocation = is
	}
}
