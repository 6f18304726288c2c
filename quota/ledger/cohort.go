package ledger

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// repool recomputes the pools of a subtree.
func (n *node) repool() {
	n.pools = nil
	if n.borrows == policy.BorrowBounded {
		n.pools = make([]pool, len(n.limits))
	}
	for i := range n.pools {
		n.pools[i] = pool{limit: n.effective(i).Ceiling(), borrow: n.borrow[i], lend: n.lend[i], held: n.subtree[i]}
	}
	for _, child := range n.children {
		child.repool()
		if !child.pooled() {
			continue
		}
		for i := range n.pools {
			n.pools[i].held -= child.subtree[i]
			n.pools[i].lent = n.pools[i].lent.plus(child.pools[i].lends())
			n.pools[i].whole = n.pools[i].whole.plus(child.pools[i].lendsWhole())
		}
	}
}

// repool recomputes all pools, after a change of the tree.
func (t *tree) repool() { t.root.repool() }

// relimit updates the pools after a change of the limits of one node.
func (n *node) relimit() {
	for i := range n.pools {
		n.setPoolLimit(i, n.effective(i).Ceiling())
	}
}

// relimited are the node's own pools with its present limits, for a node that is not in the tree.
func (n *node) relimited() []pool {
	pools := slices.Clone(n.pools)
	for i := range pools {
		pools[i].limit = n.effective(i).Ceiling()
	}
	return pools
}

// checkBounded returns the nodes of a cohort that would owe more than they may, in the order of the request, levels
// upwards. It draws the claims from the pools, checks, and puts them back. A node above the claims is checked
// only if the request lowers its room: who uses what it does not lend is not concerned by what others owe.
func (e *environment) checkBounded(a *Allocation) []quota.Violation {
	claims := a.plainClaims()
	if !inCohort(claims) {
		return nil
	}
	demands := demandsOf(claims, func(c *placedClaim) *node { return c.at })
	if uncountable(demands) {
		return nil // the plain check has reported it
	}
	before := make([][]quota.Amount, len(demands))
	for i, d := range demands {
		before[i] = d.poolRooms()
	}
	drawAll(claims, 1)
	var violations []quota.Violation
	for i, d := range demands {
		violations = d.shortages(violations, before[i], !isClaimed(claims, d.node))
	}
	drawAll(claims, -1)
	if len(violations) > 0 {
		markTooLarge(violations, claims)
	}
	return violations
}

// isClaimed is true if one of the claims is placed at the node.
func isClaimed(claims []placedClaim, n *node) bool {
	return slices.ContainsFunc(claims, func(c placedClaim) bool { return c.at == n })
}

// poolKey identifies the pool of a resource at a node.
type poolKey struct {
	node     *node
	resource int
}

// emptyPools are the pools of cohorts as if nothing were held except what was drawn here.
type emptyPools map[poolKey]*pool

func (e emptyPools) of(n *node, r int) *pool {
	key := poolKey{n, r}
	if e[key] == nil {
		empty := n.pools[r]
		empty.held, empty.lent = 0, empty.whole
		e[key] = &empty
	}
	return e[key]
}

// draw takes an amount out of the pools from the node up, like node.draw.
func (e emptyPools) draw(n *node, r int, amount quota.Amount) {
	for at := n; at != nil; at = at.parent {
		if at.pools == nil {
			continue
		}
		p := e.of(at, r)
		before := p.lends()
		for p.held = p.held.Plus(amount); at.pooled(); {
			more := p.lends() - before
			at = at.parent
			p = e.of(at, r)
			before = p.lends()
			p.lent = p.lent.plus(more)
		}
	}
}

// markTooLarge marks the violations of pools that the request would exceed even if nothing else were held.
func markTooLarge(violations []quota.Violation, claims []placedClaim) {
	empty := emptyPools{}
	for _, c := range claims {
		for _, p := range c.amounts {
			empty.draw(c.at, p.resource.index, p.amount)
		}
	}
	short := map[quota.Violation]bool{}
	for key, p := range empty { // any order: each is looked up below
		if p.owes() > key.node.mayOwe(key.resource) {
			resource := key.node.tree.resources[key.resource].Name
			short[quota.Violation{Tree: key.node.treeName, Node: key.node.path, Resource: resource}] = true
		}
	}
	for i, v := range violations {
		violations[i].TooLarge = !v.NeverFits() &&
			short[quota.Violation{Tree: v.Tree, Node: v.Node, Resource: v.Resource}]
	}
}

func inCohort(claims []placedClaim) bool {
	for _, c := range claims {
		for n := c.at; n != nil; n = n.parent {
			if n.pools != nil {
				return true
			}
		}
	}
	return false
}

// uncountable is true if a tree would hold more than MaxAmount.
func uncountable(demands []demand) bool {
	for _, d := range demands {
		for _, p := range d.amounts {
			if p.amount > quota.MaxAmount-d.node.subtree[p.resource.index] {
				return true
			}
		}
	}
	return false
}

func drawAll(claims []placedClaim, sign quota.Amount) {
	for _, c := range claims {
		for _, p := range c.amounts {
			c.at.draw(p.resource.index, sign*p.amount)
		}
	}
}

// poolRooms is the room of the node for each requested resource; nil if it is in no cohort.
func (d demand) poolRooms() []quota.Amount {
	if d.node.pools == nil {
		return nil
	}
	list := make([]quota.Amount, len(d.amounts))
	for i, p := range d.amounts {
		list[i] = d.node.pools[p.resource.index].room()
	}
	return list
}

// shortages appends the violations at a node when the whole request is drawn; before is its room without it. A node
// above the claims is not concerned unless its room has fallen.
func (d demand) shortages(violations []quota.Violation, before []quota.Amount, isAbove bool) []quota.Violation {
	n := d.node
	if n.pools == nil {
		return violations
	}
	for i, p := range d.amounts {
		r := p.resource.index
		missing := n.overBy(r, 0)
		if missing == 0 || isAbove && n.pools[r].room() >= before[i] {
			continue
		}
		violations = append(violations, n.shortage(p.resource, missing, max(0, -before[i]), n.subtree[r], p.amount))
	}
	return violations
}

// shortage is the violation at a node of a cohort that owes more than it may by an amount. owed is its debt without the
// request, used the use of its subtree without it.
func (n *node) shortage(r *resource, missing, owed, used, requested quota.Amount) quota.Violation {
	v := quota.Violation{Tree: n.treeName, Node: n.path, Resource: r.Name}
	if n.pooled() {
		v.Kind, v.Limit, v.Used = quota.OfBorrowing, n.mayOwe(r.index), owed
		v.Requested = n.pools[r.index].owes() - v.Used
		return v
	}
	// The top: its limit is what the cohort could hold, its own and what the members lend.
	v.Used, v.Requested, v.Limit = used, requested, used+requested-missing
	return v
}

// checkPool compares one pool with the configuration, the usage, and the pools of the children.
func (n *node) checkPool(r int) error {
	if n.borrows != policy.BorrowBounded {
		if n.pools != nil {
			return fmt.Errorf("%s is in no cohort, but has a pool", n.place())
		}
		return nil
	}
	want := pool{limit: n.effective(r).Ceiling(), borrow: n.borrow[r], lend: n.lend[r], held: n.subtree[r]}
	for _, child := range n.children {
		if child.pooled() {
			want.held -= child.subtree[r]
			want.lent = want.lent.plus(child.pools[r].lends())
			want.whole = want.whole.plus(child.pools[r].lendsWhole())
		}
	}
	if n.pools[r] != want {
		return fmt.Errorf("the pool of resource %d at %s is %+v, but should be %+v", r, n.place(), n.pools[r], want)
	}
	return nil
}
