package read

import (
	"strings"

	"github.com/quorate/quorate/internal/spelling"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
	"github.com/quorate/quorate/quota/policy"
)

// RequirePlace refuses a place that does not exist, and equally one of which the caller sees nothing, so that the
// refusal does not tell that it exists. It names the place that may be meant, out of those that the caller sees. No
// tree stands for all of them. A node that a request would create on demand is a place too: nothing is there yet.
func (r Reader) RequirePlace(tree, node string) *quota.Error {
	if tree == "" {
		return nil
	}
	t := r.state.Forest.Trees[tree]
	if t == nil || !r.seesBelow(t.Root) {
		meant := spelling.Nearest(tree, r.treeNames())
		if meant != "" {
			meant = "; did you mean " + meant + "?"
		}
		return r.unknownPlace("tree", tree, "", meant)
	}
	if node == "" {
		return nil
	}
	at, parts := t.Root, strings.Split(node, "/")
	for i, part := range parts {
		below := t.ByPath[joinPath(at.Path, part)]
		if below == nil || !r.seesBelow(below) {
			if r.seesNode(at) && at.Policy.UnknownNodes == policy.CreateUnknown {
				return nil
			}
			return r.unknownPlace("node", tree, node, r.meantNode(at, parts[i:]))
		}
		at = below
	}
	return nil
}

func joinPath(above, name string) string { return strings.TrimPrefix(above+"/"+name, "/") }

// meantNode says which node may be meant by a path of which nothing exists below a node.
func (r Reader) meantNode(at *state.Node, missing []string) string {
	similar := spelling.Nearest(missing[0], r.childNames(at))
	if similar == "" {
		return "; the nearest that exists is " + at.Place()
	}
	meant := quota.Place(at.TreeName, joinPath(at.Path, strings.Join(append([]string{similar}, missing[1:]...), "/")))
	return "; did you mean " + quota.Clip(meant) + "?"
}

// unknownPlace is the same for what does not exist and for what the caller does not see.
func (r Reader) unknownPlace(field, tree, node, meant string) *quota.Error {
	hidden := ""
	if r.id != nil {
		hidden = ", or you may not see it"
	}
	place := state.KindAndPlace(quota.Clip(tree), node)
	return quota.Errorf(quota.NotFound, field, "there is no %s%s%s", place, hidden, meant)
}

// treeNames are those of the trees of which the caller sees a node.
func (r Reader) treeNames() []string {
	var names []string
	for _, t := range r.Trees() {
		names = append(names, t.Name)
	}
	return names
}

// childNames are those of the children of which the caller sees a node.
func (r Reader) childNames(n *state.Node) []string {
	var names []string
	for _, child := range n.Children {
		if r.seesBelow(child) {
			names = append(names, child.Path[strings.LastIndexByte(child.Path, '/')+1:])
		}
	}
	return names
}
