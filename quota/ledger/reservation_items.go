package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
)

// itemBefore is an item that a reservation has changed.
type itemBefore struct {
	name quota.ItemName
	// was is the item as it was before; nil if there was none. Its stock is not used: it may have been loaded.
	was *item
	// turn is the one that the item got; 0 if it went.
	turn uint64
}

// itemTrace records which items one command changes, in the order of their first changes.
type itemTrace struct {
	list  []itemBefore
	index map[quota.ItemName]int
	now   []*item // the last records of the listed items
	// liveBytes is what the ledger has when the trace begins.
	liveBytes int64
}

// traceItems begins a trace if a request can be granted as a reservation.
func (l *Ledger) traceItems(request quota.Allocate) {
	if request.Mode == quota.Reserve && l.level >= quota.LevelFive {
		l.inventory.trace = &itemTrace{index: map[quota.ItemName]int{}, liveBytes: l.currentSizes().Live()}
	}
}

// endTrace ends the trace.
func (inv *inventory) endTrace() { inv.trace = nil }

// noteItem records one change of an item; either record is nil if there was or is none.
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

// renewedWithOwner is the item with the time of its owner's last renewal, which a loaded ledger has put into the item.
func (s *allocations) renewedWithOwner(it *item) *item {
	if it == nil || it.owner == 0 {
		return it
	}
	owner, _ := s.held.Get(it.owner)
	is := *it
	is.updated = it.touched(owner)
	return &is
}

// changes are the items that are not what they were. One that was to leave and may stay keeps its turn.
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

// asFound says which states the items of a reservation get that ends: those in which it found them, as far as that is known.
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
		if state := states[quota.ItemName{Tree: it.stock.tree, Resource: it.stock.resource.Name, Name: it.name}]; state != "" {
			return state
		}
		return unused(c, it)
	}
}

// find answers the present record of the item, nil if there is none, and its stock, nil if that has gone.
func (b itemBefore) find(l *Ledger) (*stock, *item) {
	s, refused := l.forest.findStock(b.name.Tree, b.name.Resource, "")
	if refused != nil {
		return nil, nil
	}
	return s, s.byName[b.name.Name]
}

// isUntouched is true if the item is as the reservation left it, but for its user data.
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

// restoreItems gives every item that the reservation has changed the state, the owner and the age that it had.
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
			continue // there was none, and there is none
		}
		l.inventory.changeItem(it, back)
		r.onUndo(func() { l.inventory.changeItem(back, it) })
	}
}
