package oracle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
)

// counted is a request in which items count as amounts.
func counted(c quota.Allocate) quota.Allocate {
	c.Claims = slices.Clone(c.Claims)
	for i := range c.Claims {
		claim := &c.Claims[i]
		claim.Amounts = slices.Clone(claim.Amounts)
		for _, p := range claim.Picks {
			claim.Amounts = append(claim.Amounts, quota.Component{Resource: p.Resource, Amount: quota.Amount(p.Count)})
		}
		slices.SortFunc(claim.Amounts,
			func(a, b quota.Component) int { return strings.Compare(a.Resource, b.Resource) })
	}
	return c
}

// namedOnce refuses a request in which two claims name an item.
func namedOnce(c quota.Allocate) verdict {
	seen := map[quota.ItemName]bool{}
	for i, claim := range c.Claims {
		for _, p := range claim.Picks {
			for _, name := range p.Names {
				key := quota.ItemName{Tree: claim.Tree, Resource: p.Resource, Name: name}
				if seen[key] {
					return refusal(quota.Invalid, fmt.Sprintf("claims[%d].items[%s]", i, p.Resource))
				}
				seen[key] = true
			}
		}
	}
	return verdict{}
}

// itemsInState names the items of a resource in a state.
type itemsInState struct{ tree, resource, state string }

func stateWanted(c quota.Claim, p quota.Pick) itemsInState {
	return itemsInState{c.Tree, p.Resource, cmp.Or(p.State, "free")}
}

// itemTrial is what a request for items finds, as if victims had given theirs back.
type itemTrial struct {
	*oracle
	victims []*allocation
	state   map[*item]string // of those to be had
	leaving map[*item]bool
	named   map[*item]bool // by the request
}

// itemViolations are the violations of a request for items, as if victims had given theirs back.
func (o *oracle) itemViolations(c quota.Allocate, victims []*allocation) []quota.Violation {
	t := o.newItemTrial(c, victims)
	wanted := map[itemsInState]int{}
	for _, claim := range c.Claims {
		for _, p := range claim.Picks {
			if len(p.Names) == 0 {
				wanted[stateWanted(claim, p)] += p.Count
			}
		}
	}
	var list []quota.Violation
	for _, claim := range c.Claims {
		for _, p := range claim.Picks {
			for _, name := range p.Names {
				list = append(list, t.namedViolation(p, quota.ItemName{
					Tree: claim.Tree, Resource: p.Resource, Name: name,
				})...)
			}
			if key := stateWanted(claim, p); len(p.Names) == 0 && wanted[key] > 0 {
				list = append(list, t.stateViolation(key, wanted[key])...)
				delete(wanted, key)
			}
		}
	}
	return list
}

func (o *oracle) newItemTrial(c quota.Allocate, victims []*allocation) *itemTrial {
	var back []*item
	var states []string
	for _, v := range victims {
		for _, it := range o.heldBy(v) {
			back, states = append(back, it), append(states, o.stateAfter(it, quota.WasPreempted))
		}
	}
	after := o.afterReturn(back, states)
	t := &itemTrial{
		oracle: o, victims: victims, state: after.state, leaving: after.leaving, named: map[*item]bool{},
	}
	for it := range after.gone {
		t.leaving[it] = true
	}
	for _, claim := range c.Claims {
		for _, p := range claim.Picks {
			for _, name := range p.Names {
				it := o.findItem(quota.ItemName{Tree: claim.Tree, Resource: p.Resource, Name: name})
				if it != nil && !t.leaving[it] {
					t.named[it] = true
				}
			}
		}
	}
	return t
}

// namedViolation asks for an item by its name; the list is empty or has one entry.
func (t *itemTrial) namedViolation(p quota.Pick, name quota.ItemName) []quota.Violation {
	it := t.findItem(name)
	exists := it != nil && !t.leaving[it]
	if exists && t.state[it] != "" && (p.State == "" || p.State == t.state[it]) {
		return nil
	}
	v := quota.Violation{Tree: name.Tree, Resource: name.Resource, Kind: quota.OfItems, Item: name.Name, Requested: 1}
	if exists {
		v.Limit, v.Used = 1, 1
	}
	return []quota.Violation{v}
}

// stateViolation asks for so many items in a state; the list is empty or has one entry.
func (t *itemTrial) stateViolation(in itemsInState, count int) []quota.Violation {
	spec, all := itemized(t.trees[in.tree], in.resource), t.itemsOf(in.tree, in.resource)
	most, available, gone := len(spec.Names)+spec.Max, 0, 0
	for _, it := range all {
		if slices.Contains(t.victims, it.owner) && t.leaving[it] {
			gone++
		}
		if t.named[it] {
			most--
		} else if t.state[it] == in.state {
			available++
		}
	}
	if len(spec.Names) == 0 && cmp.Or(spec.State, "free") == in.state {
		available += max(0, spec.Max-len(all)+gone)
	}
	most = max(0, most)
	available = min(available, most)
	if count <= available {
		return nil
	}
	return []quota.Violation{{
		Tree: in.tree, Resource: in.resource, Kind: quota.OfItems, Item: in.state, Limit: quota.Amount(most),
		Used: quota.Amount(most - available), Requested: quota.Amount(count),
	}}
}

// createWanted creates the items that a denied request lacks and other clients may bring into the right state.
func (o *oracle) createWanted(c quota.Allocate, violations []quota.Violation) {
	for _, v := range violations {
		if v.Kind != quota.OfItems || v.Requested > v.Limit {
			return
		}
	}
	for _, claim := range c.Claims {
		for _, p := range claim.Picks {
			spec := itemized(o.trees[claim.Tree], p.Resource)
			for _, v := range violations {
				if v.Tree == claim.Tree && v.Resource == p.Resource && len(p.Names) == 0 &&
					v.Item == cmp.Or(p.State, "free") && len(spec.Names) == 0 &&
					v.Item != spec.Retired && v.Item != spec.Removed {
					o.createItems(claim.Tree, p.Resource,
						min(spec.Max, len(o.itemsOf(claim.Tree, p.Resource))+int(v.Missing())))
				}
			}
		}
	}
}

// takeItems gives a new allocation its items, those with names first.
func (o *oracle) takeItems(a *allocation) {
	for i, claim := range a.asked.Claims {
		for _, p := range claim.Picks {
			for _, name := range p.Names {
				it := o.findItem(quota.ItemName{Tree: claim.Tree, Resource: p.Resource, Name: name})
				o.takeItem(it, a, i, p)
			}
		}
	}
	for i, claim := range a.asked.Claims {
		for _, p := range claim.Picks {
			if len(p.Names) > 0 {
				continue
			}
			free := func() []*item {
				return sorted(slices.DeleteFunc(o.itemsOf(claim.Tree, p.Resource), func(it *item) bool {
					return it.owner != nil || it.state != cmp.Or(p.State, "free")
				}), byAge)
			}
			if lack := p.Count - len(free()); lack > 0 {
				o.createItems(claim.Tree, p.Resource, len(o.itemsOf(claim.Tree, p.Resource))+lack)
			}
			for _, it := range free()[:p.Count] {
				o.takeItem(it, a, i, p)
			}
		}
	}
}

// takeItem gives an item to a claim of a new allocation. One that waited for its end goes on to it when it is returned,
// unless there may be one more.
func (o *oracle) takeItem(it *item, a *allocation, claim int, p quota.Pick) {
	it.leaving = o.isRetired(it) &&
		o.afterReturn(nil, nil).surplus(o.itemsOf(it.Tree, it.Resource), o.specOf(it)) >= 0
	o.changeState(it, cmp.Or(p.HeldState, "leased"), a)
	it.claim = claim
}
