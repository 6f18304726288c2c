package quota

import "slices"

// planLimits checks a change of one node's limits. It costs the node's family, not the tree.
func (l *Ledger) planLimits(c SetLimits) plan {
	t := l.trees[c.Tree]
	if t == nil {
		return refusedPlan(refuse(NotFound, "tree", "there is no tree %q", clip(c.Tree)))
	}
	n, err := t.configured(c.Node, "node")
	if err != nil {
		return refusedPlan(err)
	}
	swap, err := n.withLimits(c.Limits)
	if err != nil {
		return refusedPlan(err)
	}
	if breaches := n.checkSwap(swap); len(breaches) > 0 {
		return refusedPlan(breached(breaches))
	}
	if err := l.checkTreeGrowth(swap.bytes() - n.bytes()); err != nil {
		return refusedPlan(err)
	}
	d := differ{tree: t.name, undo: t.undo()}
	d.limits(n.path, "limit ", n.spec.Limits, swap.spec.Limits)
	d.undo.leaveResources()
	d.undo.Nodes = []NodeSpec{*n.spec}
	return plan{
		changes: d.changes,
		undo:    []TreeUndo{d.undo},
		over:    n.overWith(swap),
		commit: func() {
			l.markChanged(t)
			l.treeBytes += swap.bytes() - n.bytes()
			n.configure(swap)
			n.relimit()
			l.raisedAt(n)
		},
		effects: func() *Effects { return l.effectsOf(t, swap.spec) },
	}
}

// overWith lists what would be over a limit in the tree with the limits of swap in force, at most MaxOver. It puts them in force and
// takes them back.
func (n *node) overWith(swap *node) []Overuse {
	before := slices.Clone(n.limits)
	for i, limit := range swap.limits {
		n.swapLimit(i, limit)
	}
	list := n.tree.over(MaxOver)
	for i, limit := range before {
		n.swapLimit(i, limit)
	}
	return list
}

// configured finds a node that stands in the configuration.
func (t *tree) configured(path, field string) (*node, *Error) {
	n := t.byPath[path]
	switch {
	case n == nil:
		return nil, refuse(NotFound, field, "tree %s has no node %q; the nearest that exists is %s", t.name, clip(path), t.nearest(clip(path)).place())
	case n.made:
		return nil, refuse(NotFound, field, "%s was made on demand and is not configured; add it to the tree first", n.place())
	}
	return n, nil
}

// withLimits is a copy of the node with other limits.
func (n *node) withLimits(set []ResourceLimit) (*node, *Error) {
	if len(set) == 0 {
		return nil, refuse(Invalid, "limits", "name at least one limit; tree %s has %s", n.treeName, n.tree.resourceNames())
	}
	swap := *n
	swap.limits = append([]Limit(nil), n.limits...)
	for i, s := range set {
		r, err := n.tree.checkLimit(s, "limits", "limit", NotFound)
		if err != nil {
			return nil, err
		}
		if i > 0 && set[i-1].Resource >= s.Resource {
			return nil, refuse(Invalid, "limits", "resource %s is not in order, or limited twice", s.Resource)
		}
		swap.limits[r.index] = s.Limit
	}
	spec := *n.spec
	spec.Limits = nil
	for _, r := range n.tree.resources {
		if limit := swap.limits[r.index]; limit.Kind != Unset {
			spec.Limits = append(spec.Limits, ResourceLimit{Resource: r.Name, Limit: limit})
		}
	}
	swap.spec = &spec
	swap.settle()
	swap.pools = swap.relimited()
	return &swap, nil
}

// checkSwap asks the policies about the two families that a changed node is in: its own and its parent's.
func (n *node) checkSwap(swap *node) []Breach {
	var breaches []Breach
	for _, r := range n.tree.resources {
		was, is := n.childLimit(r.index), swap.childLimit(r.index)
		if p := n.parent; p != nil && was != is {
			breaches = append(breaches, p.breachOf(r, p.family(r.index, p.own[r.index], swap))...)
		}
		if was.Limit != is.Limit {
			breaches = append(breaches, n.breachOf(r, n.family(r.index, n.own[r.index], swap))...)
		}
	}
	return breaches
}
