package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
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
	// basic is Allocation.isBasic when the transaction began: decide and commit then skip everything else.
	basic  bool
	staged *staged
	// change is set for a resize in the queue; then allocation is the record after it.
	change *holdingChange
}

// beginTx prepares an allocation that has its claims to be held under the next fence.
func (l *Ledger) beginTx(a *Allocation) tx {
	a.fence, a.granted = l.allocations.fence+1, l.now
	if a.more != nil {
		if a.more.mode == quota.Reserve {
			a.more.until = l.now.At + quota.Instant(a.more.reserveFor)
		} else {
			a.more.beginHolding(l.now)
		}
		a.assignGroups()
	}
	return tx{ledger: l, allocation: a, basic: a.isBasic()}
}

// decide reports whether the allocation may be held. If it may, commit or rollback must follow; otherwise nothing has
// changed.
func (t *tx) decide() quota.Decision {
	if len(t.ledger.forest.onHold) == 0 {
		return t.decideLimits()
	}
	held := t.ledger.forest.holdViolations(t.allocation.claims)
	d := t.decideLimits()
	if len(held) == 0 {
		return d
	}
	t.rollback()
	t.staged = nil // who may not be admitted revokes no leases
	return quota.Decision{Violations: append(held, d.Violations...)}
}

// decisionFor is the decision on a request that has these violations.
func decisionFor(violations []quota.Violation) quota.Decision {
	return quota.Decision{Granted: len(violations) == 0, Violations: violations}
}

// decideLimits is decide without holds.
func (t *tx) decideLimits() quota.Decision {
	l, a := t.ledger, t.allocation
	if t.basic {
		return decisionFor(asker{}.decide(a.claims)) // the turn of the request does not matter without queues
	}
	if a.isPlain() {
		violations := l.askerFor(a).decide(a.claims)
		violations = append(violations, l.checkPrincipals(a)...)
		return decisionFor(append(violations, l.inventory.checkItems(a)...))
	}
	if a.fitsAtHome() && len(l.inventory.checkItems(a)) == 0 {
		return quota.Decision{Granted: true}
	}
	if behind := l.askerFor(a).softOvertakeViolations(a.claims); len(behind) > 0 {
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
		a = t.staged.requester()
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
		l.allocations.byID.Put(a)
		l.allocations.held.Set(a.fence, a)
		for i := range a.claims {
			l.allocations.chargeClaim(a, i)
		}
	} else {
		a = t.staged.commit()
	}
	if t.basic {
		l.markGranted(a, nil)
	} else {
		t.commitExtras(a)
	}
	l.journal.facts = append(l.journal.facts, Fact{Kind: FactGranted, Allocation: a, Since: since})
	return a
}

// commitExtras commits what only an allocation that is not basic can have: items, an undo record, victims, a deadline,
// and waiting requests that the grant concerns.
func (t *tx) commitExtras(a *Allocation) {
	l := t.ledger
	l.inventory.takeItems(a)
	t.announceVictims() // before the undo record, which then knows the items that replace removed ones
	t.rememberUndo(a)
	l.deadlines.add(a)
	l.queue.unblockGranted(a)
}

// announceVictims unblocks the requests that wait for items of the victims, and replaces those that were removed.
func (t *tx) announceVictims() {
	for _, v := range t.victims() {
		t.ledger.inventory.announceReturned(v)
	}
}

// markGranted marks the trees that a grant has changed: its own, and those of its victims. It returns the versions
// before and after if the grant is a reservation.
func (l *Ledger) markGranted(a *Allocation, victims []*Allocation) []treeVersion {
	var versions []treeVersion
	first := l.forest.version
	mark := func(a *Allocation, keep bool) {
		for i := range a.claims {
			t := a.claims[i].at.tree
			if t.version > first {
				continue
			}
			before := t.version
			l.forest.markChanged(t)
			if keep {
				versions = append(versions, treeVersion{t.name, before, t.version})
			}
		}
	}
	reserved := a.State() == quota.Reserved
	mark(a, reserved)
	for _, v := range victims {
		mark(v, reserved)
	}
	return versions
}

// replaceRecord stores the record of a held allocation.
func (s *allocations) replaceRecord(a *Allocation) {
	s.held.Set(a.fence, a)
	if known := s.byID.Find(a.id); known != nil && known.fence == a.fence {
		s.byID.Put(a)
	}
}

// chargeClaim counts one claim of an allocation at its node and above.
func (s *allocations) chargeClaim(a *Allocation, i int) {
	c := &a.claims[i]
	c.at.tree.claims++
	for _, p := range c.amounts {
		p.resource.holds++
	}
	s.chargeNode(a, i)
	if c.more != nil && c.more.track != nil {
		c.more.track.add(c, 1)
	}
}

// refundClaim is the inverse of chargeClaim.
func (s *allocations) refundClaim(a *Allocation, i int) {
	c := &a.claims[i]
	c.at.tree.claims--
	for _, p := range c.amounts {
		p.resource.holds--
	}
	s.refundNode(a, i)
	if c.more != nil && c.more.track != nil {
		c.more.track.add(c, -1)
	}
}

// chargeNode counts what depends on the node where the claim is counted. Moving a claim is a refundNode and a
// chargeNode.
func (s *allocations) chargeNode(a *Allocation, i int) {
	c := &a.claims[i]
	c.at.claims++
	s.forest.markNode(c.at)
	if c.more != nil && c.more.home != nil {
		c.more.home.homes++
		s.forest.markNode(c.more.home)
	}
	s.forest.noteDrained(c.home())
	for _, p := range c.amounts {
		c.at.addUsage(p.resource.index, p.amount)
	}
	s.noteUses(c)
	if c.at.borrows == policy.BorrowSoft {
		s.addBorrower(a, i)
	}
}

// noteUses records where a claim changes the use of limits with thresholds.
func (s *allocations) noteUses(c *placedClaim) {
	if !c.at.hasThresholds {
		return
	}
	for _, p := range c.amounts {
		s.forest.noteUse(c.at, p.resource)
	}
}

// refundNode is the inverse of chargeNode.
func (s *allocations) refundNode(a *Allocation, i int) {
	c := &a.claims[i]
	c.at.claims--
	s.forest.markNode(c.at)
	s.forest.noteIdle(c.at)
	s.forest.noteDrained(c.home())
	if c.more != nil && c.more.home != nil {
		c.more.home.homes--
		s.forest.markNode(c.more.home)
		s.forest.noteIdle(c.more.home)
	}
	for _, p := range c.amounts {
		c.at.addUsage(p.resource.index, -p.amount)
	}
	s.noteUses(c)
	if c.at.borrows == policy.BorrowSoft {
		s.removeBorrower(a, i)
	}
}
