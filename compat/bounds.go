package compat

import (
	"cmp"
	"slices"
	"strings"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// Bounds of the API that a converted file can reach.
const (
	// MaxAmount is the largest amount: 2^62-1 base units.
	MaxAmount int64 = 1<<62 - 1

	maxTrees     = 100
	maxNodes     = 20_000
	maxResources = 64
	maxDepth     = 16
)

// Sort brings trees, nodes and resources into the order of Conversion.
func Sort(trees []*quoratev1.Tree) {
	slices.SortFunc(trees, func(a, b *quoratev1.Tree) int { return cmp.Compare(a.GetName(), b.GetName()) })
	for _, t := range trees {
		slices.SortFunc(t.GetNodes(), func(a, b *quoratev1.Node) int { return cmp.Compare(a.GetPath(), b.GetPath()) })
		slices.SortFunc(t.GetResources(), func(a, b *quoratev1.Resource) int {
			return cmp.Compare(a.GetName(), b.GetName())
		})
	}
}

// Bounds names what there is too much of in trees that are well-formed otherwise.
func Bounds(trees []*quoratev1.Tree) Problems {
	var found Problems
	if len(trees) > maxTrees {
		found.Add("%d trees come out; up to %d are applied together: split the file", len(trees), maxTrees)
	}
	for _, t := range trees {
		if n := len(t.GetResources()); n > maxResources {
			found.Add("tree %q gets %d resources; a tree may have %d: split the file", t.GetName(), n, maxResources)
		}
		if n := len(t.GetNodes()); n > maxNodes {
			found.Add("tree %q gets %d nodes; a tree may have %d: split the file", t.GetName(), n, maxNodes)
		}
		for _, n := range t.GetNodes() {
			if depth := strings.Count(n.GetPath(), "/") + 1; depth > maxDepth {
				found.Add("node %q of tree %q is %d deep; a node may be %d deep",
					n.GetPath(), t.GetName(), depth, maxDepth)
			}
		}
	}
	return found
}

// AtMost is the limit of an amount.
func AtMost(amount int64) *quoratev1.Limit {
	return &quoratev1.Limit{Value: &quoratev1.Limit_Amount{Amount: amount}}
}

// NoLimit is the limit unlimited.
func NoLimit() *quoratev1.Limit {
	return &quoratev1.Limit{Value: &quoratev1.Limit_Unlimited{Unlimited: true}}
}
