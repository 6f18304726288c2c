package quotatest_test

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
)

// child is what a family's rules see of a child.
type child struct {
	limit quota.Limit
	set   bool
}

// family of a node for one resource.
func (o *oracle) family(tree, path, resource string) (quota.Limit, []child) {
	spec := o.trees[tree]
	var children []child
	for _, p := range o.nodesOf(tree) {
		if p != "" && above(p) == path {
			children = append(children, child{effective(spec, p, resource), set(spec, p, resource).Kind != quota.Unset})
		}
	}
	slices.SortFunc(children, func(a, b child) int {
		return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) // any order will do
	})
	return effective(spec, path, resource), children
}

// breachesOf lists what a change would break in a tree: the rules of every family that is another than before, and the
// limits of nodes that would hold more than before.
func breachesOf(o, after *oracle, next configuration, tree string) []string {
	spec := after.trees[tree]
	var list []string
	for _, path := range after.nodesOf(tree) {
		was, known := o.formerly(next, tree, path)
		for _, r := range spec.Resources {
			limit, children := after.family(tree, path, r.Name)
			same := false
			if known && policyOf(o.trees[tree], was) == policyOf(spec, path) && registers(o.trees[tree], r.Name) {
				limitBefore, childrenBefore := o.family(tree, was, r.Name)
				same = limitBefore == limit && slices.Equal(childrenBefore, children)
			}
			if !same && breaks(policyOf(spec, path), limit, after.own(tree, path, r.Name), children) {
				list = append(list, quota.Place(tree, path)+" "+r.Name)
			}
			holds, held := after.used(tree, path, r.Name), new(big.Int)
			if known {
				held = o.used(tree, was, r.Name)
			}
			if limit.Kind == quota.Limited && holds.Cmp(big.NewInt(int64(limit.Amount))) > 0 && holds.Cmp(held) > 0 && !spec.Maintenance {
				list = append(list, quota.Place(tree, path)+" "+r.Name)
			}
		}
	}
	return list
}

// formerly is where the node of another configuration stands now, if it does; made nodes stand below what they stood
// below.
func (o *oracle) formerly(next configuration, tree, path string) (string, bool) {
	if id, configured := next.ids[tree][path]; configured {
		if was, there := o.pathOf(tree, id); there {
			return was, true
		}
	}
	if path == "" {
		return "", false
	}
	up, known := o.formerly(next, tree, above(path))
	was := strings.TrimPrefix(up+"/"+lastOf(path), "/")
	made := slices.Contains(o.nodesOf(tree), was) && nodeOf(o.trees[tree], was) == nil
	return was, known && made
}

// breaks asks the rule of a policy.
func breaks(policy string, limit quota.Limit, own quota.Amount, children []child) bool {
	if limit.Kind == quota.Unlimited {
		return false
	}
	room := limit.Amount
	switch policy {
	case "capped", "project":
		return slices.ContainsFunc(children, func(c child) bool {
			return c.set && (c.limit.Kind == quota.Unlimited || c.limit.Amount > limit.Amount)
		})
	case "nested":
		room = max(0, room-own)
	case "open":
		return false
	}
	sum := new(big.Int)
	for _, c := range children {
		if c.limit.Kind == quota.Unlimited {
			return true
		}
		sum.Add(sum, big.NewInt(int64(c.limit.Amount)))
	}
	return sum.Cmp(big.NewInt(int64(room))) > 0
}

// policyOf looks upwards for a policy; a tree without one is open.
func policyOf(spec quota.TreeSpec, path string) string {
	for ; ; path = above(path) {
		if n := nodeOf(spec, path); n != nil && n.Policy != "" {
			return n.Policy
		}
		if path == "" {
			return "open"
		}
	}
}

// set is the limit that a node has of its own.
func set(spec quota.TreeSpec, path, resource string) quota.Limit {
	if n := nodeOf(spec, path); n != nil {
		for _, l := range n.Limits {
			if l.Resource == resource {
				return l.Limit
			}
		}
	}
	return quota.Limit{}
}

// effective is the limit that is set, or the nearest default from above, or what the policy makes of none.
func effective(spec quota.TreeSpec, path, resource string) quota.Limit {
	if l := set(spec, path, resource); l.Kind != quota.Unset {
		return l
	}
	for _, p := range upwards(path)[1:] {
		if n := nodeOf(spec, p); n != nil {
			for _, d := range n.Defaults {
				if d.Resource == resource {
					return d.Limit
				}
			}
		}
	}
	if p := policyOf(spec, path); p == "strict" || p == "nested" {
		return quota.AtMost(0)
	}
	return quota.NoLimit()
}

// forbids tells whether a tree, as it is, wants a reason that lacks, or another actor.
func (o *oracle) forbids(m quota.ChangeMeta, named []string, changes []quota.Change) quota.Kind {
	for _, name := range named {
		spec := o.trees[name]
		var of []quota.Change
		for _, c := range changes {
			if c.Tree == name {
				of = append(of, c)
			}
		}
		switch {
		case spec.Name == "" || len(of) == 0:
		case spec.RequireReason && m.Reason == "":
			return quota.Invalid
		case !mayChange(spec, m.Actor, of):
			return quota.Forbidden
		}
	}
	return 0
}

func mayChange(spec quota.TreeSpec, actor string, changes []quota.Change) bool {
	isAdmin := func(path string) bool { return slices.Contains(nodeOf(spec, path).Admins, actor) }
	if !slices.ContainsFunc(spec.Nodes, func(n quota.NodeSpec) bool { return len(n.Admins) > 0 }) {
		return true
	}
	if slices.ContainsFunc(changes, func(c quota.Change) bool { return !strings.HasPrefix(c.Field, "limit ") }) {
		return isAdmin("")
	}
	for _, c := range changes {
		var may bool
		switch p := policyOf(spec, above(c.Node)); {
		case c.Node == "":
			may = isAdmin("")
		case p == "strict" || p == "nested":
			may = isAdmin(above(c.Node))
		default:
			may = slices.ContainsFunc(upwards(c.Node)[1:], isAdmin)
		}
		if !may {
			return false
		}
	}
	return true
}
