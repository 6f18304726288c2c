package ledger

import "github.com/quorate/quorate/quota"

// uncountable lists where forced claims would make a tree hold more than can be counted. No other limit holds them.
func (a *Allocation) uncountable() []quota.Violation {
	var forced []placedClaim
	for i := range a.claims {
		if a.claims[i].forced() {
			forced = append(forced, a.claims[i])
		}
	}
	var violations []quota.Violation
	for _, d := range demandsOf(forced, func(c *placedClaim) *node { return c.at.tree.root }) {
		for _, p := range d.amounts {
			violations = d.node.fitsIn(quota.MaxAmount, violations, p.resource, p.amount)
		}
	}
	return violations
}
