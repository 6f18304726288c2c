package ledger

import (
	"cmp"
	"maps"
	"slices"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

// PastConfiguration is the configuration as it was after a revision.
type PastConfiguration struct {
	// Trees and Policies are sorted by name.
	Trees    []quota.TreeSpec
	Policies []quota.PolicySpec
	// Access is nil for a caller that may not read it.
	Access *access.Section
}

// pastState is a walk back through the history.
type pastState struct {
	ledger *Ledger
	// changed are the trees that have changed since.
	changed map[string]*pastTree
	// policies are the definitions to restore, later ones in the list for earlier revisions.
	policies []quota.PolicyUndo
	// section is the access section to restore; nil if it has not changed.
	section *access.Section
}

// walkBack reconstructs the configuration after a revision by undoing the later ones, newest first.
func (l *Ledger) walkBack(revision uint64) (pastState, *quota.Error) {
	past := pastState{ledger: l, changed: map[string]*pastTree{}}
	switch oldest := l.history.oldestReachable(); {
	case revision > l.history.revision:
		return past, quota.Errorf(quota.NotFound, "revision", "there is no revision %d yet; the configuration is at %d",
			revision, l.history.revision)
	case revision < oldest:
		return past, quota.Errorf(quota.Invalid, "revision",
			"the history does not reach back to revision %d; the oldest that can be shown or rolled back to is %d", revision,
			oldest)
	}
	for _, r := range slices.Backward(l.history.revisions) {
		if r.Number <= revision {
			break
		}
		for _, u := range r.Undo {
			past.undo(u)
		}
		past.policies = append(past.policies, r.UndoPolicies...)
		if r.UndoAccess != nil {
			past.section = r.UndoAccess
		}
	}
	return past, nil
}

// pastTree is a tree at some point of the walk; it does not exist there if its pathTree is nil.
type pastTree struct {
	settings  quota.TreeSettings
	resources []quota.Resource
	sketch    *pathTree
}

func (p pastState) tree(name string) *pastTree {
	t := p.changed[name]
	if t == nil {
		t = &pastTree{}
		if now := p.ledger.forest.trees[name]; now != nil {
			t.sketch, t.settings, t.resources = now.newPathTree(), now.settings, now.registered()
		}
		p.changed[name] = t
	}
	return t
}

// undo reverts the effect of one revision on one tree.
func (p pastState) undo(u quota.TreeUndo) {
	t := p.tree(u.Name)
	if u.Added {
		t.sketch = nil
		return
	}
	if u.Removed {
		t.sketch = &pathTree{}
	}
	if t.settings = u.TreeSettings; len(u.Resources) > 0 {
		t.resources = u.Resources
	}
	for _, path := range u.AddedPaths {
		t.sketch.removePath(path)
	}
	for _, m := range u.Moves {
		t.sketch.movePath(m)
	}
	for i := range u.Nodes {
		t.sketch.ensurePath(u.Nodes[i].Path).spec = &u.Nodes[i]
	}
}

// treeChanges are the changed trees at the end of the walk.
func (p pastState) treeChanges() []treeChange {
	var list []treeChange
	for _, name := range slices.Sorted(maps.Keys(p.changed)) {
		t, now := p.changed[name], p.ledger.forest.trees[name]
		switch {
		case t.sketch != nil:
			list = append(list, treeChange{spec: t.spec(name), sketch: t.sketch, reborn: true, field: "revision"})
		case now != nil:
			list = append(list, treeChange{spec: quota.TreeSpec{Name: name}, remove: true, field: "revision"})
		}
	}
	return list
}

func (t *pastTree) spec(name string) quota.TreeSpec {
	return quota.TreeSpec{Name: name, TreeSettings: t.settings, Resources: t.resources, Nodes: t.sketch.listNodes()}
}

// trees are all trees at the end of the walk, by name.
func (p pastState) trees() []quota.TreeSpec {
	list := make([]quota.TreeSpec, 0, len(p.ledger.forest.trees))
	for name, t := range p.changed { // sorted below
		if t.sketch != nil {
			list = append(list, t.spec(name))
		}
	}
	for name, t := range p.ledger.forest.trees {
		if p.changed[name] == nil {
			list = append(list, t.present())
		}
	}
	slices.SortFunc(list, func(a, b quota.TreeSpec) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// policySpecs are the definitions of policies at the end of the walk, by name.
func (p pastState) policySpecs() []quota.PolicySpec {
	specs := restoredPolicies(p.ledger.forest.policies.specs, p.policies)
	return slices.SortedFunc(maps.Values(specs), func(a, b quota.PolicySpec) int { return cmp.Compare(a.Name, b.Name) })
}

// appendRevision adds a change to the history. It copies what it keeps, because a list that was grown for all changes
// of a large tree would stay in memory for the sake of its first few.
func (h *history) appendRevision(m quota.ChangeMeta, p plan) {
	h.revision++
	h.addRevision(&quota.Revision{
		Number: h.revision, Actor: m.Actor, Reason: m.Reason, RequestID: m.RequestID, Fingerprint: m.Fingerprint,
		Wall: h.now.Wall, Changes: slices.Clone(p.changes[:min(len(p.changes), quota.MaxRevisionChanges)]),
		ChangeCount: len(p.changes),
		Undo:        cloneExactly(p.undo), Undoable: true, UndoPolicies: p.policies.undo,
		UndoAccess: p.undoAccess, Subtree: p.at, Request: p.request,
	})
}

// planRollBack plans the change to the configuration after a revision as one change.
func (p planner) planRollBack(c quota.RollBack) plan {
	past, err := p.ledger.walkBack(c.Revision)
	if err != nil {
		return refusedPlan(err)
	}
	policies, err := p.ledger.forest.undoPolicies(past.policies)
	if err != nil {
		return refusedPlan(err)
	}
	section, err := p.planAccess(past.section)
	if err != nil {
		return refusedPlan(err)
	}
	return p.planChanges(past.treeChanges(), policies, section)
}
