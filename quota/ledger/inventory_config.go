package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
)

// checkItemSpec refuses an invalid specification of items. The default TTL must not exceed mostTTL.
func (f *forest) checkItemSpec(r quota.Resource, mostTTL quota.Span, field string) *quota.Error {
	s := r.Items
	switch {
	case r.Unit != quota.Items && s != nil:
		return quota.Errorf(quota.Invalid, field,
			"resource %s is %s, it has no named items; leave them out, or let it count items", r.Name,
			amountWords[r.Unit])
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
	if err := f.checkStock(r.Name, s, field); err != nil {
		return err
	}
	if err := checkStates(field, s.State, s.Released, s.Expired); err != nil {
		return err
	}
	if err := f.checkTurns(r.Name, s.Turns, field); err != nil {
		return err
	}
	if err := checkRetirement(r.Name, s, field); err != nil {
		return err
	}
	return checkQueueing(s.Queueing, field+".queueing")
}

// checkStock refuses invalid names and numbers of items.
func (f *forest) checkStock(resource string, s *quota.ItemSpec, field string) *quota.Error {
	most := f.bounds.ItemsOfOne
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
			return quota.Errorf(quota.Invalid, at, itemNameRule, quota.MaxItemName, quota.NodeNameExtra,
				quota.Clip(name))
		case i > 0 && s.Names[i-1] >= name:
			return quota.Errorf(quota.Invalid, at, "item %s is not in order, or named twice", name)
		}
	}
	return nil
}

func (f *forest) checkTurns(resource string, turns []quota.Turn, field string) *quota.Error {
	if len(turns) > f.bounds.Turns {
		return quota.Errorf(quota.Invalid, field+".turns", "items of %s turn from %d states; at most %d are allowed",
			resource, len(turns), f.bounds.Turns)
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
		if err := checkStates(at, t.From, t.To); err != nil {
			return err
		}
	}
	return nil
}

// checkItemRoom refuses a change that could exceed the bound of items.
func (f *forest) checkItemRoom(steps []*treeTransition) *quota.Error {
	changed, count := map[*tree]bool{}, 0
	for _, s := range steps {
		changed[s.old] = true
		count += s.mostItems()
	}
	for _, t := range f.trees { // a sum does not depend on the order
		for _, r := range t.resources {
			if r.stock != nil && !changed[t] {
				count += max(r.Items.MaxItems(), len(r.stock.byName))
			}
		}
	}
	if count > f.bounds.Items {
		return quota.Errorf(quota.Full, "trees", "the ledger could have %d items; at most %d are allowed",
			count, f.bounds.Items)
	}
	return nil
}

// mostItems is the largest number of items of a tree after a change, including held ones that will leave.
func (s *treeTransition) mostItems() int {
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

// leavingItems is the number of held and retired items of a resource beyond its new specification.
func (s *treeTransition) leavingItems(r *resource) int {
	if s.old == nil {
		return 0
	}
	was := s.old.resource(r.Name)
	if was == nil || was.stock == nil {
		return 0
	}
	held, leaving := 0, 0
	for _, it := range was.stock.byName { // a sum does not depend on the order
		if it.owner != 0 {
			held++
			if !r.Items.OnDemand() && !specNamesItem(r.Items, it.name) {
				leaving++
			}
		}
	}
	switch {
	case r.Items.Retired != "":
		return max(0, len(was.stock.byName)-r.Items.Max)
	case r.Items.OnDemand():
		return max(0, held-r.Items.Max)
	}
	return leaving
}

// specNamesItem reports whether an item is configured by name.
func specNamesItem(s *quota.ItemSpec, name string) bool {
	_, named := slices.BinarySearch(s.Names, name)
	return named
}

// installStocks brings the items of a tree's resources in line with their specifications. was has the former
// specifications.
func (inv *inventory) installStocks(t *tree, was map[*resource]*quota.ItemSpec) {
	for _, r := range t.resources {
		switch {
		case r.Unit != quota.Items:
		case r.stock == nil:
			r.stock = newStock(t.name, r)
			inv.installStock(r.stock)
		case !sameItemSpec(r.Items, was[r]):
			inv.resetLifespans(r.stock, was[r].Lifespan)
			inv.resetRetired(r.stock, was[r].Retired)
			inv.installStock(r.stock)
			inv.resetItemDeadlines(r.stock)
		}
	}
}

// removeItems removes all items of a resource; none is held.
func (inv *inventory) removeItems(r *resource) {
	if r.stock == nil {
		return
	}
	for _, name := range slices.Clone(r.stock.names) {
		inv.changeItem(r.stock.byName[name], nil)
	}
}

// installStock creates missing items and retires or removes surplus ones: idle ones at once, held ones when they are
// returned.
func (inv *inventory) installStock(s *stock) {
	spec := s.resource.Items
	surplus := s.surplusItems()
	for _, name := range slices.Clone(s.names) {
		switch it := s.byName[name]; {
		case surplus[name] && it.owner == 0:
			inv.retireIdle(it)
		case surplus[name] != it.leaving:
			is := *it
			is.leaving = surplus[name]
			inv.changeItem(it, &is)
		}
	}
	for _, name := range spec.Names {
		if s.byName[name] == nil {
			inv.createItem(s, name)
		}
	}
	inv.replaceRemoved(s)
}

// surplusItems are the items that the specification does not name, or that exceed its maximum: retired ones first, then
// other idle ones, and among those and the held ones the youngest first.
func (s *stock) surplusItems() map[string]bool {
	spec, gone := s.resource.Items, map[string]bool{}
	if !spec.OnDemand() {
		for _, name := range s.names {
			if !specNamesItem(spec, name) {
				gone[name] = true
			}
		}
		return gone
	}
	var all []*item
	for _, name := range s.names {
		all = append(all, s.byName[name])
	}
	slices.SortFunc(all, func(a, b *item) int {
		return cmp.Or(cmp.Compare(a.usefulness(), b.usefulness()), cmp.Compare(b.stateSeq, a.stateSeq))
	})
	for _, it := range all[:max(0, len(all)-spec.Max)] {
		gone[it.name] = true
	}
	return gone
}

// resetLifespans adjusts the expiry of items to a changed lifespan, which counts from their last return.
func (inv *inventory) resetLifespans(s *stock, was quota.Span) {
	is := s.resource.Items.Lifespan
	if is == was {
		return
	}
	for _, name := range s.names {
		it := s.byName[name]
		if it.expires == (quota.Stamp{}) {
			continue
		}
		lives := *it
		lives.expires.At += quota.Instant(is - was)
		lives.expires.Wall += int64(is - was)
		if is == 0 {
			lives.expires = quota.Stamp{}
		}
		inv.changeItem(it, &lives)
	}
}

// resetItemDeadlines recomputes the deadlines of the items of a stock.
func (inv *inventory) resetItemDeadlines(s *stock) {
	for _, it := range s.byName { // each item is independent of the others
		inv.deadlines.set(dueKey{dueItem, it.stateSeq}, it.dueAt())
	}
}

func sameItemSpec(s, other *quota.ItemSpec) bool {
	return s == other || s != nil && other != nil && itemSpecText(s) == itemSpecText(other) &&
		slices.Equal(s.Names, other.Names)
}

// items compares two specifications of items. It counts names only, because there may be thousands.
func (d *differ) items(name string, was, is *quota.ItemSpec) {
	if sameItemSpec(was, is) {
		return
	}
	before, after := itemSpecText(was), itemSpecText(is)
	if was != nil && is != nil && !was.OnDemand() && !is.OnDemand() && !slices.Equal(was.Names, is.Names) {
		after += fmt.Sprintf(" (%d new, %d gone)", itemsBeyond(is, was), itemsBeyond(was, is))
	}
	d.add("", "items "+name, before, after)
}

// itemsBeyond counts the names that the other specification lacks.
func itemsBeyond(s, other *quota.ItemSpec) int {
	count := 0
	for _, name := range s.Names {
		if !specNamesItem(other, name) {
			count++
		}
	}
	return count
}

// itemSpecText describes a specification for people, without the names; empty for nil.
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
