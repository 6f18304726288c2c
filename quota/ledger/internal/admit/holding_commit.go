package admit

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
	"github.com/quorate/quorate/quota/policy"
)

func (h *holdingChange) records() []*state.Allocation {
	return append([]*state.Allocation{h.updated}, h.parts...)
}

// Decide makes the change, and takes it back if a level would exceed its limit.
func (h *holdingChange) Decide() quota.Decision {
	behind := h.asker().SoftOvertakeViolations(h.rising)
	if violations := slices.Concat(h.holdViolations(), h.uncountable(), behind); len(violations) > 0 {
		return quota.Decision{Violations: append(violations, h.wholeLimits()...)}
	}
	h.levels = measureLevels(h.records())
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
	if revocations := h.findRevocations(); len(revocations) > 0 { // only a change in the queue has them revoked
		h.rollback()
		return quota.Decision{Violations: h.inTheWay, Preempted: revocations}
	}
	return quota.Decision{Granted: true, Preempted: h.preempted}
}

// endsItself is true if a new claim has preempted another one of the same allocation, or of a part of it. That can only
// be one that is held regardless of limits: of others, an allocation has one in a tree.
func (h *holdingChange) endsItself() bool {
	return slices.ContainsFunc(h.victims, func(v *state.Allocation) bool {
		return slices.ContainsFunc(h.records(), func(a *state.Allocation) bool { return a.Fence() == v.Fence() })
	})
}

// asker is the turn of the change: that of the resize that waits for the allocation, so that it does not stand in its
// own way.
func (h *holdingChange) asker() state.Asker { return h.state.AskerFor(h.Previous) }

// uncountable returns a violation for each tree that would hold more of a resource than MaxAmount. It must be asked
// before anything is charged.
func (h *holdingChange) uncountable() []quota.Violation {
	root := func(c *state.PlacedClaim) *state.Node { return c.At.Tree.Root }
	var claims []state.PlacedClaim
	for _, a := range h.records() {
		claims = append(claims, a.Claims...)
	}
	before := DemandsOf(h.Previous.Claims, root)
	var violations []quota.Violation
	for _, d := range DemandsOf(claims, root) {
		for _, p := range d.Amounts {
			held := quota.Amount(0)
			if i := slices.IndexFunc(before, func(b Demand) bool { return b.Node == d.Node }); i >= 0 {
				held = state.AmountOf(before[i].Amounts, p.Resource.Index)
			}
			used := d.Node.Subtree[p.Resource.Index]
			if (used - held).Plus(p.Amount) > quota.MaxAmount {
				violations = append(violations, quota.Violation{
					Tree: d.Node.TreeName, Node: d.Node.Path, Resource: p.Resource.Name, Limit: quota.MaxAmount, Used: used,
					Requested: p.Amount - held,
				})
			}
		}
	}
	return violations
}

// wholeLimits returns a violation for each plain limit that the wanted claims alone exceed, whatever is released. It
// must be asked before anything is charged.
func (h *holdingChange) wholeLimits() []quota.Violation {
	var claims []state.PlacedClaim
	for _, a := range h.records() {
		claims = append(claims, a.Claims...)
	}
	before := DemandsOf(h.Previous.Claims, (*state.PlacedClaim).Home)
	var violations []quota.Violation
	for _, d := range DemandsOf(claims, (*state.PlacedClaim).Home) {
		n := d.Node
		if n.Borrows == policy.BorrowSoft || n.Pools != nil {
			continue
		}
		for _, p := range d.Amounts {
			held := quota.Amount(0)
			if i := slices.IndexFunc(before, func(b Demand) bool { return b.Node == n }); i >= 0 {
				held = state.AmountOf(before[i].Amounts, p.Resource.Index)
			}
			if r := p.Resource.Index; p.Amount > held && p.Amount > n.Ceilings[r] {
				violations = append(violations, quota.Violation{
					Tree: n.TreeName, Node: n.Path, Resource: p.Resource.Name, Limit: n.Ceilings[r], Used: n.Subtree[r],
					Requested: p.Amount - held, TooLarge: true,
				})
			}
		}
	}
	return violations
}

// exchange refunds everything that was held and charges what shall be held, except for the claims to place.
func (h *holdingChange) exchange() {
	s := h.state
	lastSeq := s.Allocations.LastArrivalSeq
	h.OnUndo(func() { s.Allocations.LastArrivalSeq = lastSeq })
	for i := range h.Previous.Claims {
		s.Allocations.RefundClaim(h.Previous, i)
		h.OnUndo(func() { s.Allocations.ChargeClaim(h.Previous, i) })
	}
	s.Allocations.Held.Set(h.updated.Fence(), h.updated)
	h.OnUndo(func() { s.Allocations.ReplaceRecord(h.Previous) }) // a move of its claims has replaced it in both maps
	for _, p := range h.parts {
		s.Allocations.Held.Set(p.Fence(), p)
		h.OnUndo(func() { s.Allocations.Held.Delete(p.Fence()) })
	}
	h.attachDynamicNodes(h.made)
	for _, a := range h.records() {
		for i := range a.Claims {
			h.chargeOrPlace(a, i)
		}
	}
}

// chargeOrPlace charges a claim at its node. A claim with soft borrowing stays where it was counted, if the levels from
// there up can take it, and is to be placed otherwise.
func (h *holdingChange) chargeOrPlace(a *state.Allocation, i int) {
	s, c := h.state, &a.Claims[i]
	if !c.IsSoft() || c.ArrivalSeq() != 0 {
		s.Allocations.ChargeClaim(a, i)
		if !c.IsSoft() || !h.levels.isOver(c.At) {
			h.OnUndo(func() { s.Allocations.RefundClaim(a, i) })
			return
		}
		s.Allocations.RefundClaim(a, i)
	}
	home, more := c.Home(), *c.EnsureDetails()
	more.Home, more.ArrivalSeq = nil, 0
	c.At, c.Placed, c.More = home, home.Address, &more
	h.toPlace = append(h.toPlace, state.ClaimRef{Fence: a.Fence(), Claim: i})
}

// placeSoft finds the nodes of the claims to place. It returns what is in the way of the first that has none.
func (h *holdingChange) placeSoft() []quota.Violation {
	defer func() { h.fence = h.Previous.Fence() }()
	for _, ref := range h.toPlace {
		h.fence = ref.Fence
		c := &h.requester().Claims[ref.Claim]
		reasons := inTheWay(c)
		h.inTheWay = append(h.inTheWay, reasons...)
		if !h.placeSoftClaim(ref.Claim) {
			return reasons
		}
	}
	return nil
}

// commit makes the change final and ends its victims, and a resize that waits for the allocation. since is when the
// change entered the queue, 0 if it did not. It returns the record of the allocation.
func (h *holdingChange) commit(since quota.Instant) *state.Allocation {
	s := h.state
	if resize := h.Previous.WaitingResize(); resize != nil {
		s.Queue.RemoveWaiter(s.Queue.WaiterOf(resize))
	}
	s.Allocations.Fence += uint64(len(h.parts))
	updated := h.requester()
	if len(h.preempted) > 0 {
		updated.More.NoteVictims(h.preempted)
	}
	if since > 0 {
		updated.More.NoteVictims(h.Previous.WaitingResize().More.Preempted)
	}
	s.Allocations.ByID.Put(updated) // before the end of victims, which look up who had them revoked
	h.commitVictims(updated.ID())
	for _, v := range h.victims {
		announceReturned(&s.Inventory, v)
		markChangedBy(&s.Forest, v)
	}
	markChangedBy(&s.Forest, h.Previous)
	markChangedBy(&s.Forest, updated)
	s.Journal.Facts = append(s.Journal.Facts, state.Fact{Kind: state.FactResized, Allocation: updated, Since: since})
	for i, p := range h.parts {
		h.parts[i], _ = s.Allocations.Held.Get(p.Fence())
		h.commitPart(h.parts[i])
	}
	for i := range h.Previous.Claims {
		c := &h.Previous.Claims[i]
		reclaimAt(&s.Allocations, c.Home())
		reclaimAt(&s.Allocations, c.At)
	}
	s.Queue.UnblockFreed(h.Previous)
	s.Queue.UnblockGranted(updated)
	updated, _ = s.Allocations.Held.Get(updated.Fence()) // its own claims may have been reclaimed
	return updated
}

func (h *holdingChange) commitPart(p *state.Allocation) {
	s := h.state
	s.Allocations.ByID.Put(p)
	s.Deadlines.Add(p)
	markChangedBy(&s.Forest, p)
	s.Queue.UnblockGranted(p)
	s.Journal.NoteFact(state.FactGranted, p)
}
