package ledger

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// planLimits checks a change of one node's limits. It costs the node's family, not the tree.
func (p planner) planLimits(c quota.SetLimits) plan {
	n, err := p.ledger.forest.configuredNode(c.Tree, c.Node)
	if err != nil {
		return refusedPlan(err)
	}
	t := n.tree
	swap, err := n.withLimits(c.Limits)
	if err != nil {
		return refusedPlan(err)
	}
	breaches := n.checkSwap(swap)
	if len(breaches) == 0 && len(p.ledger.calendar.all) > 0 {
		breaches = n.checkSwapLater(swap)
	}
	if len(breaches) > 0 {
		return refusedPlan(quota.NewBreachError(breaches))
	}
	if err := p.ledger.checkTreeGrowth(swap.bytes() - n.bytes()); err != nil {
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
		locate: func(quota.Change) changedNode {
			return changedNode{was: n, above: n.parent, isRoot: n.parent == nil}
		},
		commit: func() {
			p.ledger.forest.markChanged(t)
			p.ledger.forest.markNode(n)
			p.ledger.forest.bytes += swap.bytes() - n.bytes()
			n.configure(swap)
			n.relimit()
			p.ledger.forest.noteLimits(n)
			p.ledger.queue.unblockTree(n.tree) // a request below or above may fit its whole limit again, or not any more
		},
		effects: func() *quota.Effects { return p.effectsOf(t, swap.spec) },
	}
}

// overWith lists what would be over a limit in the tree with the limits of swap in force, at most MaxOver. It puts them
// in force and takes them back.
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

// configuredNode finds a node of a tree that stands in the configuration.
func (f *forest) configuredNode(tree, path string) (*node, *quota.Error) {
	t := f.trees[tree]
	if t == nil {
		return nil, quota.Errorf(quota.NotFound, "tree", "there is no tree %q", quota.Clip(tree))
	}
	return t.configured(path, "node")
}

// configured finds a node that stands in the configuration.
func (t *tree) configured(path, field string) (*node, *quota.Error) {
	n := t.byPath[path]
	switch {
	case n == nil:
		return nil, quota.Errorf(quota.NotFound, field, "tree %s has no node %q; the nearest that exists is %s", t.name,
			quota.Clip(path), t.nearest(quota.Clip(path)).place())
	case n.dynamic:
		return nil, quota.Errorf(quota.NotFound, field,
			"%s was made on demand and is not configured; add it to the tree first", n.place())
	}
	return n, nil
}

// withLimits is a copy of the node with other limits.
func (n *node) withLimits(set []quota.ResourceLimit) (*node, *quota.Error) {
	if len(set) == 0 {
		return nil, quota.Errorf(quota.Invalid, "limits", "name at least one limit; tree %s has %s", n.treeName,
			n.tree.resourceNames())
	}
	swap := *n
	swap.limits = append([]quota.Limit(nil), n.limits...)
	for i, s := range set {
		r, err := n.tree.checkLimit(s, "limits", "limit", quota.NotFound)
		if err != nil {
			return nil, err
		}
		if i > 0 && set[i-1].Resource >= s.Resource {
			return nil, quota.Errorf(quota.Invalid, "limits",
				"resource %s is not in order, or limited twice", s.Resource)
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
	swap.deriveSettings()
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

// followMoves draws what a tree's moves make of its present nodes.
func (f *forest) followMoves(w *treeChange) *quota.Error {
	if n := len(w.spec.Moves); n > f.bounds.Moves {
		return quota.Errorf(quota.Invalid, w.field+".moves",
			"tree %s has %d moves; at most %d are allowed in one change", w.spec.Name, n, f.bounds.Moves)
	}
	for i, m := range w.spec.Moves {
		at := fmt.Sprintf("%s.moves[%d]", w.field, i)
		if err := checkMove(m, at+".from", at+".to", f.bounds.Depth); err != nil {
			return err
		}
	}
	old := f.trees[w.spec.Name]
	if len(w.spec.Moves) == 0 || old == nil {
		return nil
	}
	w.sketch = old.newPathTree()
	for _, m := range w.spec.Moves {
		w.sketch.movePath(m)
	}
	return nil
}

// checkMove refuses a move that could never be.
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

// planMove checks another path for a node. It is the present tree with other paths.
func (p planner) planMove(c quota.MoveNode) plan {
	t := p.ledger.forest.trees[c.Tree]
	if t == nil {
		return refusedPlan(quota.Errorf(quota.NotFound, "tree", "there is no tree %q", quota.Clip(c.Tree)))
	}
	m := quota.Move{From: c.From, To: c.To}
	if err := checkMove(m, "from", "to", p.ledger.bounds.Depth); err != nil {
		return refusedPlan(err)
	}
	if _, err := t.configured(c.From, "from"); err != nil {
		return refusedPlan(err)
	}
	if there := t.byPath[c.To]; there != nil {
		return refusedPlan(
			quota.Errorf(quota.Invalid, "to",
				"%s exists already; move it out of the way, or choose another path", there.place()))
	}
	if _, err := t.configured(quota.ParentPath(c.To), "to"); err != nil {
		return refusedPlan(err)
	}
	w := treeChange{spec: t.present(), sketch: t.newPathTree(), field: "to"}
	w.sketch.movePath(m)
	w.spec.Nodes = w.sketch.listNodes()
	if err := p.ledger.forest.checkDepths(w.spec.Nodes); err != nil {
		return refusedPlan(err)
	}
	return p.planChanges([]treeChange{w}, p.ledger.forest.keepPolicies(), p.keepAccess())
}

// checkDepths refuses paths that a move has made too long.
func (f *forest) checkDepths(nodes []quota.NodeSpec) *quota.Error {
	for _, n := range nodes {
		if err := quota.CheckPath(n.Path, "to", f.bounds.Depth); err != nil {
			return err
		}
	}
	return nil
}

// present is the specification of the tree as it is.
func (t *tree) present() quota.TreeSpec {
	return quota.TreeSpec{Name: t.name, TreeSettings: t.settings, Resources: t.registered(), Nodes: t.specs()}
}

// specs are the configured nodes, parents before children, siblings by name.
func (t *tree) specs() []quota.NodeSpec {
	list := make([]quota.NodeSpec, 0, len(t.byPath))
	t.root.walk(func(n *node) bool {
		if !n.dynamic {
			list = append(list, *n.spec)
		}
		return true
	})
	return list
}

// checkPermission refuses a change that a tree, as it is before, does not allow: without a reason where one is
// required, or by an actor who is none of its admins. A change that changes nothing of a tree needs nothing of it.
// Admins do not bind a caller who manages access, because it moves a cluster from admins to bindings.
func (p planner) checkPermission(m quota.ChangeMeta, checked plan) *quota.Error {
	for changes := checked.changes; len(changes) > 0; {
		name := changes[0].Tree
		end := slices.IndexFunc(changes, func(c quota.Change) bool { return c.Tree != name })
		if end < 0 {
			end = len(changes)
		}
		if err := p.permitChange(m, name, changes[:end]); err != nil {
			return err
		}
		changes = changes[end:]
	}
	for _, name := range checked.redefined { // the definition of a policy changes the tree as a whole
		if err := p.permitChange(m, name, checked.policies.changes); err != nil {
			return err
		}
	}
	return nil
}

// permitChange asks one tree, unless it is new or the changes are of policies only.
func (p planner) permitChange(m quota.ChangeMeta, tree string, changes []quota.Change) *quota.Error {
	t := p.ledger.forest.trees[tree]
	switch {
	case t == nil || len(changes) == 0:
		return nil
	case t.settings.RequireReason && m.Reason == "":
		return quota.Errorf(quota.Invalid, "reason", "changes of tree %s need a reason; give one", tree)
	}
	if p.ledger.book.Mode() == access.Guarded {
		return nil // bindings say who may
	}
	refused := t.checkPermission(m.Actor, changes)
	if refused != nil && p.ledger.rights.managesAccess() {
		return nil
	}
	return refused
}

// checkPermission asks who may change limits node by node. Whatever else changes is the root admins' business, and so
// are all limits that change along with it.
func (t *tree) checkPermission(actor string, changes []quota.Change) *quota.Error {
	switch {
	case !t.governed || t.root.hasAdmin(actor):
		if !t.governed || !onlyLimits(changes) {
			return nil
		}
	case !onlyLimits(changes):
		return quota.Errorf(quota.Forbidden, "actor",
			"%s may not change tree %s beyond limits of single nodes; its admins may: %s", who(actor), t.name,
			t.root.adminNames())
	}
	for _, c := range changes {
		if err := t.byPath[c.Node].permitLimits(actor); err != nil {
			return err
		}
	}
	return nil
}

func onlyLimits(changes []quota.Change) bool {
	return !slices.ContainsFunc(changes, func(c quota.Change) bool { return !strings.HasPrefix(c.Field, "limit ") })
}

// permitLimits refuses to let an actor set the limits of the node. The policy of the parent says whose admins may.
func (n *node) permitLimits(actor string) *quota.Error {
	if n.parent == nil {
		if n.hasAdmin(actor) {
			return nil
		}
		return quota.Errorf(quota.Forbidden, "actor",
			"%s may not set limits of the root of tree %s; its admins may: %s", who(actor), n.treeName, n.adminNames())
	}
	if n.parent.policy.LimitSetters == policy.SetByParent {
		if n.parent.hasAdmin(actor) {
			return nil
		}
		return quota.Errorf(quota.Forbidden, "actor",
			"%s may not set limits of %s; under policy %s the admins of its parent %s may: %s",
			who(actor), n.place(), n.parent.policy.Name, n.parent.place(), n.parent.adminNames())
	}
	for up := n.parent; up != nil; up = up.parent {
		if up.hasAdmin(actor) {
			return nil
		}
	}
	return quota.Errorf(quota.Forbidden, "actor",
		"%s may not set limits of %s; under policy %s the admins of the nodes above it may: those of the tree are %s",
		who(actor), n.place(), n.parent.policy.Name, n.tree.root.adminNames())
}

// maxSetters bounds how many names of those who may set a limit a remedy has.
const maxSetters = 10

// limitSetters are the first of those who may set the limits of the node, sorted, by the rules of permit; false if the
// tree names no admins, and anyone may.
func (n *node) limitSetters() (list []string, governed bool) {
	if !n.tree.governed {
		return nil, false
	}
	switch {
	case n.parent == nil:
		list = n.spec.Admins
	case n.parent.policy.LimitSetters == policy.SetByParent:
		list = n.parent.spec.Admins
	default:
		for up := n.parent; up != nil && len(list) == 0; up = up.parent {
			list = up.spec.Admins
		}
	}
	return slices.Clone(list[:min(len(list), maxSetters)]), true
}

// otherSetters are the first of those who may set limits other than those of single nodes, sorted, by the rules of
// checkPermission; false if the tree names no admins.
func (t *tree) otherSetters() (list []string, governed bool) {
	if !t.governed {
		return nil, false
	}
	admins := t.root.spec.Admins
	return slices.Clone(admins[:min(len(admins), maxSetters)]), true
}

func (n *node) hasAdmin(actor string) bool {
	_, found := slices.BinarySearch(n.spec.Admins, actor)
	return found
}

// adminNames lists the node's admins for people, the first few of many.
func (n *node) adminNames() string {
	const shown = 10
	switch admins := n.spec.Admins; {
	case len(admins) == 0:
		return "there are none; an admin of the tree can name some"
	case len(admins) > shown:
		return strings.Join(admins[:shown], ", ") + " and others"
	default:
		return strings.Join(admins, ", ")
	}
}

// who names an actor, who may have no name.
func who(actor string) string {
	if actor == "" {
		return "an unnamed actor"
	}
	return actor
}

// changedNode is where a change of the configuration stands, before it is made: rights are those before the change.
type changedNode struct {
	// was is the node, above the nearest one that exists above where it will be. A new node has only above; a node of a
	// new tree has neither.
	was, above *node
	isRoot     bool
	// isNewTree is true if the tree is added or removed.
	isNewTree bool
}

// givenRights are bindings that a change adds at a node.
type givenRights struct {
	tree, path string
	at         changedNode
	added      []access.Binding
	roles      access.Roles
}
