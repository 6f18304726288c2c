package ledger

import (
	"fmt"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// checkBounded says which nodes of a cohort would owe more than they may, in the order of the request, levels upwards. It
// draws what the claims ask for from the pools, looks, and puts it back.
func (l *Ledger) checkBounded(a *Allocation) []quota.Violation {
	claims := a.rest()
	if !inCohort(claims) {
		return nil
	}
	demands := demandsOf(claims, func(c *placedClaim) *node { return c.at })
	if uncountable(demands) {
		return nil // the plain check has said so
	}
	before := make([][]quota.Amount, len(demands))
	for i, d := range demands {
		before[i] = d.owes()
	}
	drawAll(claims, 1)
	var violations []quota.Violation
	for i, d := range demands {
		violations = d.shortages(violations, before[i])
	}
	drawAll(claims, -1)
	if len(violations) > 0 && l.level >= quota.LevelFive {
		markTooLarge(violations, claims)
	}
	return violations
}

// poolKey is the pool of a resource at a node.
type poolKey struct {
	node     *node
	resource int
}

// emptyPools are the pools of cohorts while nothing is held but what was drawn from them here.
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

// draw takes an amount out of the pools from the node up, as node.draw does.
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

// markTooLarge marks the violations of pools that would be short of the request even while nothing else is held.
func markTooLarge(violations []quota.Violation, claims []placedClaim) {
	empty := emptyPools{}
	for _, c := range claims {
		for _, p := range c.amounts {
			empty.draw(c.at, p.resource.index, p.amount)
		}
	}
	short := map[quota.Violation]bool{}
	for key, p := range empty { // the order does not matter: each is looked up below
		if p.owes() > key.node.mayOwe(key.resource) {
			short[quota.Violation{Tree: key.node.treeName, Node: key.node.path, Resource: key.node.tree.resources[key.resource].Name}] = true
		}
	}
	for i, v := range violations {
		violations[i].TooLarge = !v.NeverFits() && short[quota.Violation{Tree: v.Tree, Node: v.Node, Resource: v.Resource}]
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

// owes is what the node owes of each resource that is asked for.
func (d demand) owes() []quota.Amount {
	if d.node.pools == nil {
		return nil
	}
	list := make([]quota.Amount, len(d.amounts))
	for i, p := range d.amounts {
		list[i] = d.node.pools[p.resource.index].owes()
	}
	return list
}

// shortages appends what is short at a node when the whole request is drawn; before is what it owed without.
func (d demand) shortages(violations []quota.Violation, before []quota.Amount) []quota.Violation {
	n := d.node
	if n.pools == nil {
		return violations
	}
	for i, p := range d.amounts {
		missing := n.overBy(p.resource.index, 0)
		if missing == 0 {
			continue
		}
		v := quota.Violation{Tree: n.treeName, Node: n.path, Resource: p.resource.Name}
		if n.pooled() {
			v.Kind, v.Limit, v.Used = quota.OfBorrowing, n.mayOwe(p.resource.index), before[i]
			v.Requested = n.pools[p.resource.index].owes() - v.Used
		} else { // the top: its limit is what the cohort could hold, its own and what the members lend
			v.Used, v.Requested = n.subtree[p.resource.index], p.amount
			v.Limit = v.Used + v.Requested - missing
		}
		violations = append(violations, v)
	}
	return violations
}

// checkPool verifies one pool against the configuration, what is held, and the pools of the children.
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
