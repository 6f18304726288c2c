package image

import (
	"fmt"
	"maps"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/rankqueue"
	"github.com/quorate/quorate/quota/ledger/internal/admit"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// checkQueue verifies I7: every waiting request is in one queue, its blocker or a request that must not be overtaken
// there blocks it, and no waiting request could be granted.
func (v verifier) checkQueue() error {
	if v.state.Queue.Dirty.Len() > 0 || v.state.Queue.Unassigned.Waiters.Len() > 0 {
		return fmt.Errorf("%d blocker queues are dirty and %d requests are in no queue between two commands",
			v.state.Queue.Dirty.Len(), v.state.Queue.Unassigned.Waiters.Len())
	}
	queues, pressing, revoked := map[*state.BlockerQueue]int{}, map[*state.BlockerQueue]int{}, map[string]int{}
	for _, a := range v.state.Allocations.Held.All() {
		if revoker := a.Lease().RevokedBy; revoker != "" {
			revoked[revoker]++
		}
	}
	if !maps.Equal(revoked, v.state.Queue.RevokedFor) {
		return fmt.Errorf("leases are revoked for %v, but %v are counted", revoked, v.state.Queue.RevokedFor)
	}
	last, owners := rankqueue.First(), map[string]int{}
	for w := range v.state.Queue.All.All() {
		if w.Record.Owner != "" {
			owners[w.Record.Owner]++
		}
		if err := v.checkWaiter(w, last); err != nil {
			return err
		}
		last = w.Turn
		for _, alt := range w.Alternatives {
			if err := v.checkAlternative(alt); err != nil {
				return err
			}
			queues[alt.BlockedIn]++
			if alt.AwaitsRevocation {
				pressing[alt.BlockedIn]++
			}
		}
	}
	if !maps.Equal(owners, v.state.Queue.ByOwner) {
		return fmt.Errorf("requests of %v wait, but %v are counted", owners, v.state.Queue.ByOwner)
	}
	if n := v.state.Queue.All.Len(); n != len(v.state.Queue.ByArrival) {
		return fmt.Errorf("%d requests wait, but %d are known by their arrival", n, len(v.state.Queue.ByArrival))
	}
	for bq := range queues {
		if bq.RevocationsPending != pressing[bq] {
			return fmt.Errorf("%d requests of the queue for %s await a revocation, but it counts %d", pressing[bq], bq,
				bq.RevocationsPending)
		}
	}
	return v.checkBlockerQueues(queues)
}

func (v verifier) checkWaiter(w *state.Waiter, last rankqueue.Rank) error {
	a, place := w.Record, w.Record.More.Waiting
	switch {
	case !last.Before(w.Turn) || place.Arrival != w.Turn.Arrival || place.Arrival > v.state.Queue.Arrival ||
		a.More.Priority != w.Turn.Priority:
		return fmt.Errorf("request %q is not in its place in the queue", a.ID())
	case w.IsResize() && !v.isResizeOf(w) || !w.IsResize() && v.state.Allocations.ByID.Find(a.ID()) != a:
		return fmt.Errorf("request %q cannot be found by its id, or its allocation does not know it", a.ID())
	case v.state.Queue.ByArrival[place.Arrival] != w || a.Ended != nil || a.Fence() != 0:
		return fmt.Errorf("request %q cannot be found by its arrival, or holds something", a.ID())
	case place.Since.At > v.state.Now.At:
		return fmt.Errorf("I9: request %q waits since a future time", a.ID())
	case len(w.Alternatives) == 0 || a.More.Resized != w.Alternatives[0].Resized ||
		!slices.EqualFunc(a.Claims, w.Alternatives[0].Claims, func(x, y state.PlacedClaim) bool { return x.At == y.At }):
		return fmt.Errorf("request %q has no alternative, or other claims than its first", a.ID())
	}
	return nil
}

// checkAlternative verifies that an alternative of a waiting request cannot be granted, and waits for what is in its
// way.
func (v verifier) checkAlternative(alt *state.Alternative) error {
	id := alt.Of.Record.ID()
	switch {
	case alt.BlockedIn == nil || v.state.Queue.FindQueue(alt.BlockedIn.Blocker) != alt.BlockedIn ||
		alt.BlockedIn.Within(quota.MaxAmount, alt.Turn) != alt:
		return fmt.Errorf("I7: request %q is in no queue", id)
	case alt.HeadSince > max(1, v.state.Now.At) || alt.BlockedIn.Head() == alt && alt.HeadSince == 0 &&
		!alt.BlockedIn.IsAside:
		return fmt.Errorf("I9: request %q is at the head of a queue since a future time", id)
	}
	if alt.AwaitsRevocation != (v.state.Queue.RevokedFor[id] > 0) {
		return fmt.Errorf("%d leases are revoked for %q, but it says that it presses: %v", v.state.Queue.RevokedFor[id],
			id, alt.AwaitsRevocation)
	}
	t, d, full := admit.JudgeAlternative(v.state, alt)
	t.Rollback()
	b := t.Allocation
	switch {
	case alt.BlockedIn.Tree == nil && (full || admit.IsStillBlocked(&v.state.Queue, alt, b, d.Violations)):
	case full || d.Granted:
		return fmt.Errorf("I7: request %q waits for %s, but could be granted", id, alt.BlockedIn)
	case !admit.IsStillBlocked(&v.state.Queue, alt, b, d.Violations) &&
		!heldUp(alt, d.Violations) && !v.blockedThere(alt) &&
		!blockedBelow(alt, d.Violations):
		return fmt.Errorf("I7: request %q waits for %s, but that is not in its way", id, alt.BlockedIn)
	case alt.BlockedIn.IsAside && admit.NeverFits(&v.state.Queue, d.Violations) < 0 && !heldUp(alt, d.Violations):
		return fmt.Errorf("I7: request %q waits aside for %s, but could be granted some day", id, alt.BlockedIn)
	case t.AmountNeeded(alt.BlockedIn.Blocker) != alt.Need:
		return fmt.Errorf("request %q needs %d of %s, but its queue says %d", id,
			t.AmountNeeded(alt.BlockedIn.Blocker), alt.BlockedIn, alt.Need)
	}
	return nil
}

func (v verifier) isResizeOf(w *state.Waiter) bool {
	a, held := v.state.Allocations.Held.Get(w.Resizes)
	return held && a.ID() == w.Record.ID() && a.WaitingResize() == w.Record && a.Owner == w.Record.Owner
}

// heldUp is true if a request must not overtake another in a tree with soft borrowing: then it is not tried there, and
// its decision does not list what else blocks it. Every change of such a tree marks all its queues dirty.
func heldUp(alt *state.Alternative, violations []quota.Violation) bool {
	return alt.BlockedIn.Tree != nil && alt.BlockedIn.Tree.Soft &&
		slices.ContainsFunc(violations, func(v quota.Violation) bool {
			return v.Kind == quota.OfQueue && v.Tree == alt.BlockedIn.Tree.Name
		})
}

// blockedBelow is true if a dynamic node below the blocker's node is in the way. Before another claim created it, the
// blocker's node was the nearest that existed. The request is still retried in time, because what frees capacity at a
// node also marks the queues above it.
func blockedBelow(alt *state.Alternative, violations []quota.Violation) bool {
	key := alt.BlockedIn.Blocker
	return key.Node != nil && slices.ContainsFunc(violations, func(v quota.Violation) bool {
		n := key.Tree.ByPath[v.Node]
		return v.Tree == key.Tree.Name && n != nil && n.Dynamic && n.Within(key.Node) && v.Holder == key.Holder &&
			(key.Resource == nil || key.Resource.Name == v.Resource)
	})
}

// blockedThere is true if the blocker blocks the claims in its tree: of several claims with soft borrowing, a decision
// lists only the first that finds no node.
func (v verifier) blockedThere(alt *state.Alternative) bool {
	if alt.BlockedIn.Tree == nil {
		return false
	}
	if alt.Of.IsResize() {
		return v.blocksResizeThere(alt)
	}
	request := admit.RequestOf(alt)
	request.Claims = slices.DeleteFunc(slices.Clone(request.Claims),
		func(c quota.Claim) bool { return c.Tree != alt.BlockedIn.Tree.Name })
	a, refused := admit.PlaceClaims(v.state, &request)
	if refused != nil {
		return false
	}
	a.More.Waiting = alt.Of.Record.More.Waiting
	t := admit.Begin(v.state, a)
	d := t.Decide()
	t.Rollback()
	return !d.Granted && admit.IsStillBlocked(&v.state.Queue, alt, a, d.Violations)
}

// blocksResizeThere is blockedThere for a resize.
func (v verifier) blocksResizeThere(alt *state.Alternative) bool {
	part := *alt
	part.Claims, part.Wanted = nil, nil
	for i, c := range alt.Claims {
		if c.At.Tree == alt.BlockedIn.Tree {
			part.Claims, part.Wanted = append(part.Claims, c), append(part.Wanted, alt.Wanted[i])
		}
	}
	t, d, full := admit.JudgeResize(v.state, &part)
	t.Rollback()
	return !full && !d.Granted && admit.IsStillBlocked(&v.state.Queue, alt, t.Allocation, d.Violations)
}

func (v verifier) checkBlockerQueues(queues map[*state.BlockerQueue]int) error {
	kept := len(v.state.Queue.QueuesForLedger)
	for _, t := range v.state.Forest.Trees {
		kept += len(t.Queues)
		here := 0
		for _, r := range t.Resources {
			here += len(r.Queues)
		}
		for _, n := range t.ByPath {
			here += len(n.Queues)
		}
		if here != len(t.Queues) {
			return fmt.Errorf("tree %s has %d queues, but its nodes and resources have %d", t.Name, len(t.Queues), here)
		}
	}
	if kept != len(queues) {
		return fmt.Errorf("there are %d blocker queues, but requests wait in %d", kept, len(queues))
	}
	for bq, length := range queues {
		if bq.Waiters.Len() != length || bq.At != 0 {
			return fmt.Errorf("the queue for %s has %d requests, but %d wait in it", bq, bq.Waiters.Len(), length)
		}
		if err := bq.Waiters.Check(); err != nil {
			return fmt.Errorf("the queue for %s: %w", bq, err)
		}
		for alt := range bq.Waiters.All() {
			if bq.Within(alt.Need, alt.Turn) != alt {
				return fmt.Errorf("the queue for %s does not find request %q by its need of %d", bq, alt.Of.Record.ID(),
					alt.Need)
			}
		}
	}
	return nil
}
