package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
)

// take gives a newcomer the items that it asks for, those with names first. checkItems has found that they are to be had.
func (inv *inventory) take(a *Allocation) {
	if !a.wantsItems() {
		return
	}
	for _, named := range []bool{true, false} {
		for i := range a.claims {
			for _, p := range a.claims[i].picks() {
				if named == (len(p.Names) > 0) {
					inv.takePick(a, i, p)
				}
			}
		}
	}
	for i := range a.claims {
		slices.SortFunc(a.claims[i].held(), compareHeld)
	}
}

func (inv *inventory) takePick(a *Allocation, i int, p quota.Pick) {
	s := a.claims[i].at.tree.resource(p.Resource).stock
	names := p.Names
	if len(names) == 0 {
		if lack := p.Count - s.idleIn(p.WantedState()); lack > 0 {
			inv.makeOnDemand(s, len(s.byName)+lack)
		}
		for _, it := range s.idle[p.WantedState()].All() {
			if names = append(names, it.name); len(names) == p.Count {
				break
			}
		}
	}
	of := a.claims[i].more.items
	for _, name := range names {
		it := s.byName[name]
		is := inv.aged(it, p.StateWhileHeld(), a.fence)
		inv.changeItem(it, is)
		of.held = append(of.held, heldItem{p.Resource, name, is})
	}
}

// giveBack takes an item from its holder. An item that leaves goes, and so does any while there are more than there may be:
// then one of those that were to leave stays for it. The answer is how to take that back.
func (inv *inventory) giveBack(it *item, state string) (undo func()) {
	turn := inv.turn
	var is, leaver, stays *item
	switch s := it.stock; {
	case it.leaving:
	case s.resource.Items.OnDemand() && len(s.byName) > s.resource.Items.Max:
		leaver = s.oldestLeaving()
		spared := *leaver
		spared.leaving, stays = false, &spared
		inv.changeItem(leaver, stays)
	default:
		is = inv.aged(it, state, 0)
		is.expires = quota.Stamp{}
		if life := it.stock.resource.Items.Lifespan; life > 0 {
			is.expires = quota.Stamp{At: inv.now.At + quota.Instant(life), Wall: inv.now.Wall + int64(life)}
		}
	}
	inv.changeItem(it, is)
	return func() {
		inv.changeItem(is, it)
		if leaver != nil {
			inv.changeItem(stays, leaver)
		}
		inv.turn = turn
	}
}

// oldestLeaving is the first to stay if one of those that leave may: of items on demand beyond the maximum as many leave.
func (s *stock) oldestLeaving() *item {
	var oldest *item
	for _, it := range s.byName { // the least of all, in whatever order
		if it.leaving && (oldest == nil || it.turn < oldest.turn) {
			oldest = it
		}
	}
	return oldest
}

// afterwards is the state that an item gets when the allocation ends.
type afterwards func(c *placedClaim, it *item) string

func released(_ *placedClaim, it *item) string { return it.stock.resource.Items.ReleasedState() }

func expired(_ *placedClaim, it *item) string { return it.stock.resource.Items.ExpiredState() }

func unused(c *placedClaim, it *item) string {
	return unusedItemState(c.pickOf(it.stock.resource.Name), it.stock.resource.Items)
}

// itemsAfter says what becomes of the items of an allocation that ends.
func itemsAfter(end quota.State) afterwards {
	if end == quota.Released {
		return released
	}
	return expired
}

// has are the items that an allocation holds, as they are now, by claim, resource and name.
func (a *Allocation) has() []*item {
	var list []*item
	for i := range a.claims {
		for _, h := range a.claims[i].held() {
			if it := h.is.stock.byName[h.name]; it != nil && it.owner == a.fence {
				list = append(list, it)
			}
		}
	}
	return list
}

// giveAll takes all items from an allocation that ends, but tells nobody.
func (inv *inventory) giveAll(a *Allocation, after afterwards) (undo undoList) {
	if !a.wantsItems() {
		return nil
	}
	for i := range a.claims {
		c := &a.claims[i]
		for _, h := range c.held() {
			if it := h.is.stock.byName[h.name]; it != nil && it.owner == a.fence {
				undo = append(undo, inv.giveBack(it, after(c, it)))
			}
		}
	}
	return undo
}

// announce tells who waits that items were given back.
func (inv *inventory) announce(a *Allocation) {
	for i := range a.claims {
		for _, h := range a.claims[i].held() {
			inv.announceItem(h.is.stock, h.name)
		}
	}
}

func (inv *inventory) announceItem(s *stock, name string) {
	switch it := s.byName[name]; {
	case it == nil:
		inv.replaceGone(s)
	case it.owner == 0:
		inv.queue.stirItems(s.resource, it.state, name)
	}
}

// giveBack takes all items from a victim.
func (t *staged) giveBack(victim *Allocation) {
	t.append(t.ledger.inventory.giveAll(victim, expired))
}
