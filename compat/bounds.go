package compat

import (
	"cmp"
	"slices"
	"strings"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// Bounds of the API that a converted file can reach.
const (
	// MaxAmount is the largest amount: 2^62-1 base units.
	MaxAmount int64 = 1<<62 - 1
	// MaxTrees are the most trees that are applied together.
	MaxTrees = 100
	// MaxNodes are the most nodes of a tree below its root.
	MaxNodes = 20_000 - 1
	// MaxResources are the most resources of a tree.
	MaxResources = 512
	// MaxDepth is the most levels below the root.
	MaxDepth = 16
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
	if len(trees) > MaxTrees {
		found.Add("%d trees come out; up to %d are applied together: split the file", len(trees), MaxTrees)
	}
	for _, t := range trees {
		if n := len(t.GetResources()); n > MaxResources {
			found.Add("tree %q gets %d resources; a tree may have %d: split the file", t.GetName(), n, MaxResources)
		}
		if n := len(t.GetNodes()); n > MaxNodes {
			found.Add("tree %q gets %d nodes; a tree may have %d: split the file", t.GetName(), n, MaxNodes)
		}
		for _, n := range t.GetNodes() {
			if depth := strings.Count(n.GetPath(), "/") + 1; depth > MaxDepth {
				found.Add("node %q of tree %q is at depth %d; the maximum is %d",
					n.GetPath(), t.GetName(), depth, MaxDepth)
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
