package configure

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// CheckSubtreeCommand refuses a command that changes more than one tree.
func CheckSubtreeCommand(c quota.ApplyTrees) *quota.Error {
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
		return quota.Errorf(quota.Invalid, outside, "%s is outside of every subtree; leave it out, or leave out subtree",
			outside)
	}
	return nil
}

// SubtreeText is the wanted state of a subtree other than a whole tree.
type SubtreeText struct {
	Tree *state.Tree
	At   quota.Subtree
	Spec quota.TreeSpec
}

// Check refuses a text that says anything of what is outside of the subtree.
func (s SubtreeText) Check() *quota.Error {
	if err := s.checkTree(); err != nil {
		return err
	}
	if err := s.checkResources(); err != nil {
		return err
	}
	listed := false
	for i, n := range s.Spec.Nodes[1:] {
		if !quota.IsWithin(n.Path, s.At.Node) {
			return s.outside(NodeField("trees[0]", i+1)+".path", fmt.Sprintf("node %q", quota.Clip(n.Path)))
		}
		listed = listed || n.Path == s.At.Node
	}
	if !listed {
		return quota.Errorf(quota.Invalid, "trees[0].nodes",
			"the text of subtree %s lacks its node %q: write it, or apply the tree to remove the node", s.place(), s.At.Node)
	}
	for i, m := range s.Spec.Moves {
		field := fmt.Sprintf("trees[0].moves[%d]", i)
		if !s.isBelow(m.From) {
			return s.outside(field+".node", fmt.Sprintf("the path %q", quota.Clip(m.From)))
		}
		if !s.isBelow(m.To) {
			return s.outside(field+".new_node", fmt.Sprintf("the path %q", quota.Clip(m.To)))
		}
	}
	return nil
}

func (s SubtreeText) place() string { return quota.Place(s.At.Tree, s.At.Node) }

// isBelow is true for paths below the node of the subtree. The path of that node is the parent's business.
func (s SubtreeText) isBelow(path string) bool {
	return path != s.At.Node && quota.IsWithin(path, s.At.Node)
}

func (s SubtreeText) outside(field, what string) *quota.Error {
	return quota.Errorf(quota.Invalid, field, "%s is outside of subtree %s; leave it out", what, s.place())
}

// checkTree refuses settings of the tree and configuration of its root.
func (s SubtreeText) checkTree() *quota.Error {
	if len(s.Spec.Nodes) == 0 || s.Spec.Nodes[0].Path != "" {
		return quota.Errorf(quota.Invalid, "trees[0].nodes", "the first node of a text is the root of its tree")
	}
	settings, root := s.Spec.TreeSettings, &s.Spec.Nodes[0]
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"forest", settings.Forest != ""},
		{"require_reason", settings.RequireReason},
		{"require_principal", settings.RequirePrincipal},
		{"leases", settings.Leases != quota.LeaseSettings{}},
		{"overtake_ms", settings.Overtake != 0},
		{"tenants_see", settings.TenantsSee != quota.SeeTotals},
		{"approvals", settings.Approvals != 0},
		{"policy", root.Policy != ""},
		{"limits", len(root.Limits) > 0},
		{"labels", len(root.Labels) > 0},
		{"principals", len(root.Principals) > 0},
		{"defaults", len(root.Defaults) > 0},
		{"borrow", len(root.Borrow) > 0},
		{"lend", len(root.Lend) > 0},
		{"hard", root.Hard},
		{"applications", root.Applications.HasAmount()},
		{"bindings", len(root.Bindings) > 0},
		{"queueing", root.Queueing != quota.InheritQueueing},
		{"auto_approve", root.AutoApprove != quota.AutoApprove{}},
		{"thresholds", !root.Thresholds.IsZero()},
	} {
		if field.set {
			return s.outside("trees[0]."+field.name, fmt.Sprintf("%s of tree %s", field.name, s.At.Tree))
		}
	}
	return nil
}

// checkResources refuses resources other than those of the tree. The units are those in which the text was written:
// with another unit now, its amounts would mean something else.
func (s SubtreeText) checkResources() *quota.Error {
	for i, r := range s.Spec.Resources {
		field := fmt.Sprintf("trees[0].resources[%d]", i)
		current := s.Tree.Resource(r.Name)
		switch {
		case current == nil:
			return quota.Errorf(quota.Invalid, field+".name", "tree %s registers no resource %q; it has %s", s.Tree.Name,
				quota.Clip(r.Name), s.Tree.ResourceNames())
		case current.Unit != r.Unit:
			return quota.Errorf(quota.Invalid, field+".unit",
				"the unit of resource %s of tree %s is %s, and not %s: read the subtree again", r.Name, s.Tree.Name, current.Unit,
				r.Unit)
		case r.Items != nil:
			return s.outside(field+".items", fmt.Sprintf("what the items of resource %s are", r.Name))
		}
	}
	return nil
}

// WholeTree is the present tree with the text in place of the subtree, and by how much the indexes of the nodes of the
// text differ in it.
func (s SubtreeText) WholeTree() (whole quota.TreeSpec, shift int) {
	whole = PresentSpecOf(s.Tree)
	first := slices.IndexFunc(whole.Nodes, func(n quota.NodeSpec) bool { return n.Path == s.At.Node })
	end := first
	for end < len(whole.Nodes) && quota.IsWithin(whole.Nodes[end].Path, s.At.Node) {
		end++
	}
	whole.Nodes = slices.Concat(whole.Nodes[:first], s.Spec.Nodes[1:], whole.Nodes[end:])
	whole.Moves = s.Spec.Moves
	return whole, first - 1
}

// ShiftNodeField is a refusal of the whole tree as one of the text, whose nodes are listed shift positions earlier.
func ShiftNodeField(err *quota.Error, shift int) *quota.Error {
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

// SpecOfSubtree is the configuration of a node and everything below it, in the form of an ApplyTrees with At: the root
// is empty, and the resources are those that the nodes name.
func SpecOfSubtree(t *state.Tree, top *state.Node) quota.TreeSpec {
	spec := quota.TreeSpec{Name: t.Name, Nodes: []quota.NodeSpec{{}}}
	named := map[string]bool{}
	top.Walk(func(n *state.Node) bool {
		if n.Dynamic {
			return true
		}
		spec.Nodes = append(spec.Nodes, *n.Spec)
		for _, list := range [][]quota.ResourceLimit{n.Spec.Limits, n.Spec.Defaults, n.Spec.Borrow, n.Spec.Lend} {
			for _, limit := range list {
				named[limit.Resource] = true
			}
		}
		for _, p := range n.Spec.Principals {
			for _, limit := range p.Limits {
				named[limit.Resource] = true
			}
		}
		return true
	})
	for _, r := range t.Resources {
		if named[r.Name] {
			spec.Resources = append(spec.Resources, quota.Resource{Name: r.Name, Unit: r.Unit})
		}
	}
	return spec
}
