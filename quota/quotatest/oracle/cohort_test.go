package oracle

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/quotatest"
)

// Cohorts: a node may hold more than its limit, up to what others lend.

// pools is true for a node in a cohort.
func (c configuration) pools(spec quota.TreeSpec, path string) bool {
	return c.rulesAt(spec, path).Borrowing == "bounded"
}

// cohortViolations holds the whole request and looks.
func (o *oracle) cohortViolations(a *allocation) []quota.Violation {
	if a.forced {
		return nil
	}
	before := o.without(a)
	after, alone := *before, *before
	after.allocations, alone.allocations = append(slices.Clone(before.allocations), a), []*allocation{a}
	var list []quota.Violation
	asked := map[string]bool{}
	for i, c := range a.request.Claims {
		for _, path := range quotatest.Upwards(a.claimed[i]) {
			if place := quota.Place(c.Tree, path); !asked[place] && o.pools(o.trees[c.Tree], path) {
				asked[place] = true
				for _, r := range o.trees[c.Tree].Resources {
					list = append(list, shortage(before, &after, &alone, a, line{tree: c.Tree, node: path, resource: r.Name})...)
				}
			}
		}
	}
	return list
}

// shortage is the violation of one pool, of which an allocation draws.
func shortage(before, after, alone *oracle, a *allocation, at line) []quota.Violation {
	spec := before.trees[at.tree]
	sum, named := quotatest.Requested(a.request.Claims, a.claimed, at.tree, at.node, at.resource)
	if !named {
		return nil
	}
	was, room := before.room(spec, at.node, at.resource), after.room(spec, at.node, at.resource)
	isClaimed := false
	for i, c := range a.request.Claims {
		isClaimed = isClaimed || c.Tree == at.tree && a.claimed[i] == at.node
	}
	if !isClaimed && room >= was {
		return nil // what is not lent lowers no room above
	}
	want, aloneRoom := quota.Amount(sum.Int64()), alone.room(spec, at.node, at.resource)
	v := quota.Violation{Tree: at.tree, Node: at.node, Resource: at.resource, Requested: want}
	if at.node == "" || !before.pools(spec, quotatest.Above(at.node)) {
		if room >= 0 {
			return nil
		}
		v.Used = quota.Amount(before.used(at.tree, at.node, at.resource).Int64())
		v.Limit = v.Used + want + room
		v.TooLarge = want <= v.Limit && aloneRoom < 0
		return []quota.Violation{v}
	}
	most := limitOf(quotatest.FindNode(spec, at.node).Borrow, at.resource)
	if most.Kind == quota.Unlimited || room >= -most.Amount {
		return nil
	}
	v.Kind, v.Limit, v.Used = quota.OfBorrowing, most.Amount, max(0, -was)
	v.Requested, v.TooLarge = -room-v.Used, aloneRoom < -most.Amount
	return []quota.Violation{v}
}

// much is more than all that a test can hold.
const much = quota.Amount(1) << 40

// room is Kueue's T: the limit, less what is held here, plus what each child lends of its own room.
func (o *oracle) room(spec quota.TreeSpec, path, resource string) quota.Amount {
	limit := o.effective(spec, path, resource)
	room := limit.Amount
	if limit.Kind == quota.Unlimited {
		room = much
	}
	used := func(path string) quota.Amount { return quota.Amount(o.used(spec.Name, path, resource).Int64()) }
	room -= used(path)
	for _, child := range spec.Nodes {
		if child.Path == "" || quotatest.Above(child.Path) != path || !o.pools(spec, child.Path) {
			continue
		}
		lent := o.room(spec, child.Path, resource)
		if most := limitOf(child.Lend, resource); most.Kind == quota.Limited {
			lent = min(lent, most.Amount)
		}
		room += used(child.Path) + lent
	}
	return room
}

// limitOf is a bound of borrowing or lending; there is none unless it is set.
func limitOf(limits []quota.ResourceLimit, resource string) quota.Limit {
	for _, l := range limits {
		if l.Resource == resource {
			return l.Limit
		}
	}
	return quota.NoLimit()
}

// withoutPoolsOver drops the nodes that hold more than their limit where they may.
func (p *pair) withoutPoolsOver(list []quota.Overuse) []quota.Overuse {
	return slices.DeleteFunc(slices.Clone(list), func(v quota.Overuse) bool {
		return v.Kind == quota.OfResource && v.Holder.Kind == quota.TheNode && p.oracle.pools(p.oracle.trees[v.Tree], v.Node)
	})
}
