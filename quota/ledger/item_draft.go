package ledger

import (
	"fmt"

	"github.com/quorate/quorate/quota"
)

// itemNameRule says what the name of an item is; it takes the most bytes, the extra characters and what was given.
const itemNameRule = "an item's name is 1 to %d letters, digits and %s, beginning with a letter, digit or _; got %q"

// checkItemSpec refuses what an itemized resource cannot be. The default of its leases is no longer than they may be.
func (f *forest) checkItemSpec(r quota.Resource, mostTTL quota.Span, field string) *quota.Error {
	s := r.Items
	switch {
	case r.Unit != quota.Items && s != nil:
		return quota.Errorf(quota.Invalid, field, "resource %s counts %s and has no items; leave them out, or let it count items", r.Name, r.Unit)
	case r.Unit != quota.Items:
		return nil
	case s == nil:
		return quota.Errorf(quota.Invalid, field, "resource %s counts items, but does not say which; name them, or say how many are made on demand", r.Name)
	case s.TTL < 0 || s.TTL > mostTTL:
		return quota.Errorf(quota.Invalid, field+".ttl_ms", "the default of leases of %s is %d ms; 1 to %d are allowed, and 0 for that of the tree", r.Name, s.TTL, mostTTL)
	}
	if err := f.checkStock(r.Name, s, field); err != nil {
		return err
	}
	if err := checkStates(field, s.State, s.Released, s.Expired); err != nil {
		return err
	}
	if err := f.checkTurns(r.Name, s.Turns, field); err != nil {
		return err
	}
	return checkQueueing(s.Queueing, field+".queueing")
}

// checkStock refuses names and numbers that cannot be.
func (f *forest) checkStock(resource string, s *quota.ItemSpec, field string) *quota.Error {
	most := f.bounds.ItemsOfOne
	switch {
	case !s.OnDemand() && (s.Min != 0 || s.Max != 0 || s.Lifespan != 0):
		return quota.Errorf(quota.Invalid, field, "the items of %s are named, so that they are not made on demand; leave minimum, maximum and lifespan out, or the names", resource)
	case s.OnDemand() && (s.Max < 1 || s.Max > most):
		return quota.Errorf(quota.Invalid, field+".max", "at most %d items of %s are made on demand; 1 to %d are allowed", s.Max, resource, most)
	case s.Min < 0 || s.Min > s.Max:
		return quota.Errorf(quota.Invalid, field+".min", "at least %d items of %s are made on demand; 0 to %d, the most that there may be, are allowed", s.Min, resource, s.Max)
	case s.Lifespan < 0 || s.Lifespan > quota.MaxLifespan:
		return quota.Errorf(quota.Invalid, field+".lifespan_ms", "items of %s live for %d ms; 1 to %d are allowed, and 0 for ever", resource, s.Lifespan, quota.MaxLifespan)
	case len(s.Names) > most:
		return quota.Errorf(quota.Invalid, field+".names", "resource %s has %d items; at most %d are allowed", resource, len(s.Names), most)
	}
	for i, name := range s.Names {
		at := fmt.Sprintf("%s.names[%d]", field, i)
		switch {
		case !quota.IsItemName(name):
			return quota.Errorf(quota.Invalid, at, itemNameRule, quota.MaxItemName, quota.NodeNameExtra, quota.Clip(name))
		case i > 0 && s.Names[i-1] >= name:
			return quota.Errorf(quota.Invalid, at, "item %s is not in order, or named twice", name)
		}
	}
	return nil
}

func (f *forest) checkTurns(resource string, turns []quota.Turn, field string) *quota.Error {
	if len(turns) > f.bounds.Turns {
		return quota.Errorf(quota.Invalid, field+".turns", "items of %s turn from %d states; at most %d are allowed", resource, len(turns), f.bounds.Turns)
	}
	for i, t := range turns {
		at := fmt.Sprintf("%s.turns[%d]", field, i)
		switch {
		case t.From == "" || t.To == "" || t.From == t.To:
			return quota.Errorf(quota.Invalid, at, "items turn from one state to another, got %q and %q", quota.Clip(t.From), quota.Clip(t.To))
		case i > 0 && turns[i-1].From >= t.From:
			return quota.Errorf(quota.Invalid, at, "the turn from state %s is not in order, or there twice", quota.Clip(t.From))
		case t.After < 1 || t.After > quota.MaxLifespan:
			return quota.Errorf(quota.Invalid, at+".after_ms", "items turn from state %s after %d ms; 1 to %d are allowed", quota.Clip(t.From), t.After, quota.MaxLifespan)
		}
		if err := checkStates(at, t.From, t.To); err != nil {
			return err
		}
	}
	return nil
}

// checkItemRoom refuses a change after which there could be more items than there may be.
func (f *forest) checkItemRoom(steps []*succession) *quota.Error {
	changed, count := map[*tree]bool{}, 0
	for _, s := range steps {
		changed[s.old] = true
		count += s.mostItems()
	}
	for _, t := range f.trees { // a sum, in whatever order
		for _, r := range t.resources {
			if r.stock != nil && !changed[t] {
				count += max(r.Items.MaxItems(), len(r.stock.byName))
			}
		}
	}
	if count > f.bounds.Items {
		return quota.Errorf(quota.Full, "trees", "the ledger could have %d items; at most %d are allowed", count, f.bounds.Items)
	}
	return nil
}

// mostItems is how many items a tree may have after a change, with those that are held and leave.
func (s *succession) mostItems() int {
	count := 0
	if s.draft == nil {
		return 0
	}
	for _, r := range s.draft.resources {
		if r.Unit == quota.Items {
			count += r.Items.MaxItems() + s.leavingItems(r)
		}
	}
	return count
}

// leavingItems is how many held items of a resource would be beyond what it may have.
func (s *succession) leavingItems(r *resource) int {
	if s.old == nil {
		return 0
	}
	was := s.old.resource(r.Name)
	if was == nil || was.stock == nil {
		return 0
	}
	held, leaving := 0, 0
	for _, it := range was.stock.byName { // a sum, in whatever order
		if it.owner != 0 {
			held++
			if !r.Items.OnDemand() && !specNamesItem(r.Items, it.name) {
				leaving++
			}
		}
	}
	if r.Items.OnDemand() {
		return max(0, held-r.Items.Max)
	}
	return leaving
}
