package ledger

import (
	"fmt"

	"github.com/quorate/quorate/quota"
)

// checkStocks verifies that every item is where it belongs (I5).
func (v verifier) checkStocks() error {
	owned, err := v.checkOwners()
	if err != nil {
		return err
	}
	items, held := 0, 0
	for _, t := range v.forest.trees {
		for _, r := range t.resources {
			if (r.stock != nil) != (r.Unit == quota.Items) || r.stock != nil && r.stock.resource != r {
				return fmt.Errorf("resource %s of tree %s has items that it should not have, or none", r.Name, t.name)
			}
			if r.stock == nil {
				continue
			}
			n, err := v.checkStockOf(r.stock)
			if err != nil {
				return err
			}
			items, held = items+len(r.stock.byName), held+n
		}
	}
	if items != v.inventory.items.Len() || held != owned || items > v.bounds.Items {
		return fmt.Errorf("I5: resources have %d items of which %d are held, but %d are known, and allocations list %d", items, held, v.inventory.items.Len(), owned)
	}
	return nil
}

// checkOwners verifies that allocations own what they list, and as many items as they count.
func (v verifier) checkOwners() (owned int, err error) {
	for fence, a := range v.allocations.held.All() {
		for i := range a.claims {
			c := &a.claims[i]
			for _, h := range c.held() {
				it := h.is.stock.byName[h.name]
				if it == nil || it.owner != fence || it.stock.tree != c.at.treeName || it.stock.resource.Name != h.resource {
					return 0, fmt.Errorf("I5: allocation %q lists item %s, but does not own it", a.id, h.name)
				}
				owned++
			}
			for _, p := range c.amounts {
				if p.resource.Unit == quota.Items && p.amount != c.countOf(p.resource.Name) {
					return 0, fmt.Errorf("I5: allocation %q counts %d %s, but holds %d", a.id, p.amount, p.resource.Name, c.countOf(p.resource.Name))
				}
			}
		}
	}
	return owned, nil
}

// checkStockOf verifies one resource, and answers how many of its items are held.
func (v verifier) checkStockOf(s *stock) (held int, err error) {
	if len(s.names) != len(s.byName) {
		return 0, fmt.Errorf("resource %s of tree %s has %d items and %d names", s.resource.Name, s.tree, len(s.byName), len(s.names))
	}
	idle, leaving, spec := 0, 0, s.resource.Items
	for i, name := range s.names {
		it := s.byName[name]
		known, _ := v.inventory.items.Get(it.turn)
		switch {
		case it.name != name || it.stock != s || known != it || i > 0 && s.names[i-1] >= name || it.turn > v.inventory.turn:
			return 0, fmt.Errorf("item %s of resource %s of tree %s is not in its place", name, s.resource.Name, s.tree)
		case it.leaving && it.owner == 0 || !it.leaving && !spec.OnDemand() && !specNamesItem(spec, name):
			return 0, fmt.Errorf("item %s of resource %s of tree %s is not configured, and stays", name, s.resource.Name, s.tree)
		}
		if it.leaving {
			leaving++
		}
		if it.owner != 0 {
			held++
			continue
		}
		idle++
		if !s.has(it) {
			return 0, fmt.Errorf("item %s of resource %s of tree %s cannot be had, though nobody holds it", name, s.resource.Name, s.tree)
		}
	}
	for state, m := range s.idle {
		if idle -= m.Len(); m.Len() == 0 {
			return 0, fmt.Errorf("resource %s of tree %s keeps an empty list for state %s", s.resource.Name, s.tree, state)
		}
	}
	if idle != 0 || len(s.byName) < spec.Min || spec.OnDemand() && leaving != max(0, len(s.byName)-spec.Max) {
		return 0, fmt.Errorf("resource %s of tree %s has %d items of which %d are held, which cannot be", s.resource.Name, s.tree, len(s.byName), held)
	}
	return held, nil
}

// has tells whether an item is listed among those that nobody holds.
func (s *stock) has(it *item) bool {
	m := s.idle[it.state]
	if m == nil {
		return false
	}
	shelved, _ := m.Get(it.turn)
	return shelved == it
}
