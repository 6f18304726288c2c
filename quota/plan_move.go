package quota

import "fmt"

// followMoves draws what a tree's moves make of its present nodes.
func (l *Ledger) followMoves(w *wish) *Error {
	if n := len(w.spec.Moves); n > l.bounds.Moves {
		return refuse(Invalid, w.field+".moves", "tree %s has %d moves; at most %d are allowed in one change", w.spec.Name, n, l.bounds.Moves)
	}
	for i, m := range w.spec.Moves {
		at := fmt.Sprintf("%s.moves[%d]", w.field, i)
		if err := m.check(at+".from", at+".to", l.bounds.Depth); err != nil {
			return err
		}
	}
	old := l.trees[w.spec.Name]
	if len(w.spec.Moves) == 0 || old == nil {
		return nil
	}
	w.sketch = old.sketch()
	for _, m := range w.spec.Moves {
		w.sketch.move(m)
	}
	return nil
}

// check refuses a move that could never be.
func (m Move) check(from, to string, depth int) *Error {
	if m.From == "" {
		return refuse(Invalid, from, "the root cannot move; name a node below it")
	}
	if m.To == "" {
		return refuse(Invalid, to, "the root exists already; name another path")
	}
	if err := checkPath(m.From, from, depth); err != nil {
		return err
	}
	if err := checkPath(m.To, to, depth); err != nil {
		return err
	}
	if m.From != m.To && within(m.To, m.From) {
		return refuse(Invalid, to, "node %q cannot move to %q, below itself", m.From, m.To)
	}
	return nil
}

// planMove checks another path for a node. It is the present tree with other paths.
func (l *Ledger) planMove(c MoveNode) plan {
	t := l.trees[c.Tree]
	if t == nil {
		return refusedPlan(refuse(NotFound, "tree", "there is no tree %q", clip(c.Tree)))
	}
	m := Move{From: c.From, To: c.To}
	if err := m.check("from", "to", l.bounds.Depth); err != nil {
		return refusedPlan(err)
	}
	if _, err := t.configured(c.From, "from"); err != nil {
		return refusedPlan(err)
	}
	if there := t.byPath[c.To]; there != nil {
		return refusedPlan(refuse(Invalid, "to", "%s exists already; move it out of the way, or choose another path", there.place()))
	}
	if _, err := t.configured(parentPath(c.To), "to"); err != nil {
		return refusedPlan(err)
	}
	w := wish{spec: t.present(), sketch: t.sketch(), field: "to"}
	w.sketch.move(m)
	w.spec.Nodes = w.sketch.nodes()
	if err := l.checkDepths(w.spec.Nodes); err != nil {
		return refusedPlan(err)
	}
	return l.planWishes([]wish{w})
}

// checkDepths refuses paths that a move has made too long.
func (l *Ledger) checkDepths(nodes []NodeSpec) *Error {
	for _, n := range nodes {
		if err := checkPath(n.Path, "to", l.bounds.Depth); err != nil {
			return err
		}
	}
	return nil
}

// present is the specification of the tree as it is.
func (t *tree) present() TreeSpec {
	return TreeSpec{Name: t.name, TreeSettings: t.settings, Resources: t.registered(), Nodes: t.specs()}
}

// specs are the configured nodes, parents before children, siblings by name.
func (t *tree) specs() []NodeSpec {
	list := make([]NodeSpec, 0, len(t.byPath))
	t.root.walk(func(n *node) bool {
		if !n.made {
			list = append(list, *n.spec)
		}
		return true
	})
	return list
}
