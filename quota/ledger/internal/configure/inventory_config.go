package configure

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/admit"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// checkItemSpec refuses an invalid specification of items. The default TTL must not exceed mostTTL.
func checkItemSpec(f *state.Forest, r quota.Resource, mostTTL quota.Span, field string) *quota.Error {
	s := r.Items
	switch {
	case r.Unit != quota.Items && s != nil:
		return quota.Errorf(quota.Invalid, field,
			"resource %s is %s, it has no named items; leave them out, or let it count items", r.Name,
			admit.AmountWords[r.Unit])
	case r.Unit != quota.Items:
		return nil
	case s == nil:
		return quota.Errorf(quota.Invalid, field,
			"resource %s counts items, but does not say which; name them, or say how many are made on demand", r.Name)
	case s.TTL < 0 || s.TTL > mostTTL:
		return quota.Errorf(quota.Invalid, field+".ttl_ms",
			"the default of leases of %s is %d ms; 1 to %d are allowed, and 0 for that of the tree",
			r.Name, s.TTL, mostTTL)
	}
	if err := checkStock(f, r.Name, s, field); err != nil {
		return err
	}
	if err := admit.CheckStates(field, s.State, s.Released, s.Expired); err != nil {
		return err
	}
	if err := checkTurns(f, r.Name, s.Turns, field); err != nil {
		return err
	}
	if err := admit.CheckRetirement(r.Name, s, field); err != nil {
		return err
	}
	return checkQueueing(s.Queueing, field+".queueing")
}

func checkStock(f *state.Forest, resource string, s *quota.ItemSpec, field string) *quota.Error {
	most := f.Bounds.ItemsOfOne
	switch {
	case !s.OnDemand() && (s.Min != 0 || s.Max != 0 || s.Lifespan != 0):
		return quota.Errorf(quota.Invalid, field,
			"the items of %s are named, so that they are not made on demand; leave minimum, maximum and lifespan "+
				"out, or the names", resource)
	case s.OnDemand() && (s.Max < 1 || s.Max > most):
		return quota.Errorf(quota.Invalid, field+".max",
			"at most %d items of %s are made on demand; 1 to %d are allowed", s.Max, resource, most)
	case s.Min < 0 || s.Min > s.Max:
		return quota.Errorf(quota.Invalid, field+".min",
			"at least %d items of %s are made on demand; 0 to %d, the most that there may be, are allowed", s.Min,
			resource, s.Max)
	case s.Lifespan < 0 || s.Lifespan > quota.MaxLifespan:
		return quota.Errorf(quota.Invalid, field+".lifespan_ms",
			"items of %s live for %d ms; 1 to %d are allowed, and 0 for ever", resource, s.Lifespan, quota.MaxLifespan)
	case len(s.Names) > most:
		return quota.Errorf(quota.Invalid, field+".names", "resource %s has %d items; at most %d are allowed", resource,
			len(s.Names), most)
	}
	for i, name := range s.Names {
		at := fmt.Sprintf("%s.names[%d]", field, i)
		switch {
		case !quota.IsItemName(name):
			return quota.Errorf(quota.Invalid, at, admit.ItemNameRule, quota.MaxItemName, quota.NodeNameExtra,
				quota.Clip(name))
		case i > 0 && s.Names[i-1] >= name:
			return quota.Errorf(quota.Invalid, at, "item %s is not in order, or named twice", name)
		}
	}
	return nil
}

func checkTurns(f *state.Forest, resource string, turns []quota.Turn, field string) *quota.Error {
	if len(turns) > f.Bounds.Turns {
		return quota.Errorf(quota.Invalid, field+".turns", "items of %s turn from %d states; at most %d are allowed",
			resource, len(turns), f.Bounds.Turns)
	}
	for i, t := range turns {
		at := fmt.Sprintf("%s.turns[%d]", field, i)
		switch {
		case t.From == "" || t.To == "" || t.From == t.To:
			return quota.Errorf(quota.Invalid, at, "items turn from one state to another, got %q and %q",
				quota.Clip(t.From), quota.Clip(t.To))
		case i > 0 && turns[i-1].From >= t.From:
			return quota.Errorf(quota.Invalid, at, "the turn from state %s is not in order, or there twice",
				quota.Clip(t.From))
		case t.After < 1 || t.After > quota.MaxLifespan:
			return quota.Errorf(quota.Invalid, at+".after_ms",
				"items turn from state %s after %d ms; 1 to %d are allowed", quota.Clip(t.From), t.After,
				quota.MaxLifespan)
		}
		if err := admit.CheckStates(at, t.From, t.To); err != nil {
			return err
		}
	}
	return nil
}

func checkItemRoom(f *state.Forest, steps []*treeTransition) *quota.Error {
	changed, count := map[*state.Tree]bool{}, 0
	for _, s := range steps {
		changed[s.old] = true
		count += s.mostItems()
	}
	for _, t := range f.Trees { // a sum does not depend on the order
		for _, r := range t.Resources {
			if r.Stock != nil && !changed[t] {
				count += max(r.Items.MaxItems(), len(r.Stock.ByName))
			}
		}
	}
	if count > f.Bounds.Items {
		return quota.Errorf(quota.Full, "trees", "the ledger could have %d items; at most %d are allowed",
			count, f.Bounds.Items)
	}
	return nil
}

// mostItems is the largest number of items of a tree after a change, including held ones that will leave.
func (s *treeTransition) mostItems() int {
	count := 0
	if s.draft == nil {
		return 0
	}
	for _, r := range s.draft.Resources {
		if r.Unit == quota.Items {
			count += r.Items.MaxItems() + s.leavingItems(r)
		}
	}
	return count
}

// leavingItems is the number of held and retired items of a resource beyond its new specification.
func (s *treeTransition) leavingItems(r *state.Resource) int {
	if s.old == nil {
		return 0
	}
	previous := s.old.Resource(r.Name)
	if previous == nil || previous.Stock == nil {
		return 0
	}
	held, leaving := 0, 0
	for _, it := range previous.Stock.ByName { // a sum does not depend on the order
		if it.Owner != 0 {
			held++
			if !r.Items.OnDemand() && !SpecNamesItem(r.Items, it.Name) {
				leaving++
			}
		}
	}
	switch {
	case r.Items.Retired != "":
		return max(0, len(previous.Stock.ByName)-r.Items.Max)
	case r.Items.OnDemand():
		return max(0, held-r.Items.Max)
	}
	return leaving
}

// SpecNamesItem reports whether an item is configured by name.
func SpecNamesItem(s *quota.ItemSpec, name string) bool {
	_, named := slices.BinarySearch(s.Names, name)
	return named
}

// installStocks expects the former specifications in formerItems.
func installStocks(inv *state.Inventory, t *state.Tree, formerItems map[*state.Resource]*quota.ItemSpec) {
	for _, r := range t.Resources {
		switch {
		case r.Unit != quota.Items:
		case r.Stock == nil:
			r.Stock = state.NewStock(t.Name, r)
			installStock(inv, r.Stock)
		case !sameItemSpec(r.Items, formerItems[r]):
			resetLifespans(inv, r.Stock, formerItems[r].Lifespan)
			admit.ResetRetired(inv, r.Stock, formerItems[r].Retired)
			installStock(inv, r.Stock)
			resetItemDeadlines(inv, r.Stock)
		}
	}
}

// removeItems expects that none is held.
func removeItems(inv *state.Inventory, r *state.Resource) {
	if r.Stock == nil {
		return
	}
	for _, name := range slices.Clone(r.Stock.Names) {
		admit.ChangeItem(inv, r.Stock.ByName[name], nil)
	}
}

// installStock creates missing items and retires or removes surplus ones: idle ones at once, held ones when they are
// returned.
func installStock(inv *state.Inventory, s *state.Stock) {
	spec := s.Resource.Items
	surplus := surplusItems(s)
	for _, name := range slices.Clone(s.Names) {
		switch it := s.ByName[name]; {
		case surplus[name] && it.Owner == 0:
			admit.RetireIdle(inv, it)
		case surplus[name] != it.Leaving:
			updated := *it
			updated.Leaving = surplus[name]
			admit.ChangeItem(inv, it, &updated)
		}
	}
	for _, name := range spec.Names {
		if s.ByName[name] == nil {
			admit.CreateItem(inv, s, name)
		}
	}
	admit.ReplaceRemoved(inv, s)
}

// surplusItems are the items that the specification does not name, or that exceed its maximum: retired ones first, then
// other idle ones, and among those and the held ones the youngest first.
func surplusItems(s *state.Stock) map[string]bool {
	spec, gone := s.Resource.Items, map[string]bool{}
	if !spec.OnDemand() {
		for _, name := range s.Names {
			if !SpecNamesItem(spec, name) {
				gone[name] = true
			}
		}
		return gone
	}
	var all []*state.Item
	for _, name := range s.Names {
		all = append(all, s.ByName[name])
	}
	slices.SortFunc(all, func(a, b *state.Item) int {
		return cmp.Or(cmp.Compare(admit.UsefulnessOf(a), admit.UsefulnessOf(b)), cmp.Compare(b.StateSeq, a.StateSeq))
	})
	for _, it := range all[:max(0, len(all)-spec.Max)] {
		gone[it.Name] = true
	}
	return gone
}

// resetLifespans adjusts the expiry of items to a changed lifespan, which counts from their last return.
func resetLifespans(inv *state.Inventory, s *state.Stock, previous quota.Span) {
	lifespan := s.Resource.Items.Lifespan
	if lifespan == previous {
		return
	}
	for _, name := range s.Names {
		it := s.ByName[name]
		if it.Expires == (quota.Stamp{}) {
			continue
		}
		lives := *it
		lives.Expires.At += quota.Instant(lifespan - previous)
		lives.Expires.Wall += int64(lifespan - previous)
		if lifespan == 0 {
			lives.Expires = quota.Stamp{}
		}
		admit.ChangeItem(inv, it, &lives)
	}
}

func resetItemDeadlines(inv *state.Inventory, s *state.Stock) {
	for _, it := range s.ByName { // each item is independent of the others
		inv.Deadlines.Set(state.DueKey{Kind: state.DueItem, Number: it.StateSeq}, it.DueAt())
	}
}

func sameItemSpec(s, other *quota.ItemSpec) bool {
	return s == other || s != nil && other != nil && itemSpecText(s) == itemSpecText(other) &&
		slices.Equal(s.Names, other.Names)
}

// items compares two specifications. It counts names only, because there may be thousands.
func (d *Differ) items(name string, previous, updated *quota.ItemSpec) {
	if sameItemSpec(previous, updated) {
		return
	}
	before, after := itemSpecText(previous), itemSpecText(updated)
	if previous != nil && updated != nil && !previous.OnDemand() && !updated.OnDemand() &&
		!slices.Equal(previous.Names, updated.Names) {
		after += fmt.Sprintf(" (%d new, %d gone)", itemsBeyond(updated, previous), itemsBeyond(previous, updated))
	}
	d.add("", "items "+name, before, after)
}

func itemsBeyond(s, other *quota.ItemSpec) int {
	count := 0
	for _, name := range s.Names {
		if !SpecNamesItem(other, name) {
			count++
		}
	}
	return count
}

func itemSpecText(s *quota.ItemSpec) string {
	if s == nil {
		return ""
	}
	words := []string{fmt.Sprintf("%d names", len(s.Names))}
	switch len(s.Names) {
	case 0:
		words[0] = fmt.Sprintf("%d to %d on demand", s.Min, s.Max)
	case 1:
		words[0] = "1 name"
	}
	for _, set := range []struct{ word, value string }{
		{"lifespan", spanText(s.Lifespan)},
		{"new", s.State},
		{"released", s.Released},
		{"expired", s.Expired},
		{"retired", s.Retired},
		{"removed", s.Removed},
		{"ttl", spanText(s.TTL)},
		{"queueing", queueingText(s.Queueing)},
	} {
		if set.value != "" {
			words = append(words, set.word+" "+set.value)
		}
	}
	for _, t := range s.Turns {
		words = append(words, fmt.Sprintf("%s turns %s after %s", t.From, t.To, spanText(t.After)))
	}
	return strings.Join(words, ", ")
}
