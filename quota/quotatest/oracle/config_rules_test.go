package oracle

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/quotatest"
)

// childLimit is what the rules of a family see of a child.
type childLimit struct {
	limit quota.Limit
	set   bool
}

// family is the limits of a node and of its children for one resource.
func (o *oracle) family(tree, path, resource string) (quota.Limit, []childLimit) {
	spec := o.trees[tree]
	var children []childLimit
	for _, p := range o.nodesOf(tree) {
		if p != "" && quotatest.Above(p) == path {
			children = append(children, childLimit{
				o.effective(spec, p, resource),
				configuredLimit(spec, p, resource).Kind != quota.Unset,
			})
		}
	}
	slices.SortFunc(children, func(a, b childLimit) int {
		return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) // any order will do
	})
	return o.effective(spec, path, resource), children
}

// breachesOf lists what a change would break in a tree: the rules of every family that is another than before, and the
// limits of nodes that would hold more than before.
func breachesOf(o, after *oracle, next configuration, tree string) []string {
	spec := after.trees[tree]
	var list []string
	for _, path := range after.nodesOf(tree) {
		was, known := o.pathBefore(next, tree, path)
		rules := after.ruleSet(tree, path)
		for _, r := range spec.Resources {
			limit, children := after.family(tree, path, r.Name)
			unchanged := false
			if known && o.ruleSet(tree, was) == rules && registers(o.trees[tree], r.Name) {
				limitBefore, childrenBefore := o.family(tree, was, r.Name)
				unchanged = limitBefore == limit && slices.Equal(childrenBefore, children)
			}
			if !unchanged && breaks(rules.rules, limit, after.own(tree, path, r.Name), children) {
				list = append(list, quota.Place(tree, path)+" "+r.Name)
			}
			holds, held := after.used(tree, path, r.Name), new(big.Int)
			if known {
				held.Add(o.used(tree, was, r.Name), rehomedThrough(o, after, next, tree, was, r.Name))
			}
			if limit.Kind == quota.Limited && holds.Cmp(big.NewInt(int64(limit.Amount))) > 0 && holds.Cmp(held) > 0 {
				list = append(list, quota.Place(tree, path)+" "+r.Name)
			}
		}
	}
	return list
}

// rehomedThrough is what a node would have held before if the claims that are rehomed had not borrowed above it.
func rehomedThrough(o, after *oracle, next configuration, tree, path, resource string) *big.Int {
	sum := new(big.Int)
	for n, a := range o.allocations {
		for i, c := range a.request.Claims {
			if a.ended != nil || c.Tree != tree || !quotatest.Below(a.claimed[i], path) ||
				quotatest.Below(a.placed[i], path) {
				continue
			}
			if stays, _ := o.movedPath(next, tree, a.placed[i]); after.allocations[n].placed[i] != stays {
				more, _ := quotatest.Requested([]quota.Claim{c}, []string{path}, tree, path, resource)
				sum.Add(sum, more)
			}
		}
	}
	return sum
}

// stuckBorrowers are breaches of a tree that no longer lets its borrowers borrow, although their nodes stay below.
func (o *oracle) stuckBorrowers(next configuration, tree string) []string {
	spec := next.trees[tree]
	var list []string
	for _, a := range o.held() {
		for i, c := range a.request.Claims {
			if c.Tree != tree || a.arrivals[i] == 0 || a.placed[i] == a.claimed[i] {
				continue
			}
			claimed, _ := o.movedPath(next, tree, a.claimed[i])
			placed, _ := o.movedPath(next, tree, a.placed[i])
			breach := quota.Place(tree, placed) + " "
			if !quotatest.Below(claimed, placed) || slices.Contains(list, breach) {
				continue
			}
			between := quotatest.Upwards(claimed)
			between = between[:slices.Index(between, placed)+1]
			if slices.ContainsFunc(between, func(p string) bool { return next.rulesAt(spec, p).Borrowing != "soft" }) {
				list = append(list, breach)
			}
		}
	}
	return list
}

// pathBefore is where the node of another configuration is now, if it exists; dynamic nodes are below the same node.
func (o *oracle) pathBefore(next configuration, tree, path string) (string, bool) {
	if id, configured := next.ids[tree][path]; configured {
		if was, exists := o.pathOf(tree, id); exists {
			return was, true
		}
	}
	if path == "" {
		return "", false
	}
	up, known := o.pathBefore(next, tree, quotatest.Above(path))
	was := strings.TrimPrefix(up+"/"+lastName(path), "/")
	dynamic := slices.Contains(o.nodesOf(tree), was) && quotatest.FindNode(o.trees[tree], was) == nil
	return was, known && dynamic
}

// breaks asks the rules of a policy.
func breaks(rules quota.PolicySpec, limit quota.Limit, own quota.Amount, children []childLimit) bool {
	if limit.Kind == quota.Unlimited || limit.Kind == quota.Advisory {
		return false
	}
	isAbove := func(c childLimit) bool {
		return c.set && (c.limit.Kind == quota.Unlimited || c.limit.Amount > limit.Amount)
	}
	if rules.ChildLimit == "within-parent" && slices.ContainsFunc(children, isAbove) {
		return true
	}
	room := limit.Amount
	switch rules.Sum {
	case "unchecked":
		return false
	case "within-limit-less-own":
		room = max(0, room-own)
	}
	sum := new(big.Int)
	for _, c := range children {
		if c.limit.Kind == quota.Unlimited || c.limit.Kind == quota.Advisory {
			return true
		}
		sum.Add(sum, big.NewInt(int64(c.limit.Amount)))
	}
	return sum.Cmp(big.NewInt(int64(room))) > 0
}

// permission refuses a change of a tree that requires a reason, as it is, without one.
func (o *oracle) permission(m quota.ChangeMeta, after configuration, changes []quota.Change) quota.Kind {
	definitions := policyChanges(o.configuration, after)
	for _, name := range after.named {
		isChanged := slices.ContainsFunc(changes, func(c quota.Change) bool { return c.Tree == name }) ||
			len(definitions) > 0 && o.hasOtherRules(after, name)
		if spec := o.trees[name]; spec.Name != "" && isChanged && spec.RequireReason && m.Reason == "" {
			return quota.Invalid
		}
	}
	return 0
}
