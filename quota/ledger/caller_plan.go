package ledger

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// permitPlan refuses a change of the configuration that its caller may not make: each difference asks for what the
// table of package access says, and who gives a role must have all of it there.
func (l guard) permitPlan(p plan) *quota.Error {
	if l.caller.rights == nil {
		return nil
	}
	for _, c := range p.changes {
		if err := l.forbid(l.permitDifference(c, p.locate)); err != nil {
			return err
		}
	}
	if err := l.forbid(l.permitSection(p.access)); err != nil {
		return err
	}
	for _, given := range p.given {
		if err := l.forbid(l.permitGiven(given)); err != nil {
			return err
		}
	}
	return nil
}

// permitDifference asks for what one difference needs.
func (l guard) permitDifference(c quota.Change, locate func(quota.Change) changedNode) *quota.Error {
	if c.Tree == "" {
		if strings.HasPrefix(c.Field, "policy ") { // rules for every tree that names it
			return l.needCluster(access.PolicySet)
		}
		return l.needCluster(access.AccessManage)
	}
	if c.Field == "admins" && c.After != "" {
		return quota.Errorf(quota.Invalid, "", "admins of %s count for nothing in a guarded cluster; write bindings instead",
			quota.Place(c.Tree, c.Node))
	}
	at := locate(c)
	field := l.fieldOf(c)
	change := access.FieldChange{
		Field: field, IsRoot: at.isRoot, IsNewTree: at.isNewTree, ByParentOnly: at.parentDecides(field),
	}
	if err := l.askFor(c, change, at.path(l)); err != nil || change.Field != access.PathField || at.isNewTree {
		return err
	}
	return l.askFor(c, change, at.newPath(l)) // a move is asked for at both places
}

// askFor refuses a difference if the caller lacks any of what it asks for.
func (l guard) askFor(c quota.Change, change access.FieldChange, path access.Path) *quota.Error {
	ask, denied := change.FirstDenied(l.caller.rights, l.now.Wall, path)
	if !denied {
		return nil
	}
	if access.VerbsAt(l.caller.rights, l.now.Wall, path)&access.NodeVerbs == 0 {
		return lackingVerb(l.hiddenPlace(c.Tree, c.Node, ""), ask.Verb, l.askedNode(ask.Place, c))
	}
	place := quota.Place(c.Tree, c.Node)
	return lackingVerb(quota.Errorf(quota.Forbidden, "", "%s may not change %q of %s: it lacks the right %s at %s",
		l.caller.name(), c.Field, place, ask.Verb, describePlace(ask.Place, c)), ask.Verb, l.askedNode(ask.Place, c))
}

// askedNode is the node at which a right is missing, or the nearest above it that exists; nil for the cluster.
func (l guard) askedNode(p access.Place, c quota.Change) *node {
	switch p {
	case access.AtNode, access.AtNodeAlone:
		return l.forest.nearestNode(c.Tree, c.Node)
	case access.AtParent, access.AtAncestor:
		return l.forest.nearestNode(c.Tree, quota.ParentPath(c.Node))
	case access.AtRoot:
		return l.forest.nearestNode(c.Tree, "")
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
func (n changedNode) path(l guard) access.Path {
	switch {
	case n.isNewTree:
		return l.pathOf(nil)
	case n.was != nil:
		return l.pathOf(n.was)
	}
	return n.newPath(l)
}

// newPath are the tables from where the node will be.
func (n changedNode) newPath(l guard) access.Path {
	return append(access.Path{nil}, l.pathOf(n.above)...)
}

// fieldOf is the row of the table of rules for a difference; 0, which nobody may change, if there is none.
func (l guard) fieldOf(c quota.Change) access.Field {
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
		if role, known := l.book.Roles().Find(rest); known && !role.IsConfiguring() {
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
func (l guard) permitGiven(g givenRights) *quota.Error {
	for _, b := range g.added {
		role, _ := g.roles.Find(b.Role)
		missing := access.Covers(l.caller.rights, l.now.Wall, g.at.path(l), access.NodeScope, role, b)
		if !missing.IsEmpty() {
			return quota.Errorf(quota.Forbidden, "", "%s may not give the role %s at %s, because it lacks %s there",
				l.caller.name(), b.Role, quota.Place(g.tree, g.path), missing.String())
		}
	}
	return nil
}

// permitSection refuses an access section that gives more than the caller has itself.
func (l guard) permitSection(c *access.Change) *quota.Error {
	if c == nil || c.IsEmpty() {
		return nil
	}
	missing, err := l.book.CoversSection(l.caller.rights, l.now.Wall, c.After.Section())
	switch {
	case err != nil:
		return accessRefusal(err)
	case !missing.IsEmpty():
		return quota.Errorf(quota.Forbidden, "access", "%s may not give roles on the cluster, because it lacks %s there",
			l.caller.name(), missing.String())
	}
	return nil
}

// scheduleLimits makes a scheduled limit, and begins its first window if that is due.
func (pl planner) scheduleLimits(c quota.ScheduleLimits, m mode) Outcome {
	s := &scheduledLimit{ScheduledLimit: quota.ScheduledLimit{
		ID: c.ID, Tree: c.Tree, Node: c.Node, Adjustments: c.Adjustments, Windows: pl.calendar.beginNow(c.Windows),
		Rule: c.Rule, RuleBegins: c.RuleBegins, RuleEnds: c.RuleEnds, Actor: c.Actor, Reason: c.Reason,
	}}
	if s.Rule != "" {
		s.Windows = pl.calendar.remaining(s.Windows)
	}
	if err := pl.calendar.checkNew(s); err != nil {
		return Outcome{Refused: err}
	}
	t := pl.forest.trees[c.Tree]
	if t == nil {
		return Outcome{Refused: quota.Errorf(quota.NotFound, "place.tree", "there is no tree %q", quota.Clip(c.Tree))}
	}
	var err *quota.Error
	if s.node, err = t.configured(c.Node, "place.node"); err != nil {
		return Outcome{Refused: err}
	}
	if out, known := pl.calendar.repeatOf(s, c.Windows); known {
		return out
	}
	if err := pl.calendar.checkPlace(s); err != nil {
		return Outcome{Refused: err}
	}
	changes := s.changes(quota.Added)
	if err := pl.permitSchedule(s.node, c.Actor, c.Reason, changes); err != nil {
		return Outcome{Refused: err}
	}
	if err := pl.calendar.checkAttached(s, s.Windows, s.attach, s.detach); err != nil {
		return Outcome{Refused: err}
	}
	if m == carryOut {
		pl.calendar.add(s)
		pl.calendar.note(quota.EventLimitScheduled, s, c.Actor, nil)
		pl.calendar.beginIfDue(s)
		pl.journal.changes = changes
	}
	info := s.info()
	return Outcome{ScheduledLimit: &info}
}

// permitSchedule asks for what a change of the node's limits needs.
func (pl planner) permitSchedule(n *node, actor, reason string, changes []quota.Change) *quota.Error {
	out, _ := pl.checkChange(quota.ChangeMeta{Actor: actor, Reason: reason}, plan{
		changes: changes,
		locate: func(quota.Change) changedNode {
			return changedNode{was: n, above: n.parent, isRoot: n.parent == nil}
		},
	})
	return out.Refused
}

// cancelScheduled ends a scheduled limit with all its windows.
func (pl planner) cancelScheduled(c quota.CancelScheduledLimit, m mode) Outcome {
	s := pl.calendar.find(c.ID)
	if s == nil {
		return Outcome{Refused: noScheduledLimit(c.ID)}
	}
	changes := s.changes(quota.Removed)
	if err := pl.permitSchedule(s.node, c.Actor, c.Reason, changes); err != nil {
		return Outcome{Refused: err}
	}
	place := slices.Clone(s.node.scheduled)
	if err := pl.calendar.checkAttached(s, s.Windows, s.detach, func() { s.node.scheduled = place }); err != nil {
		return Outcome{Refused: err}
	}
	info := s.info()
	if m == carryOut {
		pl.calendar.remove(s, c.Actor)
		pl.journal.changes = changes
	}
	return Outcome{ScheduledLimit: &info}
}

// commitPlan carries out a plan and remembers it in the history.
// A dry run answers the present revision, because the change would make the next one, and the effects of the change.
func (pl planner) commitPlan(meta quota.ChangeMeta, p plan, m mode) Outcome {
	if out, settled := pl.checkChange(meta, p); settled {
		return out
	}
	answer := quota.Configuration{Changes: p.changes, Over: p.over}
	switch {
	case m == dryRun:
		answer.Effects = p.effects()
	case len(p.changes) > 0:
		pl.install(meta, p)
	}
	answer.Revision = pl.history.revision
	return Outcome{Configuration: &answer}
}

// checkChange answers a repeated request with its first result, and refuses a wrong expected revision, an invalid plan,
// and an actor without permission.
func (pl planner) checkChange(m quota.ChangeMeta, p plan) (Outcome, bool) {
	if out, known := pl.history.checkMeta(m, p.at); known {
		return out, true
	}
	if p.refused != nil {
		return Outcome{Refused: p.refused}, true
	}
	if err := pl.checkPermission(m, p); err != nil {
		return Outcome{Refused: err}, true
	}
	if err := pl.guard().permitPlan(p); err != nil {
		return Outcome{Refused: err}, true
	}
	return Outcome{}, false
}

// planApply checks an ApplyTrees, of whole trees or of one subtree.
func (pl planner) planApply(c quota.ApplyTrees) plan {
	if c.At == nil {
		return pl.planTrees(c)
	}
	p := pl.planSubtree(c)
	p.at = c.At
	return p
}

// planSubtree checks the change of one subtree. It is a change of the whole tree in which the rest is as it is now, so
// every rule, right and difference is that of a change of the tree.
func (pl planner) planSubtree(c quota.ApplyTrees) plan {
	if err := checkSubtreeCommand(c); err != nil {
		return refusedPlan(err)
	}
	t := pl.forest.trees[c.At.Tree]
	if t == nil {
		return refusedPlan(quota.Errorf(quota.NotFound, "at.tree", "there is no tree %q", quota.Clip(c.At.Tree)))
	}
	if c.At.Node == "" {
		return pl.planTrees(quota.ApplyTrees{Trees: c.Trees})
	}
	top, err := t.configured(c.At.Node, "at.node")
	if err != nil {
		return refusedPlan(err)
	}
	part := subtreeText{tree: t, at: *c.At, spec: c.Trees[0]}
	if err := part.check(); err != nil {
		return refusedPlan(err)
	}
	if err := pl.guard().permitTop(top, part); err != nil {
		return refusedPlan(err)
	}
	whole, shift := part.wholeTree()
	p := pl.planTrees(quota.ApplyTrees{Trees: []quota.TreeSpec{whole}})
	if p.refused != nil {
		p.refused = shiftNodeField(p.refused, shift)
	}
	return p
}

// permitTop asks for what the differences of the subtree's own node need before the policy of its parent is asked about
// them, because a refusal by that policy would tell of limits which the caller may not see.
func (l guard) permitTop(top *node, part subtreeText) *quota.Error {
	if l.caller.rights == nil {
		return nil
	}
	i := slices.IndexFunc(part.spec.Nodes, func(n quota.NodeSpec) bool { return n.Path == top.path })
	d := differ{tree: top.treeName}
	d.spec(top.path, top.spec, &part.spec.Nodes[i], true)
	for _, c := range d.changes {
		err := l.forbid(l.permitDifference(c, func(quota.Change) changedNode {
			return changedNode{was: top, above: top.parent}
		}))
		if err != nil {
			return err
		}
	}
	return nil
}
