package read

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/admit"
	"github.com/quorate/quorate/quota/ledger/internal/configure"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// Trees lists the trees in which the caller sees a node. Numbers need the right to read usage at the root.
func (r Reader) Trees() []quota.TreeSummary {
	list := r.allTrees()
	if r.id == nil {
		return list
	}
	list = slices.DeleteFunc(list, func(t quota.TreeSummary) bool { return !r.seesBelow(r.rootOf(t.Name)) })
	for i := range list {
		if t := &list[i]; !r.May(access.UsageRead, t.Name, "") {
			t.Nodes, t.Claims = 0, 0
		}
	}
	return list
}

// TreesWithRequests is Trees with the requests of each.
func (r Reader) TreesWithRequests() []quota.TreeSummary {
	list := r.Trees()
	counts := r.requestCounts()
	for i := range list {
		if t := &list[i]; r.May(access.UsageRead, t.Name, "") {
			t.Requests = counts[t.Name]
		}
	}
	return list
}

func (r Reader) rootOf(tree string) *state.Node { return r.state.Forest.Trees[tree].Root }

// Tree is the configuration of a tree as far as the caller may read it: nodes that it may not read are left out, and
// nodes above others have limits only, or only names. A tree of which it sees nothing does not exist.
func (r Reader) Tree(name string) (quota.TreeSpec, *quota.Error) {
	spec, err := r.wholeTree(name)
	if r.id == nil {
		return spec, err
	}
	if err != nil || !r.seesBelow(r.rootOf(name)) {
		return quota.TreeSpec{}, hiddenPlace(name, "")
	}
	return r.cutTree(spec), nil
}

func (r Reader) cutTree(spec quota.TreeSpec) quota.TreeSpec {
	nodes := spec.Nodes
	spec.Nodes = nil
	for _, n := range nodes {
		at := r.state.Forest.Trees[spec.Name].ByPath[n.Path]
		switch {
		case r.MayAt(access.ConfigRead, at):
			spec.Nodes = append(spec.Nodes, n)
		case r.seesBelow(at) || n.Path == "":
			above := quota.NodeSpec{Path: n.Path}
			if r.seenOf(at) == quota.SeeTotals {
				above.Limits = n.Limits
			}
			spec.Nodes = append(spec.Nodes, above)
		}
	}
	return spec
}

// Subtree is the configuration of a node and everything below it, in the form of an ApplyTrees with At. It needs the
// right to read the configuration there.
func (r Reader) Subtree(at quota.Subtree) (quota.TreeSpec, *quota.Error) {
	if err := r.need(access.ConfigRead, at.Tree, at.Node); err != nil {
		return quota.TreeSpec{}, err
	}
	if at.Node == "" {
		return r.wholeTree(at.Tree)
	}
	t := r.state.Forest.Trees[at.Tree]
	if t == nil {
		return quota.TreeSpec{}, quota.Errorf(quota.NotFound, "tree", "there is no tree %q", quota.Clip(at.Tree))
	}
	top, err := configure.ConfiguredNode(t, at.Node, "node")
	if err != nil {
		return quota.TreeSpec{}, err
	}
	return configure.SpecOfSubtree(t, top), nil
}

// Configuration has all trees of which the caller sees something, see Tree.
func (r Reader) Configuration() []quota.TreeSpec {
	list := r.wholeConfiguration()
	if r.id == nil {
		return list
	}
	list = slices.DeleteFunc(list, func(t quota.TreeSpec) bool { return !r.seesBelow(r.rootOf(t.Name)) })
	for i := range list {
		list[i] = r.cutTree(list[i])
	}
	return list
}

// Policies are the definitions of policies that the caller may read: all with the right to read the configuration on
// the cluster, and otherwise those of the trees whose root it may read.
func (r Reader) Policies() []quota.PolicySpec {
	if r.May(access.ConfigRead, "", "") {
		return r.allPolicies()
	}
	used := map[quota.PolicySpec]bool{}
	for _, t := range r.allTrees() {
		for _, p := range r.PoliciesOf(t.Name) {
			used[p] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(r.allPolicies()), func(p quota.PolicySpec) bool { return !used[p] })
}

// PoliciesOf are the definitions that a tree uses; none if the caller may not read its root.
func (r Reader) PoliciesOf(tree string) []quota.PolicySpec {
	if !r.May(access.ConfigRead, tree, "") {
		return nil
	}
	return r.policiesOf(tree)
}

// Access is the access section; nil for callers that may not read it.
func (r Reader) Access() *access.Section {
	if !r.May(access.AccessRead, "", "") {
		return nil
	}
	section := r.Book().Section()
	return &section
}

// Usage is the usage of a node, or of its subtree, as far as the caller may read usage. Of a node above one that the
// caller sees it has limits and totals, only the name, or nothing, as the tree says. A node of which it has no totals
// has no share of a limit in use.
func (r Reader) Usage(q quota.UsageQuery) (quota.UsagePage, *quota.Error) {
	n := r.state.Forest.NearestNode(q.Tree, q.Node)
	if n != nil && r.MayAt(access.UsageRead, n) {
		return r.usagePage(q, seesTotals, r.usageOf)
	}
	if n == nil || n.Path != q.Node || !r.seesBelow(n) || !q.Subtree && r.seenOf(n) == quota.SeeNothing {
		return quota.UsagePage{}, hiddenPlace(q.Tree, q.Node)
	}
	page, refused := r.usagePage(q, r.seesUsage, r.shownUsage)
	for i := range page.Nodes {
		if !r.May(access.UsageRead, q.Tree, page.Nodes[i].Path) {
			page.Nodes[i].Waiting = quota.WaitingCount{}
		}
	}
	return page, refused
}

// seesUsage is what a reader of usage sees of a node.
func (r Reader) seesUsage(n *state.Node) quota.TenantsSee {
	switch {
	case r.MayAt(access.UsageRead, n):
		return quota.SeeTotals
	case !r.seesBelow(n):
		return quota.SeeNothing
	}
	return r.seenOf(n)
}

// usageOf is the usage of a node with what follows from nodes above it, a hold and defaults, as far as the caller may
// see those levels.
func (r Reader) usageOf(n *state.Node) quota.NodeUsage {
	usage := n.Usage()
	if usage.Hold != nil {
		at := r.state.Forest.NearestNode(usage.Hold.Tree, usage.Hold.Node)
		usage.Hold = usage.Hold.ShownAs(r.seenOf(at))
	}
	for i := range usage.Resources {
		u := &usage.Resources[i]
		if u.HasDefault && r.seenOf(r.state.Forest.NearestNode(n.TreeName, u.DefaultAt)) == quota.SeeNothing {
			u.DefaultHidden, u.DefaultAt = true, ""
		}
	}
	return usage
}

// shownUsage is the usage of a node that the caller sees: without what the node holds itself if the caller only sees a
// node below it.
func (r Reader) shownUsage(n *state.Node) quota.NodeUsage {
	children := 0
	for _, child := range n.Children {
		if r.seesUsage(child) != quota.SeeNothing {
			children++
		}
	}
	if r.seesUsage(n) != quota.SeeTotals {
		return quota.NodeUsage{Path: n.Path, Children: children}
	}
	usage := r.usageOf(n)
	usage.Children = children
	if r.MayAt(access.UsageRead, n) {
		return usage
	}
	usage.Applications = 0
	for i := range usage.Resources {
		usage.Resources[i].Own = 0
	}
	return usage
}

// Holds are those at or below a node, of all trees if the tree is empty, at nodes of which the caller may read the
// usage.
func (r Reader) Holds(tree, node string) []quota.NodeCordonInfo {
	return slices.DeleteFunc(r.allHolds(tree, node), func(h quota.NodeCordonInfo) bool {
		return !r.May(access.UsageRead, h.Tree, h.Node)
	})
}

// Revisions are the newest changes of the configuration before a revision. Without the right to read the history or the
// configuration on the cluster, only changes at nodes whose configuration the caller may read are shown, and revisions
// without one are left out.
func (r Reader) Revisions(before uint64, max int) []quota.Revision {
	if !r.FiltersRevisions() {
		return r.allRevisions(before, max)
	}
	return r.revisionsWhere(r.seesChange, before, max)
}

// RevisionsOf are Revisions with changes of one node itself, with these changes alone.
func (r Reader) RevisionsOf(tree, node string, before uint64, max int) []quota.Revision {
	filters := r.FiltersRevisions()
	return r.revisionsWhere(func(c *quota.Change) bool {
		return c.Tree == tree && c.Node == node && (!filters || r.seesChange(c))
	}, before, max)
}

func (r Reader) revisionsWhere(passes func(*quota.Change) bool, before uint64, max int) []quota.Revision {
	var seen []quota.Revision
	for _, revision := range r.allRevisions(before, 1<<30) {
		if !revision.Keep(passes) {
			continue
		}
		if seen = append(seen, revision); len(seen) == max {
			break
		}
	}
	return seen
}

func (r Reader) seesChange(c *quota.Change) bool {
	return c.Tree != "" && r.May(access.ConfigRead, c.Tree, c.Node)
}

// ShownRevision is what the caller may see of a revision, in a tree and at or below a node of it unless the tree is
// empty; false if that is nothing.
func (r Reader) ShownRevision(revision quota.Revision, tree, node string) (quota.Revision, bool) {
	seen := !r.FiltersRevisions() || revision.Keep(r.seesChange)
	if tree != "" {
		seen = seen && revision.Keep(func(c *quota.Change) bool { return c.IsWithin(tree, node) })
	}
	return revision, seen
}

// ShownCrossing reports whether the caller may see the crossing of a threshold.
func (r Reader) ShownCrossing(c *quota.Crossing) bool { return r.May(access.UsageRead, c.Tree, c.Node) }

// allHolds are the nodes on hold at a node and below it, or with an empty tree all of them, with what is left there: by
// tree, parents before children, siblings by name. There are at most MaxHolds.
func (r Reader) allHolds(tree, node string) []quota.NodeCordonInfo {
	var list []quota.NodeCordonInfo
	for _, n := range r.state.Forest.OnHold {
		if tree != "" && (n.TreeName != tree || !quota.IsWithin(n.Path, node)) {
			continue
		}
		hold := n.NodeCordon()
		hold.IsUsed, hold.Revoking = admit.IsUsed(n), n.Hold.DrainAt != 0
		for i, used := range n.Subtree {
			if used > 0 {
				hold.Used = append(hold.Used, quota.Component{Resource: n.Tree.Resources[i].Name, Amount: used})
			}
		}
		list = append(list, hold)
	}
	slices.SortFunc(list, func(a, b quota.NodeCordonInfo) int {
		return cmp.Or(cmp.Compare(a.Tree, b.Tree), state.ComparePaths(a.Node, b.Node))
	})
	return list
}

// pastConfiguration is the configuration after a revision, 0 standing for the empty one before the first. The error is
// NotFound if there is no such revision yet, and Invalid if the history does not reach back to it. It costs as much as
// the changes since then, and a copy of all trees.
func (r Reader) pastConfiguration(revision uint64) (configure.PastConfiguration, *quota.Error) {
	past, refused := configure.WalkBack(r.state, revision)
	if refused != nil {
		return configure.PastConfiguration{}, refused
	}
	section := r.Book().Section()
	if past.Section != nil {
		section = *past.Section
	}
	return configure.PastConfiguration{Trees: past.Trees(), Policies: past.PolicySpecs(), Access: &section}, nil
}

// ConfigurationAt is pastConfiguration for a caller that may read the configuration of the whole cluster: rights at
// single nodes may concern others than the nodes that had these paths then.
func (r Reader) ConfigurationAt(revision uint64) (configure.PastConfiguration, *quota.Error) {
	if err := r.needOnCluster(access.ConfigRead); err != nil {
		return configure.PastConfiguration{}, err
	}
	past, refused := r.pastConfiguration(revision)
	if !r.May(access.AccessRead, "", "") {
		past.Access = nil
	}
	return past, refused
}
