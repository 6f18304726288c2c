package oracle

import (
	"cmp"
	"maps"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/quotatest"
)

// applyTrees replaces trees by other specifications; it prunes those that it does not name if so wanted.
func (o *oracle) applyTrees(c quota.ApplyTrees) (verdict, configuration) {
	if len(c.Trees)+len(c.Policies)+len(c.RemovePolicies) == 0 && !c.Prune || len(c.Trees) > o.bounds.TreesPerChange {
		return refusal(quota.Invalid, ""), configuration{}
	}
	named := map[string]bool{}
	for _, spec := range c.Trees {
		if named[spec.Name] || !o.goodMoves(spec.Moves) {
			return refusal(quota.Invalid, ""), configuration{}
		}
		named[spec.Name] = true
	}
	policies, refused := o.definePolicies(c)
	if refused != 0 {
		return refusal(refused, ""), configuration{}
	}
	next := o.clone()
	next.policies = policies
	if !c.Prune && o.usesRemoved(policies, slices.Collect(maps.Keys(named))) {
		return refusal(quota.InUse, ""), configuration{}
	}
	var names []string
	for _, spec := range c.Trees {
		if !o.goodTree(next, spec) {
			return o.judgeTrees(next, names).and(refusal(quota.Invalid, "")), configuration{}
		}
		next = o.replaced(next, spec, renamed(o.ids[spec.Name], spec.Moves))
		names = append(names, spec.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(o.trees)) {
		if c.Prune && !named[name] {
			next = removed(next, name)
			names = append(names, name)
		}
	}
	return o.judge(next, names)
}

// judge decides about a change of some trees.
func (o *oracle) judge(next configuration, names []string) (verdict, configuration) {
	if o.usesRemoved(next.policies, names) {
		return refusal(quota.InUse, ""), configuration{}
	}
	next.affected = o.affected(next, names)
	names = append(names, next.affected...)
	v := o.judgeTrees(next, names)
	if v.refused != 0 {
		return v, configuration{}
	}
	next.named = names
	nodes, after := 0, o.after(next)
	for name := range next.trees {
		nodes += len(after.nodesOf(name))
	}
	if len(next.trees) > o.bounds.Trees || nodes > o.bounds.Nodes {
		return refusal(quota.Full, ""), configuration{}
	}
	return v, next
}

// judgeTrees judges trees up to the first refusal, and from there those that are refused for the same.
func (o *oracle) judgeTrees(next configuration, names []string) verdict {
	var v verdict
	for _, name := range names {
		judged := o.judgeTree(next, name)
		if v = v.and(judged); judged.refused != 0 && judged.refused != v.refused {
			break
		}
	}
	return v
}

// and joins the verdicts on two trees: the first refusal counts, and breaches add up.
func (v verdict) and(other verdict) verdict {
	switch {
	case v.refused == 0 && other.refused != 0:
		return other
	case v.refused == other.refused:
		v.breaches, v.over = append(v.breaches, other.breaches...), append(v.over, other.over...)
	}
	return v
}

func (o *oracle) judgeTree(next configuration, name string) verdict {
	spec, stays := next.trees[name]
	conflicts := next.policyConflicts(name)
	if len(conflicts) > 0 && !slices.Contains(next.affected, name) {
		return refusal(quota.Invalid, "")
	}
	if o.removesHeld(next, name) {
		return refusal(quota.InUse, "")
	}
	if !stays {
		return verdict{}
	}
	alone := o.clone() // with this tree only as it is to be
	alone.policies = next.policies
	alone.trees[name], alone.ids[name], alone.named = spec, next.ids[name], []string{name}
	after := o.after(alone)
	paths := after.nodesOf(name)
	switch {
	case len(paths) > o.bounds.NodesPerTree:
		return refusal(quota.Full, "")
	case slices.ContainsFunc(paths, func(p string) bool { return !o.goodPath(p) }):
		return refusal(quota.Invalid, "")
	}
	if len(conflicts) > 0 {
		return verdict{
			refused: quota.PolicyBreach, breaches: append(conflicts, breachesOf(o, after, next, name)...),
		}
	}
	breaches := append(breachesOf(o, after, next, name), o.stuckBorrowers(next, name)...)
	if len(breaches) > 0 {
		return verdict{refused: quota.PolicyBreach, breaches: breaches}
	}
	return verdict{over: after.overIn(spec)}
}

// overIn lists what all nodes of a tree hold above the limits of spec.
func (o *oracle) overIn(spec quota.TreeSpec) []quota.Overuse {
	var list []quota.Overuse
	for _, path := range o.nodesOf(spec.Name) {
		list = append(list, o.over(spec, path)...)
	}
	return list
}

// removesHeld is true if a tree would lose a node or a resource of held claims.
func (o *oracle) removesHeld(next configuration, name string) bool {
	for _, r := range o.trees[name].Resources {
		sameUnit := func(is quota.Resource) bool { return is.Name == r.Name && is.Unit == r.Unit }
		if o.claimsIn(name, r.Name) > 0 && !slices.ContainsFunc(next.trees[name].Resources, sameUnit) {
			return true
		}
	}
	for _, a := range o.held() {
		for i, c := range a.request.Claims {
			if c.Tree != name {
				continue
			}
			_, counted := o.movedPath(next, name, a.placed[i])
			if _, belongs := o.movedPath(next, name, a.claimed[i]); !counted || !belongs {
				return true
			}
		}
	}
	return false
}

func (o *oracle) setLimits(c quota.SetLimits) (verdict, configuration) {
	spec, known := o.trees[c.Tree]
	if !known || quotatest.FindNode(spec, c.Node) == nil {
		return refusal(quota.NotFound, ""), configuration{}
	}
	if len(c.Limits) == 0 {
		return refusal(quota.Invalid, ""), configuration{}
	}
	spec.Nodes = slices.Clone(spec.Nodes)
	n := quotatest.FindNode(spec, c.Node)
	for i, l := range c.Limits {
		switch {
		case !registers(spec, l.Resource):
			return refusal(quota.NotFound, ""), configuration{}
		case !goodLimit(l.Limit), i > 0 && c.Limits[i-1].Resource >= l.Resource:
			return refusal(quota.Invalid, ""), configuration{}
		}
		n.Limits = slices.DeleteFunc(slices.Clone(n.Limits),
			func(old quota.ResourceLimit) bool { return old.Resource == l.Resource })
		if l.Limit.Kind != quota.Unset {
			n.Limits = append(n.Limits, l)
		}
	}
	slices.SortFunc(n.Limits, func(a, b quota.ResourceLimit) int { return cmp.Compare(a.Resource, b.Resource) })
	next := o.replaced(o.configuration, spec, o.ids[c.Tree])
	if breaches := breachesOf(o, o.after(next), next, c.Tree); len(breaches) > 0 {
		return verdict{refused: quota.PolicyBreach, breaches: breaches}, configuration{}
	}
	return verdict{over: o.overIn(spec)}, next
}

func (o *oracle) deleteTree(c quota.DeleteTree) (verdict, configuration) {
	if _, known := o.trees[c.Tree]; !known {
		return refusal(quota.NotFound, ""), configuration{}
	}
	return o.judge(removed(o.configuration, c.Tree), []string{c.Tree})
}
