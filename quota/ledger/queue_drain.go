package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// markDirty makes everybody in a line be tried from the head on.
func (q *waitQueue) markDirty(ln *blockerQueue) {
	ln.from, ln.next = firstTurn, firstTurn
	q.dirty.Push(ln)
}

func (q *waitQueue) clearDirty(ln *blockerQueue) {
	q.dirty.Remove(ln)
	ln.retryAll = false
}

// afterCommand grants what can be granted now to those who wait, in the order of the queue, and lets nodes made on demand vanish
// that nothing is held at. It runs at the end of every command: nobody who could be granted is left waiting (I7).
func (l *Ledger) afterCommand() {
	l.drainQueue()
	for l.forest.removeIdleNodes() && len(l.queue.queuesForLedger) > 0 {
		l.queue.markDirty(l.queue.queuesForLedger[0])
		l.drainQueue()
	}
}

// drainQueue tries the stirred lines, always whoever is first in the queue of those who are next in one of them. It costs those
// who have a chance, not those who wait.
func (l *Ledger) drainQueue() {
	for l.queue.dirty.Len() > 0 {
		ln := l.queue.dirty.First()
		w := l.queue.nextCandidate(ln)
		switch {
		case w == nil:
			l.queue.clearDirty(ln)
		case w.turn != ln.next:
			ln.next = w.turn
			l.queue.dirty.Push(ln)
		default:
			ln.from = turnAfter(w.turn)
			l.tryAdmit(w)
		}
	}
}

// nextCandidate is the next one in a stirred line who may have a chance; nil if nobody has.
func (q *waitQueue) nextCandidate(ln *blockerQueue) *waiter {
	if ln.tree == nil && ln != &q.unassigned && q.allocations.held.Len() >= q.bounds.Held {
		return nil
	}
	if ln.retryAll {
		return ln.within(quota.MaxAmount, ln.from)
	}
	next := ln.within(ln.capacity(), ln.from)
	if firm := ln.blockingHead(q.now.At); next != nil && firm != nil && turnBefore(firm.turn, next.turn) {
		return nil
	}
	return next
}

// tryAdmit grants a request from the queue if that can be. Otherwise it goes on waiting: where it is, if what it waits for
// there is still in its way, or else in the line of what is now.
func (l *Ledger) tryAdmit(w *waiter) {
	t, d, full := l.judgeWaiter(w)
	switch {
	case full:
		t.rollback()
		l.queue.changeQueue(w, blocker{}, 0)
	case d.Granted:
		l.grantWaiter(w, &t)
	case !l.queue.isStillBlocked(w, t.allocation, d.Violations):
		key := l.queue.blockerOf(t.allocation, d.Violations)
		l.queue.changeQueue(w, key, key.amountNeeded(t.allocation))
		l.revokeFor(w, &t)
	default:
		l.revokeFor(w, &t)
	}
}

// judgeWaiter decides a request that waits as if it came now, but in its turn; full is true if nothing but a bound of the
// ledger is in its way. As after decide, commit or rollback must follow if it is granted.
func (l *Ledger) judgeWaiter(w *waiter) (t tx, d quota.Decision, full bool) {
	a, refused := l.placeWaiter(w)
	if refused != nil {
		return tx{ledger: l}, quota.Decision{}, true
	}
	t = l.beginTx(a)
	d = t.decide()
	return t, d, d.Granted && !t.hasRoom()
}

// previewWaiter decides a request that waits and changes nothing.
func (l *Ledger) previewWaiter(w *waiter) quota.Decision {
	t, d, _ := l.judgeWaiter(w)
	t.rollback()
	return d
}

// placeWaiter finds the nodes for a request that waits. A configuration that refuses it has ended it, so all that can be
// refused now is that there are too many nodes.
func (l *Ledger) placeWaiter(w *waiter) (*Allocation, *quota.Error) {
	a, refused := l.placeClaims(w.request)
	if refused != nil {
		return nil, refused
	}
	a.more.waiting = w.record.more.waiting
	for i := range a.claims {
		a.claims[i].asked = w.record.claims[i].asked
	}
	return a, nil
}

func (q *waitQueue) changeQueue(w *waiter, key blocker, need quota.Amount) {
	if w.blockedIn.blocker == key && w.blockedIn != &q.unassigned {
		return
	}
	q.leaveQueue(w)
	q.joinQueue(w, key, need)
}

// grantWaiter grants a request from the queue.
func (l *Ledger) grantWaiter(w *waiter, t *tx) {
	a := t.allocation
	since := max(1, w.record.more.waiting.since.At) // 0 is never
	l.queue.removeWaiter(w)
	a.more.waiting = nil
	a.markUnclaimed(l.now, keepSpan(w.request))
	t.commit(since)
}

// markUnclaimed makes a lease end soon unless its caller comes for it.
func (a *Allocation) markUnclaimed(now quota.Stamp, keep quota.Span) {
	if b := a.more.lease; b != nil && b.ttl > 0 {
		b.unclaimed = true
		b.expires = now.At + quota.Instant(min(b.ttl, keep))
	}
}

// blockerOf is the line of the first thing in the way.
func (q *waitQueue) blockerOf(a *Allocation, violations []quota.Violation) blocker {
	if len(violations) == 0 {
		root := a.claims[0].at.tree.root
		return blocker{tree: root.tree, node: root}
	}
	key := q.blockerFrom(a, violations[0])
	if key.isSoft() {
		key.node = q.softBlockerOf(a, key.node, violations)
	}
	return key
}

// softBlockerOf is the node where a claim that may borrow softly is stopped: the first hard one that is in the way from a node
// up, or else the last of all.
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

// isSoft is true for a line of those who found no place by borrowing softly.
func (key blocker) isSoft() bool {
	return key.node != nil && key.resource == nil && key.holder.Kind == quota.TheNode && key.node.borrows == policy.BorrowSoft
}

// blockerFrom is the line of those who wait for a violated limit. At a node that the request itself would make it is that of the
// nearest node that exists.
func (q *waitQueue) blockerFrom(a *Allocation, v quota.Violation) blocker {
	t := q.forest.trees[v.Tree]
	if v.Kind == quota.OfItems || v.Kind == quota.OfQueue && v.Item != "" {
		return a.itemBlocker(t, v)
	}
	key := blocker{tree: t, node: t.nearest(v.Node), holder: v.Holder}
	if v.Resource != "" && (key.node.borrows != policy.BorrowSoft || v.Holder.Kind != quota.TheNode) {
		key.resource = t.resource(v.Resource)
	}
	return key
}

// itemBlocker is the line of those who wait for items: for one that the request names, or for any in a state.
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

// isStillBlocked is true if what a waiter's line waits for is still in its way.
func (q *waitQueue) isStillBlocked(w *waiter, a *Allocation, violations []quota.Violation) bool {
	if w.blockedIn == &q.unassigned {
		return false
	}
	key := w.blockedIn.blocker
	if key.tree == nil && q.allocations.held.Len() >= q.bounds.Held {
		return true
	}
	for _, v := range violations {
		if q.blockerFrom(a, v) == key {
			return true
		}
	}
	return key == q.blockerOf(a, violations)
}

// clearAllDirty forgets which lines are stirred: those of a ledger that is loaded have all been tried.
func (q *waitQueue) clearAllDirty() {
	for q.dirty.Len() > 0 {
		q.clearDirty(q.dirty.First())
	}
}

// A lease in a tree with a span of grace is not preempted at once (docs/adr/0028): its holder is told, and whoever wants the
// room waits until the lease has ended.

// deferForGrace answers what was found out by a trial that would end leases to which grace is due: then it has taken
// everything back, and the request is not granted.
func (t *staged) deferForGrace(a *Allocation) (quota.Decision, bool) {
	for i, v := range t.victims {
		if t.ledger.forest.graceOf(v, t.preempted[i].Tree) > 0 {
			t.revocations = append(t.revocations, pendingRevocation{v.fence, t.preempted[i]})
		}
	}
	if len(t.revocations) == 0 {
		return quota.Decision{}, false
	}
	told := make([]quota.Preempted, len(t.revocations))
	for i, v := range t.revocations {
		told[i] = v.Preempted
	}
	t.rollback()
	return quota.Decision{Violations: t.ledger.violationsWithoutPreemption(a), Preempted: told}, true
}

// pendingRevocation is a lease that has to give way.
type pendingRevocation struct {
	fence uint64
	quota.Preempted
}

// graceOf is the span that is due to a victim that stands in the way in a tree; 0 if it is no lease, or none yet: whoever has
// only reserved goes at once, and learns it from the confirmation.
func (f *forest) graceOf(victim *Allocation, tree string) quota.Span {
	if victim.lease().expires == 0 {
		return 0
	}
	return f.trees[tree].settings.Leases.Grace
}

// violationsWithoutPreemption lists all that is in the way of a request that may end nobody.
func (e *environment) violationsWithoutPreemption(a *Allocation) []quota.Violation {
	violations := e.askerFor(a).decide(a.plainClaims()).Violations
	for i := range a.claims {
		if c := &a.claims[i]; c.isSoft() {
			violations = append(violations, c.inTheWay()...)
		}
	}
	return violations
}

// revokeFor revokes the leases that have to give way to a request that waits, unless it waits for others already. Whoever is later
// than it in its line may not take the room.
func (l *Ledger) revokeFor(w *waiter, t *tx) {
	if t.staged == nil || w.awaitsRevocation {
		return
	}
	for _, v := range t.staged.revocations {
		victim, _ := l.allocations.held.Get(v.fence)
		is := victim.lease()
		if is.revokedBy != "" {
			continue
		}
		is.revokedBy, is.expires = w.record.id, min(is.expires, l.now.At+quota.Instant(l.forest.graceOf(victim, v.Tree)))
		revoked := l.replaceLease(victim.withLease(is))
		l.queue.countRevocation(revoked, 1)
		l.journal.noteFact(FactRevoked, revoked)
		l.journal.noteEvent(quota.Event{Kind: quota.EventRevoked, ID: revoked.id, By: is.revokedBy})
	}
}

// countRevocation notes that a lease that has to give way is held, or with -1 that it has ended. Whoever waits for that presses
// in its line until the last one has.
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
	if preemptor := q.allocations.byID[by]; preemptor != nil && preemptor.isWaiting() {
		q.markAwaiting(q.waiterOf(preemptor))
	}
}

// markAwaiting settles whether a request presses in its line; if it does no more, the others there have their turn.
func (q *waitQueue) markAwaiting(w *waiter) {
	is := q.revokedFor[w.record.id] > 0
	switch {
	case is == w.awaitsRevocation:
		return
	case w.blockedIn == &q.unassigned:
	case is:
		w.blockedIn.revocationsPending++
	default:
		w.blockedIn.revocationsPending--
		q.markDirty(w.blockedIn)
	}
	w.awaitsRevocation = is
}

// firstAwaitingRevocation is the first in the line for whom leases have been revoked; nil if there is none.
func (ln *blockerQueue) firstAwaitingRevocation() *waiter {
	if ln.revocationsPending == 0 {
		return nil
	}
	for w := range ln.rankQueue.from(firstTurn) {
		if w.awaitsRevocation {
			return w
		}
	}
	return nil
}
