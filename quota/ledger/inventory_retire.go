package ledger

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/quota"
)

// Retired items are idle, and too many or too old. They stay, in a state of their own, until a cleaner has removed what
// they stand for and brings them into the state in which they are removed (quota.ItemSpec). They count towards the
// maximum, because what they stand for still exists.

// checkRetirement refuses invalid states for items that are too many or too old.
func checkRetirement(resource string, s *quota.ItemSpec, field string) *quota.Error {
	switch {
	case s.Retired == "" && s.Removed == "":
		return nil
	case !s.OnDemand():
		return quota.Errorf(quota.Invalid, field+".retired",
			"the items of %s are named, so they are never too many or too old; leave retired and removed out, or the names",
			resource)
	case s.Retired == "" || s.Removed == "" || s.Retired == s.Removed:
		return quota.Errorf(quota.Invalid, field+".retired",
			"retired is %q and removed is %q: name two different states, one in which items of %s that are too many or too "+
				"old wait for their end, and one in which they are removed; or neither, and they are removed at once",
			quota.Clip(s.Retired), quota.Clip(s.Removed), resource)
	case s.InitialState() == s.Retired || s.InitialState() == s.Removed:
		return quota.Errorf(quota.Invalid, field+".state",
			"new items of %s are in state %q, which only items that are to be removed may have; name another one",
			resource, quota.Clip(s.InitialState()))
	}
	for i, t := range s.Turns {
		if t.From == s.Retired && t.To != s.Removed {
			return quota.Errorf(quota.Invalid, fmt.Sprintf("%s.turns[%d]", field, i),
				"items of %s in state %q are to be removed, so they turn to %q only, not to %q", resource,
				quota.Clip(t.From), quota.Clip(s.Removed), quota.Clip(t.To))
		}
	}
	return checkStates(field+".retired", s.Retired, s.Removed)
}

// isRetired is true for an idle item that waits for a cleaner.
func (it *item) isRetired() bool {
	return it.owner == 0 && it.state == it.stock.resource.Items.Retired
}

// removesIn is true if idle items are removed in a state.
func (s *stock) removesIn(state string) bool {
	return state != "" && state == s.resource.Items.Removed
}

// isCreatedFor is true if items are created for requests for a state: not for those of cleaners, which ask for what is
// to be removed.
func (s *stock) isCreatedFor(state string) bool {
	spec := s.resource.Items
	return spec.OnDemand() && state != spec.Retired && state != spec.Removed
}

// surplus is the number of items beyond the maximum that are not retired; it is negative if there may be more. As many
// held items leave when they are returned, and no other idle items exist then.
func (s *stock) surplus() int {
	spec := s.resource.Items
	more := len(s.byName) - spec.Max
	if spec.Retired != "" {
		more -= s.idleIn(spec.Retired)
	}
	return more
}

// usefulness orders items by which is given up last.
func (it *item) usefulness() int {
	switch {
	case it.owner != 0:
		return 2
	case it.isRetired():
		return 0
	}
	return 1
}

// retiredItem is the record of an item that is too many or too old; nil if it is removed, because the resource has no
// cleaner, or because its holder returns it in the state of items that are to be removed.
func (inv *inventory) retiredItem(it *item, returnedIn string) *item {
	retired := it.stock.resource.Items.Retired
	if retired == "" || it.stock.removesIn(returnedIn) {
		return nil
	}
	return inv.idleItem(it, retired)
}

// idleItem is the record of an item that becomes idle, or gets another state while it is; nil if it is removed in that
// state. A retired item has no lifespan any more.
func (inv *inventory) idleItem(it *item, state string) *item {
	if it.stock.removesIn(state) {
		return nil
	}
	is := inv.withNewState(it, state, 0)
	if is.leaving = false; is.isRetired() {
		is.expires = quota.Stamp{}
	}
	return is
}

// returnedItem is the record of an item that its holder returns; its lifespan begins. It is nil if the item is removed.
func (inv *inventory) returnedItem(it *item, state string) *item {
	is := inv.idleItem(it, state)
	if is == nil {
		return nil
	}
	is.expires = quota.Stamp{}
	if life := it.stock.resource.Items.Lifespan; life > 0 && !is.isRetired() {
		is.expires = quota.Stamp{At: inv.now.At + quota.Instant(life), Wall: inv.now.Wall + int64(life)}
	}
	return is
}

// placeIdle replaces an idle item by its next record, nil if it is removed, and unblocks the requests that wait for it.
func (inv *inventory) placeIdle(it, is *item) {
	inv.changeItem(it, is)
	inv.spareLeaving(it.stock)
	if is == nil {
		inv.replaceRemoved(it.stock)
		return
	}
	inv.queue.unblockItems(is.stock.resource, is.state, is.name)
}

// spareLeaving lets held items stay for which there is room again, because an idle item was retired or removed instead.
func (inv *inventory) spareLeaving(s *stock) {
	if !s.resource.Items.OnDemand() {
		return // those that leave are not configured any more
	}
	for s.leaving > max(0, s.surplus()) {
		leaving := s.oldestLeaving()
		spared := *leaving
		spared.leaving = false
		inv.changeItem(leaving, &spared)
	}
}

// followExpiries adjusts a stock of which items were restored, while others may have become too old and were removed.
func (inv *inventory) followExpiries(s *stock) {
	inv.spareLeaving(s)
	if s.resource.Items.OnDemand() {
		inv.createOnDemand(s, s.resource.Items.Min)
	}
}

// announceIdle unblocks the requests that wait for an idle item with a new state, or removes the item in that state.
func (inv *inventory) announceIdle(it *item) {
	if it.stock.removesIn(it.state) {
		inv.placeIdle(it, nil)
		return
	}
	inv.queue.unblockItems(it.stock.resource, it.state, it.name)
}

// retireIdle retires or removes an idle item that is too many. The caller replaces removed items.
func (inv *inventory) retireIdle(it *item) {
	if it.isRetired() {
		return
	}
	is := inv.retiredItem(it, "")
	if inv.changeItem(it, is); is != nil {
		inv.queue.unblockItems(is.stock.resource, is.state, is.name)
	}
}

// resetRetired follows a change of the states of retired and removed items. was is the former state of retired items.
func (inv *inventory) resetRetired(s *stock, was string) {
	spec := s.resource.Items
	for _, name := range slices.Clone(s.names) {
		it := s.byName[name]
		switch {
		case it.owner != 0:
		case s.removesIn(it.state):
			inv.changeItem(it, nil)
		case it.isRetired() && it.expires != (quota.Stamp{}):
			is := *it
			is.expires = quota.Stamp{}
			inv.changeItem(it, &is)
		case was != "" && was != spec.Retired && it.state == was:
			inv.retireIdle(it)
		}
	}
}

// checkReturnsToUse refuses updates that bring retired items back into use while there are too many.
func checkReturnsToUse(list []*item, updates []quota.ItemUpdate) *quota.Error {
	back := map[*stock]int{}
	for i, it := range list {
		state := updates[i].State
		if !it.isRetired() || state == "" || state == it.state || it.stock.removesIn(state) {
			continue
		}
		if back[it.stock]++; it.stock.surplus()+back[it.stock] > 0 {
			spec := it.stock.resource.Items
			return quota.Errorf(quota.InUse, fmt.Sprintf("updates[%d].state", i),
				"item %s is to be removed, because resource %s may have %d items; set its state to %q when it is cleaned, "+
					"or raise the maximum", it.name, it.stock.resource.Name, spec.Max, spec.Removed)
		}
	}
	return nil
}
