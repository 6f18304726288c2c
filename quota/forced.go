package quota

// checkForced says where forced claims would hold more than can be counted; no other limit is looked at.
func (l *Ledger) checkForced(a *Allocation) []Violation {
	var violations []Violation
	for i := range a.claims {
		root, first := a.claims[i].at.tree.root, true
		var d demand
		for j := range a.claims {
			if c := &a.claims[j]; c.forced() && c.at.tree == root.tree {
				first = first && j >= i
				for _, p := range c.amounts {
					d.add(p)
				}
			}
		}
		for _, p := range d.amounts {
			if used := root.subtree[p.resource.index]; first && used.plus(p.amount) > MaxAmount {
				violations = append(violations, Violation{
					Tree: root.treeName, Node: root.path, Resource: p.resource.Name, Limit: MaxAmount, Used: used, Requested: p.amount,
				})
			}
		}
	}
	return violations
}
