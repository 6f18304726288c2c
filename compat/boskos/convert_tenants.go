package boskos

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/compat"
)

// maxLabels is how many labels a node has.
const maxLabels = 32

// addTenants makes the nodes of the tenants in every tree, with the limits of the types that are there.
func addTenants(trees []*quoratev1.Tree, tenants []Tenant, pools []*pool, problems *compat.Problems) {
	known := map[string]bool{}
	for _, p := range pools {
		known[p.name] = true
	}
	seen := map[string]bool{}
	for _, t := range tenants {
		if seen[t.Node] {
			problems.Add("tenant %q is listed twice", t.Node)
		}
		seen[t.Node] = true
		if n := len(t.patternLabels()); n > maxLabels {
			problems.Add("tenant %q has too many patterns: they fill %d labels, and a node has %d",
				t.Node, n, maxLabels)
		}
		for _, name := range slices.Sorted(maps.Keys(t.Limits)) {
			if !known[name] {
				problems.Add("tenant %q has a limit for %q, which is not a type of this file", t.Node, name)
			}
		}
		for _, tree := range trees {
			t.addTo(tree)
		}
	}
	compat.Sort(trees)
}

// addTo makes the node of a tenant, and those above it that are missing.
func (t Tenant) addTo(tree *quoratev1.Tree) {
	node := nodeAt(tree, t.Node)
	node.Labels = t.patternLabels()
	for _, r := range tree.GetResources() {
		if limit, limited := t.Limits[r.GetName()]; limited {
			if node.Limits == nil {
				node.Limits = map[string]*quoratev1.Limit{}
			}
			node.Limits[r.GetName()] = compat.AtMost(limit)
		}
	}
}

func nodeAt(tree *quoratev1.Tree, path string) *quoratev1.Node {
	at := slices.IndexFunc(tree.GetNodes(), func(n *quoratev1.Node) bool { return n.GetPath() == path })
	if at >= 0 {
		return tree.GetNodes()[at]
	}
	if slash := strings.LastIndexByte(path, '/'); slash > 0 {
		nodeAt(tree, path[:slash])
	}
	node := &quoratev1.Node{Path: path}
	tree.Nodes = append(tree.Nodes, node)
	return node
}

// patternLabels returns labels with the patterns, as many in each label as fit.
func (t Tenant) patternLabels() map[string]string {
	labels := map[string]string{}
	key := LabelOwners
	for _, pattern := range t.Owners {
		if len(labels[key])+1+len(pattern) > maxPattern && labels[key] != "" {
			key = fmt.Sprintf("%s.%d", LabelOwners, len(labels)+1)
		}
		labels[key] = strings.TrimPrefix(labels[key]+" "+pattern, " ")
	}
	if t.Also != "" {
		labels[LabelAlso] = t.Also
	}
	return labels
}
