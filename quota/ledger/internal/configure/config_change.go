package configure

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/admit"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// PlanLimits checks a change of one node's limits. It costs the node's family, not the tree.
func (p Planner) PlanLimits(c quota.SetLimits) Plan {
	n, err := nodeOfPlace(&p.State.Forest, c.Tree, c.Node)
	if err != nil {
		return RefusedPlan(err)
	}
	t := n.Tree
	swap, err := WithLimits(n, c.Limits)
	if err != nil {
		return RefusedPlan(err)
	}
	breaches := checkSwap(n, swap)
	if len(breaches) == 0 && len(p.State.Calendar.All) > 0 {
		breaches = checkSwapLater(n, swap)
	}
	if len(breaches) > 0 {
		return RefusedPlan(quota.NewBreachError(breaches))
	}
	if err := p.State.CheckTreeGrowth(swap.Bytes() - n.Bytes()); err != nil {
		return RefusedPlan(err)
	}
	d := DifferIn(t)
	d.undo = undoOfTree(t)
	d.limits(n.Path, "limit ", n.Spec.Limits, swap.Spec.Limits)
	omitResources(&d.undo)
	d.undo.Nodes = []quota.NodeSpec{*n.Spec}
	return Plan{
		Changes: d.Changes,
		undo:    []quota.TreeUndo{d.undo},
		Over:    overWith(n, swap),
		Locate: func(quota.Change) ChangedNode {
			return ChangedNode{Was: n, Above: n.Parent, IsRoot: n.Parent == nil}
		},
		commit: func() {
			p.State.Forest.MarkChanged(t)
			p.State.Forest.MarkNode(n)
			p.State.Forest.Bytes += swap.Bytes() - n.Bytes()
			configureNode(n, swap)
			admit.Relimit(n)
			p.State.Forest.NoteLimits(n)
			p.State.Queue.UnblockTree(n.Tree) // a request below or above may fit its whole limit again, or not any more
		},
		Effects: func() *quota.Effects { return p.effectsOf(t, swap.Spec) },
	}
}

// overWith lists what would be over a limit in the tree with the limits of swap in force, at most MaxOver. It puts them
// in force and takes them back.
func overWith(n, swap *state.Node) []quota.Overuse {
	before := slices.Clone(n.Limits)
	for i, limit := range swap.Limits {
		n.SwapLimit(i, limit)
	}
	list := n.Tree.Over(quota.MaxOver)
	for i, limit := range before {
		n.SwapLimit(i, limit)
	}
	return list
}

// nodeOfPlace expects a tree of the configuration.
func nodeOfPlace(f *state.Forest, tree, path string) (*state.Node, *quota.Error) {
	t := f.Trees[tree]
	if t == nil {
		return nil, quota.Errorf(quota.NotFound, "tree", "there is no tree %q", quota.Clip(tree))
	}
	return ConfiguredNode(t, path, "node")
}

// ConfiguredNode finds a node that stands in the configuration.
func ConfiguredNode(t *state.Tree, path, field string) (*state.Node, *quota.Error) {
	n := t.ByPath[path]
	switch {
	case n == nil:
		return nil, quota.Errorf(quota.NotFound, field, "tree %s has no node %q; the nearest that exists is %s", t.Name,
			quota.Clip(path), t.Nearest(quota.Clip(path)).Place())
	case n.Dynamic:
		return nil, quota.Errorf(quota.NotFound, field,
			"%s was made on demand and is not configured; add it to the tree first", n.Place())
	}
	return n, nil
}

// WithLimits is a copy of the node with other limits.
func WithLimits(n *state.Node, set []quota.ResourceLimit) (*state.Node, *quota.Error) {
	if len(set) == 0 {
		return nil, quota.Errorf(quota.Invalid, "limits", "name at least one limit; tree %s has %s", n.TreeName,
			n.Tree.ResourceNames())
	}
	swap := *n
	swap.Limits = append([]quota.Limit(nil), n.Limits...)
	for i, s := range set {
		r, err := checkLimit(n.Tree, s, "limits", "limit", quota.NotFound)
		if err != nil {
			return nil, err
		}
		if i > 0 && set[i-1].Resource >= s.Resource {
			return nil, quota.Errorf(quota.Invalid, "limits",
				"resource %s is not in order, or limited twice", s.Resource)
		}
		swap.Limits[r.Index] = s.Limit
	}
	spec := *n.Spec
	spec.Limits = nil
	for _, r := range n.Tree.Resources {
		if limit := swap.Limits[r.Index]; limit.Kind != quota.Unset {
			spec.Limits = append(spec.Limits, quota.ResourceLimit{Resource: r.Name, Limit: limit})
		}
	}
	swap.Spec = &spec
	admit.DeriveSettings(&swap)
	swap.Pools = admit.Relimited(&swap)
	return &swap, nil
}

// checkSwap asks the policies about the two families that a changed node is in: its own and its parent's.
func checkSwap(n, swap *state.Node) []quota.Breach {
	var breaches []quota.Breach
	for _, r := range n.Tree.Resources {
		previous, updated := childLimit(n, r.Index), childLimit(swap, r.Index)
		if p := n.Parent; p != nil && previous != updated {
			breaches = append(breaches, breachOf(p, r, FamilyOf(p, r.Index, p.Own[r.Index], swap))...)
		}
		if previous.Limit != updated.Limit {
			breaches = append(breaches, breachOf(n, r, FamilyOf(n, r.Index, n.Own[r.Index], swap))...)
		}
	}
	return breaches
}

func followMoves(f *state.Forest, w *treeChange) *quota.Error {
	if n := len(w.spec.Moves); n > f.Bounds.Moves {
		return quota.Errorf(quota.Invalid, w.field+".moves",
			"tree %s has %d moves; at most %d are allowed in one change", w.spec.Name, n, f.Bounds.Moves)
	}
	for i, m := range w.spec.Moves {
		at := fmt.Sprintf("%s.moves[%d]", w.field, i)
		if err := checkMove(m, at+".node", at+".new_node", f.Bounds.Depth); err != nil {
			return err
		}
	}
	old := f.Trees[w.spec.Name]
	if len(w.spec.Moves) == 0 || old == nil {
		return nil
	}
	w.newPaths = newPathTree(old)
	for _, m := range w.spec.Moves {
		w.newPaths.movePath(m)
	}
	return nil
}

func checkMove(m quota.Move, from, to string, depth int) *quota.Error {
	if m.From == "" {
		return quota.Errorf(quota.Invalid, from, "the root cannot move; name a node below it")
	}
	if m.To == "" {
		return quota.Errorf(quota.Invalid, to, "the root exists already; name another path")
	}
	if err := quota.CheckPath(m.From, from, depth); err != nil {
		return err
	}
	if err := quota.CheckPath(m.To, to, depth); err != nil {
		return err
	}
	if m.From != m.To && quota.IsWithin(m.To, m.From) {
		return quota.Errorf(quota.Invalid, to, "node %q cannot move to %q, below itself", m.From, m.To)
	}
	return nil
}

// PlanMove checks another path for a node. It is the present tree with other paths.
func (p Planner) PlanMove(c quota.MoveNode) Plan {
	t := p.State.Forest.Trees[c.Tree]
	if t == nil {
		return RefusedPlan(quota.Errorf(quota.NotFound, "tree", "there is no tree %q", quota.Clip(c.Tree)))
	}
	m := quota.Move{From: c.From, To: c.To}
	if err := checkMove(m, "node", "new_node", p.State.Bounds.Depth); err != nil {
		return RefusedPlan(err)
	}
	if _, err := ConfiguredNode(t, c.From, "node"); err != nil {
		return RefusedPlan(err)
	}
	if there := t.ByPath[c.To]; there != nil {
		return RefusedPlan(
			quota.Errorf(quota.Invalid, "new_node",
				"%s exists already; move it out of the way, or choose another path", there.Place()))
	}
	if _, err := ConfiguredNode(t, quota.ParentPath(c.To), "new_node"); err != nil {
		return RefusedPlan(err)
	}
	w := treeChange{spec: PresentSpecOf(t), newPaths: newPathTree(t), field: "new_node"}
	w.newPaths.movePath(m)
	w.spec.Nodes = w.newPaths.listNodes()
	if err := checkDepths(&p.State.Forest, w.spec.Nodes); err != nil {
		return RefusedPlan(err)
	}
	return p.planChanges([]treeChange{w}, keepPolicies(&p.State.Forest), p.keepAccess())
}

func checkDepths(f *state.Forest, nodes []quota.NodeSpec) *quota.Error {
	for _, n := range nodes {
		if err := quota.CheckPath(n.Path, "new_node", f.Bounds.Depth); err != nil {
			return err
		}
	}
	return nil
}

// PresentSpecOf is the specification of the tree as it is.
func PresentSpecOf(t *state.Tree) quota.TreeSpec {
	return quota.TreeSpec{Name: t.Name, TreeSettings: t.Settings, Resources: t.Registered(), Nodes: specsOfTree(t)}
}

// specsOfTree are the configured nodes, parents before children, siblings by name.
func specsOfTree(t *state.Tree) []quota.NodeSpec {
	list := make([]quota.NodeSpec, 0, len(t.ByPath))
	t.Root.Walk(func(n *state.Node) bool {
		if !n.Dynamic {
			list = append(list, *n.Spec)
		}
		return true
	})
	return list
}

// CheckReason refuses a change without a reason of a tree that requires one, as it is before the change. A change that
// changes nothing of a tree needs none.
func (p Planner) CheckReason(reason string, checked Plan) *quota.Error {
	if reason != "" {
		return nil
	}
	for _, c := range checked.Changes {
		if err := p.requireReason(c.Tree); err != nil {
			return err
		}
	}
	for _, name := range checked.redefined { // the definition of a policy changes the tree as a whole
		if err := p.requireReason(name); err != nil {
			return err
		}
	}
	return nil
}

// requireReason asks one tree, unless it is new or the change is beside all trees.
func (p Planner) requireReason(tree string) *quota.Error {
	if t := p.State.Forest.Trees[tree]; t != nil && t.Settings.RequireReason {
		return quota.Errorf(quota.Invalid, "reason", "changes of tree %s need a reason; give one", tree)
	}
	return nil
}

// ChangedNode is where a change of the configuration stands, before it is made: rights are those before the change.
type ChangedNode struct {
	// Was is the node, above the nearest one that exists above where it will be. A new node has only above; a node of a
	// new tree has neither.
	Was, Above *state.Node
	IsRoot     bool
	// IsNewTree is true if the tree is added or removed.
	IsNewTree bool
}

// GivenRights are bindings that a change adds at a node.
type GivenRights struct {
	Tree, Path string
	At         ChangedNode
	Added      []access.Binding
	Roles      access.Roles
}
