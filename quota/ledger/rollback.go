package ledger

import (
	"maps"
	"slices"

	"github.com/quorate/quorate/quota"
)

// planRollBack works out the configuration of after a revision by undoing what came later, newest first, and plans the
// way there as one change.
func (pl planner) planRollBack(c quota.RollBack) plan {
	switch oldest := pl.history.oldestReachable(); {
	case c.Revision > pl.history.revision:
		return refusedPlan(quota.Errorf(quota.NotFound, "revision", "there is no revision %d yet; the configuration is at %d", c.Revision, pl.history.revision))
	case c.Revision < oldest:
		return refusedPlan(quota.Errorf(quota.Invalid, "revision", "the history does not reach back to revision %d; the oldest that can be rolled back to is %d", c.Revision, oldest))
	}
	past := retreat{ledger: pl.Ledger, trees: map[string]*pastTree{}}
	for _, r := range slices.Backward(pl.history.revisions) {
		if r.Number <= c.Revision {
			break
		}
		for _, u := range r.Undo {
			past.undo(u)
		}
	}
	return pl.planWishes(past.wishes())
}

// oldestReachable is the oldest revision after which every change can still be undone.
func (h *history) oldestReachable() uint64 {
	oldest := h.revision
	for _, r := range slices.Backward(h.revisions) {
		if !r.Undoable {
			break
		}
		oldest = r.Number - 1
	}
	return oldest
}

// retreat is a walk back through the history.
type retreat struct {
	ledger *Ledger
	trees  map[string]*pastTree // those that have changed since
}

// pastTree is a tree as it was at some point of the walk; it does not exist if its sketch is nil.
type pastTree struct {
	settings  quota.TreeSettings
	resources []quota.Resource
	sketch    *spot
}

func (p retreat) tree(name string) *pastTree {
	t := p.trees[name]
	if t == nil {
		t = &pastTree{}
		if now := p.ledger.forest.trees[name]; now != nil {
			t.sketch, t.settings, t.resources = now.sketch(), now.settings, now.registered()
		}
		p.trees[name] = t
	}
	return t
}

// undo takes back what one revision did to one tree.
func (p retreat) undo(u quota.TreeUndo) {
	t := p.tree(u.Name)
	if u.Added {
		t.sketch = nil
		return
	}
	if u.Removed {
		t.sketch = &spot{}
	}
	if t.settings = u.TreeSettings; len(u.Resources) > 0 {
		t.resources = u.Resources
	}
	for _, path := range u.AddedPaths {
		t.sketch.remove(path)
	}
	for _, m := range u.Moves {
		t.sketch.move(m)
	}
	for i := range u.Nodes {
		t.sketch.grow(u.Nodes[i].Path).spec = &u.Nodes[i]
	}
}

// wishes are the trees as they were where the walk has ended.
func (p retreat) wishes() []wish {
	var list []wish
	for _, name := range slices.Sorted(maps.Keys(p.trees)) {
		t, now := p.trees[name], p.ledger.forest.trees[name]
		switch {
		case t.sketch != nil:
			spec := quota.TreeSpec{Name: name, TreeSettings: t.settings, Resources: t.resources, Nodes: t.sketch.nodes()}
			list = append(list, wish{spec: spec, sketch: t.sketch, reborn: true, field: "revision"})
		case now != nil:
			list = append(list, wish{spec: quota.TreeSpec{Name: name}, remove: true, field: "revision"})
		}
	}
	return list
}
