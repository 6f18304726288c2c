package ledger

import (
	"fmt"
	"maps"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/rankqueue"
)

// checkQueue verifies I7: every waiting request is in one queue, its blocker or a request that must not be overtaken
// there blocks it, and no waiting request could be granted.
func (v verifier) checkQueue() error {
	if v.ledger.queue.dirty.Len() > 0 || v.ledger.queue.unassigned.waiters.Len() > 0 {
		return fmt.Errorf("%d blocker queues are dirty and %d requests are in no queue between two commands",
			v.ledger.queue.dirty.Len(), v.ledger.queue.unassigned.waiters.Len())
	}
	queues, pressing, revoked := map[*blockerQueue]int{}, map[*blockerQueue]int{}, map[string]int{}
	for _, a := range v.ledger.allocations.held.All() {
		if by := a.lease().revokedBy; by != "" {
			revoked[by]++
		}
	}
	if !maps.Equal(revoked, v.ledger.queue.revokedFor) {
		return fmt.Errorf("leases are revoked for %v, but %v are counted", revoked, v.ledger.queue.revokedFor)
	}
	last, owners := rankqueue.First(), map[string]int{}
	for w := range v.ledger.queue.all.All() {
		if w.record.owner != "" {
			owners[w.record.owner]++
		}
		if err := v.checkWaiter(w, last); err != nil {
			return err
		}
		last = w.turn
		for _, alt := range w.alternatives {
			if err := v.checkAlternative(alt); err != nil {
				return err
			}
			queues[alt.blockedIn]++
			if alt.awaitsRevocation {
				pressing[alt.blockedIn]++
			}
		}
	}
	if !maps.Equal(owners, v.ledger.queue.byOwner) {
		return fmt.Errorf("requests of %v wait, but %v are counted", owners, v.ledger.queue.byOwner)
	}
	if n := v.ledger.queue.all.Len(); n != len(v.ledger.queue.byArrival) {
		return fmt.Errorf("%d requests wait, but %d are known by their arrival", n, len(v.ledger.queue.byArrival))
	}
	for bq := range queues {
		if bq.revocationsPending != pressing[bq] {
			return fmt.Errorf("%d requests of the queue for %s await a revocation, but it counts %d", pressing[bq], bq,
				bq.revocationsPending)
		}
	}
	return v.checkBlockerQueues(queues)
}

func (v verifier) checkWaiter(w *waiter, last rankqueue.Rank) error {
	a, place := w.record, w.record.more.waiting
	switch {
	case !last.Before(w.turn) || place.arrival != w.turn.Arrival || place.arrival > v.ledger.queue.arrival ||
		a.more.priority != w.turn.Priority:
		return fmt.Errorf("request %q is not in its place in the queue", a.id)
	case w.isResize() && !v.isResizeOf(w) || !w.isResize() && v.ledger.allocations.byID.Find(a.id) != a:
		return fmt.Errorf("request %q cannot be found by its id, or its allocation does not know it", a.id)
	case v.ledger.queue.byArrival[place.arrival] != w || a.ended != nil || a.fence != 0:
		return fmt.Errorf("request %q cannot be found by its arrival, or holds something", a.id)
	case place.since.At > v.ledger.now.At:
		return fmt.Errorf("I9: request %q waits since a future time", a.id)
	case len(w.alternatives) == 0 || a.more.resized != w.alternatives[0].resized ||
		!slices.EqualFunc(a.claims, w.alternatives[0].claims, func(x, y placedClaim) bool { return x.at == y.at }):
		return fmt.Errorf("request %q has no alternative, or other claims than its first", a.id)
	}
	return nil
}

// checkAlternative verifies that an alternative of a waiting request cannot be granted, and waits for what is in its
// way.
func (v verifier) checkAlternative(alt *alternative) error {
	id := alt.of.record.id
	switch {
	case alt.blockedIn == nil || v.ledger.queue.findQueue(alt.blockedIn.blocker) != alt.blockedIn ||
		alt.blockedIn.within(quota.MaxAmount, alt.turn) != alt:
		return fmt.Errorf("I7: request %q is in no queue", id)
	case alt.headSince > max(1, v.ledger.now.At) || alt.blockedIn.head() == alt && alt.headSince == 0 &&
		!alt.blockedIn.isAside:
		return fmt.Errorf("I9: request %q is at the head of a queue since a future time", id)
	}
	if alt.awaitsRevocation != (v.ledger.queue.revokedFor[id] > 0) {
		return fmt.Errorf("%d leases are revoked for %q, but it says that it presses: %v", v.ledger.queue.revokedFor[id],
			id, alt.awaitsRevocation)
	}
	t, d, full := v.ledger.judgeAlternative(alt)
	t.rollback()
	b := t.allocation
	switch {
	case alt.blockedIn.tree == nil && (full || v.ledger.queue.isStillBlocked(alt, b, d.Violations)):
	case full || d.Granted:
		return fmt.Errorf("I7: request %q waits for %s, but could be granted", id, alt.blockedIn)
	case !v.ledger.queue.isStillBlocked(alt, b, d.Violations) && !alt.heldUp(d.Violations) && !v.blockedThere(alt) &&
		!alt.blockedBelow(d.Violations):
		return fmt.Errorf("I7: request %q waits for %s, but that is not in its way", id, alt.blockedIn)
	case alt.blockedIn.isAside && v.ledger.queue.neverFits(d.Violations) < 0 && !alt.heldUp(d.Violations):
		return fmt.Errorf("I7: request %q waits aside for %s, but could be granted some day", id, alt.blockedIn)
	case t.amountNeeded(alt.blockedIn.blocker) != alt.need:
		return fmt.Errorf("request %q needs %d of %s, but its queue says %d", id,
			t.amountNeeded(alt.blockedIn.blocker), alt.blockedIn, alt.need)
	}
	return nil
}

// isResizeOf is true if the allocation of a waiting resize refers to it.
func (v verifier) isResizeOf(w *waiter) bool {
	a, held := v.ledger.allocations.held.Get(w.resizes)
	return held && a.id == w.record.id && a.waitingResize() == w.record && a.owner == w.record.owner
}

// heldUp is true if a request must not overtake another in a tree with soft borrowing: then it is not tried there, and
// its decision does not list what else blocks it. Every change of such a tree marks all its queues dirty.
func (alt *alternative) heldUp(violations []quota.Violation) bool {
	return alt.blockedIn.tree != nil && alt.blockedIn.tree.soft &&
		slices.ContainsFunc(violations, func(v quota.Violation) bool {
			return v.Kind == quota.OfQueue && v.Tree == alt.blockedIn.tree.name
		})
}

// blockedBelow is true if a dynamic node below the blocker's node is in the way. Before another claim created it, the
// blocker's node was the nearest that existed. The request is still retried in time, because what frees capacity at a
// node also marks the queues above it.
func (alt *alternative) blockedBelow(violations []quota.Violation) bool {
	key := alt.blockedIn.blocker
	return key.node != nil && slices.ContainsFunc(violations, func(v quota.Violation) bool {
		n := key.tree.byPath[v.Node]
		return v.Tree == key.tree.name && n != nil && n.dynamic && n.within(key.node) && v.Holder == key.holder &&
			(key.resource == nil || key.resource.Name == v.Resource)
	})
}

// blockedThere is true if the blocker blocks the claims in its tree: of several claims with soft borrowing, a decision
// lists only the first that finds no node.
func (v verifier) blockedThere(alt *alternative) bool {
	if alt.blockedIn.tree == nil {
		return false
	}
	if alt.of.isResize() {
		return v.blocksResizeThere(alt)
	}
	request := alt.asked()
	request.Claims = slices.DeleteFunc(slices.Clone(request.Claims),
		func(c quota.Claim) bool { return c.Tree != alt.blockedIn.tree.name })
	a, refused := v.ledger.placeClaims(&request)
	if refused != nil {
		return false
	}
	a.more.waiting = alt.of.record.more.waiting
	t := v.ledger.beginTx(a)
	d := t.decide()
	t.rollback()
	return !d.Granted && v.ledger.queue.isStillBlocked(alt, a, d.Violations)
}

// blocksResizeThere is blockedThere for a resize.
func (v verifier) blocksResizeThere(alt *alternative) bool {
	part := *alt
	part.claims, part.wanted = nil, nil
	for i, c := range alt.claims {
		if c.at.tree == alt.blockedIn.tree {
			part.claims, part.wanted = append(part.claims, c), append(part.wanted, alt.wanted[i])
		}
	}
	t, d, full := v.ledger.judgeResize(&part)
	t.rollback()
	return !full && !d.Granted && v.ledger.queue.isStillBlocked(alt, t.allocation, d.Violations)
}

// checkBlockerQueues verifies that exactly the queues with waiters exist, and that they are listed wherever they should
// be.
func (v verifier) checkBlockerQueues(queues map[*blockerQueue]int) error {
	kept := len(v.ledger.queue.queuesForLedger)
	for _, t := range v.ledger.forest.trees {
		kept += len(t.queues)
		here := 0
		for _, r := range t.resources {
			here += len(r.queues)
		}
		for _, n := range t.byPath {
			here += len(n.queues)
		}
		if here != len(t.queues) {
			return fmt.Errorf("tree %s has %d queues, but its nodes and resources have %d", t.name, len(t.queues), here)
		}
	}
	if kept != len(queues) {
		return fmt.Errorf("there are %d blocker queues, but requests wait in %d", kept, len(queues))
	}
	for bq, length := range queues {
		if bq.waiters.Len() != length || bq.at != 0 {
			return fmt.Errorf("the queue for %s has %d requests, but %d wait in it", bq, bq.waiters.Len(), length)
		}
		if err := bq.waiters.Check(); err != nil {
			return fmt.Errorf("the queue for %s: %w", bq, err)
		}
		for alt := range bq.waiters.All() {
			if bq.within(alt.need, alt.turn) != alt {
				return fmt.Errorf("the queue for %s does not find request %q by its need of %d", bq, alt.of.record.id,
					alt.need)
			}
		}
	}
	return nil
}
