package ledger

import (
	"fmt"
	"maps"
	"slices"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

// plan is a checked change of configuration that has not been carried out. A plan with a refusal does nothing.
type plan struct {
	refused *quota.Error
	changes []quota.Change
	// at is the subtree that the change is limited to; nil if it is not.
	at *quota.Subtree
	// undo reverts the changes, one entry for each changed tree.
	undo []quota.TreeUndo
	// policies are the definitions of policies; redefined are the trees, by name, in which a node gets other rules.
	policies  policyChange
	redefined []string
	// access is the change of the access section; nil if it stays. given are the bindings that the change adds.
	access *access.Change
	given  []givenRights
	// undoAccess is the section before the change; nil if it stays.
	undoAccess *access.Section
	// request is the request for limits that the plan carries out; nil if it carries out none.
	request *quota.ApprovedRequest
	// locate finds where one of the changes stands.
	locate func(quota.Change) changedNode
	// commit carries it out; it cannot fail.
	commit func()
	// over lists what the change would leave over a limit, at most MaxOver.
	over []quota.Overuse
	// effects computes how the change would affect later requests. It must be called before commit.
	effects func() *quota.Effects
}

func refusedPlan(err *quota.Error) plan { return plan{refused: err} }

// planner computes changes of the configuration and installs them.
type planner struct{ ledger *Ledger }

// install carries out a plan that was checked.
func (p planner) install(meta quota.ChangeMeta, checked plan) {
	checked.commit()
	p.ledger.forest.configured = p.ledger.index
	p.ledger.updateHolds()
	p.ledger.allocations.shared.forget()
	p.ledger.history.appendRevision(meta, checked)
	p.noteConfigured()
	p.ledger.journal.changes = checked.changes
}

// noteConfigured records the newest revision for watchers, who have no use for what takes it back.
func (p planner) noteConfigured() {
	told := *p.ledger.history.revisions[len(p.ledger.history.revisions)-1]
	told.Undo, told.UndoPolicies, told.UndoAccess, told.Undoable = nil, nil, nil, false
	p.ledger.journal.facts = append(p.ledger.journal.facts, Fact{Kind: FactConfigured, Revision: &told})
}

// checkMeta answers a repeated request with its first result, and refuses a wrong expectation about the configuration,
// or about the one subtree that the change is limited to.
func (h *history) checkMeta(m quota.ChangeMeta, at *quota.Subtree) (Outcome, bool) {
	switch {
	case len(m.Actor) > quota.MaxActor:
		return Outcome{Refused: quota.Errorf(quota.Invalid, "actor", "the actor has %d bytes; at most %d are allowed",
			len(m.Actor), quota.MaxActor)}, true
	case len(m.Reason) > quota.MaxReason:
		return Outcome{Refused: quota.Errorf(quota.Invalid, "reason", "the reason has %d bytes; at most %d are allowed",
			len(m.Reason), quota.MaxReason)}, true
	case !quota.IsVisible(m.RequestID, quota.MaxID):
		return Outcome{Refused: quota.Errorf(quota.Invalid, "request_id",
			"a request id is at most %d visible ASCII characters", quota.MaxID)}, true
	}
	if first := h.findRequest(m); first != nil {
		if first.Fingerprint != m.Fingerprint {
			return Outcome{
				Refused: quota.Errorf(quota.IDTaken, "request_id",
					"request %q made revision %d with other content; use another request id", m.RequestID,
					first.Number),
			}, true
		}
		return Outcome{
			Configuration: &quota.Configuration{Revision: first.Number, Changes: first.Changes},
			Repeated:      true,
		}, true
	}
	if m.ExpectedRevision != nil {
		if err := h.checkExpected(*m.ExpectedRevision, at); err != nil {
			return Outcome{Refused: err}, true
		}
	}
	return Outcome{}, false
}

// treeChange is the wanted state of one tree.
type treeChange struct {
	spec  quota.TreeSpec
	field string
	// remove removes the tree; only the name of the spec is used.
	remove bool
	// sketch, if not nil, has the new paths of the nodes; otherwise each node stays at its path.
	sketch *pathTree
	// reborn nodes, which are not in the sketch, continue the nodes at their paths.
	reborn bool
	// redefined is true for a tree that the command does not name: it stays as it is, under other rules.
	redefined bool
}

// planTrees checks an ApplyTrees against the ledger. Only the end result counts, so that the quota of one child can be
// given to another in one change.
func (p planner) planTrees(c quota.ApplyTrees) plan {
	least := 1
	if c.Prune || len(c.Policies)+len(c.RemovePolicies) > 0 || c.Access != nil {
		least = 0
	}
	if n := len(c.Trees); n < least || n > p.ledger.bounds.TreesPerChange {
		return refusedPlan(
			quota.Errorf(quota.Invalid, "trees", "the change names %d trees; %d to %d are allowed", n, least,
				p.ledger.bounds.TreesPerChange))
	}
	var wishes []treeChange
	named := map[string]bool{}
	for i, spec := range c.Trees {
		w := treeChange{spec: spec, field: fmt.Sprintf("trees[%d]", i)}
		if named[spec.Name] {
			return refusedPlan(quota.Errorf(quota.Invalid, w.field+".name", "tree %s is listed twice", spec.Name))
		}
		named[spec.Name] = true
		if c.KeepAccess {
			if err := p.ledger.forest.keepAccess(&w); err != nil {
				return refusedPlan(err)
			}
		}
		if err := p.ledger.forest.followMoves(&w); err != nil {
			return refusedPlan(err)
		}
		wishes = append(wishes, w)
	}
	if c.Prune {
		for _, name := range slices.Sorted(maps.Keys(p.ledger.forest.trees)) {
			if !named[name] {
				wishes = append(wishes, treeChange{spec: quota.TreeSpec{Name: name}, remove: true, field: "trees"})
			}
		}
	}
	policies, err := p.ledger.forest.planPolicies(c)
	if err != nil {
		return refusedPlan(err)
	}
	section, err := p.planAccess(c.Access)
	if err != nil {
		return refusedPlan(err)
	}
	return p.planChanges(wishes, policies, section)
}

// planChanges checks a change of several trees, of the policies and of the access section, all or nothing.
func (p planner) planChanges(wishes []treeChange, policies policyChange, section accessPlan) plan {
	checked := plan{
		policies: policies, changes: slices.Concat(section.changes, policies.changes), access: section.change,
		undoAccess: section.undo(),
	}
	named := map[string]bool{}
	for _, w := range wishes {
		named[w.spec.Name] = true
	}
	if err := p.ledger.forest.checkRemovedPolicies(policies, named); err != nil {
		return refusedPlan(err)
	}
	if err := p.checkOthers(section, named); err != nil {
		return refusedPlan(err)
	}
	var steps []*treeTransition
	after := newSizes{
		trees: len(p.ledger.forest.trees), nodes: p.ledger.forest.nodes, bindings: p.ledger.forest.countBindings(),
		growth: policies.next.bytes() - p.ledger.forest.policies.bytes(),
	}
	for _, w := range append(wishes, p.ledger.forest.redefinedTrees(policies, named)...) {
		s, err := p.planTree(w, policies.next, section)
		if err != nil {
			checked.refused = checked.refused.Join(err)
		}
		switch {
		case checked.refused == nil:
		case err != nil && err.Kind != checked.refused.Kind:
			return refusedPlan(checked.refused)
		default:
			continue
		}
		d := s.diff()
		s.changes = d.changes
		if len(d.changes) > 0 {
			checked.undo = append(checked.undo, d.undo)
		}
		checked.changes = append(checked.changes, d.changes...)
		if s.redefined {
			checked.redefined = append(checked.redefined, s.treeName())
		}
		checked.over = append(checked.over, s.overuse(quota.MaxOver-len(checked.over))...)
		steps = append(steps, s)
		checked.given = append(checked.given, s.givenBy(section.roles)...)
		after.add(s)
	}
	if checked.refused != nil {
		return refusedPlan(checked.refused)
	}
	if err := p.checkSizes(after, steps, section); err != nil {
		return refusedPlan(err)
	}
	checked.locate = func(c quota.Change) changedNode {
		i := slices.IndexFunc(steps, func(s *treeTransition) bool { return s.treeName() == c.Tree })
		return steps[i].locate(c)
	}
	checked.commit = func() {
		if section.change != nil {
			p.useBook(*section.change)
		}
		p.ledger.forest.usePolicies(policies.next)
		for _, s := range steps {
			p.ledger.calendar.follow(s)
			p.installTrees(s)
		}
		p.reserveIDs()
		p.requeueTrees(steps)
	}
	checked.effects = func() *quota.Effects { return p.effects(steps, policies.next) }
	return checked
}

// planTree checks one tree of a change.
func (p planner) planTree(w treeChange, policies *policySet, section accessPlan) (*treeTransition, *quota.Error) {
	old := p.ledger.forest.trees[w.spec.Name]
	if w.remove {
		if old.claims > 0 {
			return nil, quota.Errorf(quota.InUse, w.field,
				"tree %s cannot be removed while claims are held in it (now: %d); release them first",
				old.name, old.claims)
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
	if err := p.ledger.forest.checkKept(draft, w.field); err != nil {
		return nil, err
	}
	stuck := p.rehomeClaims(s)
	breaches := append(s.breaches(), stuck...)
	if len(breaches) == 0 && len(p.ledger.calendar.all) > 0 {
		breaches = s.laterBreaches()
	}
	if len(breaches) > 0 {
		return nil, quota.NewBreachError(breaches)
	}
	return s, nil
}

// draftChange drafts the wanted state of a tree. Conflicts with its policies refuse a tree that the command names. In
// one that it does not name they are breaches of the policy that it redefines, all of which are listed.
func (p planner) draftChange(w treeChange, policies *policySet) (*tree, []quota.Breach, *quota.Error) {
	if !w.redefined {
		draft, err := p.ledger.forest.draftTree(w.spec, w.field, policies)
		return draft, nil, err
	}
	draft, err := p.ledger.forest.draftShape(w.spec, w.field, policies)
	if err != nil {
		return nil, nil, err
	}
	var breaches []quota.Breach
	for _, c := range draft.policyConflicts(w.field, w.spec.Nodes) {
		breaches = append(breaches, c.breach())
	}
	return draft, breaches, nil
}

// checkKept checks the bounds of a draft again, including the dynamic nodes that it keeps.
func (f *forest) checkKept(draft *tree, field string) *quota.Error {
	if n := draft.size(); n > f.bounds.NodesPerTree {
		return quota.Errorf(quota.Full, field,
			"with the nodes that were made on demand tree %s would have %d; at most %d are allowed", draft.name, n,
			f.bounds.NodesPerTree)
	}
	if n := draft.size() * len(draft.resources); n > f.bounds.Cells {
		return quota.Errorf(quota.Full, field,
			"with the nodes that were made on demand tree %s would have %d nodes times resources; at "+
				"most %d are allowed", draft.name, n, f.bounds.Cells)
	}
	var err *quota.Error
	draft.root.walk(func(n *node) bool {
		if n.dynamic && n.path != n.from.path {
			err = quota.CheckPath(n.path, field, f.bounds.Depth)
		}
		return err == nil
	})
	return err
}

func (w treeChange) predecessors(old *tree) []predecessor {
	byPath := predecessor(old.byItsPath)
	if w.sketch == nil {
		return []predecessor{byPath}
	}
	drawn := func(path string) *node {
		if at := w.sketch.findPath(path); at != nil {
			return at.from
		}
		return nil
	}
	if w.reborn {
		return []predecessor{drawn, byPath}
	}
	return []predecessor{drawn}
}

// checkInUse refuses to remove what held allocations use, and names all of it.
func (s *treeTransition) checkInUse() *quota.Error {
	if s.old == nil {
		return nil
	}
	var err *quota.Error
	for _, r := range s.old.resources {
		is := s.draft.resource(r.Name)
		switch {
		case r.holds == 0:
		case is == nil:
			err = err.Join(
				quota.Errorf(quota.InUse, "",
					"resource %s of tree %s cannot be removed while claims hold it (now: %d); release them first",
					r.Name, s.old.name, r.holds))
		case is.Unit != r.Unit:
			err = err.Join(
				quota.Errorf(quota.InUse, "",
					"the unit of resource %s of tree %s cannot change from %s to %s while claims hold it (now: %d); "+
						"release them first", r.Name, s.old.name, r.Unit, is.Unit, r.holds))
		}
	}
	s.old.root.walk(func(n *node) bool {
		if held := n.claims + n.homes; held > 0 && s.next[n] == nil && !err.IsFull() {
			err = err.Join(
				quota.Errorf(quota.InUse, "",
					"%s cannot be removed while claims are held there (now: %d); release them first, or move the node",
					n.place(), held))
		}
		return true
	})
	return err
}

// planDelete checks the removal of a tree.
func (p planner) planDelete(c quota.DeleteTree) plan {
	if p.ledger.forest.trees[c.Tree] == nil {
		return refusedPlan(quota.Errorf(quota.NotFound, "name", "there is no tree %q", quota.Clip(c.Tree)))
	}
	return p.planChanges([]treeChange{{spec: quota.TreeSpec{Name: c.Tree}, field: "name", remove: true}},
		p.ledger.forest.keepPolicies(), p.keepAccess())
}

// planMaintenance checks a change of a tree's maintenance. When maintenance ends, the answer lists everything over a
// limit.
func (p planner) planMaintenance(c quota.SetMaintenance) plan {
	t := p.ledger.forest.trees[c.Tree]
	if t == nil {
		return refusedPlan(quota.Errorf(quota.NotFound, "tree", "there is no tree %q", quota.Clip(c.Tree)))
	}
	d := differ{tree: t.name, undo: t.undo()}
	d.add("", "maintenance", switchText(t.settings.Maintenance), switchText(c.On))
	checked := plan{
		changes: d.changes,
		undo:    []quota.TreeUndo{d.undo},
		locate:  func(quota.Change) changedNode { return changedNode{was: t.root, isRoot: true} },
		commit: func() {
			p.ledger.forest.markChanged(t)
			t.settings.Maintenance = c.On
			p.requeueWaiters(map[string]bool{t.name: true})
		},
		effects: func() *quota.Effects { return &quota.Effects{} },
	}
	if !c.On {
		checked.over = t.over(quota.MaxOver)
	}
	return checked
}
