package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
)

// traceItems begins a trace if the request can become a reservation.
func (l *Ledger) traceItems(request *quota.Allocate) {
	if request.Mode == quota.Reserve {
		l.inventory.trace = &itemTrace{index: map[quota.ItemName]int{}, liveBytes: l.currentSizes().Live()}
	}
}

func (inv *inventory) endTrace() { inv.trace = nil }

// noteItem records one change of an item; was is nil for a new item, is for a removed one.
func (inv *inventory) noteItem(was, is *item) {
	trace := inv.trace
	if trace == nil {
		return
	}
	of := was
	if of == nil {
		of = is
	}
	name := quota.ItemName{Tree: of.stock.tree, Resource: of.stock.resource.Name, Name: of.name}
	i, known := trace.index[name]
	if !known {
		i = len(trace.list)
		trace.index[name] = i
		trace.list = append(trace.list, itemBefore{name: name, was: inv.allocations.renewedWithOwner(was)})
		trace.now = append(trace.now, nil)
	}
	trace.now[i] = is
}

// renewedWithOwner is the item with the time of its owner's last renewal, which a restored ledger has stored in the
// item.
func (s *allocations) renewedWithOwner(it *item) *item {
	if it == nil || it.owner == 0 {
		return it
	}
	owner, _ := s.held.Get(it.owner)
	is := *it
	is.updated = it.touched(owner)
	return &is
}

// changes are the items whose records differ from the first ones. An item that was to leave and may stay keeps its
// stateSeq.
func (trace *itemTrace) changes() []itemBefore {
	var list []itemBefore
	for i, b := range trace.list {
		is := trace.now[i]
		switch {
		case is == nil && b.was == nil:
			continue
		case is == nil:
		case b.was != nil && b.was.stateSeq == is.stateSeq && b.was.leaving == is.leaving:
			continue
		default:
			b.turn = is.stateSeq
		}
		list = append(list, b)
	}
	return list
}

// asFound returns the states of the items of a reservation that ends: those in which it found them, as far as known.
func (a *Allocation) asFound() afterwards {
	if a.more.undo == nil {
		return unused
	}
	states := map[quota.ItemName]string{}
	for _, b := range a.more.undo.items {
		if b.was != nil && b.was.owner == 0 {
			states[b.name] = b.was.state
		}
	}
	return func(c *placedClaim, it *item) string {
		if state := states[quota.ItemName{
			Tree: it.stock.tree, Resource: it.stock.resource.Name,
			Name: it.name,
		}]; state != "" {
			return state
		}
		return unused(c, it)
	}
}

// find returns the item's present stock and record, either nil if it does not exist any more.
func (b itemBefore) find(l *Ledger) (*stock, *item) {
	s, refused := l.forest.findStock(b.name.Tree, b.name.Resource, "")
	if refused != nil {
		return nil, nil
	}
	return s, s.byName[b.name.Name]
}

// isUntouched is true if the item is as the reservation left it, except for user data.
func (b itemBefore) isUntouched(l *Ledger) bool {
	s, it := b.find(l)
	switch {
	case s == nil:
		return false
	case it == nil:
		return b.turn == 0
	}
	return it.stateSeq == b.turn
}

// restoreItems restores state, owner and age of every item that the reservation changed.
func (r *restoration) restoreItems() {
	l := r.ledger
	for _, b := range r.by.more.undo.items {
		s, it := b.find(l)
		var back *item
		if b.was != nil {
			again := *b.was
			again.stock = s
			if it != nil && !slices.Equal(it.data, again.data) {
				again.data, again.updated = it.data, it.updated
			}
			back = &again
		}
		if it == back {
			continue // it neither existed before nor does now
		}
		l.inventory.changeItem(it, back)
		r.onUndo(func() { l.inventory.changeItem(back, it) })
	}
}
