package read

import (
	"github.com/quorate/quorate/internal/access"
)

// AccessPath are the tables of bindings that count at a node: its own, those of the nodes above and that of the
// cluster. With an empty tree it is that of the cluster alone. Of a node that does not exist they are those of the
// nearest above it, and of a tree that does not exist that of the cluster; then it reports false. Answers about it need
// rights of their own, as do those about BindingsAbove.
func (r Reader) AccessPath(tree, node string) (access.Path, bool) {
	n := r.state.Forest.NearestNode(tree, node)
	return r.state.Forest.PathAt(n), tree == "" && node == "" || n != nil && n.Path == node
}

// PlacedBindings are the bindings of one node.
type PlacedBindings struct {
	Path     string
	Bindings []access.Binding
}

// BindingsAbove are the bindings of a node and of those above it, the nearest first; none if it does not exist.
func (r Reader) BindingsAbove(tree, node string) []PlacedBindings {
	var list []PlacedBindings
	n := r.state.Forest.NearestNode(tree, node)
	if n == nil || n.Path != node {
		return nil
	}
	for ; n != nil; n = n.Parent {
		if len(n.Spec.Bindings) > 0 {
			list = append(list, PlacedBindings{n.Path, n.Spec.Bindings})
		}
	}
	return list
}
