package ledger

import "github.com/quorate/quorate/quota"

// decide checks every limit on every path from the claimed nodes up to the roots, and who must not be overtaken there, and
// collects all violations. Its cost is the depth of the tree times the amounts of the request, whatever else is held.
func (who asker) decide(claims []placedClaim) quota.Decision {
	if sharesNoNode(claims) {
		return who.decideApart(claims)
	}
	return who.decideTogether(claims)
}

// sharesNoNode is true if no node is on the way of two claims; surely so if every claim is in a tree of its own.
func sharesNoNode(claims []placedClaim) bool {
	for i, c := range claims {
		for _, other := range claims[:i] {
			if c.at.tree == other.at.tree {
				return false
			}
		}
	}
	return true
}

// decideApart checks claims whose paths share no node.
func (who asker) decideApart(claims []placedClaim) quota.Decision {
	var violations []quota.Violation
	for _, c := range claims {
		for n := c.at; n != nil; n = n.parent {
			for _, p := range c.amounts {
				violations = who.behindFor(n.fits(violations, p.resource, p.amount), n, p.resource)
			}
		}
	}
	return quota.Decision{Granted: len(violations) == 0, Violations: violations}
}

// fits appends a violation if the node's subtree has no room for amount more.
func (n *node) fits(violations []quota.Violation, r *resource, amount quota.Amount) []quota.Violation {
	return n.fitsIn(n.ceilings[r.index], violations, r, amount)
}

// fitsIn is the same for any limit.
func (n *node) fitsIn(limit quota.Amount, violations []quota.Violation, r *resource, amount quota.Amount) []quota.Violation {
	used := n.subtree[r.index]
	if used+amount <= limit && amount <= quota.MaxAmount {
		return violations
	}
	return append(violations, quota.Violation{
		Tree: n.treeName, Node: n.path, Resource: r.Name, Limit: limit, Used: used, Requested: amount,
	})
}

// demand is what a whole request asks of one node: by resource index, only what is asked.
type demand struct {
	node    *node
	amounts []placedAmount // by resource index
}

// decideTogether asks a common ancestor of several claims once, for the sum.
func (who asker) decideTogether(claims []placedClaim) quota.Decision {
	var violations []quota.Violation
	for _, d := range demandsOf(claims, func(c *placedClaim) *node { return c.at }) {
		for _, p := range d.amounts {
			violations = who.behindFor(d.node.fits(violations, p.resource, p.amount), d.node, p.resource)
		}
	}
	return quota.Decision{Granted: len(violations) == 0, Violations: violations}
}

// demandsOf adds up what claims ask of every node on the ways up from where they begin.
func demandsOf(claims []placedClaim, begin func(*placedClaim) *node) []demand {
	var demands []demand
	place := map[*node]int{}
	for i := range claims {
		c := &claims[i]
		for n := begin(c); n != nil; n = n.parent {
			i, known := place[n]
			if !known {
				i = len(demands)
				place[n] = i
				demands = append(demands, demand{node: n})
			}
			for _, p := range c.amounts {
				demands[i].add(p)
			}
		}
	}
	return demands
}

// add joins an amount, keeping the resources in their order.
func (d *demand) add(p placedAmount) {
	for i, have := range d.amounts {
		switch {
		case have.resource == p.resource:
			d.amounts[i].amount = have.amount.Plus(p.amount)
			return
		case have.resource.index > p.resource.index:
			d.amounts = append(d.amounts, placedAmount{})
			copy(d.amounts[i+1:], d.amounts[i:])
			d.amounts[i] = p
			return
		}
	}
	d.amounts = append(d.amounts, p)
}
