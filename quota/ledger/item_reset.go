package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
)

// resetter is who ends an allocation whose items were all taken away by a ResetItems.
const resetter = "reset"

// itemSet has held items by their turns, which stay the same while they are held.
type itemSet map[uint64]bool

// resetItems takes items from holders that have not renewed for a while. Whoever is left with nothing has ended.
func (l *Ledger) resetItems(c quota.ResetItems, m mode) Outcome {
	list, err := l.resettable(c)
	if err != nil {
		return Outcome{Refused: err}
	}
	if m == dryRun {
		return Outcome{Items: l.inventory.itemInfos(list)}
	}
	var out Outcome
	lost := map[uint64]itemSet{}
	for _, it := range list {
		info := l.inventory.itemInfo(it)
		info.State = c.To
		out.Items = append(out.Items, info)
		if lost[it.owner] == nil {
			lost[it.owner] = itemSet{}
		}
		lost[it.owner][it.turn] = true
	}
	for _, it := range list {
		if gone := lost[it.owner]; gone != nil {
			delete(lost, it.owner)
			a, _ := l.allocations.held.Get(it.owner)
			if is := l.takeAway(a, gone, c.To, quota.Expired, resetter); is.ended != nil {
				l.journal.note(quota.Event{Kind: quota.EventExpired, ID: is.id, By: resetter})
			}
		}
	}
	return out
}

// resettable finds the items that a ResetItems takes, by name; it changes nothing. Reservations keep theirs: they end soon
// enough.
func (l *Ledger) resettable(c quota.ResetItems) ([]*item, *quota.Error) {
	s, err := l.forest.findStock(c.Tree, c.Resource, "resource")
	switch {
	case err != nil:
		return nil, err
	case c.State == "":
		return nil, quota.Errorf(quota.Invalid, "state", "name the state of the items that are to be taken")
	case c.To == "":
		return nil, quota.Errorf(quota.Invalid, "to", "name the state that the items are to get")
	}
	if err := checkStates("to", c.To); err != nil {
		return nil, err
	}
	var list []*item
	for _, name := range s.names {
		it := s.byName[name]
		if it.owner == 0 || it.state != c.State {
			continue
		}
		a, _ := l.allocations.held.Get(it.owner)
		if a.state() == quota.Held && quota.Span(l.now.At-it.touched(a).At) >= max(0, c.Idle) {
			list = append(list, it)
		}
	}
	return list, nil
}

// holdsNothing is true if nothing is left of an allocation that was made smaller.
func (a *Allocation) holdsNothing() bool {
	return !slices.ContainsFunc(a.claims, func(c placedClaim) bool { return len(c.amounts) > 0 })
}

// takeAway takes items, which get a state, from an allocation, and answers its record. If nothing is left, it ends.
func (l *Ledger) takeAway(a *Allocation, gone itemSet, itemState string, end quota.State, by string) *Allocation {
	is := a.without(gone)
	for _, it := range a.has() {
		if gone[it.turn] {
			l.inventory.giveBack(it.stock.byName[it.name], stateOr(itemState, it.stock.resource.Items))
		}
	}
	if is.holdsNothing() {
		return l.end(a, end, by)
	}
	l.shrink(a, is)
	l.inventory.announce(a)
	l.journal.fact(FactShrunk, is)
	return is
}

// shrink puts a smaller record in the place of an allocation. What it does not count any more is given back.
func (l *Ledger) shrink(a, is *Allocation) {
	l.forest.markChangedBy(a)
	for i := range a.claims {
		l.unbook(a, i)
	}
	is.settleAddresses()
	l.allocations.put(is)
	for i := range is.claims {
		l.book(is, i)
	}
	for i := range is.claims {
		l.slideInto(is.claims[i].at)
	}
	l.queue.freed(a)
}

// stateOr is the state, or if it is empty the one that the resource says of what is given back.
func stateOr(state string, s *quota.ItemSpec) string {
	if state == "" {
		return s.ReleasedState()
	}
	return state
}

// without is a copy of the record with fewer items.
func (a *Allocation) without(gone itemSet) *Allocation {
	is := *a
	is.claims = slices.Clone(a.claims)
	for i := range is.claims {
		c := &is.claims[i]
		left := slices.DeleteFunc(slices.Clone(c.held()), func(h heldItem) bool { return gone[h.is.stock.byName[h.name].turn] })
		if len(left) == len(c.held()) {
			continue
		}
		c.setItems(c.picks(), left)
		c.amounts = slices.Clone(c.amounts)
		for j, p := range c.amounts {
			if p.resource.Unit == quota.Items {
				c.amounts[j].amount = c.countOf(p.resource.Name)
			}
		}
		c.amounts = slices.DeleteFunc(c.amounts, func(p placedAmount) bool { return p.resource.Unit == quota.Items && p.amount == 0 })
	}
	return &is
}
