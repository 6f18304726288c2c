package configure

import (
	"cmp"
	"maps"
	"slices"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
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
	state *state.State
	// changed are the trees that have changed since.
	changed map[string]*pastTree
	// policies are the definitions to restore, later ones in the list for earlier revisions.
	policies []quota.PolicyUndo
	// Section is the access section to restore; nil if it has not changed.
	Section *access.Section
}

// WalkBack reconstructs the configuration after a revision by undoing the later ones, newest first.
func WalkBack(s *state.State, revision uint64) (pastState, *quota.Error) {
	past := pastState{state: s, changed: map[string]*pastTree{}}
	switch oldest := s.History.OldestReachable(); {
	case revision > s.History.Revision:
		return past, quota.Errorf(quota.NotFound, "revision", "there is no revision %d yet; the configuration is at %d",
			revision, s.History.Revision)
	case revision < oldest:
		return past, quota.Errorf(quota.Invalid, "revision",
			"the history does not reach back to revision %d; the oldest that can be shown or rolled back to is %d", revision,
			oldest)
	}
	for _, r := range slices.Backward(s.History.Revisions) {
		if r.Number <= revision {
			break
		}
		for _, u := range r.Undo {
			past.undo(u)
		}
		past.policies = append(past.policies, r.UndoPolicies...)
		if r.UndoAccess != nil {
			past.Section = r.UndoAccess
		}
	}
	return past, nil
}

// pastTree does not exist at this point of the walk if its pathTree is nil.
type pastTree struct {
	settings  quota.TreeSettings
	resources []quota.Resource
	paths     *pathTree
}

func (p pastState) tree(name string) *pastTree {
	t := p.changed[name]
	if t == nil {
		t = &pastTree{}
		if now := p.state.Forest.Trees[name]; now != nil {
			t.paths, t.settings, t.resources = newPathTree(now), now.Settings, now.Registered()
		}
		p.changed[name] = t
	}
	return t
}

func (p pastState) undo(u quota.TreeUndo) {
	t := p.tree(u.Name)
	if u.Added {
		t.paths = nil
		return
	}
	if u.Removed {
		t.paths = &pathTree{}
	}
	if t.settings = u.TreeSettings; len(u.Resources) > 0 {
		t.resources = u.Resources
	}
	for _, path := range u.AddedPaths {
		t.paths.removePath(path)
	}
	for _, m := range u.Moves {
		t.paths.movePath(m)
	}
	for i := range u.Nodes {
		t.paths.ensurePath(u.Nodes[i].Path).spec = &u.Nodes[i]
	}
}

func (p pastState) treeChanges() []treeChange {
	var list []treeChange
	for _, name := range slices.Sorted(maps.Keys(p.changed)) {
		t, now := p.changed[name], p.state.Forest.Trees[name]
		switch {
		case t.paths != nil:
			list = append(list, treeChange{spec: t.spec(name), newPaths: t.paths, elseByPath: true, field: "revision"})
		case now != nil:
			list = append(list, treeChange{spec: quota.TreeSpec{Name: name}, remove: true, field: "revision"})
		}
	}
	return list
}

func (t *pastTree) spec(name string) quota.TreeSpec {
	return quota.TreeSpec{Name: name, TreeSettings: t.settings, Resources: t.resources, Nodes: t.paths.listNodes()}
}

// Trees are all trees at the end of the walk, by name.
func (p pastState) Trees() []quota.TreeSpec {
	list := make([]quota.TreeSpec, 0, len(p.state.Forest.Trees))
	for name, t := range p.changed { // sorted below
		if t.paths != nil {
			list = append(list, t.spec(name))
		}
	}
	for name, t := range p.state.Forest.Trees {
		if p.changed[name] == nil {
			list = append(list, PresentSpecOf(t))
		}
	}
	slices.SortFunc(list, func(a, b quota.TreeSpec) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// PolicySpecs are the definitions of policies at the end of the walk, by name.
func (p pastState) PolicySpecs() []quota.PolicySpec {
	specs := restoredPolicies(p.state.Forest.Policies.Specs, p.policies)
	return slices.SortedFunc(maps.Values(specs), func(a, b quota.PolicySpec) int { return cmp.Compare(a.Name, b.Name) })
}

// appendRevision adds a change to the history. It copies what it keeps, because a list that was grown for all changes
// of a large tree would stay in memory for the sake of its first few.
func appendRevision(h *state.History, m quota.ChangeMeta, p Plan) {
	h.Revision++
	h.AddRevision(&quota.Revision{
		Number: h.Revision, Actor: m.Actor, Reason: m.Reason, RequestID: m.RequestID, Fingerprint: m.Fingerprint,
		Wall: h.Now.Wall, Changes: slices.Clone(p.Changes[:min(len(p.Changes), quota.MaxRevisionChanges)]),
		ChangeCount: len(p.Changes),
		Undo:        state.CloneExactly(p.undo), Undoable: true, UndoPolicies: p.policies.undo,
		UndoAccess: p.undoAccess, Subtree: p.At, Request: p.Request,
	})
}

// PlanRollBack plans the change to the configuration after a revision as one change.
func (p Planner) PlanRollBack(c quota.RollBack) Plan {
	past, err := WalkBack(p.State, c.Revision)
	if err != nil {
		return RefusedPlan(err)
	}
	policies, err := undoPolicies(&p.State.Forest, past.policies)
	if err != nil {
		return RefusedPlan(err)
	}
	section, err := p.planAccess(past.Section)
	if err != nil {
		return RefusedPlan(err)
	}
	return p.planChanges(past.treeChanges(), policies, section)
}
