package quota

import (
	"slices"
	"strings"
)

// resource is a registered resource with its place in every node's arrays.
type resource struct {
	Resource
	index int
	holds int // components of held claims
}

// tree is a hierarchy of nodes.
type tree struct {
	name      string
	resources []*resource // by name
	root      *node
	byPath    map[string]*node
	claims    int // held claims in the whole tree
}

// node is a place in a tree. It lives as long as it is configured: a changed configuration changes it in place, so that
// allocations keep pointing at it.
type node struct {
	// Fixed for life; read without lock by holders of an old allocation record.
	id       uint64
	treeName string
	path     string

	tree     *tree
	parent   *node
	children []*node // by name
	spec     *NodeSpec
	policy   Policy
	// By resource index: what was configured, and what is held.
	limits       []Limit
	ceilings     []Amount // what admission compares with: effective limits, MaxAmount if unlimited
	own, subtree []Amount
	claims       int // held claims placed here
}

func (n *node) name() string { return n.path[strings.LastIndexByte(n.path, '/')+1:] }

func (n *node) place() string { return Place(n.treeName, n.path) }

// effective is the limit in force for a resource.
func (n *node) effective(r int) Limit { return n.policy.Effective(n.limits[r]) }

// resource finds a registered resource by name, or nil.
func (t *tree) resource(name string) *resource {
	if i, found := t.findResource(name); found {
		return t.resources[i]
	}
	return nil
}

func (t *tree) findResource(name string) (int, bool) {
	return slices.BinarySearchFunc(t.resources, name, func(r *resource, name string) int { return strings.Compare(r.Name, name) })
}

func (t *tree) resourceNames() string {
	names := make([]string, len(t.resources))
	for i, r := range t.resources {
		names[i] = r.Name
	}
	return strings.Join(names, ", ")
}

// nearest is the node at path, or else its nearest ancestor that exists.
func (t *tree) nearest(path string) *node {
	for {
		if n := t.byPath[path]; n != nil {
			return n
		}
		path = parentPath(path)
	}
}

// add books an amount at the node and all its ancestors; a negative one gives back.
func (n *node) add(r int, amount Amount) {
	n.own[r] += amount
	for at := n; at != nil; at = at.parent {
		at.subtree[r] += amount
	}
}

// walk yields the node and all below it, parents before children, siblings by name, until yield answers false.
func (n *node) walk(yield func(*node) bool) bool {
	if !yield(n) {
		return false
	}
	for _, child := range n.children {
		if !child.walk(yield) {
			return false
		}
	}
	return true
}
