package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
)

// planLimits checks a change of one node's limits. It costs the node's family, not the tree.
func (pl planner) planLimits(c quota.SetLimits) plan {
	t := pl.forest.trees[c.Tree]
	if t == nil {
		return refusedPlan(quota.Errorf(quota.NotFound, "tree", "there is no tree %q", quota.Clip(c.Tree)))
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
		return refusedPlan(quota.NewBreachError(breaches))
	}
	if err := pl.checkTreeGrowth(swap.bytes() - n.bytes()); err != nil {
		return refusedPlan(err)
	}
	d := differ{tree: t.name, undo: t.undo()}
	d.limits(n.path, "limit ", n.spec.Limits, swap.spec.Limits)
	omitResources(&d.undo)
	d.undo.Nodes = []quota.NodeSpec{*n.spec}
	return plan{
		changes: d.changes,
		undo:    []quota.TreeUndo{d.undo},
		over:    n.overWith(swap),
		commit: func() {
			pl.forest.markChanged(t)
			pl.forest.bytes += swap.bytes() - n.bytes()
			n.configure(swap)
			n.relimit()
			pl.queue.raisedAt(n)
		},
		effects: func() *quota.Effects { return pl.effectsOf(t, swap.spec) },
	}
}

// overWith lists what would be over a limit in the tree with the limits of swap in force, at most MaxOver. It puts them in force and
// takes them back.
func (n *node) overWith(swap *node) []quota.Overuse {
	before := slices.Clone(n.limits)
	for i, limit := range swap.limits {
		n.swapLimit(i, limit)
	}
	list := n.tree.over(quota.MaxOver)
	for i, limit := range before {
		n.swapLimit(i, limit)
	}
	return list
}

// configured finds a node that stands in the configuration.
func (t *tree) configured(path, field string) (*node, *quota.Error) {
	n := t.byPath[path]
	switch {
	case n == nil:
		return nil, quota.Errorf(quota.NotFound, field, "tree %s has no node %q; the nearest that exists is %s", t.name, quota.Clip(path), t.nearest(quota.Clip(path)).place())
	case n.made:
		return nil, quota.Errorf(quota.NotFound, field, "%s was made on demand and is not configured; add it to the tree first", n.place())
	}
	return n, nil
}

// withLimits is a copy of the node with other limits.
func (n *node) withLimits(set []quota.ResourceLimit) (*node, *quota.Error) {
	if len(set) == 0 {
		return nil, quota.Errorf(quota.Invalid, "limits", "name at least one limit; tree %s has %s", n.treeName, n.tree.resourceNames())
	}
	swap := *n
	swap.limits = append([]quota.Limit(nil), n.limits...)
	for i, s := range set {
		r, err := n.tree.checkLimit(s, "limits", "limit", quota.NotFound)
		if err != nil {
			return nil, err
		}
		if i > 0 && set[i-1].Resource >= s.Resource {
			return nil, quota.Errorf(quota.Invalid, "limits", "resource %s is not in order, or limited twice", s.Resource)
		}
		swap.limits[r.index] = s.Limit
	}
	spec := *n.spec
	spec.Limits = nil
	for _, r := range n.tree.resources {
		if limit := swap.limits[r.index]; limit.Kind != quota.Unset {
			spec.Limits = append(spec.Limits, quota.ResourceLimit{Resource: r.Name, Limit: limit})
		}
	}
	swap.spec = &spec
	swap.settle()
	swap.pools = swap.relimited()
	return &swap, nil
}

// checkSwap asks the policies about the two families that a changed node is in: its own and its parent's.
func (n *node) checkSwap(swap *node) []quota.Breach {
	var breaches []quota.Breach
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
