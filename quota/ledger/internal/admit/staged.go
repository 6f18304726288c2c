package admit

import (
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// staged has what a transaction has changed before its commit: attached dynamic nodes, moved claims, and victims whose
// claims were removed.
type staged struct {
	UndoList
	state *state.State
	fence uint64 // of the new allocation
	// victims have lost their claims, but end only when the new allocation is granted; preempted has the nodes where they
	// competed.
	victims       []*state.Allocation
	preempted     []quota.Preempted
	displaced     []state.Displacement
	displacedFrom []*state.Node // where what is displaced had been
	// revocations are the leases among them that must not end at once; see deferForGrace.
	revocations     []pendingRevocation
	displacedClaims map[state.ClaimRef]bool // displaced already
}

// beginStaged holds the new allocation already, so that it can be found by its fence.
func beginStaged(s *state.State, a *state.Allocation) *staged {
	t := &staged{state: s, fence: a.Fence()}
	arrivalSeq := s.Allocations.LastArrivalSeq
	s.Allocations.Held.Set(a.Fence(), a)
	t.OnUndo(func() {
		s.Allocations.Held.Delete(a.Fence())
		s.Allocations.LastArrivalSeq = arrivalSeq
	})
	t.attachDynamicNodes(a)
	return t
}

// decide reverts everything if the allocation cannot be held now.
func (t *staged) decide(a *state.Allocation) quota.Decision {
	lost := t.placeSoftClaims()
	var violations []quota.Violation
	if lost == nil {
		if violations = t.checkRest(); len(violations) == 0 {
			if d, wait := t.deferForGrace(a); wait {
				return d
			}
			t.chargePlain()
			return quota.Decision{Granted: true, Preempted: t.preempted}
		}
	} else {
		violations = inTheWay(lost)
	}
	t.rollback()
	return quota.Decision{Violations: everyViolation(t.state, a, lostClaims(t.state, a, lost), violations)}
}

// lostClaims are the first claim with soft borrowing that found no place, and those behind it that find none
// either. Each is in a tree of its own, so it is tried alone.
func lostClaims(s *state.State, a *state.Allocation, first *state.PlacedClaim) []*state.PlacedClaim {
	if first == nil {
		return nil
	}
	lost, behind := []*state.PlacedClaim{first}, false
	for i := range a.Claims {
		c := &a.Claims[i]
		if behind && c.IsSoft() && !findsPlace(s, a, i) {
			lost = append(lost, c)
		}
		behind = behind || c == first
	}
	return lost
}

// findsPlace is true if soft borrowing finds a node for one claim of an allocation that is not held.
func findsPlace(s *state.State, a *state.Allocation, i int) bool {
	t := beginStaged(s, a)
	defer t.rollback()
	return t.placeSoftClaim(i)
}

func (t *staged) rollback() {
	t.Rollback()
	t.victims, t.preempted, t.displaced, t.displacedFrom, t.displacedClaims = nil, nil, nil, nil, nil
}

func (t *staged) chargeClaim(i int) {
	a := t.requester()
	t.state.Allocations.ChargeClaim(a, i)
	t.OnUndo(func() { t.state.Allocations.RefundClaim(a, i) })
}

func (t *staged) requester() *state.Allocation {
	a, _ := t.state.Allocations.Held.Get(t.fence)
	return a
}

func (t *staged) commit() *state.Allocation {
	s, a := t.state, t.requester()
	if len(t.preempted) > 0 || a.More != nil && a.More.Until != 0 {
		if a.More == nil {
			a.More = &state.Details{}
		}
		a.More.NoteVictims(t.preempted)
		if a.More.Until != 0 {
			a.More.Displaced = t.completeDisplaced()
		}
	}
	t.commitVictims(a.ID())
	s.Allocations.ByID.Put(a)
	return a
}

func (t *staged) commitVictims(requester string) {
	s := t.state
	for i, v := range t.victims {
		reason := t.preempted[i].Reason
		s.Allocations.Held.Delete(v.Fence())
		KeepEnded(s, v, state.Ending{State: quota.WasPreempted, By: requester, Reason: reason})
		s.Journal.NoteEvent(quota.Event{Kind: quota.EventPreempted, ID: v.ID(), By: requester, Reason: reason})
	}
}
