package ledger

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// draftTree checks the shape of a specification and builds a tree from it that is not part of the ledger: its nodes
// have configuration but no identity, and no usage until they succeed others.
func (f *forest) draftTree(spec quota.TreeSpec, field string, policies *policySet) (*tree, *quota.Error) {
	t, err := f.draftShape(spec, field, policies)
	if err != nil {
		return nil, err
	}
	if conflicts := t.policyConflicts(field, spec.Nodes); len(conflicts) > 0 {
		return nil, conflicts[0].refusal()
	}
	return t, nil
}

// draftShape is draftTree without asking whether the policies allow what is said of their nodes.
func (f *forest) draftShape(spec quota.TreeSpec, field string, policies *policySet) (*tree, *quota.Error) {
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
	t := &tree{
		name: spec.Name, settings: spec.TreeSettings, byPath: make(map[string]*node, len(spec.Nodes)),
		policies: policies, env: f.environment,
	}
	if err := f.draftResources(t, spec.Resources, field); err != nil {
		return nil, err
	}
	if n := len(spec.Nodes); n < 1 || n > f.bounds.NodesPerTree {
		return nil, quota.Errorf(quota.Invalid, field+".nodes",
			"tree %s has %d nodes with its root; 1 to %d are allowed", spec.Name, n, f.bounds.NodesPerTree)
	}
	if n, cells := len(spec.Nodes), f.bounds.Cells; n*len(spec.Resources) > cells {
		return nil, quota.Errorf(quota.Invalid, field+".nodes",
			"tree %s has %d nodes and %d resources, for each of which every node keeps account; at most %d of such "+
				"accounts are allowed: divide the tree",
			spec.Name, n, len(spec.Resources), cells)
	}
	for i, n := range spec.Nodes {
		if err := f.draftNode(t, n, i); err != nil {
			err.Field = nodeField(field, i) + err.Field
			return nil, err
		}
	}
	return t, t.connect(field, spec.Nodes)
}

// nodeField names a node as the API does, where the root's configuration stands in the tree itself.
func nodeField(field string, i int) string {
	if i == 0 {
		return field
	}
	return fmt.Sprintf("%s.nodes[%d]", field, i-1)
}

func (f *forest) draftResources(t *tree, resources []quota.Resource, field string) *quota.Error {
	if n := len(resources); n < 1 || n > f.bounds.Resources {
		return quota.Errorf(quota.Invalid, field+".resources", "tree %s registers %d resources; 1 to %d are allowed",
			t.name, n, f.bounds.Resources)
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
		if err := f.checkItemSpec(r, maxLeaseTTL(t.settings.Leases), at+".items"); err != nil {
			return err
		}
		t.resources = append(t.resources, &resource{Resource: r, index: i})
	}
	return nil
}

// connect ties the nodes together and settles policies and ceilings, from the root down.
func (t *tree) connect(field string, specs []quota.NodeSpec) *quota.Error {
	t.root = t.byPath[""]
	for i, spec := range specs[1:] {
		n := t.byPath[spec.Path]
		if n.parent = t.byPath[quota.ParentPath(spec.Path)]; n.parent == nil {
			return quota.Errorf(quota.Invalid, nodeField(field, i+1)+".path",
				"the parent %q of node %q is not listed in tree %s; list every level", quota.ParentPath(spec.Path),
				spec.Path, t.name)
		}
		n.parent.children = append(n.parent.children, n)
	}
	if t.governed && len(t.root.spec.Admins) == 0 {
		return quota.Errorf(quota.Invalid, field+".admins",
			"tree %s names admins, but none at its root, so that no actor could ever change the tree as a "+
				"whole; name one there", t.name)
	}
	t.root.walk(func(n *node) bool {
		slices.SortFunc(n.children, byPath)
		n.deriveSettings()
		t.soft = t.soft || n.borrows == policy.BorrowSoft
		return true
	})
	return nil
}

// draftNode checks one node of a specification and puts it into the draft. Fields of refusals are relative to the node.
func (f *forest) draftNode(t *tree, spec quota.NodeSpec, i int) *quota.Error {
	if (i == 0) != (spec.Path == "") {
		return quota.Errorf(quota.Invalid, ".path",
			"the first node of tree %s is its root with an empty path, and no other is; got %q", t.name,
			quota.Clip(spec.Path))
	}
	if err := quota.CheckPath(spec.Path, ".path", f.bounds.Depth); err != nil {
		return err
	}
	if t.byPath[spec.Path] != nil {
		return quota.Errorf(quota.Invalid, ".path", "tree %s lists node %q twice", t.name, spec.Path)
	}
	if spec.Policy != "" && t.policies.find(spec.Policy) == nil {
		return quota.Errorf(quota.Invalid, ".policy", "there is no policy %q; known are %s", quota.Clip(spec.Policy),
			t.policies.names())
	}
	if err := f.checkLabels(spec.Labels, ".labels"); err != nil {
		return err
	}
	if err := checkQueueing(spec.Queueing, ".queueing"); err != nil {
		return err
	}
	if err := checkAutoApprove(spec.AutoApprove, ".auto_approve"); err != nil {
		return err
	}
	if err := checkWarnAt(&spec.WarnAt, ".warn_at"); err != nil {
		return err
	}
	if err := f.checkAdmins(spec.Admins, ".admins"); err != nil {
		return err
	}
	n, err := t.draftLimits(&spec)
	if err != nil {
		return err
	}
	if n.rules, err = f.draftPrincipals(t, &spec, ""); err != nil {
		return err
	}
	t.byPath[spec.Path] = n
	t.governed = t.governed || len(spec.Admins) > 0
	return nil
}

// draftLimits makes the node of a specification, whose lists of limits must be right.
func (t *tree) draftLimits(spec *quota.NodeSpec) (*node, *quota.Error) {
	if err := t.checkLimits(spec.Limits, ".limits", "limit"); err != nil {
		return nil, err
	}
	if err := t.checkLimits(spec.Defaults, ".defaults", "default"); err != nil {
		return nil, err
	}
	if err := t.checkBorrowBounds(spec.Borrow, ".borrow", "bound of borrowing"); err != nil {
		return nil, err
	}
	if err := t.checkBorrowBounds(spec.Lend, ".lend", "bound of lending"); err != nil {
		return nil, err
	}
	n := t.blank(spec)
	for _, s := range spec.Limits {
		n.limits[t.resource(s.Resource).index] = s.Limit
	}
	return n, nil
}

// checkLimits refuses a list of limits that cannot be.
func (t *tree) checkLimits(set []quota.ResourceLimit, field, what string) *quota.Error {
	for i, s := range set {
		if i > 0 && set[i-1].Resource >= s.Resource {
			return quota.Errorf(quota.Invalid, field, "resource %s is not in order, or limited twice", s.Resource)
		}
		if _, err := t.checkLimit(s, field, what, quota.Invalid); err != nil {
			return err
		}
		if s.Limit.Kind == quota.Unset {
			return quota.Errorf(quota.Invalid, field, "the %s of %s is unset; leave it out", what, s.Resource)
		}
	}
	return nil
}

// checkBorrowBounds refuses bounds of borrowing and lending that cannot be.
func (t *tree) checkBorrowBounds(set []quota.ResourceLimit, field, what string) *quota.Error {
	for _, s := range set {
		if s.Limit.Kind == quota.Advisory {
			return quota.Errorf(quota.Invalid, field, "the %s of %s is advisory, as only limits and defaults can be; "+
				"write an amount or unlimited", what, quota.Clip(s.Resource))
		}
	}
	return t.checkLimits(set, field, what)
}

// checkLimit refuses a limit that cannot be; unknown is the kind of refusal for a resource that the tree does not have.
func (t *tree) checkLimit(s quota.ResourceLimit, field, what string, unknown quota.Kind) (*resource, *quota.Error) {
	r := t.resource(s.Resource)
	switch {
	case r == nil:
		return nil, quota.Errorf(unknown, field, "tree %s registers no resource %q; it has %s", t.name,
			quota.Clip(s.Resource), t.resourceNames())
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

func (f *forest) checkAdmins(admins []string, field string) *quota.Error {
	if len(admins) > f.bounds.Admins {
		return quota.Errorf(quota.Invalid, field, "there are %d admins; at most %d are allowed", len(admins),
			f.bounds.Admins)
	}
	for i, a := range admins {
		switch {
		case a == "" || !quota.IsVisible(a, quota.MaxActor):
			return quota.Errorf(quota.Invalid, fmt.Sprintf("%s[%d]", field, i),
				"an admin is an actor of 1 to %d visible ASCII characters without spaces, got %q",
				quota.MaxActor, quota.Clip(a))
		case i > 0 && admins[i-1] >= a:
			return quota.Errorf(quota.Invalid, fmt.Sprintf("%s[%d]", field, i),
				"admin %s is not in order, or there twice", a)
		}
	}
	return nil
}

// policyConflict is a node that says what its policy does not know, or whose policy may not stand where it does.
type policyConflict struct {
	node  *node
	field string
	// text follows the place of the node, as a sentence without its subject.
	text string
}

func (c policyConflict) refusal() *quota.Error {
	return quota.Errorf(quota.Invalid, c.field, "%s %s", c.node.place(), c.text)
}

func (c policyConflict) breach() quota.Breach {
	return quota.Breach{
		Tree: c.node.treeName, Node: c.node.path, Policy: c.node.policy.Name, Text: "it " + c.text,
	}
}

// policyConflicts lists the conflicts of a draft, whose policies must be settled: nodes may be hard where borrowing is
// soft, and bound what they borrow and lend in a cohort. It also takes over those bounds.
func (t *tree) policyConflicts(field string, specs []quota.NodeSpec) []policyConflict {
	var list []policyConflict
	for i, spec := range specs {
		n, at := t.byPath[spec.Path], nodeField(field, i)
		add := func(field, format string, args ...any) {
			list = append(list, policyConflict{n, at + field, fmt.Sprintf(format, args...)})
		}
		if spec.Hard && n.borrows != policy.BorrowSoft {
			add(".hard", "is hard, but its policy %s has no soft nodes; leave it out, or use a policy with "+
				"soft borrowing", n.policy.Name)
		}
		if len(spec.Borrow)+len(spec.Lend) > 0 && n.borrows != policy.BorrowBounded {
			kind := ".borrow"
			if len(spec.Borrow) == 0 {
				kind = ".lend"
			}
			add(kind, "bounds what is borrowed or lent, but its policy %s does not; leave it out, or use a policy "+
				"with bounded borrowing, such as cohort", n.policy.Name)
		}
		n.borrow, n.lend = n.spread(spec.Borrow), n.spread(spec.Lend)
		if top := n.cohortAbove(); top != nil && n.borrows == policy.BorrowSoft {
			add(".policy", "borrows softly, by policy %s, inside of the cohort of %s; what is pushed up there would "+
				"escape its bounds", n.policy.Name, top.place())
		}
	}
	return list
}

// cohortAbove is the nearest ancestor in a cohort, or nil.
func (n *node) cohortAbove() *node {
	for at := n.parent; at != nil; at = at.parent {
		if at.borrows == policy.BorrowBounded {
			return at
		}
	}
	return nil
}

// checkTreeSettings refuses settings of a tree that cannot be.
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
	case s.Default < 0 || s.Default > maxLeaseTTL(s):
		return quota.Errorf(quota.Invalid, field+".default_ttl_ms",
			"the default of leases in tree %s is %d ms; 1 to %d are allowed, and 0 for none", tree,
			s.Default, maxLeaseTTL(s))
	case s.Grace < 0 || s.Grace > quota.MaxGrace:
		return quota.Errorf(quota.Invalid, field+".grace_ms",
			"the grace of leases in tree %s is %d ms; 1 to %d are allowed, and 0 for none", tree,
			s.Grace, quota.MaxGrace)
	}
	return nil
}

// checkQueueing refuses what is not in the list.
func checkQueueing(q quota.Queueing, field string) *quota.Error {
	if q > quota.BestEffort {
		return quota.Errorf(quota.Invalid, field,
			"queueing %d is unknown; it is strict or best-effort, or inherited", q)
	}
	return nil
}
