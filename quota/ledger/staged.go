package ledger

import "github.com/quorate/quorate/quota"

// staged has the changes of a transaction before its commit: attached dynamic nodes, moved claims, and victims whose
// claims were removed.
type staged struct {
	undoList
	ledger *Ledger
	fence  uint64 // of the new allocation
	// victims have lost their claims, but end only when the new allocation is granted; preempted has the nodes where they
	// competed.
	victims       []*Allocation
	preempted     []quota.Preempted
	displaced     []displacement
	displacedFrom []*node // where what is displaced had been
	// revocations are the leases among them that must not end at once; see deferForGrace.
	revocations     []pendingRevocation
	displacedClaims map[claimRef]bool // displaced already
}

// beginStaged adds the new allocation to the held ones, so that it can be found by its fence, and its dynamic nodes to
// their trees.
func (l *Ledger) beginStaged(a *Allocation) *staged {
	s := &staged{ledger: l, fence: a.fence}
	seat := l.allocations.lastArrivalSeq
	l.allocations.held.Set(a.fence, a)
	s.onUndo(func() {
		l.allocations.held.Delete(a.fence)
		l.allocations.lastArrivalSeq = seat
	})
	s.attachDynamicNodes(a)
	return s
}

// decide finds nodes for all claims and checks the other limits. If the allocation cannot be held now, it reverts
// everything.
func (s *staged) decide(a *Allocation) quota.Decision {
	lost := s.placeSoftClaims()
	var violations []quota.Violation
	if lost == nil {
		if violations = s.checkRest(); len(violations) == 0 {
			if d, wait := s.deferForGrace(a); wait {
				return d
			}
			s.chargePlain()
			return quota.Decision{Granted: true, Preempted: s.preempted}
		}
	} else {
		violations = lost.inTheWay()
	}
	s.rollback()
	return quota.Decision{Violations: s.ledger.everyViolation(a, s.ledger.lostClaims(a, lost), violations)}
}

// lostClaims are the first claim with soft borrowing that found no place, and those behind it that find none
// either. Each is in a tree of its own, so it is tried alone.
func (l *Ledger) lostClaims(a *Allocation, first *placedClaim) []*placedClaim {
	if first == nil {
		return nil
	}
	lost, behind := []*placedClaim{first}, false
	for i := range a.claims {
		c := &a.claims[i]
		if behind && c.isSoft() && !l.findsPlace(a, i) {
			lost = append(lost, c)
		}
		behind = behind || c == first
	}
	return lost
}

// findsPlace is true if soft borrowing finds a node for one claim of an allocation that is not held.
func (l *Ledger) findsPlace(a *Allocation, i int) bool {
	s := l.beginStaged(a)
	defer s.rollback()
	return s.placeSoftClaim(i)
}

// rollback reverts what was staged.
func (s *staged) rollback() {
	s.undoList.rollback()
	s.victims, s.preempted, s.displaced, s.displacedFrom, s.displacedClaims = nil, nil, nil, nil, nil
}

// chargeClaim counts a claim of the new allocation.
func (s *staged) chargeClaim(i int) {
	a := s.requester()
	s.ledger.allocations.chargeClaim(a, i)
	s.onUndo(func() { s.ledger.allocations.refundClaim(a, i) })
}

// requester is the present record of the new allocation.
func (s *staged) requester() *Allocation {
	a, _ := s.ledger.allocations.held.Get(s.fence)
	return a
}

// commit makes the new allocation held and ends its victims.
func (s *staged) commit() *Allocation {
	l, a := s.ledger, s.requester()
	if len(s.preempted) > 0 || a.more != nil && a.more.until != 0 {
		if a.more == nil {
			a.more = &details{}
		}
		a.more.noteVictims(s.preempted)
		if a.more.until != 0 {
			a.more.displaced = s.completeDisplaced()
		}
	}
	s.commitVictims(a.id)
	l.allocations.byID.Put(a)
	return a
}

// commitVictims ends the victims for good.
func (s *staged) commitVictims(by string) {
	l := s.ledger
	for i, v := range s.victims {
		reason := s.preempted[i].Reason
		l.allocations.held.Delete(v.fence)
		l.keepEnded(v, ending{state: quota.WasPreempted, by: by, reason: reason})
		l.journal.noteEvent(quota.Event{Kind: quota.EventPreempted, ID: v.id, By: by, Reason: reason})
	}
}
