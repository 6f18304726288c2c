package ledger

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/quota"
)

// checkSubtreeCommand refuses a command that changes more than one tree.
func checkSubtreeCommand(c quota.ApplyTrees) *quota.Error {
	outside := ""
	switch {
	case c.Prune:
		outside = "prune"
	case len(c.Policies) > 0:
		outside = "policies"
	case len(c.RemovePolicies) > 0:
		outside = "remove_policies"
	case c.Access != nil:
		outside = "access"
	case c.KeepAccess:
		outside = "keep_access"
	case len(c.Trees) != 1:
		return quota.Errorf(quota.Invalid, "trees", "the text of a subtree names its tree and no other; it names %d trees",
			len(c.Trees))
	case c.Trees[0].Name != c.At.Tree:
		return quota.Errorf(quota.Invalid, "trees[0].name", "the text is of tree %q, and the subtree is in tree %q",
			quota.Clip(c.Trees[0].Name), quota.Clip(c.At.Tree))
	}
	if outside != "" {
		return quota.Errorf(quota.Invalid, outside, "%s is outside of every subtree; leave it out, or leave out at", outside)
	}
	return nil
}

// subtreeText is the wanted state of a subtree other than a whole tree.
type subtreeText struct {
	tree *tree
	at   quota.Subtree
	spec quota.TreeSpec
}

// check refuses a text that says anything of what is outside of the subtree.
func (s subtreeText) check() *quota.Error {
	if err := s.checkTree(); err != nil {
		return err
	}
	if err := s.checkResources(); err != nil {
		return err
	}
	listed := false
	for i, n := range s.spec.Nodes[1:] {
		if !quota.IsWithin(n.Path, s.at.Node) {
			return s.outside(nodeField("trees[0]", i+1)+".path", fmt.Sprintf("node %q", quota.Clip(n.Path)))
		}
		listed = listed || n.Path == s.at.Node
	}
	if !listed {
		return quota.Errorf(quota.Invalid, "trees[0].nodes",
			"the text of subtree %s lacks its node %q: write it, or apply the tree to remove the node", s.place(), s.at.Node)
	}
	for i, m := range s.spec.Moves {
		field := fmt.Sprintf("trees[0].moves[%d]", i)
		if !s.isBelow(m.From) {
			return s.outside(field+".from", fmt.Sprintf("the path %q", quota.Clip(m.From)))
		}
		if !s.isBelow(m.To) {
			return s.outside(field+".to", fmt.Sprintf("the path %q", quota.Clip(m.To)))
		}
	}
	return nil
}

func (s subtreeText) place() string { return quota.Place(s.at.Tree, s.at.Node) }

// isBelow is true for paths below the node of the subtree. The path of that node is the parent's business.
func (s subtreeText) isBelow(path string) bool {
	return path != s.at.Node && quota.IsWithin(path, s.at.Node)
}

func (s subtreeText) outside(field, what string) *quota.Error {
	return quota.Errorf(quota.Invalid, field, "%s is outside of subtree %s; leave it out", what, s.place())
}

// checkTree refuses settings of the tree and configuration of its root.
func (s subtreeText) checkTree() *quota.Error {
	if len(s.spec.Nodes) == 0 || s.spec.Nodes[0].Path != "" {
		return quota.Errorf(quota.Invalid, "trees[0].nodes", "the first node of a text is the root of its tree")
	}
	is, root := s.spec.TreeSettings, &s.spec.Nodes[0]
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"forest", is.Forest != ""},
		{"require_reason", is.RequireReason},
		{"require_principal", is.RequirePrincipal},
		{"maintenance", is.Maintenance},
		{"leases", is.Leases != quota.LeaseSettings{}},
		{"overtake_ms", is.Overtake != 0},
		{"tenants_see", is.TenantsSee != quota.SeeTotals},
		{"approvals", is.Approvals != 0},
		{"policy", root.Policy != ""},
		{"limits", len(root.Limits) > 0},
		{"labels", len(root.Labels) > 0},
		{"principals", len(root.Principals) > 0},
		{"defaults", len(root.Defaults) > 0},
		{"borrow", len(root.Borrow) > 0},
		{"lend", len(root.Lend) > 0},
		{"hard", root.Hard},
		{"applications", root.Applications != 0},
		{"admins", len(root.Admins) > 0},
		{"bindings", len(root.Bindings) > 0},
		{"queueing", root.Queueing != quota.InheritQueueing},
		{"auto_approve", root.AutoApprove != quota.AutoApprove{}},
		{"warn_at", !root.WarnAt.IsZero()},
	} {
		if field.set {
			return s.outside("trees[0]."+field.name, fmt.Sprintf("%s of tree %s", field.name, s.at.Tree))
		}
	}
	return nil
}

// checkResources refuses resources other than those of the tree. The units are those in which the text was written:
// with another unit now, its amounts would mean something else.
func (s subtreeText) checkResources() *quota.Error {
	for i, r := range s.spec.Resources {
		field := fmt.Sprintf("trees[0].resources[%d]", i)
		is := s.tree.resource(r.Name)
		switch {
		case is == nil:
			return quota.Errorf(quota.Invalid, field+".name", "tree %s registers no resource %q; it has %s", s.tree.name,
				quota.Clip(r.Name), s.tree.resourceNames())
		case is.Unit != r.Unit:
			return quota.Errorf(quota.Invalid, field+".unit",
				"the unit of resource %s of tree %s is %s, and not %s: read the subtree again", r.Name, s.tree.name, is.Unit,
				r.Unit)
		case r.Items != nil:
			return s.outside(field+".items", fmt.Sprintf("what the items of resource %s are", r.Name))
		}
	}
	return nil
}

// wholeTree is the present tree with the text in place of the subtree, and by how much the indexes of the nodes of the
// text differ in it.
func (s subtreeText) wholeTree() (whole quota.TreeSpec, shift int) {
	whole = s.tree.present()
	first := slices.IndexFunc(whole.Nodes, func(n quota.NodeSpec) bool { return n.Path == s.at.Node })
	end := first
	for end < len(whole.Nodes) && quota.IsWithin(whole.Nodes[end].Path, s.at.Node) {
		end++
	}
	whole.Nodes = slices.Concat(whole.Nodes[:first], s.spec.Nodes[1:], whole.Nodes[end:])
	whole.Moves = s.spec.Moves
	return whole, first - 1
}

// shiftNodeField is a refusal of the whole tree as one of the text, whose nodes are listed shift positions earlier.
func shiftNodeField(err *quota.Error, shift int) *quota.Error {
	const list = "trees[0].nodes["
	rest, isNode := strings.CutPrefix(err.Field, list)
	number, after, _ := strings.Cut(rest, "]")
	i, bad := strconv.Atoi(number)
	if !isNode || bad != nil {
		return err
	}
	shifted := *err
	shifted.Field = list + strconv.Itoa(i-shift) + "]" + after
	return &shifted
}

// subtree is the configuration of a node and everything below it, in the form of an ApplyTrees with At: the root is
// empty, and the resources are those that the nodes name.
func (t *tree) subtree(top *node) quota.TreeSpec {
	spec := quota.TreeSpec{Name: t.name, Nodes: []quota.NodeSpec{{}}}
	named := map[string]bool{}
	top.walk(func(n *node) bool {
		if n.dynamic {
			return true
		}
		spec.Nodes = append(spec.Nodes, *n.spec)
		for _, list := range [][]quota.ResourceLimit{n.spec.Limits, n.spec.Defaults, n.spec.Borrow, n.spec.Lend} {
			for _, l := range list {
				named[l.Resource] = true
			}
		}
		for _, p := range n.spec.Principals {
			for _, l := range p.Limits {
				named[l.Resource] = true
			}
		}
		return true
	})
	for _, r := range t.resources {
		if named[r.Name] {
			spec.Resources = append(spec.Resources, quota.Resource{Name: r.Name, Unit: r.Unit})
		}
	}
	return spec
}
