package admit

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// Retired items are idle, and too many or too old. They stay, in a state of their own, until a cleaner has removed what
// they stand for and brings them into the state in which they are removed (quota.ItemSpec). They count towards the
// maximum, because what they stand for still exists.

// CheckRetirement refuses invalid states for items that are too many or too old.
func CheckRetirement(resource string, s *quota.ItemSpec, field string) *quota.Error {
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
	return CheckStates(field+".retired", s.Retired, s.Removed)
}

// RemovesIn is true if idle items are removed in a state.
func RemovesIn(s *state.Stock, itemState string) bool {
	return itemState != "" && itemState == s.Resource.Items.Removed
}

// isCreatedFor is true if items are created for requests for a state: not for those of cleaners, which ask for what is
// to be removed.
func isCreatedFor(s *state.Stock, itemState string) bool {
	spec := s.Resource.Items
	return spec.OnDemand() && itemState != spec.Retired && itemState != spec.Removed
}

// SurplusOf is the number of items beyond the maximum that are not retired; it is negative if there may be more. As
// many held items leave when they are returned, and no other idle items exist then.
func SurplusOf(s *state.Stock) int {
	spec := s.Resource.Items
	more := len(s.ByName) - spec.Max
	if spec.Retired != "" {
		more -= s.IdleIn(spec.Retired)
	}
	return more
}

// UsefulnessOf orders items by which is given up last.
func UsefulnessOf(it *state.Item) int {
	switch {
	case it.Owner != 0:
		return 2
	case it.IsRetired():
		return 0
	}
	return 1
}

// retiredItem is the record of an item that is too many or too old; nil if it is removed, because the resource has no
// cleaner, or because its holder returns it in the state of items that are to be removed.
func retiredItem(inv *state.Inventory, it *state.Item, returnedIn string) *state.Item {
	retired := it.Stock.Resource.Items.Retired
	if retired == "" || RemovesIn(it.Stock, returnedIn) {
		return nil
	}
	return idleItem(inv, it, retired)
}

// idleItem is nil if the item is removed in that state. A retired item has no lifespan any more.
func idleItem(inv *state.Inventory, it *state.Item, itemState string) *state.Item {
	if RemovesIn(it.Stock, itemState) {
		return nil
	}
	updated := inv.WithNewState(it, itemState, 0)
	if updated.Leaving = false; updated.IsRetired() {
		updated.Expires = quota.Stamp{}
	}
	return updated
}

// returnedItem is nil if the item is removed. Otherwise its lifespan begins.
func returnedItem(inv *state.Inventory, it *state.Item, itemState string) *state.Item {
	updated := idleItem(inv, it, itemState)
	if updated == nil {
		return nil
	}
	updated.Expires = quota.Stamp{}
	if life := it.Stock.Resource.Items.Lifespan; life > 0 && !updated.IsRetired() {
		updated.Expires = quota.Stamp{At: inv.Now.At + quota.Instant(life), Wall: inv.Now.Wall + int64(life)}
	}
	return updated
}

// placeIdle expects nil for an item that is removed.
func placeIdle(inv *state.Inventory, it, idle *state.Item) {
	ChangeItem(inv, it, idle)
	spareLeaving(inv, it.Stock)
	if idle == nil {
		ReplaceRemoved(inv, it.Stock)
		return
	}
	inv.Queue.UnblockItems(idle.Stock.Resource, idle.State, idle.Name)
}

// spareLeaving lets held items stay for which there is room again, because an idle item was retired or removed instead.
func spareLeaving(inv *state.Inventory, s *state.Stock) {
	if !s.Resource.Items.OnDemand() {
		return // those that leave are not configured any more
	}
	for s.Leaving > max(0, SurplusOf(s)) {
		leaving := oldestLeaving(s)
		spared := *leaving
		spared.Leaving = false
		ChangeItem(inv, leaving, &spared)
	}
}

// followExpiries adjusts a stock of which items were restored, while others may have become too old and were removed.
func followExpiries(inv *state.Inventory, s *state.Stock) {
	spareLeaving(inv, s)
	if s.Resource.Items.OnDemand() {
		createOnDemand(inv, s, s.Resource.Items.Min)
	}
}

// announceIdle unblocks the requests that wait for an idle item with a new state, or removes the item in that state.
func announceIdle(inv *state.Inventory, it *state.Item) {
	if RemovesIn(it.Stock, it.State) {
		placeIdle(inv, it, nil)
		return
	}
	inv.Queue.UnblockItems(it.Stock.Resource, it.State, it.Name)
}

// RetireIdle retires or removes an idle item that is too many. The caller replaces removed items.
func RetireIdle(inv *state.Inventory, it *state.Item) {
	if it.IsRetired() {
		return
	}
	retired := retiredItem(inv, it, "")
	if ChangeItem(inv, it, retired); retired != nil {
		inv.Queue.UnblockItems(retired.Stock.Resource, retired.State, retired.Name)
	}
}

// ResetRetired follows a change of the states of retired and removed items. formerState is the former state of retired
// items.
func ResetRetired(inv *state.Inventory, s *state.Stock, formerState string) {
	spec := s.Resource.Items
	for _, name := range slices.Clone(s.Names) {
		it := s.ByName[name]
		switch {
		case it.Owner != 0:
		case RemovesIn(s, it.State):
			ChangeItem(inv, it, nil)
		case it.IsRetired() && it.Expires != (quota.Stamp{}):
			updated := *it
			updated.Expires = quota.Stamp{}
			ChangeItem(inv, it, &updated)
		case formerState != "" && formerState != spec.Retired && it.State == formerState:
			RetireIdle(inv, it)
		}
	}
}

// checkReturnsToUse refuses updates that bring retired items back into use while there are too many.
func checkReturnsToUse(list []*state.Item, updates []quota.ItemUpdate) *quota.Error {
	back := map[*state.Stock]int{}
	for i, it := range list {
		target := updates[i].State
		if !it.IsRetired() || target == "" || target == it.State || RemovesIn(it.Stock, target) {
			continue
		}
		if back[it.Stock]++; SurplusOf(it.Stock)+back[it.Stock] > 0 {
			spec := it.Stock.Resource.Items
			return quota.Errorf(quota.InUse, fmt.Sprintf("updates[%d].state", i),
				"item %s is to be removed, because resource %s may have %d items; set its state to %q when it is cleaned, "+
					"or raise the maximum", it.Name, it.Stock.Resource.Name, spec.Max, spec.Removed)
		}
	}
	return nil
}
