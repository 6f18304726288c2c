package ledger

import "github.com/quorate/quorate/quota"

// release ends an allocation and gives everything back; or only some items, and what is left goes on. A request that waits
// leaves the queue.
func (l *Ledger) release(c quota.Release, m mode) Outcome {
	out := l.allocations.releasableAs(c)
	if out.Refused != nil || out.Repeated || m == dryRun {
		return out
	}
	if a := out.Allocation; a.waits() && len(c.Items) == 0 {
		return Outcome{Allocation: l.drop(l.queue.waiterOf(a), quota.Cancelled, "")}
	}
	if len(c.Items) > 0 {
		return Outcome{Allocation: l.takeAway(out.Allocation, out.Allocation.named(c.Items), c.ItemState, quota.Released, "")}
	}
	if c.ItemState != "" {
		l.inventory.giveAll(out.Allocation, func(*placedClaim, *item) string { return c.ItemState })
	}
	return Outcome{Allocation: l.end(out.Allocation, quota.Released, "")}
}

// named are those of its items that a list names.
func (a *Allocation) named(names []quota.ItemName) itemSet {
	named := map[quota.ItemName]bool{}
	for _, n := range names {
		named[n] = true
	}
	list := itemSet{}
	for _, it := range a.has() {
		if named[quota.ItemName{Tree: it.stock.tree, Resource: it.stock.resource.Name, Name: it.name}] {
			list[it.turn] = true
		}
	}
	return list
}

// end ends a held allocation and gives everything back.
func (l *Ledger) end(a *Allocation, state quota.State, by string) *Allocation {
	l.allocations.held.Delete(a.fence)
	for i := range a.claims {
		l.unbook(a, i)
	}
	for i := range a.claims {
		l.slideInto(a.claims[i].at)
	}
	l.forest.markChangedBy(a)
	if !a.wantsItems() {
		return l.bury(a, state, by)
	}
	l.inventory.giveAll(a, itemsAfter(state))
	ended := l.bury(a, state, by)
	l.inventory.announce(a)
	return ended
}

// releasableAs is releasable, and refuses a state or a list of items that cannot be.
func (s *allocations) releasableAs(c quota.Release) Outcome {
	if err := checkStates("item_state", c.ItemState); err != nil {
		return Outcome{Refused: err}
	}
	if n := len(c.Items); n > s.bounds.Picks {
		return Outcome{Refused: quota.Errorf(quota.Invalid, "items", "%d items are given back; at most %d are allowed at once, or all of them without naming any", n, s.bounds.Picks)}
	}
	out := s.releasable(c.ID)
	if a := out.Allocation; a != nil && !out.Repeated && len(c.Items) > 0 && len(a.named(c.Items)) == 0 {
		return Outcome{Allocation: a.relocated(), Repeated: true}
	}
	return out
}

// releasable says what a release would end, or has ended before; it changes nothing.
func (s *allocations) releasable(id string) Outcome {
	if err := checkID(id); err != nil {
		return Outcome{Refused: err}
	}
	a := s.lookup(id)
	if a == nil {
		return Outcome{Refused: quota.Errorf(quota.NotFound, "id", "no allocation %q is held, waits or has ended lately; list what is held to find its id", quota.Clip(id))}
	}
	return Outcome{Allocation: a, Repeated: a.ended != nil}
}
