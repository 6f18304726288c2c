package ledger

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// permitPlan refuses a change of the configuration that its caller may not make: each difference asks for what the
// table of package access says, and who gives a role must have all of it there.
func (g guard) permitPlan(p plan) *quota.Error {
	if g.caller.rights == nil {
		return nil
	}
	for _, c := range p.changes {
		if err := g.forbid(g.permitDifference(c, p.locate)); err != nil {
			return err
		}
	}
	if err := g.forbid(g.permitSection(p.access)); err != nil {
		return err
	}
	for _, given := range p.given {
		if err := g.forbid(g.permitGiven(given)); err != nil {
			return err
		}
	}
	return nil
}

// permitDifference asks for what one difference needs.
func (g guard) permitDifference(c quota.Change, locate func(quota.Change) changedNode) *quota.Error {
	if c.Tree == "" {
		if strings.HasPrefix(c.Field, "policy ") { // rules for every tree that names it
			return g.needCluster(access.PolicySet)
		}
		return g.needCluster(access.AccessManage)
	}
	if c.Field == "admins" && c.After != "" {
		return quota.Errorf(quota.Invalid, "", "admins of %s count for nothing in a guarded cluster; write bindings instead",
			quota.Place(c.Tree, c.Node))
	}
	at := locate(c)
	field := g.fieldOf(c)
	change := access.FieldChange{
		Field: field, IsRoot: at.isRoot, IsNewTree: at.isNewTree, ByParentOnly: at.parentDecides(field),
	}
	if err := g.askFor(c, change, at.path(g)); err != nil || change.Field != access.PathField || at.isNewTree {
		return err
	}
	return g.askFor(c, change, at.newPath(g)) // a move is asked for at both places
}

// askFor refuses a difference if the caller lacks any of what it asks for.
func (g guard) askFor(c quota.Change, change access.FieldChange, path access.Path) *quota.Error {
	ask, denied := change.FirstDenied(g.caller.rights, g.now.Wall, path)
	if !denied {
		return nil
	}
	if access.VerbsAt(g.caller.rights, g.now.Wall, path)&access.NodeVerbs == 0 {
		return lackingVerb(g.hiddenPlace(c.Tree, c.Node, ""), ask.Verb, g.askedNode(ask.Place, c))
	}
	place := quota.Place(c.Tree, c.Node)
	return lackingVerb(quota.Errorf(quota.Forbidden, "", "%s may not change %q of %s: it lacks the right %s at %s",
		g.caller.name(), c.Field, place, ask.Verb, describePlace(ask.Place, c)), ask.Verb, g.askedNode(ask.Place, c))
}

// askedNode is the node at which a right is missing, or the nearest above it that exists; nil for the cluster.
func (g guard) askedNode(p access.Place, c quota.Change) *node {
	switch p {
	case access.AtNode, access.AtNodeAlone:
		return g.forest.nearestNode(c.Tree, c.Node)
	case access.AtParent, access.AtAncestor:
		return g.forest.nearestNode(c.Tree, quota.ParentPath(c.Node))
	case access.AtRoot:
		return g.forest.nearestNode(c.Tree, "")
	case access.AtCluster:
	}
	return nil
}

// describePlace says in words where a right is missing.
func describePlace(p access.Place, c quota.Change) string {
	switch p {
	case access.AtNode:
		return quota.Place(c.Tree, c.Node)
	case access.AtNodeAlone:
		return quota.Place(c.Tree, c.Node) + " itself"
	case access.AtParent:
		return "its parent " + quota.Place(c.Tree, quota.ParentPath(c.Node)) + " itself"
	case access.AtAncestor:
		return quota.Place(c.Tree, quota.ParentPath(c.Node)) + " or above"
	case access.AtRoot:
		return "the root of tree " + c.Tree
	case access.AtCluster:
	}
	return "the cluster"
}

// parentDecides is true if the policy lets the parent alone set the limits that a field is about: those of the node, or
// for the rule auto-approve those of its children.
func (n changedNode) parentDecides(f access.Field) bool {
	parent := n.above
	switch {
	case n.was != nil && f == access.AutoApproveField:
		parent = n.was
	case n.was != nil:
		parent = n.was.parent
	}
	return parent != nil && parent.policy.LimitSetters == policy.SetByParent
}

// path are the tables from the node up, where it is now. A new node has none of its own.
func (n changedNode) path(g guard) access.Path {
	switch {
	case n.isNewTree:
		return g.pathOf(nil)
	case n.was != nil:
		return g.pathOf(n.was)
	}
	return n.newPath(g)
}

// newPath are the tables from where the node will be.
func (n changedNode) newPath(g guard) access.Path {
	return append(access.Path{nil}, g.pathOf(n.above)...)
}

// fieldOf is the row of the table of rules for a difference; 0, which nobody may change, if there is none.
func (g guard) fieldOf(c quota.Change) access.Field {
	word, rest, _ := strings.Cut(c.Field, " ")
	switch word {
	case "tree":
		if c.Kind == quota.Removed {
			return access.TreeRemoved
		}
		return access.TreeAdded
	case "node":
		if c.Kind == quota.Removed {
			return access.NodeRemoved
		}
		return access.NodeAdded
	case "binding":
		if role, known := g.env.book.Roles().Find(rest); known && !role.IsConfiguring() {
			return access.BindingsField
		}
		return access.ConfiguringField
	}
	return changeFields[word]
}

// changeFields are the fields of differences by the first word of their text.
var changeFields = map[string]access.Field{
	"limit": access.LimitField, "hard": access.HardField, "borrow": access.BorrowField, "lend": access.LendField,
	"applications": access.ApplicationsField, "path": access.PathField, "policy": access.PolicyField,
	"default": access.DefaultField, "principals": access.PrincipalsField, "queueing": access.QueueingField,
	"auto_approve": access.AutoApproveField, "warn_at": access.WarnAtField,
	"label": access.LabelsField, "admins": access.ConfiguringField,
	"resource": access.ResourcesField, "unit": access.ResourcesField, "items": access.ItemsField,
	"lease": access.LeasesField, "overtake": access.OvertakeField, "forest": access.ForestField,
	"require_reason": access.RequireReasonField, "require_principal": access.RequirePrincipalField,
	"maintenance": access.MaintenanceField, "hold": access.HoldField,
	"approvals": access.ApprovalsField, "tenants_see": access.TenantsSeeField,
}

// permitGiven refuses bindings that give more than the caller has itself.
func (g guard) permitGiven(given givenRights) *quota.Error {
	for _, b := range given.added {
		role, _ := given.roles.Find(b.Role)
		missing := access.Covers(g.caller.rights, g.now.Wall, given.at.path(g), access.NodeScope, role, b)
		if !missing.IsEmpty() {
			return quota.Errorf(quota.Forbidden, "", "%s may not give the role %s at %s, because it lacks %s there",
				g.caller.name(), b.Role, quota.Place(given.tree, given.path), missing.String())
		}
	}
	return nil
}

// permitSection refuses an access section that gives more than the caller has itself.
func (g guard) permitSection(c *access.Change) *quota.Error {
	if c == nil || c.IsEmpty() {
		return nil
	}
	missing, err := g.env.book.CoversSection(g.caller.rights, g.now.Wall, c.After.Section())
	switch {
	case err != nil:
		return accessRefusal(err)
	case !missing.IsEmpty():
		return quota.Errorf(quota.Forbidden, "access", "%s may not give roles on the cluster, because it lacks %s there",
			g.caller.name(), missing.String())
	}
	return nil
}

// scheduleLimits makes a scheduled limit, and begins its first window if that is due.
func (p planner) scheduleLimits(c quota.ScheduleLimits, m mode) Outcome {
	s := &scheduledLimit{ScheduledLimit: quota.ScheduledLimit{
		ID: c.ID, Tree: c.Tree, Node: c.Node, Adjustments: c.Adjustments, Windows: p.ledger.calendar.beginNow(c.Windows),
		Rule: c.Rule, RuleBegins: c.RuleBegins, RuleEnds: c.RuleEnds, Actor: c.Actor, Reason: c.Reason,
	}}
	if s.Rule != "" {
		s.Windows = p.ledger.calendar.remaining(s.Windows)
	}
	if err := p.ledger.calendar.checkNew(s); err != nil {
		return Outcome{Refused: err}
	}
	t := p.ledger.forest.trees[c.Tree]
	if t == nil {
		return Outcome{Refused: quota.Errorf(quota.NotFound, "place.tree", "there is no tree %q", quota.Clip(c.Tree))}
	}
	var err *quota.Error
	if s.node, err = t.configured(c.Node, "place.node"); err != nil {
		return Outcome{Refused: err}
	}
	if out, known := p.ledger.calendar.repeatOf(s, c.Windows); known {
		return out
	}
	if err := p.ledger.calendar.checkPlace(s); err != nil {
		return Outcome{Refused: err}
	}
	changes := s.changes(quota.Added)
	if err := p.permitSchedule(s.node, c.Actor, c.Reason, changes); err != nil {
		return Outcome{Refused: err}
	}
	if err := p.ledger.calendar.checkAttached(s, s.Windows, s.attach, s.detach); err != nil {
		return Outcome{Refused: err}
	}
	if m == carryOut {
		p.ledger.calendar.add(s)
		p.ledger.calendar.note(quota.EventLimitScheduled, s, c.Actor, nil)
		p.ledger.calendar.beginIfDue(s)
		p.ledger.journal.changes = changes
	}
	info := s.info()
	return Outcome{ScheduledLimit: &info}
}

// permitSchedule asks for what a change of the node's limits needs.
func (p planner) permitSchedule(n *node, actor, reason string, changes []quota.Change) *quota.Error {
	out, _ := p.checkChange(quota.ChangeMeta{Actor: actor, Reason: reason}, plan{
		changes: changes,
		locate: func(quota.Change) changedNode {
			return changedNode{was: n, above: n.parent, isRoot: n.parent == nil}
		},
	})
	return out.Refused
}

// cancelScheduled ends a scheduled limit with all its windows.
func (p planner) cancelScheduled(c quota.CancelScheduledLimit, m mode) Outcome {
	s := p.ledger.calendar.find(c.ID)
	if s == nil {
		return Outcome{Refused: noScheduledLimit(c.ID)}
	}
	changes := s.changes(quota.Removed)
	if err := p.permitSchedule(s.node, c.Actor, c.Reason, changes); err != nil {
		return Outcome{Refused: err}
	}
	place := slices.Clone(s.node.scheduled)
	if err := p.ledger.calendar.checkAttached(s, s.Windows, s.detach, func() { s.node.scheduled = place }); err != nil {
		return Outcome{Refused: err}
	}
	info := s.info()
	if m == carryOut {
		p.ledger.calendar.remove(s, c.Actor)
		p.ledger.journal.changes = changes
	}
	return Outcome{ScheduledLimit: &info}
}

// commitPlan carries out a plan and remembers it in the history.
// A dry run answers the present revision, because the change would make the next one, and the effects of the change.
func (p planner) commitPlan(meta quota.ChangeMeta, checked plan, m mode) Outcome {
	if out, settled := p.checkChange(meta, checked); settled {
		return out
	}
	answer := quota.Configuration{Changes: checked.changes, Over: checked.over}
	switch {
	case m == dryRun:
		answer.Effects = checked.effects()
	case len(checked.changes) > 0:
		p.install(meta, checked)
	}
	answer.Revision = p.ledger.history.revision
	return Outcome{Configuration: &answer}
}

// checkChange answers a repeated request with its first result, and refuses a wrong expected revision, an invalid plan,
// and an actor without permission.
func (p planner) checkChange(m quota.ChangeMeta, checked plan) (Outcome, bool) {
	if out, known := p.ledger.history.checkMeta(m, checked.at); known {
		return out, true
	}
	if checked.refused != nil {
		return Outcome{Refused: checked.refused}, true
	}
	if err := p.checkPermission(m, checked); err != nil {
		return Outcome{Refused: err}, true
	}
	if err := p.ledger.guard().permitPlan(checked); err != nil {
		return Outcome{Refused: err}, true
	}
	return Outcome{}, false
}

// planApply checks an ApplyTrees, of whole trees or of one subtree.
func (p planner) planApply(c quota.ApplyTrees) plan {
	if c.At == nil {
		return p.planTrees(c)
	}
	checked := p.planSubtree(c)
	checked.at = c.At
	return checked
}

// planSubtree checks the change of one subtree. It is a change of the whole tree in which the rest is as it is now, so
// every rule, right and difference is that of a change of the tree.
func (p planner) planSubtree(c quota.ApplyTrees) plan {
	if err := checkSubtreeCommand(c); err != nil {
		return refusedPlan(err)
	}
	t := p.ledger.forest.trees[c.At.Tree]
	if t == nil {
		return refusedPlan(quota.Errorf(quota.NotFound, "at.tree", "there is no tree %q", quota.Clip(c.At.Tree)))
	}
	if c.At.Node == "" {
		return p.planTrees(quota.ApplyTrees{Trees: c.Trees})
	}
	top, err := t.configured(c.At.Node, "at.node")
	if err != nil {
		return refusedPlan(err)
	}
	part := subtreeText{tree: t, at: *c.At, spec: c.Trees[0]}
	if err := part.check(); err != nil {
		return refusedPlan(err)
	}
	if err := p.ledger.guard().permitTop(top, part); err != nil {
		return refusedPlan(err)
	}
	whole, shift := part.wholeTree()
	checked := p.planTrees(quota.ApplyTrees{Trees: []quota.TreeSpec{whole}})
	if checked.refused != nil {
		checked.refused = shiftNodeField(checked.refused, shift)
	}
	return checked
}

// permitTop asks for what the differences of the subtree's own node need before the policy of its parent is asked about
// them, because a refusal by that policy would tell of limits which the caller may not see.
func (g guard) permitTop(top *node, part subtreeText) *quota.Error {
	if g.caller.rights == nil {
		return nil
	}
	i := slices.IndexFunc(part.spec.Nodes, func(n quota.NodeSpec) bool { return n.Path == top.path })
	d := differ{tree: top.treeName}
	d.spec(top.path, top.spec, &part.spec.Nodes[i], true)
	for _, c := range d.changes {
		err := g.forbid(g.permitDifference(c, func(quota.Change) changedNode {
			return changedNode{was: top, above: top.parent}
		}))
		if err != nil {
			return err
		}
	}
	return nil
}
