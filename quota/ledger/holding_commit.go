package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// records are the allocation after the change, and its parts.
func (h *holdingChange) records() []*Allocation { return append([]*Allocation{h.is}, h.parts...) }

// decide makes the change, and takes it back if a level would exceed its limit.
func (h *holdingChange) decide() quota.Decision {
	behind := h.asker().softOvertakeViolations(h.rising)
	if violations := slices.Concat(h.holdViolations(), h.uncountable(), behind); len(violations) > 0 {
		return quota.Decision{Violations: append(violations, h.wholeLimits()...)}
	}
	h.levels = h.ledger.measureLevels(h.records())
	h.exchange()
	violations := h.placeSoft()
	if len(violations) == 0 && h.endsItself() {
		violations = h.inTheWay
	}
	if len(violations) == 0 {
		violations = h.levels.violations(h.asker())
	}
	if len(violations) > 0 {
		h.rollback()
		return quota.Decision{Violations: violations}
	}
	if told := h.findRevocations(); len(told) > 0 { // only a change in the queue has them revoked
		h.rollback()
		return quota.Decision{Violations: h.inTheWay, Preempted: told}
	}
	return quota.Decision{Granted: true, Preempted: h.preempted}
}

// endsItself is true if a new claim has preempted another one of the same allocation, or of a part of it. That can only
// be one that is held regardless of limits: of others, an allocation has one in a tree.
func (h *holdingChange) endsItself() bool {
	return slices.ContainsFunc(h.victims, func(v *Allocation) bool {
		return slices.ContainsFunc(h.records(), func(a *Allocation) bool { return a.fence == v.fence })
	})
}

// asker is the turn of the change: that of the resize that waits for the allocation, so that it does not stand in its
// own way.
func (h *holdingChange) asker() asker { return h.ledger.askerFor(h.was) }

// uncountable returns a violation for each tree that would hold more of a resource than MaxAmount. It must be asked
// before anything is charged.
func (h *holdingChange) uncountable() []quota.Violation {
	root := func(c *placedClaim) *node { return c.at.tree.root }
	var claims []placedClaim
	for _, a := range h.records() {
		claims = append(claims, a.claims...)
	}
	before := demandsOf(h.was.claims, root)
	var violations []quota.Violation
	for _, d := range demandsOf(claims, root) {
		for _, p := range d.amounts {
			held := quota.Amount(0)
			if i := slices.IndexFunc(before, func(b demand) bool { return b.node == d.node }); i >= 0 {
				held = amountOf(before[i].amounts, p.resource.index)
			}
			used := d.node.subtree[p.resource.index]
			if (used - held).Plus(p.amount) > quota.MaxAmount {
				violations = append(violations, quota.Violation{
					Tree: d.node.treeName, Node: d.node.path, Resource: p.resource.Name, Limit: quota.MaxAmount, Used: used,
					Requested: p.amount - held,
				})
			}
		}
	}
	return violations
}

// wholeLimits returns a violation for each plain limit that the wanted claims alone exceed, whatever is released. It
// must be asked before anything is charged.
func (h *holdingChange) wholeLimits() []quota.Violation {
	var claims []placedClaim
	for _, a := range h.records() {
		claims = append(claims, a.claims...)
	}
	before := demandsOf(h.was.claims, (*placedClaim).home)
	var violations []quota.Violation
	for _, d := range demandsOf(claims, (*placedClaim).home) {
		n := d.node
		if n.borrows == policy.BorrowSoft || n.pools != nil || n.tree.settings.Maintenance {
			continue
		}
		for _, p := range d.amounts {
			held := quota.Amount(0)
			if i := slices.IndexFunc(before, func(b demand) bool { return b.node == n }); i >= 0 {
				held = amountOf(before[i].amounts, p.resource.index)
			}
			if r := p.resource.index; p.amount > held && p.amount > n.ceilings[r] {
				violations = append(violations, quota.Violation{
					Tree: n.treeName, Node: n.path, Resource: p.resource.Name, Limit: n.ceilings[r], Used: n.subtree[r],
					Requested: p.amount - held, TooLarge: true,
				})
			}
		}
	}
	return violations
}

// exchange refunds everything that was held and charges what shall be held, except for the claims to place.
func (h *holdingChange) exchange() {
	l := h.ledger
	seat := l.allocations.lastArrivalSeq
	h.onUndo(func() { l.allocations.lastArrivalSeq = seat })
	for i := range h.was.claims {
		l.allocations.refundClaim(h.was, i)
		h.onUndo(func() { l.allocations.chargeClaim(h.was, i) })
	}
	l.allocations.held.Set(h.is.fence, h.is)
	h.onUndo(func() { l.allocations.replaceRecord(h.was) }) // a move of its claims has replaced it in both maps
	for _, p := range h.parts {
		l.allocations.held.Set(p.fence, p)
		h.onUndo(func() { l.allocations.held.Delete(p.fence) })
	}
	h.attachDynamicNodes(h.made)
	for _, a := range h.records() {
		for i := range a.claims {
			h.chargeOrPlace(a, i)
		}
	}
}

// chargeOrPlace charges a claim at its node. A claim with soft borrowing stays where it was counted, if the levels from
// there up can take it, and is to be placed otherwise.
func (h *holdingChange) chargeOrPlace(a *Allocation, i int) {
	l, c := h.ledger, &a.claims[i]
	if !c.isSoft() || c.arrivalSeq() != 0 {
		l.allocations.chargeClaim(a, i)
		if !c.isSoft() || !h.levels.isOver(c.at) {
			h.onUndo(func() { l.allocations.refundClaim(a, i) })
			return
		}
		l.allocations.refundClaim(a, i)
	}
	home, more := c.home(), *c.ensureDetails()
	more.home, more.arrivalSeq = nil, 0
	c.at, c.placed, c.more = home, home.address, &more
	h.toPlace = append(h.toPlace, claimRef{a.fence, i})
}

// placeSoft finds the nodes of the claims to place. It returns what is in the way of the first that has none.
func (h *holdingChange) placeSoft() []quota.Violation {
	defer func() { h.fence = h.was.fence }()
	for _, ref := range h.toPlace {
		h.fence = ref.fence
		c := &h.requester().claims[ref.claim]
		reasons := c.inTheWay()
		h.inTheWay = append(h.inTheWay, reasons...)
		if !h.placeSoftClaim(ref.claim) {
			return reasons
		}
	}
	return nil
}

// commit makes the change final and ends its victims, and a resize that waits for the allocation. since is when the
// change entered the queue, 0 if it did not. It returns the record of the allocation.
func (h *holdingChange) commit(since quota.Instant) *Allocation {
	l := h.ledger
	if resize := h.was.waitingResize(); resize != nil {
		l.queue.removeWaiter(l.queue.waiterOf(resize))
	}
	l.allocations.fence += uint64(len(h.parts))
	is := h.requester()
	if len(h.preempted) > 0 {
		is.more.noteVictims(h.preempted)
	}
	if since > 0 {
		is.more.noteVictims(h.was.waitingResize().more.preempted)
	}
	l.allocations.byID.Put(is) // before the end of victims, which look up who had them revoked
	h.commitVictims(is.id)
	for _, v := range h.victims {
		l.inventory.announceReturned(v)
		l.forest.markChangedBy(v)
	}
	l.forest.markChangedBy(h.was)
	l.forest.markChangedBy(is)
	l.journal.facts = append(l.journal.facts, Fact{Kind: FactResized, Allocation: is, Since: since})
	for i, p := range h.parts {
		h.parts[i], _ = l.allocations.held.Get(p.fence)
		h.commitPart(h.parts[i])
	}
	for i := range h.was.claims {
		c := &h.was.claims[i]
		l.allocations.reclaimAt(c.home())
		l.allocations.reclaimAt(c.at)
	}
	l.queue.unblockFreed(h.was)
	l.queue.unblockGranted(is)
	is, _ = l.allocations.held.Get(is.fence) // its own claims may have been reclaimed
	return is
}

// commitPart makes a part an allocation of its own.
func (h *holdingChange) commitPart(p *Allocation) {
	l := h.ledger
	l.allocations.byID.Put(p)
	l.deadlines.add(p)
	l.forest.markChangedBy(p)
	l.queue.unblockGranted(p)
	l.journal.noteFact(FactGranted, p)
}
