package quota

import "fmt"

// planTrees checks a whole ApplyTrees against the ledger: the end result counts, not an order of steps, so that one
// child may give what another gets.
func (l *Ledger) planTrees(c ApplyTrees) plan {
	if n := len(c.Trees); n < 1 || n > l.bounds.TreesPerChange {
		return refusedPlan(refuse(Invalid, "trees", "the change names %d trees; 1 to %d are allowed", n, l.bounds.TreesPerChange))
	}
	var p plan
	var names []string
	var commits []func()
	trees, nodes := len(l.trees), l.nodes
	for i, spec := range c.Trees {
		field := fmt.Sprintf("trees[%d]", i)
		draft, old, err := l.planTree(spec, field, names)
		if err != nil {
			return refusedPlan(err)
		}
		if old == nil {
			trees++
		} else {
			nodes -= len(old.byPath)
		}
		nodes += len(draft.byPath)
		names = append(names, spec.Name)
		p.changes = append(p.changes, diff(old, draft)...)
		p.over = append(p.over, overAfter(draft, old, MaxOver-len(p.over))...)
		commits = append(commits, func() { l.install(draft, old) })
	}
	if trees > l.bounds.Trees {
		return refusedPlan(refuse(Full, "trees", "the ledger would have %d trees; at most %d are allowed", trees, l.bounds.Trees))
	}
	if nodes > l.bounds.Nodes {
		return refusedPlan(refuse(Full, "trees", "the ledger would have %d nodes; at most %d are allowed", nodes, l.bounds.Nodes))
	}
	p.commit = func() {
		for _, commit := range commits {
			commit()
		}
	}
	return p
}

func (l *Ledger) planTree(spec TreeSpec, field string, seen []string) (draft, old *tree, err *Error) {
	for _, name := range seen {
		if name == spec.Name {
			return nil, nil, refuse(Invalid, field+".name", "tree %s is listed twice", name)
		}
	}
	if draft, err = l.draft(spec, field); err != nil {
		return nil, nil, err
	}
	old = l.trees[spec.Name]
	if old != nil {
		if err = checkInUse(draft, old); err != nil {
			return nil, nil, err
		}
	}
	breaches := checkDraft(draft, old)
	if old != nil {
		breaches = append(breaches, l.borrowersOutside(old, draft)...)
	}
	if len(breaches) > 0 {
		return nil, nil, breached(breaches)
	}
	return draft, old, nil
}

// checkInUse refuses to take away what held allocations stand on.
func checkInUse(draft, old *tree) *Error {
	for _, r := range old.resources {
		is := draft.resource(r.Name)
		switch {
		case r.holds == 0:
		case is == nil:
			return refuse(InUse, "", "resource %s of tree %s cannot be removed while claims hold it (now: %d); release them first", r.Name, old.name, r.holds)
		case is.Unit != r.Unit:
			return refuse(InUse, "", "the unit of resource %s of tree %s cannot change from %s to %s while claims hold it (now: %d); release them first", r.Name, old.name, r.Unit, is.Unit, r.holds)
		}
	}
	var err *Error
	old.root.walk(func(n *node) bool {
		if n.claims+n.homes > 0 && draft.byPath[n.path] == nil {
			err = refuse(InUse, "", "%s cannot be removed while claims are held there (now: %d); release them first", n.place(), n.claims+n.homes)
		}
		return err == nil
	})
	return err
}

// planLimits checks a change of one node's limits. It costs the node's family, not the tree.
func (l *Ledger) planLimits(c SetLimits) plan {
	t := l.trees[c.Tree]
	if t == nil {
		return refusedPlan(refuse(NotFound, "tree", "there is no tree %q", clip(c.Tree)))
	}
	n := t.byPath[c.Node]
	if n == nil {
		return refusedPlan(refuse(NotFound, "node", "tree %s has no node %q; the nearest that exists is %s", t.name, clip(c.Node), t.nearest(clip(c.Node)).place()))
	}
	swap, err := n.withLimits(c.Limits)
	if err != nil {
		return refusedPlan(err)
	}
	if breaches := n.checkSwap(swap); len(breaches) > 0 {
		return refusedPlan(breached(breaches))
	}
	d := differ{tree: t.name}
	d.limits(n.path, n.spec.Limits, swap.spec.Limits)
	return plan{
		changes: d.changes,
		over:    n.over(swap),
		commit: func() {
			n.configure(swap)
			n.relimit()
		},
	}
}

// withLimits is a copy of the node with other limits.
func (n *node) withLimits(set []ResourceLimit) (*node, *Error) {
	if len(set) == 0 {
		return nil, refuse(Invalid, "limits", "name at least one limit; tree %s has %s", n.treeName, n.tree.resourceNames())
	}
	swap := *n
	swap.limits = append([]Limit(nil), n.limits...)
	for i, s := range set {
		r, err := n.tree.checkLimit(s, "limits", NotFound)
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
		if n.effective(r.index) == swap.effective(r.index) {
			continue
		}
		if p := n.parent; p != nil {
			breaches = append(breaches, p.breachOf(r, p.family(r.index, p.own[r.index], swap))...)
		}
		breaches = append(breaches, n.breachOf(r, n.family(r.index, n.own[r.index], swap))...)
	}
	return breaches
}

// planDelete checks the removal of a tree.
func (l *Ledger) planDelete(c DeleteTree) plan {
	t := l.trees[c.Tree]
	if t == nil {
		return refusedPlan(refuse(NotFound, "name", "there is no tree %q", clip(c.Tree)))
	}
	if t.claims > 0 {
		return refusedPlan(refuse(InUse, "name", "tree %s cannot be removed while claims are held in it (now: %d); release them first", t.name, t.claims))
	}
	return plan{changes: diff(t, nil), commit: func() {
		delete(l.trees, t.name)
		l.nodes -= len(t.byPath)
	}}
}
