package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
)

// undoList reverts steps, the last one first. It is the only way to revert a change of the state.
type undoList []func()

func (u *undoList) onUndo(step func()) { *u = append(*u, step) }

// append adds the steps of another list behind its own.
func (u *undoList) append(other undoList) { *u = append(*u, other...) }

// rollback reverts every step. A second call does nothing.
func (u *undoList) rollback() {
	for _, step := range slices.Backward(*u) {
		step()
	}
	*u = nil
}

// tx is the admission of one allocation: begin, decide, then commit or roll back. It is used as a value, because most
// admissions check plain limits and change nothing before the commit; staged has what the others change while they
// decide.
type tx struct {
	ledger     *Ledger
	allocation *Allocation
	staged     *staged
}

// beginTx prepares an allocation that has its claims to be held under the next fence.
func (l *Ledger) beginTx(a *Allocation) tx {
	a.fence, a.granted = l.allocations.fence+1, l.now
	switch {
	case a.more == nil:
	case a.more.mode == quota.Reserve:
		a.more.until = l.now.At + quota.Instant(a.more.reserveFor)
	case a.more.lease != nil:
		a.more.lease.begin(l.now)
	}
	a.assignGroups()
	return tx{ledger: l, allocation: a}
}

// decide reports whether the allocation may be held. If it may, commit or rollback must follow; otherwise nothing has
// changed.
func (t *tx) decide() quota.Decision {
	l, a := t.ledger, t.allocation
	if a.isPlain() {
		d := l.askerFor(a).decide(a.claims)
		d.Violations = append(d.Violations, l.checkPrincipals(a)...)
		d.Violations = append(d.Violations, l.inventory.checkItems(a)...)
		d.Granted = len(d.Violations) == 0
		return d
	}
	if a.fitsAtHome() && len(l.inventory.checkItems(a)) == 0 {
		return quota.Decision{Granted: true}
	}
	if behind := l.softOvertakeViolations(a); len(behind) > 0 {
		return quota.Decision{Violations: l.everyViolation(a, nil, behind)}
	}
	t.staged = l.beginStaged(a)
	return t.staged.decide(a)
}

// rollback reverts what decide has changed. It may be called after any decision.
func (t *tx) rollback() {
	if t.staged != nil {
		t.staged.rollback()
	}
}

// hasRoom is true if the ledger may hold the admitted allocation too, after its victims have ended.
func (t *tx) hasRoom() bool {
	held := t.ledger.allocations.held.Len() - len(t.victims())
	if t.staged != nil {
		held-- // the new allocation is counted already
	}
	return held < t.ledger.bounds.Held
}

// victims are the allocations that the commit ends.
func (t *tx) victims() []*Allocation {
	if t.staged == nil {
		return nil
	}
	return t.staged.victims
}

// placements says where the claims of an admitted allocation would be counted.
func (t *tx) placements() []quota.ClaimInfo {
	a := t.allocation
	if t.staged != nil {
		a = t.staged.newcomer()
	}
	return a.currentInfo().Claims
}

// commit makes an admitted allocation held, and ends its victims. since is when the request entered the queue, 0 if it
// did not.
func (t *tx) commit(since quota.Instant) *Allocation {
	l, a := t.ledger, t.allocation
	l.allocations.fence++
	if t.staged == nil {
		l.forest.attachDynamicNodes(a)
		l.allocations.byID[a.id] = a
		l.allocations.held.Set(a.fence, a)
		for i := range a.claims {
			l.allocations.chargeClaim(a, i)
		}
	} else {
		a = t.staged.commit()
	}
	l.inventory.takeItems(a)
	t.rememberUndo(a)
	for _, v := range t.victims() {
		l.inventory.announceReturned(v)
	}
	l.deadlines.add(a)
	l.journal.facts = append(l.journal.facts, Fact{Kind: FactGranted, Allocation: a, Since: since})
	l.queue.unblockGranted(a)
	return a
}

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
	s.attachDynamicNodes()
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
	return quota.Decision{Violations: s.ledger.everyViolation(a, lost, violations)}
}

// rollback reverts what was staged.
func (s *staged) rollback() {
	s.undoList.rollback()
	s.victims, s.preempted, s.displaced, s.displacedFrom, s.displacedClaims = nil, nil, nil, nil, nil
}

// chargeClaim counts a claim of the new allocation.
func (s *staged) chargeClaim(i int) {
	a := s.newcomer()
	s.ledger.allocations.chargeClaim(a, i)
	s.onUndo(func() { s.ledger.allocations.refundClaim(a, i) })
}

// newcomer is the present record of the new allocation.
func (s *staged) newcomer() *Allocation {
	a, _ := s.ledger.allocations.held.Get(s.fence)
	return a
}

// commit makes the new allocation held and ends its victims.
func (s *staged) commit() *Allocation {
	l, a := s.ledger, s.newcomer()
	if len(s.preempted) > 0 || a.more != nil && a.more.until != 0 {
		if a.more == nil {
			a.more = &details{}
		}
		a.more.preempted = s.preempted
		if a.more.until != 0 {
			a.more.displaced = s.completeDisplaced()
		}
	}
	for _, v := range s.victims {
		l.allocations.held.Delete(v.fence)
		l.keepEnded(v, quota.WasPreempted, a.id)
		l.journal.noteEvent(quota.Event{Kind: quota.EventPreempted, ID: v.id, By: a.id})
	}
	l.allocations.byID[a.id] = a
	return a
}

// replaceRecord stores the record of a held allocation.
func (s *allocations) replaceRecord(a *Allocation) {
	s.held.Set(a.fence, a)
	if known := s.byID[a.id]; known != nil && known.fence == a.fence {
		s.byID[a.id] = a
	}
}
