package configure

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/admit"
	"github.com/quorate/quorate/quota/ledger/internal/state"
	"github.com/quorate/quorate/quota/policy"
)

// DraftTree checks the shape of a specification and builds a tree from it that is not part of the ledger: its nodes
// have configuration but no identity, and no usage until they succeed others.
func DraftTree(
	f *state.Forest, spec quota.TreeSpec, field string, policies *state.PolicySet,
) (*state.Tree, *quota.Error) {
	t, err := draftShape(f, spec, field, policies)
	if err != nil {
		return nil, err
	}
	if conflicts := policyConflicts(t, field, spec.Nodes); len(conflicts) > 0 {
		return nil, conflicts[0].refusal()
	}
	return t, nil
}

// draftShape is DraftTree without asking whether the policies allow what is said of their nodes.
func draftShape(
	f *state.Forest, spec quota.TreeSpec, field string, policies *state.PolicySet,
) (*state.Tree, *quota.Error) {
	if !quota.IsName(spec.Name) {
		return nil, quota.Errorf(quota.Invalid, field+".name",
			"a tree's name is 1 to %d letters, digits and %s, beginning with a letter, digit or _; got %q",
			quota.MaxName, quota.NodeNameExtra, quota.Clip(spec.Name))
	}
	if name := spec.Forest; name != "" && !quota.IsName(name) {
		return nil, quota.Errorf(quota.Invalid, field+".forest",
			"a forest's name is 1 to %d letters, digits and %s, beginning with a letter, digit or _; got %q",
			quota.MaxName, quota.NodeNameExtra, quota.Clip(name))
	}
	if err := checkTreeSettings(spec.TreeSettings, spec.Name, field); err != nil {
		return nil, err
	}
	t := &state.Tree{
		Name: spec.Name, Settings: spec.TreeSettings, ByPath: make(map[string]*state.Node, len(spec.Nodes)),
		Policies: policies, Env: f.Environment,
	}
	if err := draftResources(f, t, spec.Resources, field); err != nil {
		return nil, err
	}
	if n := len(spec.Nodes); n < 1 || n > f.Bounds.NodesPerTree {
		return nil, quota.Errorf(quota.Invalid, field+".nodes",
			"tree %s has %d nodes with its root; 1 to %d are allowed", spec.Name, n, f.Bounds.NodesPerTree)
	}
	if n, cells := len(spec.Nodes), f.Bounds.Cells; n*len(spec.Resources) > cells {
		return nil, quota.Errorf(quota.Invalid, field+".nodes",
			"tree %s has %d nodes and %d resources, for each of which every node keeps account; at most %d of such "+
				"accounts are allowed: divide the tree",
			spec.Name, n, len(spec.Resources), cells)
	}
	for i, n := range spec.Nodes {
		if err := draftNode(f, t, n, i); err != nil {
			err.Field = NodeField(field, i) + err.Field
			return nil, err
		}
	}
	return t, connectNodes(t, field, spec.Nodes)
}

// NodeField names a node as the API does, where the root's configuration stands in the tree itself.
func NodeField(field string, i int) string {
	if i == 0 {
		return field
	}
	return fmt.Sprintf("%s.nodes[%d]", field, i-1)
}

func draftResources(f *state.Forest, t *state.Tree, resources []quota.Resource, field string) *quota.Error {
	if n := len(resources); n < 1 || n > f.Bounds.Resources {
		return quota.Errorf(quota.Invalid, field+".resources", "tree %s registers %d resources; 1 to %d are allowed",
			t.Name, n, f.Bounds.Resources)
	}
	for i, r := range resources {
		at := fmt.Sprintf("%s.resources[%d]", field, i)
		switch {
		case !quota.IsResourceName(r.Name):
			return quota.Errorf(quota.Invalid, at+".name",
				"a resource's name is 1 to %d letters, digits and %s, beginning with a letter, digit or _; got %q",
				quota.MaxName, quota.ResourceNameExtra, quota.Clip(r.Name))
		case r.Unit < quota.Count || r.Unit > quota.Items:
			return quota.Errorf(quota.Invalid, at+".unit",
				"unit %d of resource %s is unknown; it is count, milli, bytes or items", r.Unit, r.Name)
		case i > 0 && resources[i-1].Name >= r.Name:
			return quota.Errorf(quota.Invalid, at+".name", "resource %s is not in order, or registered twice", r.Name)
		}
		if err := checkItemSpec(f, r, admit.MaxLeaseTTL(t.Settings.Leases), at+".items"); err != nil {
			return err
		}
		t.Resources = append(t.Resources, &state.Resource{Resource: r, Index: i})
	}
	return nil
}

// connectNodes ties the nodes together and settles policies and ceilings, from the root down.
func connectNodes(t *state.Tree, field string, specs []quota.NodeSpec) *quota.Error {
	t.Root = t.ByPath[""]
	for i, spec := range specs[1:] {
		n := t.ByPath[spec.Path]
		if n.Parent = t.ByPath[quota.ParentPath(spec.Path)]; n.Parent == nil {
			return quota.Errorf(quota.Invalid, NodeField(field, i+1)+".path",
				"the parent %q of node %q is not listed in tree %s; list every level", quota.ParentPath(spec.Path),
				spec.Path, t.Name)
		}
		n.Parent.Children = append(n.Parent.Children, n)
	}
	t.Root.Walk(func(n *state.Node) bool {
		slices.SortFunc(n.Children, state.ByPath)
		admit.DeriveSettings(n)
		t.Soft = t.Soft || n.Borrows == policy.BorrowSoft
		return true
	})
	return nil
}

// draftNode puts the node into the draft. Fields of refusals are relative to the node.
func draftNode(f *state.Forest, t *state.Tree, spec quota.NodeSpec, i int) *quota.Error {
	if (i == 0) != (spec.Path == "") {
		return quota.Errorf(quota.Invalid, ".path",
			"the first node of tree %s is its root with an empty path, and no other is; got %q", t.Name,
			quota.Clip(spec.Path))
	}
	if err := quota.CheckPath(spec.Path, ".path", f.Bounds.Depth); err != nil {
		return err
	}
	if t.ByPath[spec.Path] != nil {
		return quota.Errorf(quota.Invalid, ".path", "tree %s lists node %q twice", t.Name, spec.Path)
	}
	if spec.Policy != "" && t.Policies.Find(spec.Policy) == nil {
		return quota.Errorf(quota.Invalid, ".policy", "there is no policy %q; known are %s", quota.Clip(spec.Policy),
			t.Policies.Names())
	}
	if err := admit.CheckLabels(f.Environment, spec.Labels, ".labels"); err != nil {
		return err
	}
	if err := checkQueueing(spec.Queueing, ".queueing"); err != nil {
		return err
	}
	if err := checkAutoApprove(spec.AutoApprove, ".auto_approve"); err != nil {
		return err
	}
	if err := state.CheckThresholds(&spec.Thresholds, ".thresholds"); err != nil {
		return err
	}
	n, err := draftLimits(t, &spec)
	if err != nil {
		return err
	}
	if n.Rules, err = draftPrincipals(f, t, &spec, ""); err != nil {
		return err
	}
	t.ByPath[spec.Path] = n
	return nil
}

// draftLimits needs a specification whose lists of limits are right.
func draftLimits(t *state.Tree, spec *quota.NodeSpec) (*state.Node, *quota.Error) {
	if err := checkLimits(t, spec.Limits, ".limits", "limit"); err != nil {
		return nil, err
	}
	if err := checkLimits(t, spec.Defaults, ".defaults", "default"); err != nil {
		return nil, err
	}
	if err := checkBorrowBounds(t, spec.Borrow, ".borrow", "bound of borrowing"); err != nil {
		return nil, err
	}
	if err := checkBorrowBounds(t, spec.Lend, ".lend", "bound of lending"); err != nil {
		return nil, err
	}
	n := admit.NewBlankNode(t, spec)
	for _, s := range spec.Limits {
		n.Limits[t.Resource(s.Resource).Index] = s.Limit
	}
	return n, nil
}

func checkLimits(t *state.Tree, set []quota.ResourceLimit, field, what string) *quota.Error {
	for i, s := range set {
		if i > 0 && set[i-1].Resource >= s.Resource {
			return quota.Errorf(quota.Invalid, field, "resource %s is not in order, or limited twice", s.Resource)
		}
		if _, err := checkLimit(t, s, field, what, quota.Invalid); err != nil {
			return err
		}
		if s.Limit.Kind == quota.Unset {
			return quota.Errorf(quota.Invalid, field, "the %s of %s is unset; leave it out", what, s.Resource)
		}
	}
	return nil
}

func checkBorrowBounds(t *state.Tree, set []quota.ResourceLimit, field, what string) *quota.Error {
	for _, s := range set {
		if s.Limit.Kind == quota.Advisory {
			return quota.Errorf(quota.Invalid, field, "the %s of %s is advisory, as only limits and defaults can be; "+
				"write an amount or unlimited", what, quota.Clip(s.Resource))
		}
	}
	return checkLimits(t, set, field, what)
}

// checkLimit uses unknown as the kind of refusal for a resource that the tree does not have.
func checkLimit(
	t *state.Tree, s quota.ResourceLimit, field, what string, unknown quota.Kind,
) (*state.Resource, *quota.Error) {
	r := t.Resource(s.Resource)
	switch {
	case r == nil:
		return nil, quota.Errorf(unknown, field, "tree %s registers no resource %q; it has %s", t.Name,
			quota.Clip(s.Resource), t.ResourceNames())
	case s.Limit.Kind > quota.Advisory:
		return nil, quota.Errorf(quota.Invalid, field,
			"the %s of %s is neither an amount nor advisory nor unlimited nor unset", what, s.Resource)
	case !s.Limit.HasAmount() && s.Limit.Amount != 0:
		return nil, quota.Errorf(quota.Invalid, field,
			"the %s of %s is %s and still names the amount %d; it is one or the other", what, s.Resource,
			s.Limit, s.Limit.Amount)
	case s.Limit.HasAmount() && (s.Limit.Amount < 0 || s.Limit.Amount > quota.MaxAmount):
		return nil, quota.Errorf(quota.Invalid, field, "the %s of %s is %d; 0 to %d are allowed", what, s.Resource,
			s.Limit.Amount, quota.MaxAmount)
	}
	return r, nil
}

// policyConflict is a node that says what its policy does not know, or whose policy may not stand where it does.
type policyConflict struct {
	node  *state.Node
	field string
	// text follows the place of the node, as a sentence without its subject.
	text string
}

func (c policyConflict) refusal() *quota.Error {
	return quota.Errorf(quota.Invalid, c.field, "%s %s", c.node.Place(), c.text)
}

func (c policyConflict) breach() quota.Breach {
	return quota.Breach{
		Tree: c.node.TreeName, Node: c.node.Path, Policy: c.node.Policy.Name, Text: "it " + c.text,
	}
}

// policyConflicts lists the conflicts of a draft, whose policies must be settled: nodes may be hard where borrowing is
// soft, and bound what they borrow and lend in a cohort. It also takes over those bounds.
func policyConflicts(t *state.Tree, field string, specs []quota.NodeSpec) []policyConflict {
	var list []policyConflict
	for i, spec := range specs {
		n, at := t.ByPath[spec.Path], NodeField(field, i)
		add := func(field, format string, args ...any) {
			list = append(list, policyConflict{n, at + field, fmt.Sprintf(format, args...)})
		}
		if spec.Hard && n.Borrows != policy.BorrowSoft {
			add(".hard", "is hard, but its policy %s has no soft nodes; leave it out, or use a policy with "+
				"soft borrowing", n.Policy.Name)
		}
		if len(spec.Borrow)+len(spec.Lend) > 0 && n.Borrows != policy.BorrowBounded {
			kind := ".borrow"
			if len(spec.Borrow) == 0 {
				kind = ".lend"
			}
			add(kind, "bounds what is borrowed or lent, but its policy %s does not; leave it out, or use a policy "+
				"with bounded borrowing, such as cohort", n.Policy.Name)
		}
		n.Borrow, n.Lend = admit.SpreadNode(n, spec.Borrow), admit.SpreadNode(n, spec.Lend)
		if top := cohortAbove(n); top != nil && n.Borrows == policy.BorrowSoft {
			add(".policy", "borrows softly, by policy %s, inside of the cohort of %s; what is pushed up there would "+
				"escape its bounds", n.Policy.Name, top.Place())
		}
	}
	return list
}

func cohortAbove(n *state.Node) *state.Node {
	for at := n.Parent; at != nil; at = at.Parent {
		if at.Borrows == policy.BorrowBounded {
			return at
		}
	}
	return nil
}

func checkTreeSettings(s quota.TreeSettings, tree, field string) *quota.Error {
	if err := checkLeaseSettings(s.Leases, tree, field+".leases"); err != nil {
		return err
	}
	if s.Overtake < 0 || s.Overtake > quota.MaxOvertake {
		return quota.Errorf(quota.Invalid, field+".overtake_ms",
			"the first in a queue of tree %s may be overtaken for 1 to %d ms, not %d; 0 means %d", tree,
			quota.MaxOvertake, s.Overtake, quota.DefaultOvertake)
	}
	if !s.TenantsSee.IsKnown() {
		return quota.Errorf(quota.Invalid, field+".tenants_see",
			"%d is unknown; tenants of tree %s see totals (0), names (1) or nothing (2) of the levels above them",
			s.TenantsSee, tree)
	}
	if s.Approvals < 0 || s.Approvals > quota.MaxApprovals {
		return quota.Errorf(quota.Invalid, field+".approvals",
			"requests for limits of tree %s may want 1 to %d approvals, not %d; 0 means 1", tree, quota.MaxApprovals,
			s.Approvals)
	}
	return nil
}

func checkLeaseSettings(s quota.LeaseSettings, tree, field string) *quota.Error {
	switch {
	case s.Max < 0 || s.Max > quota.MaxTTL:
		return quota.Errorf(quota.Invalid, field+".max_ttl_ms",
			"leases in tree %s may last 1 to %d ms without a renewal, not %d; 0 means %d", tree, quota.MaxTTL,
			s.Max, quota.MaxTTL)
	case s.Default < 0 || s.Default > admit.MaxLeaseTTL(s):
		return quota.Errorf(quota.Invalid, field+".default_ttl_ms",
			"the default of leases in tree %s is %d ms; 1 to %d are allowed, and 0 for none", tree,
			s.Default, admit.MaxLeaseTTL(s))
	case s.Grace < 0 || s.Grace > quota.MaxGrace:
		return quota.Errorf(quota.Invalid, field+".grace_ms",
			"the grace of leases in tree %s is %d ms; 1 to %d are allowed, and 0 for none", tree,
			s.Grace, quota.MaxGrace)
	}
	return nil
}

func checkQueueing(q quota.Queueing, field string) *quota.Error {
	if q > quota.BestEffort {
		return quota.Errorf(quota.Invalid, field,
			"queueing %d is unknown; it is strict or best-effort, or inherited", q)
	}
	return nil
}
