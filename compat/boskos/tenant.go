package boskos

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// Labels of a node of the tree that make it a tenant's.
const (
	// LabelOwners are patterns of owners, separated by blanks, whose items are counted at the node. A star stands for
	// any number of characters, also none. If several patterns fit, the one with the most other characters counts; among
	// equals the one whose node comes first by path. LabelOwners followed by a dot and anything holds more patterns.
	LabelOwners = "boskos.owners"
	// LabelAlso is "tree:node" of another tree, where one of the resource of the type's name is counted as well for each
	// item, if that tree has a resource of that name.
	LabelAlso = "boskos.also"
)

// tenant is where the items of an owner are counted; the zero value is the root, and nowhere else.
type tenant struct {
	node  string
	other otherNode
	// pattern matches owners; literal is how many characters it has beside its stars.
	pattern *regexp.Regexp
	literal int
}

// otherNode is a node of another tree; there is none if tree is empty.
type otherNode struct {
	tree, node string
	// counts are the resources that are counted there.
	counts map[string]bool
}

// tenantsOf are the patterns of a tree, those that are tried first before the others.
func tenantsOf(tree *quoratev1.Tree) []tenant {
	var all []tenant
	for _, node := range tree.GetNodes() {
		labels := node.GetLabels()
		other := otherNode{}
		other.tree, other.node, _ = strings.Cut(labels[LabelAlso], ":")
		for key, patterns := range labels {
			if key != LabelOwners && !strings.HasPrefix(key, LabelOwners+".") {
				continue
			}
			for pattern := range strings.FieldsSeq(patterns) {
				all = append(all, tenant{
					node:    node.GetPath(),
					other:   other,
					pattern: compilePattern(pattern),
					literal: len(pattern) - strings.Count(pattern, "*"),
				})
			}
		}
	}
	slices.SortFunc(all, func(a, b tenant) int {
		return cmp.Or(cmp.Compare(b.literal, a.literal), cmp.Compare(a.node, b.node))
	})
	return all
}

func compilePattern(pattern string) *regexp.Regexp {
	return regexp.MustCompile(`(?s)^` + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `.*`) + `$`)
}

func (l *layout) tenantOf(owner string) tenant {
	for _, t := range l.tenants {
		if t.pattern.MatchString(owner) {
			return t
		}
	}
	return tenant{}
}

// claimsFor asks for items by tree, at the node of the tenant in each, and counts them in the other tree.
func (t tenant) claimsFor(picks map[string][]*quoratev1.ItemPick) []*quoratev1.Claim {
	var claims []*quoratev1.Claim
	amounts := map[string]int64{}
	for _, tree := range slices.Sorted(maps.Keys(picks)) {
		claims = append(claims, &quoratev1.Claim{Tree: tree, Node: t.node, Items: picks[tree]})
		for _, pick := range picks[tree] {
			if t.other.counts[pick.GetResource()] {
				amounts[pick.GetResource()] += max(pick.GetCount(), int64(len(pick.GetNames())))
			}
		}
	}
	if len(amounts) > 0 {
		claims = append(claims, &quoratev1.Claim{Tree: t.other.tree, Node: t.other.node, Amounts: amounts})
	}
	return claims
}
