package ledger

import (
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// inTheWay says for a claim that has found no place where it does not fit, from its node up. A soft node that could never
// take it is not named unless a hard one below it keeps the claim from borrowing further up: it is not what has to be raised.
func (c *placedClaim) inTheWay() []quota.Violation {
	var violations []quota.Violation
	hard := false
	for n := c.at; n != nil && n.borrows == policy.BorrowSoft; n = n.parent {
		hard = hard || n.spec.Hard
		last := hard || n.parent == nil || n.parent.borrows != policy.BorrowSoft
		for r, limit := range n.ceilings {
			used, amount := n.subtree[r], amountOf(c.amounts, r)
			if used+amount > limit && (last || amount <= limit) {
				violations = append(violations, quota.Violation{
					Tree: n.treeName, Node: n.path, Resource: n.tree.resources[r].Name, Limit: limit, Used: used, Requested: amount,
				})
			}
		}
	}
	return c.above(violations)
}

// above appends the limits that the claim would break above where it may borrow; those are plain.
func (c *placedClaim) above(violations []quota.Violation) []quota.Violation {
	n := c.at
	for n != nil && n.borrows == policy.BorrowSoft {
		n = n.parent
	}
	for ; n != nil; n = n.parent {
		for _, p := range c.amounts {
			violations = n.fits(violations, p.resource, p.amount)
		}
	}
	return violations
}
