package permit

import (
	"strings"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/configure"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// permitPlan refuses a change of the configuration that its caller may not make: each difference asks for what the
// table of package access says, and who gives a role must have all of it there.
func (g Guard) permitPlan(p configure.Plan) *quota.Error {
	if g.Caller.Rights == nil {
		return nil
	}
	for _, c := range p.Changes {
		if err := g.Forbid(g.permitDifference(c, p.Locate)); err != nil {
			return err
		}
	}
	if err := g.Forbid(g.permitSection(p.Access)); err != nil {
		return err
	}
	for _, given := range p.Given {
		if err := g.Forbid(g.permitGiven(given)); err != nil {
			return err
		}
	}
	return nil
}

func (g Guard) permitDifference(c quota.Change, locate func(quota.Change) configure.ChangedNode) *quota.Error {
	if c.Tree == "" {
		if strings.HasPrefix(c.Field, "policy ") { // rules for every tree that names it
			return g.NeedCluster(access.PolicySet)
		}
		return g.NeedCluster(access.AccessManage)
	}
	at := locate(c)
	change := access.FieldChange{Field: g.fieldOf(c), IsRoot: at.IsRoot, IsNewTree: at.IsNewTree}
	if err := g.askFor(c, change, pathOfChanged(at, g)); err != nil || change.Field != access.PathField || at.IsNewTree {
		return err
	}
	return g.askFor(c, change, newPathOfChanged(at, g)) // a move is asked for at both places
}

// askFor refuses a difference if the caller lacks any of what it asks for.
func (g Guard) askFor(c quota.Change, change access.FieldChange, path access.Path) *quota.Error {
	ask, denied := change.FirstDenied(g.Caller.Rights, g.Now.Wall, path)
	if !denied {
		return nil
	}
	if access.VerbsAt(g.Caller.Rights, g.Now.Wall, path)&access.NodeVerbs == 0 {
		return state.LackingVerb(g.HiddenPlace(c.Tree, c.Node, ""), ask.Verb, g.askedNode(ask.Place, c))
	}
	place := quota.Place(c.Tree, c.Node)
	return state.LackingVerb(quota.Errorf(quota.Forbidden, "", "%s may not change %q of %s: it lacks the right %s at %s",
		g.Caller.Name(), c.Field, place, ask.Verb, describePlace(ask.Place, c)), ask.Verb, g.askedNode(ask.Place, c))
}

// askedNode is the node at which a right is missing, or the nearest above it that exists; nil for the cluster.
func (g Guard) askedNode(p access.Place, c quota.Change) *state.Node {
	switch p {
	case access.AtNode:
		return g.forest.NearestNode(c.Tree, c.Node)
	case access.AtAncestor:
		return g.forest.NearestNode(c.Tree, quota.ParentPath(c.Node))
	case access.AtRoot:
		return g.forest.NearestNode(c.Tree, "")
	case access.AtCluster:
	}
	return nil
}

func describePlace(p access.Place, c quota.Change) string {
	switch p {
	case access.AtNode:
		return quota.Place(c.Tree, c.Node)
	case access.AtAncestor:
		return quota.Place(c.Tree, quota.ParentPath(c.Node)) + " or above"
	case access.AtRoot:
		return "the root of tree " + c.Tree
	case access.AtCluster:
	}
	return "the cluster"
}

// pathOfChanged are the tables from the node up, where it is now. A new node has none of its own.
func pathOfChanged(n configure.ChangedNode, g Guard) access.Path {
	switch {
	case n.IsNewTree:
		return g.PathOf(nil)
	case n.Was != nil:
		return g.PathOf(n.Was)
	}
	return newPathOfChanged(n, g)
}

// newPathOfChanged are the tables from where the node will be.
func newPathOfChanged(n configure.ChangedNode, g Guard) access.Path {
	return append(access.Path{nil}, g.PathOf(n.Above)...)
}

// fieldOf is the row of the table of rules for a difference; 0, which no caller may change, without one.
func (g Guard) fieldOf(c quota.Change) access.Field {
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
		if role, known := g.Env.Book.Roles().Find(rest); known && !role.IsConfiguring() {
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
	"auto_approve": access.AutoApproveField, "thresholds": access.ThresholdsField,
	"label":    access.LabelsField,
	"resource": access.ResourcesField, "unit": access.ResourcesField, "items": access.ItemsField,
	"lease": access.LeasesField, "overtake": access.OvertakeField, "forest": access.ForestField,
	"require_reason": access.RequireReasonField, "require_principal": access.RequirePrincipalField,
	"hold":      access.HoldField,
	"approvals": access.ApprovalsField, "tenants_see": access.TenantsSeeField,
}

func (g Guard) permitGiven(given configure.GivenRights) *quota.Error {
	for _, b := range given.Added {
		role, _ := given.Roles.Find(b.Role)
		missing := access.Covers(g.Caller.Rights, g.Now.Wall, pathOfChanged(given.At, g), access.NodeScope, role, b)
		if !missing.IsEmpty() {
			return quota.Errorf(quota.Forbidden, "", "%s may not give the role %s at %s, because it lacks %s there",
				g.Caller.Name(), b.Role, quota.Place(given.Tree, given.Path), missing.String())
		}
	}
	return nil
}

func (g Guard) permitSection(c *access.Change) *quota.Error {
	if c == nil || c.IsEmpty() {
		return nil
	}
	missing, err := g.Env.Book.CoversSection(g.Caller.Rights, g.Now.Wall, c.After.Section())
	switch {
	case err != nil:
		return configure.AccessRefusal(err)
	case !missing.IsEmpty():
		return quota.Errorf(quota.Forbidden, "access", "%s may not give roles on the cluster, because it lacks %s there",
			g.Caller.Name(), missing.String())
	}
	return nil
}
