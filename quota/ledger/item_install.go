package ledger

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/quota"
)

// specNamesItem tells whether an item is configured by its name.
func specNamesItem(s *quota.ItemSpec, name string) bool {
	_, named := slices.BinarySearch(s.Names, name)
	return named
}

// stockUp makes the items of a tree's resources what their specifications say; was has the specifications of those that
// have items already.
func (inv *inventory) stockUp(t *tree, was map[*resource]*quota.ItemSpec) {
	for _, r := range t.resources {
		switch {
		case r.Unit != quota.Items:
		case r.stock == nil:
			r.stock = newStock(t.name, r)
			inv.settleStock(r.stock)
		case !sameItemSpec(r.Items, was[r]):
			inv.relive(r.stock, was[r].Lifespan)
			inv.settleStock(r.stock)
			inv.redue(r.stock)
		}
	}
}

// dropItems lets all items of a resource go; nobody holds one.
func (inv *inventory) dropItems(r *resource) {
	if r.stock == nil {
		return
	}
	for _, name := range slices.Clone(r.stock.names) {
		inv.changeItem(r.stock.byName[name], nil)
	}
}

// settleStock brings in what lacks, and lets go what is too much: at once what nobody holds, the rest when it is given back.
func (inv *inventory) settleStock(s *stock) {
	spec := s.resource.Items
	surplus := s.surplus()
	for _, name := range slices.Clone(s.names) {
		switch it := s.byName[name]; {
		case surplus[name] && it.owner == 0:
			inv.changeItem(it, nil)
		case surplus[name] != it.leaving:
			is := *it
			is.leaving = surplus[name]
			inv.changeItem(it, &is)
		}
	}
	for _, name := range spec.Names {
		if s.byName[name] == nil {
			inv.makeItem(s, name)
		}
	}
	inv.replaceGone(s)
}

// surplus are the items that the specification does not name, or that are more than there may be: then those that nobody
// holds first, and of them and of the others the youngest first.
func (s *stock) surplus() map[string]bool {
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
		held := 0
		if (a.owner == 0) != (b.owner == 0) {
			held = 1
			if a.owner == 0 {
				held = -1
			}
		}
		return cmp.Or(held, cmp.Compare(b.turn, a.turn))
	})
	for _, it := range all[:max(0, len(all)-spec.Max)] {
		gone[it.name] = true
	}
	return gone
}

// relive moves the ends of items by a change of their lifespan, which counts from when they were last given back.
func (inv *inventory) relive(s *stock, was quota.Span) {
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

// redue sets anew when the items of a stock change by themselves.
func (inv *inventory) redue(s *stock) {
	for _, it := range s.byName { // each for itself, in whatever order
		inv.deadlines.set(dueKey{dueItem, it.turn}, it.dueAt())
	}
}
