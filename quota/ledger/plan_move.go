package ledger

import (
	"fmt"

	"github.com/quorate/quorate/quota"
)

// followMoves draws what a tree's moves make of its present nodes.
func (f *forest) followMoves(w *wish) *quota.Error {
	if n := len(w.spec.Moves); n > f.bounds.Moves {
		return quota.Errorf(quota.Invalid, w.field+".moves", "tree %s has %d moves; at most %d are allowed in one change", w.spec.Name, n, f.bounds.Moves)
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
	w.sketch = old.sketch()
	for _, m := range w.spec.Moves {
		w.sketch.move(m)
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
func (pl planner) planMove(c quota.MoveNode) plan {
	t := pl.forest.trees[c.Tree]
	if t == nil {
		return refusedPlan(quota.Errorf(quota.NotFound, "tree", "there is no tree %q", quota.Clip(c.Tree)))
	}
	m := quota.Move{From: c.From, To: c.To}
	if err := checkMove(m, "from", "to", pl.bounds.Depth); err != nil {
		return refusedPlan(err)
	}
	if _, err := t.configured(c.From, "from"); err != nil {
		return refusedPlan(err)
	}
	if there := t.byPath[c.To]; there != nil {
		return refusedPlan(quota.Errorf(quota.Invalid, "to", "%s exists already; move it out of the way, or choose another path", there.place()))
	}
	if _, err := t.configured(quota.ParentPath(c.To), "to"); err != nil {
		return refusedPlan(err)
	}
	w := wish{spec: t.present(), sketch: t.sketch(), field: "to"}
	w.sketch.move(m)
	w.spec.Nodes = w.sketch.nodes()
	if err := pl.forest.checkDepths(w.spec.Nodes); err != nil {
		return refusedPlan(err)
	}
	return pl.planWishes([]wish{w})
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
		if !n.made {
			list = append(list, *n.spec)
		}
		return true
	})
	return list
}
