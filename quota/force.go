package quota

// checkForced says where forced claims would make a tree hold more than can be counted. It is the one bound that they are
// held to: beyond it, usage would no longer be what the allocations add up to.
func (l *Ledger) checkForced(a *Allocation) []Violation {
	if !a.forced() {
		return nil
	}
	var roots []demand
	for i := range a.claims {
		c := &a.claims[i]
		if !c.forced() {
			continue
		}
		root := c.at.tree.root
		if last := len(roots) - 1; last < 0 || roots[last].node != root {
			roots = append(roots, demand{node: root})
		}
		for _, p := range c.amounts {
			roots[len(roots)-1].add(p)
		}
	}
	return overflows(roots)
}

func overflows(roots []demand) []Violation {
	var violations []Violation
	for _, d := range roots {
		for _, p := range d.amounts {
			if used := d.node.subtree[p.resource.index]; p.amount > MaxAmount-used {
				violations = append(violations, Violation{
					Tree: d.node.treeName, Resource: p.resource.Name, Limit: MaxAmount, Used: used, Requested: p.amount,
				})
			}
		}
	}
	return violations
}
