package oracle

import (
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/quotatest"
)

// used is what is held of a resource in the subtree at a path. Usage is never stored: each question adds up the claims.
func (o *oracle) used(tree, path, resource string) *big.Int {
	sum := new(big.Int)
	for _, a := range o.held() {
		for i := range a.request.Claims {
			if !o.isExcluded(claimRef{a, i}) {
				more, _ := quotatest.Requested(a.request.Claims[i:i+1], a.placed[i:i+1], tree, path, resource)
				sum.Add(sum, more)
			}
		}
	}
	return sum
}

// own is what is held at the node itself.
func (o *oracle) own(tree, path, resource string) quota.Amount {
	sum := quota.Amount(0)
	for _, a := range o.held() {
		for i, c := range a.request.Claims {
			for _, amount := range c.Amounts {
				if c.Tree == tree && a.placed[i] == path && amount.Resource == resource {
					sum += amount.Amount
				}
			}
		}
	}
	return sum
}

// claimsIn counts the held claims that name a resource in a tree; an empty name counts all.
func (o *oracle) claimsIn(tree, resource string) int {
	n := 0
	for _, a := range o.held() {
		for _, c := range a.request.Claims {
			if c.Tree == tree && (resource == "" ||
				slices.ContainsFunc(c.Amounts, func(a quota.Component) bool { return a.Resource == resource })) {
				n++
			}
		}
	}
	return n
}

// childrenOf counts the nodes directly below a node.
func (o *oracle) childrenOf(tree, parent string) int {
	count := 0
	for _, path := range o.nodesOf(tree) {
		if path != "" && quota.ParentPath(path) == parent {
			count++
		}
	}
	return count
}

// nodesOf are the paths of all nodes of a tree in walk order, also of the dynamic ones.
func (o *oracle) nodesOf(tree string) []string {
	var list []string
	for _, n := range o.trees[tree].Nodes {
		list = append(list, n.Path)
	}
	for _, a := range o.held() {
		for i, c := range a.request.Claims {
			if c.Tree == tree {
				list = append(list, quotatest.Upwards(a.claimed[i])...) // the node where it is counted is one of these
			}
		}
	}
	slices.SortFunc(list, comparePaths)
	return slices.Compact(list)
}

// comparePaths orders parents before children and siblings by name.
func comparePaths(a, b string) int {
	return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
}

// ceiling is the limit in force as a number.
func (o *oracle) ceiling(tree, path, resource string) quota.Amount {
	if l := o.effective(o.trees[tree], path, resource); l.Kind == quota.Limited {
		return l.Amount
	}
	return quota.MaxAmount
}

// over lists what a node holds above the limits of spec.
func (o *oracle) over(spec quota.TreeSpec, path string) []quota.Overuse {
	var list []quota.Overuse
	for _, r := range spec.Resources {
		if o.pools(spec, path) {
			break // see probe
		}
		used := quota.Amount(o.used(spec.Name, path, r.Name).Int64())
		if l := o.effective(spec, path, r.Name); l.Kind == quota.Limited && used > l.Amount {
			list = append(list,
				quota.Overuse{Tree: spec.Name, Node: path, Resource: r.Name, Limit: l.Amount, Used: used})
		} else if l.Kind == quota.Advisory && used > l.Amount {
			list = append(list, quota.Overuse{
				Tree: spec.Name, Node: path, Resource: r.Name, Limit: l.Amount, Used: used, IsAdvisory: true,
			})
		}
	}
	return append(list, o.principalsOver(spec, path)...)
}

// violations asks every node on the way of every claim about every resource that the request wants in its subtree.
func (o *oracle) violations(claims []quota.Claim, placed []string) []quota.Violation {
	var list []quota.Violation
	asked := map[string]bool{}
	for i, c := range claims {
		for _, path := range quotatest.Upwards(placed[i]) {
			if asked[c.Tree+":"+path] {
				continue
			}
			asked[c.Tree+":"+path] = true
			for _, r := range o.trees[c.Tree].Resources {
				if !o.pools(o.trees[c.Tree], path) {
					list = append(list,
						o.violation(claims, placed, c.Tree, path, r.Name, o.ceiling(c.Tree, path, r.Name))...)
				}
				if _, named := quotatest.Requested(claims, placed, c.Tree, path, r.Name); named {
					list = append(list, o.overtaking(c.Tree, path, r.Name)...)
				}
			}
		}
	}
	return list
}

// uncountable asks the roots of trees of forced claims, which meet no limit but the largest number.
func (o *oracle) uncountable(claims []quota.Claim, placed []string) []quota.Violation {
	var list []quota.Violation
	for i, c := range claims {
		if slices.ContainsFunc(claims[:i], func(b quota.Claim) bool { return b.Tree == c.Tree }) {
			continue
		}
		for _, r := range o.trees[c.Tree].Resources {
			list = append(list, o.violation(claims, placed, c.Tree, "", r.Name, quota.MaxAmount)...)
		}
	}
	return list
}

// violation asks one node about one resource; the list is empty or has one entry.
func (o *oracle) violation(claims []quota.Claim, placed []string, tree, path, resource string,
	limit quota.Amount,
) []quota.Violation {
	want, named := quotatest.Requested(claims, placed, tree, path, resource)
	used := o.used(tree, path, resource)
	if sum := new(big.Int).Add(used, want); !named || sum.Cmp(big.NewInt(int64(limit))) <= 0 {
		return nil
	}
	return []quota.Violation{{
		Tree: tree, Node: path, Resource: resource, Limit: limit, Used: quota.Amount(used.Int64()),
		Requested: saturated(want),
	}}
}

// saturated is the number, or the largest there is.
func saturated(n *big.Int) quota.Amount {
	if !n.IsInt64() {
		return math.MaxInt64
	}
	return quota.Amount(n.Int64())
}
