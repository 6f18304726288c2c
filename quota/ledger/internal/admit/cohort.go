package admit

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
	"github.com/quorate/quorate/quota/policy"
)

func repoolNode(n *state.Node) {
	n.Pools = nil
	if n.Borrows == policy.BorrowBounded {
		n.Pools = make([]state.Pool, len(n.Limits))
	}
	for i := range n.Pools {
		n.Pools[i] = state.Pool{Limit: n.Effective(i).Ceiling(), Borrow: n.Borrow[i], Lend: n.Lend[i], Held: n.Subtree[i]}
	}
	for _, child := range n.Children {
		repoolNode(child)
		if !child.Pooled() {
			continue
		}
		for i := range n.Pools {
			n.Pools[i].Held -= child.Subtree[i]
			n.Pools[i].Lent = n.Pools[i].Lent.Plus(child.Pools[i].Lends())
			n.Pools[i].Whole = n.Pools[i].Whole.Plus(child.Pools[i].LendsWhole())
		}
	}
}

// RepoolTree recomputes all pools, after a change of the tree.
func RepoolTree(t *state.Tree) { repoolNode(t.Root) }

// Relimit updates the pools after a change of the limits of one node.
func Relimit(n *state.Node) {
	for i := range n.Pools {
		n.SetPoolLimit(i, n.Effective(i).Ceiling())
	}
}

// Relimited are the node's own pools with its present limits, for a node that is not in the tree.
func Relimited(n *state.Node) []state.Pool {
	pools := slices.Clone(n.Pools)
	for i := range pools {
		pools[i].Limit = n.Effective(i).Ceiling()
	}
	return pools
}

// checkBounded returns the nodes of a cohort that would owe more than they may, in the order of the request, levels
// upwards. It draws the claims from the pools, checks, and puts them back. A node above the claims is checked
// only if the request lowers its room: who uses what it does not lend is not concerned by what others owe.
func checkBounded(a *state.Allocation) []quota.Violation {
	claims := plainClaims(a)
	if !InCohort(claims) {
		return nil
	}
	demands := DemandsOf(claims, func(c *state.PlacedClaim) *state.Node { return c.At })
	if Uncountable(demands) {
		return nil // the plain check has reported it
	}
	before := make([][]quota.Amount, len(demands))
	for i, d := range demands {
		before[i] = d.PoolRooms()
	}
	DrawAll(claims, 1)
	var violations []quota.Violation
	for i, d := range demands {
		violations = d.shortages(violations, before[i], !IsClaimed(claims, d.Node))
	}
	DrawAll(claims, -1)
	if len(violations) > 0 {
		markTooLarge(violations, claims)
	}
	return violations
}

// IsClaimed is true if one of the claims is placed at the node.
func IsClaimed(claims []state.PlacedClaim, n *state.Node) bool {
	return slices.ContainsFunc(claims, func(c state.PlacedClaim) bool { return c.At == n })
}

type poolKey struct {
	node     *state.Node
	resource int
}

// emptyPools are the pools of cohorts as if nothing were held except what was drawn here.
type emptyPools map[poolKey]*state.Pool

func (e emptyPools) of(n *state.Node, r int) *state.Pool {
	key := poolKey{n, r}
	if e[key] == nil {
		empty := n.Pools[r]
		empty.Held, empty.Lent = 0, empty.Whole
		e[key] = &empty
	}
	return e[key]
}

// draw is like state.Node.Draw.
func (e emptyPools) draw(n *state.Node, r int, amount quota.Amount) {
	for at := n; at != nil; at = at.Parent {
		if at.Pools == nil {
			continue
		}
		p := e.of(at, r)
		before := p.Lends()
		for p.Held = p.Held.Plus(amount); at.Pooled(); {
			more := p.Lends() - before
			at = at.Parent
			p = e.of(at, r)
			before = p.Lends()
			p.Lent = p.Lent.Plus(more)
		}
	}
}

// markTooLarge marks the violations of pools that the request would exceed even if nothing else were held.
func markTooLarge(violations []quota.Violation, claims []state.PlacedClaim) {
	empty := emptyPools{}
	for _, c := range claims {
		for _, p := range c.Amounts {
			empty.draw(c.At, p.Resource.Index, p.Amount)
		}
	}
	short := map[quota.Violation]bool{}
	for key, p := range empty { // any order: each is looked up below
		if p.Owes() > key.node.MayOwe(key.resource) {
			resource := key.node.Tree.Resources[key.resource].Name
			short[quota.Violation{Tree: key.node.TreeName, Node: key.node.Path, Resource: resource}] = true
		}
	}
	for i, v := range violations {
		violations[i].TooLarge = !v.NeverFits() &&
			short[quota.Violation{Tree: v.Tree, Node: v.Node, Resource: v.Resource}]
	}
}

func InCohort(claims []state.PlacedClaim) bool {
	for _, c := range claims {
		for n := c.At; n != nil; n = n.Parent {
			if n.Pools != nil {
				return true
			}
		}
	}
	return false
}

// Uncountable is true if a tree would hold more than MaxAmount.
func Uncountable(demands []Demand) bool {
	for _, d := range demands {
		for _, p := range d.Amounts {
			if p.Amount > quota.MaxAmount-d.Node.Subtree[p.Resource.Index] {
				return true
			}
		}
	}
	return false
}

func DrawAll(claims []state.PlacedClaim, sign quota.Amount) {
	for _, c := range claims {
		for _, p := range c.Amounts {
			c.At.Draw(p.Resource.Index, sign*p.Amount)
		}
	}
}

// PoolRooms is the room of the node for each requested resource; nil if it is in no cohort.
func (d Demand) PoolRooms() []quota.Amount {
	if d.Node.Pools == nil {
		return nil
	}
	list := make([]quota.Amount, len(d.Amounts))
	for i, p := range d.Amounts {
		list[i] = d.Node.Pools[p.Resource.Index].Room()
	}
	return list
}

// shortages is called when the whole request is drawn; before is the room of the node without it. A node above the
// claims is not concerned unless its room has fallen.
func (d Demand) shortages(violations []quota.Violation, before []quota.Amount, isAbove bool) []quota.Violation {
	n := d.Node
	if n.Pools == nil {
		return violations
	}
	for i, p := range d.Amounts {
		r := p.Resource.Index
		missing := n.OverBy(r, 0)
		if missing == 0 || isAbove && n.Pools[r].Room() >= before[i] {
			continue
		}
		violations = append(violations, shortageAt(n, p.Resource, missing, max(0, -before[i]), n.Subtree[r], p.Amount))
	}
	return violations
}

// shortageAt has as owed the debt of the node without the request, as used the use of its subtree without it.
func shortageAt(n *state.Node, r *state.Resource, missing, owed, used, requested quota.Amount) quota.Violation {
	v := quota.Violation{Tree: n.TreeName, Node: n.Path, Resource: r.Name}
	if n.Pooled() {
		v.Kind, v.Limit, v.Used = quota.OfBorrowing, n.MayOwe(r.Index), owed
		v.Requested = n.Pools[r.Index].Owes() - v.Used
		return v
	}
	// The top: its limit is what the cohort could hold, its own and what the members lend.
	v.Used, v.Requested, v.Limit = used, requested, used+requested-missing
	return v
}

// CheckPool compares one pool with the configuration, the usage, and the pools of the children.
func CheckPool(n *state.Node, r int) error {
	if n.Borrows != policy.BorrowBounded {
		if n.Pools != nil {
			return fmt.Errorf("%s is in no cohort, but has a pool", n.Place())
		}
		return nil
	}
	want := state.Pool{Limit: n.Effective(r).Ceiling(), Borrow: n.Borrow[r], Lend: n.Lend[r], Held: n.Subtree[r]}
	for _, child := range n.Children {
		if child.Pooled() {
			want.Held -= child.Subtree[r]
			want.Lent = want.Lent.Plus(child.Pools[r].Lends())
			want.Whole = want.Whole.Plus(child.Pools[r].LendsWhole())
		}
	}
	if n.Pools[r] != want {
		return fmt.Errorf("the pool of resource %d at %s is %+v, but should be %+v", r, n.Place(), n.Pools[r], want)
	}
	return nil
}
