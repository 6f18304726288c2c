package quota

// uncountable lists where forced claims would make a tree hold more than can be counted. No other limit holds them.
func (a *Allocation) uncountable() []Violation {
	var forced []placedClaim
	for i := range a.claims {
		if a.claims[i].forced() {
			forced = append(forced, a.claims[i])
		}
	}
	var violations []Violation
	for _, d := range demandsOf(forced, func(c *placedClaim) *node { return c.at.tree.root }) {
		for _, p := range d.amounts {
			violations = d.node.fitsIn(MaxAmount, violations, p.resource, p.amount)
		}
	}
	return violations
}
