//go:build unix

package bench

import (
	"fmt"
	"slices"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

const (
	resourceCPU    = "cpu"
	resourceMemory = "memory"
	resourceItem   = "machine"
	leafOfOne      = "a/b/leaf-0"
)

// plenty is a limit that is checked and never reached.
const plenty = 1 << 40

func amountLimit(amount int64) *quoratev1.Limit {
	return &quoratev1.Limit{Value: &quoratev1.Limit_Amount{Amount: amount}}
}

func largeLimits() map[string]*quoratev1.Limit {
	return map[string]*quoratev1.Limit{resourceCPU: amountLimit(plenty), resourceMemory: amountLimit(plenty)}
}

func newTree(s *session) *quoratev1.Tree {
	return &quoratev1.Tree{
		Name: s.tree, Limits: largeLimits(), Labels: map[string]string{"made-by": "quorate cluster bench"},
		Resources: []*quoratev1.Resource{
			{Name: resourceCPU, Unit: quoratev1.Unit_UNIT_MILLI},
			{Name: resourceMemory, Unit: quoratev1.Unit_UNIT_BYTES},
		},
	}
}

func addNode(tree *quoratev1.Tree, path string) *quoratev1.Node {
	node := &quoratev1.Node{Path: path, Limits: largeLimits()}
	tree.Nodes = append(tree.Nodes, node)
	return node
}

// deepTree has its leaves below two nodes, so that limits are checked on four levels with the root.
func deepTree(s *session) *quoratev1.Tree {
	tree := newTree(s)
	addNode(tree, "a")
	addNode(tree, "a/b")
	for i := range s.options.leaves {
		addNode(tree, s.leafPath(i))
	}
	return tree
}

func flatTree(s *session) *quoratev1.Tree {
	tree := newTree(s)
	for i := range s.options.leaves {
		addNode(tree, s.leafPath(i))
	}
	return tree
}

func branchedTree(s *session) *quoratev1.Tree {
	tree := newTree(s)
	known := map[string]bool{}
	for i := range s.options.leaves {
		for _, path := range []string{branchPath(i), groupPath(i), s.leafPath(i)} {
			if !known[path] {
				known[path] = true
				addNode(tree, path)
			}
		}
	}
	return tree
}

func branchPath(i int) string { return fmt.Sprintf("branch-%d", i%10) }

func groupPath(i int) string { return fmt.Sprintf("%s/group-%d", branchPath(i), i/10%10) }

func (s *session) leafPath(i int) string {
	switch s.options.workloadName {
	case "spread":
		return fmt.Sprintf("leaf-%d", i)
	case "levels":
		return fmt.Sprintf("%s/leaf-%d", groupPath(i), i)
	}
	return fmt.Sprintf("a/b/leaf-%d", i)
}

// principalTree limits users and groups at the root and above the leaves.
func principalTree(s *session) *quoratev1.Tree {
	tree := deepTree(s)
	limits := map[string]*quoratev1.Limit{resourceCPU: amountLimit(plenty), resourceMemory: amountLimit(plenty)}
	principals := []*quoratev1.PrincipalLimit{
		{Groups: []string{"group-0", "group-1"}, Limits: limits},
		{Users: []string{"*"}, Limits: limits},
		{Groups: []string{"*"}, Limits: limits},
	}
	tree.Principals, tree.Nodes[1].Principals = principals, principals
	return tree
}

// itemTree has an item for each caller, so that none is denied.
func itemTree(s *session) *quoratev1.Tree {
	items := int64(slices.Max(s.options.callers))
	tree := newTree(s)
	tree.Resources = append(tree.Resources, &quoratev1.Resource{
		Name: resourceItem, Unit: quoratev1.Unit_UNIT_ITEMS, Items: &quoratev1.ItemSpec{Min: items, Max: items},
	})
	addNode(tree, "a")
	addNode(tree, "a/b")
	addNode(tree, leafOfOne)
	return tree
}

// smallTree has a leaf for each number of callers that holds a quarter of them, so that the others wait.
func smallTree(s *session) *quoratev1.Tree {
	tree := newTree(s)
	addNode(tree, "a")
	addNode(tree, "a/b")
	for _, callers := range slices.Compact(slices.Sorted(slices.Values(s.options.callers))) {
		addNode(tree, waitingLeaf(callers)).Limits[resourceCPU] = amountLimit(int64(max(callers/4, 1)))
	}
	return tree
}

func waitingLeaf(callers int) string { return fmt.Sprintf("a/b/leaf-%d", callers) }
