package admit

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

func traceItems(s *state.State, request *quota.Allocate) {
	if request.Mode == quota.Reserve {
		s.Inventory.Trace = &state.ItemTrace{Index: map[quota.ItemName]int{}, LiveBytes: s.CurrentSizes().Live()}
	}
}

func endTrace(inv *state.Inventory) { inv.Trace = nil }

// noteItem records one change of an item; was is nil for a new item, is for a removed one.
func noteItem(inv *state.Inventory, previous, updated *state.Item) {
	trace := inv.Trace
	if trace == nil {
		return
	}
	identified := previous
	if identified == nil {
		identified = updated
	}
	name := quota.ItemName{Tree: identified.Stock.Tree, Resource: identified.Stock.Resource.Name, Name: identified.Name}
	i, known := trace.Index[name]
	if !known {
		i = len(trace.List)
		trace.Index[name] = i
		trace.List = append(trace.List, state.ItemBefore{Name: name, Was: renewedWithOwner(inv.Allocations, previous)})
		trace.Now = append(trace.Now, nil)
	}
	trace.Now[i] = updated
}

// renewedWithOwner is the item with the time of its owner's last renewal, which a restored ledger has stored in the
// item.
func renewedWithOwner(s *state.Allocations, it *state.Item) *state.Item {
	if it == nil || it.Owner == 0 {
		return it
	}
	owner, _ := s.Held.Get(it.Owner)
	updated := *it
	updated.Updated = it.Touched(owner)
	return &updated
}

// changesOfItems are the items whose records differ from the first ones. An item that was to leave and may stay keeps
// its StateSeq.
func changesOfItems(trace *state.ItemTrace) []state.ItemBefore {
	var list []state.ItemBefore
	for i, b := range trace.List {
		updated := trace.Now[i]
		switch {
		case updated == nil && b.Was == nil:
			continue
		case updated == nil:
		case b.Was != nil && b.Was.StateSeq == updated.StateSeq && b.Was.Leaving == updated.Leaving:
			continue
		default:
			b.StateSeq = updated.StateSeq
		}
		list = append(list, b)
	}
	return list
}

// asFound returns the states of the items of a reservation that ends: those in which it found them, as far as known.
func asFound(a *state.Allocation) afterwards {
	if a.More.Undo == nil {
		return unused
	}
	states := map[quota.ItemName]string{}
	for _, b := range a.More.Undo.Items {
		if b.Was != nil && b.Was.Owner == 0 {
			states[b.Name] = b.Was.State
		}
	}
	return func(c *state.PlacedClaim, it *state.Item) string {
		if found := states[quota.ItemName{
			Tree: it.Stock.Tree, Resource: it.Stock.Resource.Name,
			Name: it.Name,
		}]; found != "" {
			return found
		}
		return unused(c, it)
	}
}

// findItemBefore returns the item's present stock and record, either nil if it does not exist any more.
func findItemBefore(b state.ItemBefore, s *state.State) (*state.Stock, *state.Item) {
	stock, refused := FindStock(&s.Forest, b.Name.Tree, b.Name.Resource, "")
	if refused != nil {
		return nil, nil
	}
	return stock, stock.ByName[b.Name.Name]
}

// isUntouched is true if the item is as the reservation left it, except for user data.
func isUntouched(b state.ItemBefore, s *state.State) bool {
	stock, it := findItemBefore(b, s)
	switch {
	case stock == nil:
		return false
	case it == nil:
		return b.StateSeq == 0
	}
	return it.StateSeq == b.StateSeq
}

func (r *restoration) restoreItems() {
	s := r.state
	for _, b := range r.requester.More.Undo.Items {
		stock, it := findItemBefore(b, s)
		var back *state.Item
		if b.Was != nil {
			again := *b.Was
			again.Stock = stock
			if it != nil && !slices.Equal(it.Data, again.Data) {
				again.Data, again.Updated = it.Data, it.Updated
			}
			back = &again
		}
		if it == back {
			continue // it neither existed before nor does now
		}
		ChangeItem(&s.Inventory, it, back)
		r.OnUndo(func() { ChangeItem(&s.Inventory, back, it) })
	}
}
