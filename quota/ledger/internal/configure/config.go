package configure

import (
	"fmt"
	"maps"
	"slices"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// Plan is a checked change of configuration that has not been carried out. A plan with a refusal does nothing.
type Plan struct {
	Refused *quota.Error
	Changes []quota.Change
	// At is the subtree that the change is limited to; nil if it is not.
	At *quota.Subtree
	// undo reverts the changes, one entry for each changed tree.
	undo []quota.TreeUndo
	// policies are the definitions of policies; redefined are the trees, by name, in which a node gets other rules.
	policies  policyChange
	redefined []string
	// Access is the change of the access section; nil if it stays. given are the bindings that the change adds.
	Access *access.Change
	Given  []GivenRights
	// undoAccess is the section before the change; nil if it stays.
	undoAccess *access.Section
	// Request is the request for limits that the plan carries out; nil if it carries out none.
	Request *quota.ApprovedRequest
	// Locate finds where one of the changes stands.
	Locate func(quota.Change) ChangedNode
	// commit carries it out; it cannot fail.
	commit func()
	// Over lists what the change would leave over a limit, at most MaxOver.
	Over []quota.Overuse
	// Effects computes how the change would affect later requests. It must be called before commit.
	Effects func() *quota.Effects
}

func RefusedPlan(err *quota.Error) Plan { return Plan{Refused: err} }

// Planner computes changes of the configuration and installs them.
type Planner struct{ State *state.State }

// Install carries out a plan that was checked.
func (p Planner) Install(meta quota.ChangeMeta, checked Plan) {
	checked.commit()
	p.State.Forest.Configured = p.State.Index
	updateHolds(p.State)
	p.State.Allocations.Shared.Forget()
	appendRevision(&p.State.History, meta, checked)
	p.noteConfigured()
	p.State.Journal.Changes = checked.Changes
}

// noteConfigured records the newest revision for watchers, who have no use for what takes it back.
func (p Planner) noteConfigured() {
	revision := *p.State.History.Revisions[len(p.State.History.Revisions)-1]
	revision.Undo, revision.UndoPolicies, revision.UndoAccess, revision.Undoable = nil, nil, nil, false
	p.State.Journal.Facts = append(p.State.Journal.Facts, state.Fact{Kind: state.FactConfigured, Revision: &revision})
}

// CheckMeta answers a repeated request with its first result, and refuses a wrong expectation about the configuration,
// or about the one subtree that the change is limited to.
func CheckMeta(h *state.History, m quota.ChangeMeta, at *quota.Subtree) (state.Outcome, bool) {
	switch {
	case len(m.Actor) > quota.MaxActor:
		return state.Outcome{Refused: quota.Errorf(quota.Invalid, "actor", "the actor has %d bytes; at most %d are allowed",
			len(m.Actor), quota.MaxActor)}, true
	case len(m.Reason) > quota.MaxReason:
		return state.Outcome{Refused: quota.Errorf(quota.Invalid, "reason", "the reason has %d bytes; at most %d are allowed",
			len(m.Reason), quota.MaxReason)}, true
	case !quota.IsVisible(m.RequestID, quota.MaxID):
		return state.Outcome{Refused: quota.Errorf(quota.Invalid, "request_id",
			"a request id is at most %d visible ASCII characters", quota.MaxID)}, true
	}
	if first := h.FindRequest(m); first != nil {
		if first.Fingerprint != m.Fingerprint {
			return state.Outcome{
				Refused: quota.Errorf(quota.IDTaken, "request_id",
					"request %q made revision %d with other content; use another request id", m.RequestID,
					first.Number),
			}, true
		}
		return state.Outcome{
			Configuration: &quota.Configuration{Revision: first.Number, Changes: first.Changes},
			Repeated:      true,
		}, true
	}
	if m.ExpectedRevision != nil {
		if err := checkExpected(h, *m.ExpectedRevision, at); err != nil {
			return state.Outcome{Refused: err}, true
		}
	}
	return state.Outcome{}, false
}

type treeChange struct {
	spec  quota.TreeSpec
	field string
	// remove removes the tree; only the name of the spec is used.
	remove bool
	// newPaths, if not nil, has the paths of the nodes after their moves; otherwise each node stays at its path.
	newPaths *pathTree
	// elseByPath lets nodes that are not in newPaths continue the nodes at their paths.
	elseByPath bool
	// redefined is true for a tree that the command does not name: it stays as it is, under other rules.
	redefined bool
}

// PlanTrees checks an ApplyTrees against the ledger. Only the end result counts, so that the quota of one child can be
// given to another in one change.
func (p Planner) PlanTrees(c quota.ApplyTrees) Plan {
	least := 1
	if c.Prune || len(c.Policies)+len(c.RemovePolicies) > 0 || c.Access != nil {
		least = 0
	}
	if n := len(c.Trees); n < least || n > p.State.Bounds.TreesPerChange {
		return RefusedPlan(
			quota.Errorf(quota.Invalid, "trees", "the change names %d trees; %d to %d are allowed", n, least,
				p.State.Bounds.TreesPerChange))
	}
	var treeChanges []treeChange
	named := map[string]bool{}
	for i, spec := range c.Trees {
		w := treeChange{spec: spec, field: fmt.Sprintf("trees[%d]", i)}
		if named[spec.Name] {
			return RefusedPlan(quota.Errorf(quota.Invalid, w.field+".name", "tree %s is listed twice", spec.Name))
		}
		named[spec.Name] = true
		if c.KeepAccess {
			if err := keepAccess(&p.State.Forest, &w); err != nil {
				return RefusedPlan(err)
			}
		}
		if err := followMoves(&p.State.Forest, &w); err != nil {
			return RefusedPlan(err)
		}
		treeChanges = append(treeChanges, w)
	}
	if c.Prune {
		for _, name := range slices.Sorted(maps.Keys(p.State.Forest.Trees)) {
			if !named[name] {
				treeChanges = append(treeChanges, treeChange{spec: quota.TreeSpec{Name: name}, remove: true, field: "trees"})
			}
		}
	}
	policies, err := planPolicies(&p.State.Forest, c)
	if err != nil {
		return RefusedPlan(err)
	}
	section, err := p.planAccess(c.Access)
	if err != nil {
		return RefusedPlan(err)
	}
	return p.planChanges(treeChanges, policies, section)
}

// planChanges checks a change of several trees, of the policies and of the access section, all or nothing.
func (p Planner) planChanges(treeChanges []treeChange, policies policyChange, section accessPlan) Plan {
	checked := Plan{
		policies: policies, Changes: slices.Concat(section.changes, policies.changes), Access: section.change,
		undoAccess: section.undo(),
	}
	named := map[string]bool{}
	for _, w := range treeChanges {
		named[w.spec.Name] = true
	}
	if err := checkRemovedPolicies(&p.State.Forest, policies, named); err != nil {
		return RefusedPlan(err)
	}
	if err := p.checkOthers(section, named); err != nil {
		return RefusedPlan(err)
	}
	var steps []*treeTransition
	after := newSizes{
		trees: len(p.State.Forest.Trees), nodes: p.State.Forest.Nodes, bindings: countBindings(&p.State.Forest),
		growth: policies.next.Bytes() - p.State.Forest.Policies.Bytes(),
	}
	for _, w := range append(treeChanges, redefinedTrees(&p.State.Forest, policies, named)...) {
		s, err := p.planTree(w, policies.next, section)
		if err != nil {
			checked.Refused = checked.Refused.Join(err)
		}
		switch {
		case checked.Refused == nil:
		case err != nil && err.Kind != checked.Refused.Kind:
			return RefusedPlan(checked.Refused)
		default:
			continue
		}
		d := s.diff()
		s.changes = d.Changes
		if len(d.Changes) > 0 {
			checked.undo = append(checked.undo, d.undo)
		}
		checked.Changes = append(checked.Changes, d.Changes...)
		if s.redefined {
			checked.redefined = append(checked.redefined, s.treeName())
		}
		checked.Over = append(checked.Over, s.overuse(quota.MaxOver-len(checked.Over))...)
		steps = append(steps, s)
		checked.Given = append(checked.Given, s.givenBy(section.roles)...)
		after.add(s)
	}
	if checked.Refused != nil {
		return RefusedPlan(checked.Refused)
	}
	if err := p.checkSizes(after, steps, section); err != nil {
		return RefusedPlan(err)
	}
	checked.Locate = func(c quota.Change) ChangedNode {
		i := slices.IndexFunc(steps, func(s *treeTransition) bool { return s.treeName() == c.Tree })
		return steps[i].locate(c)
	}
	checked.commit = func() {
		if section.change != nil {
			p.UseBook(*section.change)
		}
		usePolicies(&p.State.Forest, policies.next)
		for _, s := range steps {
			followTransition(&p.State.Calendar, s)
			p.installTrees(s)
		}
		p.requeueTrees(steps)
	}
	checked.Effects = func() *quota.Effects { return p.effects(steps, policies.next) }
	return checked
}

// planTree checks the change of one tree, and computes all that its installation needs.
//
// The wanted text becomes a draft: a tree that is not part of the state, checked as if it were new. A transition then
// finds for each node of the draft the one that it continues, carries over what is held there, and knows what differs.
// Refusals come in the order in which a caller can mend them: what the text itself says, what is held and would have no
// place, bounds, and last what the policies say about each family of nodes that differs, now and at every instant at
// which a scheduled limit begins or ends. Nothing has changed if there is a refusal.
func (p Planner) planTree(w treeChange, policies *state.PolicySet, section accessPlan) (*treeTransition, *quota.Error) {
	old := p.State.Forest.Trees[w.spec.Name]
	if w.remove {
		if old.Claims > 0 {
			return nil, quota.Errorf(quota.InUse, w.field,
				"tree %s cannot be removed while claims are held in it (now: %d); release them first",
				old.Name, old.Claims)
		}
		return newTransition(nil, old), nil
	}
	draft, conflicts, err := p.draftChange(w, policies)
	if err != nil {
		return nil, err
	}
	if err := section.checkBindings(draft, w.field, w.spec.Nodes); err != nil {
		return nil, err
	}
	s := newTransition(draft, old, w.predecessors(old)...)
	if len(conflicts) > 0 {
		return nil, quota.NewBreachError(append(conflicts, s.breaches()...))
	}
	if err := s.checkInUse(); err != nil {
		return nil, err
	}
	s.carryAccounts()
	if err := checkKept(&p.State.Forest, draft, w.field); err != nil {
		return nil, err
	}
	stuck := p.rehomeClaims(s)
	breaches := append(s.breaches(), stuck...)
	if len(breaches) == 0 && len(p.State.Calendar.All) > 0 {
		breaches = s.laterBreaches()
	}
	if len(breaches) > 0 {
		return nil, quota.NewBreachError(breaches)
	}
	return s, nil
}

// draftChange drafts the wanted state of a tree. Conflicts with its policies refuse a tree that the command names. In
// one that it does not name they are breaches of the policy that it redefines, all of which are listed.
func (p Planner) draftChange(w treeChange, policies *state.PolicySet) (*state.Tree, []quota.Breach, *quota.Error) {
	if !w.redefined {
		draft, err := DraftTree(&p.State.Forest, w.spec, w.field, policies)
		return draft, nil, err
	}
	draft, err := draftShape(&p.State.Forest, w.spec, w.field, policies)
	if err != nil {
		return nil, nil, err
	}
	var breaches []quota.Breach
	for _, c := range policyConflicts(draft, w.field, w.spec.Nodes) {
		breaches = append(breaches, c.breach())
	}
	return draft, breaches, nil
}

func checkKept(f *state.Forest, draft *state.Tree, field string) *quota.Error {
	if n := SizeOfTree(draft); n > f.Bounds.NodesPerTree {
		return quota.Errorf(quota.Full, field,
			"with the nodes that were made on demand tree %s would have %d; at most %d are allowed", draft.Name, n,
			f.Bounds.NodesPerTree)
	}
	if n := SizeOfTree(draft) * len(draft.Resources); n > f.Bounds.Cells {
		return quota.Errorf(quota.Full, field,
			"with the nodes that were made on demand tree %s would have %d nodes times resources; at "+
				"most %d are allowed", draft.Name, n, f.Bounds.Cells)
	}
	var err *quota.Error
	draft.Root.Walk(func(n *state.Node) bool {
		if n.Dynamic && n.Path != n.From.Path {
			err = quota.CheckPath(n.Path, field, f.Bounds.Depth)
		}
		return err == nil
	})
	return err
}

func (w treeChange) predecessors(old *state.Tree) []predecessor {
	byPath := predecessor(func(path string) *state.Node { return treeByPath(old, path) })
	if w.newPaths == nil {
		return []predecessor{byPath}
	}
	moved := func(path string) *state.Node {
		if at := w.newPaths.findPath(path); at != nil {
			return at.from
		}
		return nil
	}
	if w.elseByPath {
		return []predecessor{moved, byPath}
	}
	return []predecessor{moved}
}

// checkInUse refuses to remove what held allocations use, and names all of it.
func (s *treeTransition) checkInUse() *quota.Error {
	if s.old == nil {
		return nil
	}
	var err *quota.Error
	for _, r := range s.old.Resources {
		kept := s.draft.Resource(r.Name)
		switch {
		case r.Holds == 0:
		case kept == nil:
			err = err.Join(
				quota.Errorf(quota.InUse, "",
					"resource %s of tree %s cannot be removed while claims hold it (now: %d); release them first",
					r.Name, s.old.Name, r.Holds))
		case kept.Unit != r.Unit:
			err = err.Join(
				quota.Errorf(quota.InUse, "",
					"the unit of resource %s of tree %s cannot change from %s to %s while claims hold it (now: %d); "+
						"release them first", r.Name, s.old.Name, r.Unit, kept.Unit, r.Holds))
		}
	}
	s.old.Root.Walk(func(n *state.Node) bool {
		if held := n.Claims + n.Homes; held > 0 && s.next[n] == nil && !err.IsFull() {
			err = err.Join(
				quota.Errorf(quota.InUse, "",
					"%s cannot be removed while claims are held there (now: %d); release them first, or move the node",
					n.Place(), held))
		}
		return true
	})
	return err
}

// PlanDelete checks the removal of a tree.
func (p Planner) PlanDelete(c quota.DeleteTree) Plan {
	if p.State.Forest.Trees[c.Tree] == nil {
		return RefusedPlan(quota.Errorf(quota.NotFound, "name", "there is no tree %q", quota.Clip(c.Tree)))
	}
	return p.planChanges([]treeChange{{spec: quota.TreeSpec{Name: c.Tree}, field: "name", remove: true}},
		keepPolicies(&p.State.Forest), p.keepAccess())
}
