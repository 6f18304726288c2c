package ledger

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/quota"
)

// checkPicks refuses a request for more items than one may name.
func (e *environment) checkPicks(claims []quota.Claim) *quota.Error {
	count := 0
	for i, c := range claims {
		for _, p := range c.Picks {
			if p.Count < 1 || p.Count > e.bounds.Picks {
				return quota.Errorf(quota.Invalid, pickField(i, p), "%d items of %s are asked for; 1 to %d are allowed", p.Count, quota.Clip(p.Resource), e.bounds.Picks)
			}
			count += p.Count
		}
	}
	if count > e.bounds.Picks {
		return quota.Errorf(quota.Invalid, "claims", "%d items are asked for; at most %d are allowed in one request", count, e.bounds.Picks)
	}
	return nil
}

func pickField(i int, p quota.Pick) string {
	return claimField(i, ".items["+quota.Clip(p.Resource)+"]")
}

// placePicks ties what a claim asks of items to the resources of its tree. They count like amounts.
func (c *placedClaim) placePicks(t *tree, picks []quota.Pick, i int) *quota.Error {
	if len(picks) == 0 {
		return nil
	}
	for j, p := range picks {
		if j > 0 && picks[j-1].Resource >= p.Resource {
			return quota.Errorf(quota.Invalid, pickField(i, p), "resource %s is not in order, or there twice; ask for its items at once", quota.Clip(p.Resource))
		}
		r := t.resource(p.Resource)
		switch {
		case r == nil:
			return quota.Errorf(quota.NotFound, pickField(i, p), "tree %s has no resource %q; it has %s", t.name, quota.Clip(p.Resource), t.resourceNames())
		case r.Unit != quota.Items:
			return quota.Errorf(quota.Invalid, pickField(i, p), "resource %s of tree %s counts %s and has no items; ask for an amount", r.Name, t.name, r.Unit)
		}
		if err := checkPick(p, pickField(i, p)); err != nil {
			return err
		}
		c.amounts[len(c.amounts)-len(picks)+j] = placedAmount{resource: r, amount: quota.Amount(p.Count)}
	}
	slices.SortFunc(c.amounts, func(a, b placedAmount) int { return cmp.Compare(a.resource.index, b.resource.index) })
	c.setItems(picks, nil)
	return nil
}

func checkPick(p quota.Pick, field string) *quota.Error {
	if len(p.Names) > 0 && p.Count != len(p.Names) {
		return quota.Errorf(quota.Invalid, field, "%d items are asked for, but %d are named; their number is the count", p.Count, len(p.Names))
	}
	for i, name := range p.Names {
		switch {
		case !quota.IsItemName(name):
			return quota.Errorf(quota.Invalid, field, itemNameRule, quota.MaxItemName, quota.NodeNameExtra, quota.Clip(name))
		case i > 0 && p.Names[i-1] >= name:
			return quota.Errorf(quota.Invalid, field, "item %s is not in order, or named twice", name)
		}
	}
	return checkStates(field, p.State, p.HeldState)
}

// checkStates refuses states that are too long; an empty one means something of its own everywhere.
func checkStates(field string, states ...string) *quota.Error {
	for _, s := range states {
		if len(s) > quota.MaxItemState {
			return quota.Errorf(quota.Invalid, field, "state %q has %d bytes; at most %d are allowed", quota.Clip(s), len(s), quota.MaxItemState)
		}
	}
	return nil
}

// checkNamedOnce refuses a request that names an item in two claims.
func (a *Allocation) checkNamedOnce() *quota.Error {
	if len(a.claims) < 2 || !a.wantsItems() {
		return nil
	}
	named := map[quota.ItemName]int{}
	for i := range a.claims {
		for _, p := range a.claims[i].picks() {
			for _, name := range p.Names {
				key := quota.ItemName{Tree: a.claims[i].at.treeName, Resource: p.Resource, Name: name}
				if first, twice := named[key]; twice {
					return quota.Errorf(quota.Invalid, pickField(i, p), "item %s is asked for by claims[%d] too; one of them can have it", name, first)
				}
				named[key] = i
			}
		}
	}
	return nil
}
