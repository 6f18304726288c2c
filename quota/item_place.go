package quota

import (
	"cmp"
	"slices"
)

// checkPicks refuses a request for more items than one may name.
func (l *Ledger) checkPicks(claims []Claim) *Error {
	count := 0
	for i, c := range claims {
		for _, p := range c.Picks {
			if p.Count < 1 || p.Count > l.bounds.Picks {
				return refuse(Invalid, pickField(i, p), "%d items of %s are asked for; 1 to %d are allowed", p.Count, clip(p.Resource), l.bounds.Picks)
			}
			count += p.Count
		}
	}
	if count > l.bounds.Picks {
		return refuse(Invalid, "claims", "%d items are asked for; at most %d are allowed in one request", count, l.bounds.Picks)
	}
	return nil
}

func pickField(i int, p Pick) string { return claimField(i, ".items["+clip(p.Resource)+"]") }

// placePicks ties what a claim asks of items to the resources of its tree. They count like amounts.
func (c *placedClaim) placePicks(t *tree, picks []Pick, i int) *Error {
	if len(picks) == 0 {
		return nil
	}
	for j, p := range picks {
		if j > 0 && picks[j-1].Resource >= p.Resource {
			return refuse(Invalid, pickField(i, p), "resource %s is not in order, or there twice; ask for its items at once", clip(p.Resource))
		}
		r := t.resource(p.Resource)
		switch {
		case r == nil:
			return refuse(NotFound, pickField(i, p), "tree %s has no resource %q; it has %s", t.name, clip(p.Resource), t.resourceNames())
		case r.Unit != Items:
			return refuse(Invalid, pickField(i, p), "resource %s of tree %s counts %s and has no items; ask for an amount", r.Name, t.name, r.Unit)
		}
		if err := p.check(pickField(i, p)); err != nil {
			return err
		}
		c.amounts[len(c.amounts)-len(picks)+j] = placedAmount{resource: r, amount: Amount(p.Count)}
	}
	slices.SortFunc(c.amounts, func(a, b placedAmount) int { return cmp.Compare(a.resource.index, b.resource.index) })
	c.setItems(picks, nil)
	return nil
}

func (p Pick) check(field string) *Error {
	if len(p.Names) > 0 && p.Count != len(p.Names) {
		return refuse(Invalid, field, "%d items are asked for, but %d are named; their number is the count", p.Count, len(p.Names))
	}
	for i, name := range p.Names {
		switch {
		case !validItem(name):
			return refuse(Invalid, field, itemNameRule, MaxItemName, nodeExtra, clip(name))
		case i > 0 && p.Names[i-1] >= name:
			return refuse(Invalid, field, "item %s is not in order, or named twice", name)
		}
	}
	return checkStates(field, p.State, p.HeldState)
}

// checkStates refuses states that are too long; an empty one means something of its own everywhere.
func checkStates(field string, states ...string) *Error {
	for _, s := range states {
		if len(s) > MaxItemState {
			return refuse(Invalid, field, "state %q has %d bytes; at most %d are allowed", clip(s), len(s), MaxItemState)
		}
	}
	return nil
}

// checkNamedOnce refuses a request that names an item in two claims.
func (a *Allocation) checkNamedOnce() *Error {
	if len(a.claims) < 2 || !a.wantsItems() {
		return nil
	}
	named := map[ItemName]int{}
	for i := range a.claims {
		for _, p := range a.claims[i].picks() {
			for _, name := range p.Names {
				key := ItemName{a.claims[i].at.treeName, p.Resource, name}
				if first, twice := named[key]; twice {
					return refuse(Invalid, pickField(i, p), "item %s is asked for by claims[%d] too; one of them can have it", name, first)
				}
				named[key] = i
			}
		}
	}
	return nil
}
