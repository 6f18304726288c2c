package admit

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
	"github.com/quorate/quorate/quota/policy"
)

// AfterCommand runs at the end of every command that made a queue dirty or a dynamic node idle, and of every command
// while nodes are on hold. It grants waiting requests that fit now, in the order of the queue, which establishes I7,
// and removes idle dynamic nodes.
func AfterCommand(s *state.State) {
	if len(s.Forest.OnHold) > 0 {
		continueDrains(s)
	}
	DrainQueue(s)
	for s.Forest.RemoveIdleNodes() && len(s.Queue.QueuesForLedger) > 0 {
		s.Queue.MarkDirty(s.Queue.QueuesForLedger[0])
		DrainQueue(s)
	}
	AnnounceDrained(s)
}

// DrainQueue grants waiting requests until none that waits could be granted.
//
// Each alternative of a waiting request is in the queue of the first blocker in its way. What frees capacity marks the
// queues that it may concern as dirty. The dirty queues are sorted by the turn of their next candidate, so of all
// requests that might fit now the one whose turn is first is decided. There are four ends:
//
//   - Only a bound of the ledger is in its way: it waits among those that are retried when the ledger has room.
//   - It is granted, with the first of its alternatives that ends nothing if there is one, and leaves all its queues.
//   - Another blocker is the first now: it moves to that queue.
//   - The same blocker is in its way: it stays, and its queue goes on behind it.
//
// A request that may end leases asks for them back in the last two cases. A queue skips what its blocker has no room
// for, and each step leaves a request behind, so the cost grows with the requests that might fit, not with all that
// wait.
func DrainQueue(s *state.State) {
	for s.Queue.Dirty.Len() > 0 {
		bq := s.Queue.Dirty.First()
		alt := nextCandidate(&s.Queue, bq)
		if alt == nil {
			s.Queue.ClearDirty(bq)
			continue
		}
		if alt.Turn != bq.Next { // it was sorted by a candidate that is gone
			bq.Next = alt.Turn
			s.Queue.Dirty.Push(bq)
			continue
		}
		bq.From = alt.Turn.Next()
		t, decision, full := JudgeAlternative(s, alt)
		switch {
		case full:
			t.Rollback()
			changeQueue(&s.Queue, alt, state.Blocker{}, 0)
		case decision.Granted:
			preferGentler(s, alt, &t)
			grantWaiter(s, alt.Of, &t)
		case !IsStillBlocked(&s.Queue, alt, t.Allocation, decision.Violations):
			blocker := blockerOfRequest(&s.Queue, t.Allocation, decision.Violations)
			changeQueue(&s.Queue, alt, blocker, t.AmountNeeded(blocker))
			revokeFor(s, alt.Of, &t)
		default:
			revokeFor(s, alt.Of, &t)
		}
	}
}

// nextCandidate is the next waiter of a dirty queue that might fit; nil if there is none. The alternatives of a request
// do not block each other.
func nextCandidate(q *state.WaitQueue, bq *state.BlockerQueue) *state.Alternative {
	if bq.Tree == nil && bq != &q.Unassigned && q.Allocations.Held.Len() >= q.Bounds.Held {
		return nil
	}
	if bq.IsHold && bq.Node.Hold != nil && !bq.RetryAll {
		return nil // with RetryAll a limit may have changed that is then the blocker
	}
	if bq.RetryAll {
		return bq.Within(quota.MaxAmount, bq.From)
	}
	next := bq.Within(bq.Capacity(), bq.From)
	if firm := bq.BlockingHead(q.Now.At); next != nil && firm != nil && firm.Of != next.Of &&
		firm.Turn.Before(next.Turn) {
		return nil
	}
	return next
}

// JudgeAlternative decides a waiting request for one of its alternatives like a new one, but at its place in the queue.
// full is true if only a bound of the ledger blocks it. If it is granted, the caller must commit or roll back, as after
// decide.
func JudgeAlternative(s *state.State, alt *state.Alternative) (t Admission, d quota.Decision, full bool) {
	if alt.Of.IsResize() {
		return JudgeResize(s, alt)
	}
	a, refused := placeAlternative(s, alt)
	if refused != nil {
		return Admission{State: s}, quota.Decision{}, true
	}
	t = Begin(s, a)
	d = t.Decide()
	if d.Granted && state.AsksForRanges(alt.Wanted) {
		request := RequestOf(alt)
		t, d = widen(s, t, d, request.Steps(), func(step int) (*state.Allocation, *quota.Error) {
			return placeAlternativeAtStep(s, alt, step)
		})
	}
	return t, d, d.Granted && !t.HasRoom()
}

// placeAlternative finds the nodes of an alternative of a waiting request. A configuration that makes it invalid ends
// it, so the only remaining reason for a refusal is the bound of nodes. Of ranges it has the least amounts.
func placeAlternative(s *state.State, alt *state.Alternative) (*state.Allocation, *quota.Error) {
	return placeAlternativeAtStep(s, alt, 0)
}

// placeAlternativeAtStep has the amounts after so many steps of the ranges.
func placeAlternativeAtStep(s *state.State, alt *state.Alternative, step int) (*state.Allocation, *quota.Error) {
	request := RequestOf(alt)
	a, refused := placeAtStep(s, &request, step)
	if refused != nil {
		return nil, refused
	}
	record := alt.Of.Record
	a.Owner, a.More.Waiting, a.More.Resized = record.Owner, record.More.Waiting, alt.Resized
	a.More.Preempted, a.More.Room = record.More.Preempted, record.More.Room
	for i := range a.Claims {
		a.Claims[i].Asked = alt.Claims[i].Asked
	}
	return a, nil
}

func changeQueue(q *state.WaitQueue, alt *state.Alternative, key state.Blocker, need quota.Amount) {
	if alt.BlockedIn.Blocker == key && alt.BlockedIn != &q.Unassigned {
		return
	}
	q.LeaveQueue(alt)
	q.JoinQueue(alt, key, need)
}

func grantWaiter(s *state.State, w *state.Waiter, t *Admission) {
	a := t.Allocation
	since := max(1, w.Record.More.Waiting.Since.At) // 0 means never
	if t.Change != nil {
		t.Change.commit(since)
		return
	}
	s.Queue.RemoveWaiter(w)
	a.More.Waiting = nil
	markUnclaimed(s, a, state.KeepSpan(&w.Request))
	t.commit(since)
}

// markUnclaimed makes what was granted from the queue end after the keep span unless its caller claims it.
func markUnclaimed(s *state.State, a *state.Allocation, keep quota.Span) {
	b := a.More.Lease
	switch {
	case b != nil && b.TTL > 0:
		keep = min(b.TTL, keep)
	case b == nil:
		b = &state.Lease{}
		a.More.Lease = b
	}
	b.Unclaimed = true
	b.Expires = s.Now.At + quota.Instant(keep)
}

func blockerOfRequest(q *state.WaitQueue, a *state.Allocation, violations []quota.Violation) state.Blocker {
	if len(violations) == 0 {
		root := a.Claims[0].At.Tree.Root
		return state.Blocker{Tree: root.Tree, Node: root}
	}
	if i := NeverFits(q, violations); i >= 0 {
		return asideKey(q, a, violations[i])
	}
	key := blockerFrom(q, a, violations[0])
	if key.IsSoft() {
		key.Node = softBlockerOf(q, a, key.Node, violations)
	}
	return key
}

// NeverFits is the index of the first violation that shows that a request cannot be granted as long as the limits are
// as they are, whatever is released; -1 if there is none. Of items that are made on demand only the most that there may
// be counts, because they come and go without a change of the configuration.
func NeverFits(q *state.WaitQueue, violations []quota.Violation) int {
	return slices.IndexFunc(violations, func(v quota.Violation) bool { return isBeyondLimit(q, v) })
}

// isBeyondLimit is true in a cohort if the request could not be granted although nothing else were held.
func isBeyondLimit(q *state.WaitQueue, v quota.Violation) bool {
	if v.Kind != quota.OfItems {
		return v.NeverFits()
	}
	items := q.Forest.Trees[v.Tree].Resource(v.Resource).Items
	return v.NeverFits() && (!items.OnDemand() || v.Requested > quota.Amount(items.MaxItems()))
}

// asideKey is the blocker of a request that is larger than the whole limit of a violation.
func asideKey(q *state.WaitQueue, a *state.Allocation, v quota.Violation) state.Blocker {
	key := blockerFrom(q, a, v)
	key.IsAside = true
	return key
}

// softBlockerOf is the node that stops a claim with soft borrowing: the first hard one with a violation from the
// claim's node up, or else the last one with a violation.
func softBlockerOf(q *state.WaitQueue, a *state.Allocation, n *state.Node, violations []quota.Violation) *state.Node {
	for _, v := range violations {
		key := blockerFrom(q, a, v)
		if !key.IsSoft() || !BorrowsFrom(n, key.Node) {
			break
		}
		if n = key.Node; n.Spec.Hard {
			break
		}
	}
	return n
}

// blockerFrom uses, for a node that the request itself would create, the nearest existing node.
func blockerFrom(q *state.WaitQueue, a *state.Allocation, v quota.Violation) state.Blocker {
	t := q.Forest.Trees[v.Tree]
	if v.Kind == quota.OfItems || v.Kind == quota.OfQueue && v.Item != "" {
		return itemBlocker(a, t, v)
	}
	key := state.Blocker{Tree: t, Node: t.Nearest(v.Node), Holder: v.Holder, IsHold: v.Kind == quota.OfHold}
	if v.Resource != "" && (key.Node.Borrows != policy.BorrowSoft || v.Holder.Kind != quota.TheNode) {
		key.Resource = t.Resource(v.Resource)
	}
	return key
}

func itemBlocker(a *state.Allocation, t *state.Tree, v quota.Violation) state.Blocker {
	key := state.Blocker{Tree: t, Resource: t.Resource(v.Resource)}
	for i := range a.Claims {
		c := &a.Claims[i]
		if c.At.Tree == t && slices.Contains(c.PickOf(v.Resource).Names, v.Item) {
			key.Item = v.Item
			return key
		}
	}
	key.State = v.Item
	return key
}

// IsStillBlocked is true if the blocker of an alternative's queue still blocks it.
func IsStillBlocked(
	q *state.WaitQueue, alt *state.Alternative, a *state.Allocation, violations []quota.Violation,
) bool {
	if alt.BlockedIn == &q.Unassigned {
		return false
	}
	key, aside := alt.BlockedIn.Blocker, NeverFits(q, violations) >= 0
	switch {
	case key.Tree == nil && q.Allocations.Held.Len() >= q.Bounds.Held:
		return true // also if a limit was lowered meanwhile: it blocks no other request there
	case key.IsAside != aside:
		return false
	case aside:
		return slices.ContainsFunc(violations, func(v quota.Violation) bool {
			return isBeyondLimit(q, v) && asideKey(q, a, v) == key
		})
	case alt.Of.IsResize() && alt.BlockedIn.Capacity() < alt.Need:
		return true
	}
	for _, v := range violations {
		if blockerFrom(q, a, v) == key {
			return true
		}
	}
	return key == blockerOfRequest(q, a, violations)
}

// ClearAllDirty marks all queues clean. All waiters of a restored ledger were tried before its snapshot was taken.
func ClearAllDirty(q *state.WaitQueue) {
	for q.Dirty.Len() > 0 {
		q.ClearDirty(q.Dirty.First())
	}
}

// A lease in a tree with a grace span is not preempted at once (docs/adr/0028): its revocation is announced to the
// holder, and the request that needs the capacity waits until the lease has ended.

// deferForGrace finishes a transaction that would end leases to which a grace span applies. It reverts all steps and
// does not grant the request.
func (t *staged) deferForGrace(a *state.Allocation) (quota.Decision, bool) {
	revocations := t.findRevocations()
	if len(revocations) == 0 {
		return quota.Decision{}, false
	}
	t.rollback()
	return quota.Decision{Violations: violationsWithoutPreemption(&t.state.Environment, a), Preempted: revocations}, true
}

// findRevocations also returns the victims that it notes.
func (t *staged) findRevocations() []quota.Preempted {
	var revocations []quota.Preempted
	for i, v := range t.victims {
		if grace := graceOf(&t.state.Forest, v, t.preempted[i].Tree); grace > 0 {
			if r := t.preempted[i].Reason; r != nil {
				r.Grace = grace
			}
			t.revocations = append(t.revocations, pendingRevocation{v.Fence(), t.preempted[i]})
			revocations = append(revocations, t.preempted[i])
		}
	}
	return revocations
}

type pendingRevocation struct {
	fence uint64
	quota.Preempted
}

// graceOf is the grace span of a victim in a tree. It is 0 if the victim is not a lease or only reserved: a reservation
// ends at once, and its caller learns that from the confirmation.
func graceOf(f *state.Forest, victim *state.Allocation, tree string) quota.Span {
	if lease := victim.Lease(); !lease.IsRevocable() {
		return 0
	}
	return f.Trees[tree].Settings.Leases.Grace
}

func violationsWithoutPreemption(e *state.Environment, a *state.Allocation) []quota.Violation {
	violations := violationsOf(e.AskerFor(a), plainClaims(a))
	for i := range a.Claims {
		if c := &a.Claims[i]; c.IsSoft() {
			violations = append(violations, inTheWay(c)...)
		}
	}
	return violations
}

// revokeFor revokes the leases that a waiting request would preempt, unless it already awaits revocations, perhaps for
// another alternative. Later requests in its queues may not take that capacity.
func revokeFor(s *state.State, w *state.Waiter, t *Admission) {
	if t.staged == nil || s.Queue.RevokedFor[w.Record.ID()] > 0 {
		return
	}
	var revoked []quota.Preempted
	for _, v := range t.staged.revocations {
		victim, _ := s.Allocations.Held.Get(v.fence)
		if revokeLease(s, victim, w.Record.ID(), graceOf(&s.Forest, victim, v.Tree), v.Reason) && v.Reason != nil {
			revoked = append(revoked, v.Preempted)
		}
	}
	if len(revoked) > 0 {
		updated, more := *w.Record, *w.Record.More
		more.NoteVictims(revoked)
		updated.More = &more
		replaceWaitingRecord(&s.Queue, w, &updated)
	}
}

// CountRevocation counts a held lease under revocation, or with -1 its end. The waiter that needs the capacity must not
// be overtaken until the last one has ended.
func CountRevocation(q *state.WaitQueue, a *state.Allocation, sign int) {
	revoker := a.Lease().RevokedBy
	if revoker == "" {
		return
	}
	if q.RevokedFor == nil {
		q.RevokedFor = map[string]int{}
	}
	if q.RevokedFor[revoker] += sign; q.RevokedFor[revoker] == 0 {
		delete(q.RevokedFor, revoker)
	}
	preemptor := q.Allocations.ByID.Find(revoker)
	if preemptor == nil || preemptor.Ended != nil {
		return
	}
	if resize := preemptor.WaitingResize(); resize != nil {
		preemptor = resize
	}
	if preemptor.IsWaiting() {
		markAwaiting(q, q.WaiterOf(preemptor))
	}
}

// markAwaiting updates whether a request awaits revocations. When it stops waiting for them, the others in its queues
// are retried.
func markAwaiting(q *state.WaitQueue, w *state.Waiter) {
	awaiting := q.RevokedFor[w.Record.ID()] > 0
	for _, alt := range w.Alternatives {
		switch {
		case awaiting == alt.AwaitsRevocation:
			continue
		case alt.BlockedIn == &q.Unassigned:
		case awaiting:
			alt.BlockedIn.RevocationsPending++
		default:
			alt.BlockedIn.RevocationsPending--
			q.MarkDirty(alt.BlockedIn)
		}
		alt.AwaitsRevocation = awaiting
	}
}
