package quotatest_test

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
)

// replaced is the configuration with a tree in which some nodes of before may have got other paths: moved answers them
// by their old ones. What stands at no such path is new.
func (o *oracle) replaced(now configuration, spec quota.TreeSpec, moved map[string]int) configuration {
	next := now.clone()
	spec.Moves = nil
	spec.Nodes = slices.Clone(spec.Nodes)
	slices.SortFunc(spec.Nodes, func(a, b quota.NodeSpec) int { return comparePlaces(a.Path, b.Path) })
	next.trees[spec.Name], next.ids[spec.Name] = spec, map[string]int{}
	next.named = []string{spec.Name}
	for _, n := range spec.Nodes {
		id, known := moved[n.Path]
		if !known {
			o.lastID++
			id = o.lastID
		}
		next.ids[spec.Name][n.Path] = id
	}
	return next
}

func removed(now configuration, tree string) configuration {
	next := now.clone()
	delete(next.trees, tree)
	delete(next.ids, tree)
	return next
}

func (o *oracle) applyTrees(c quota.ApplyTrees) (verdict, configuration) {
	if len(c.Trees) == 0 && !c.Prune || len(c.Trees) > o.bounds.TreesPerChange {
		return refusal(quota.Invalid, ""), configuration{}
	}
	named := map[string]bool{}
	for _, spec := range c.Trees {
		if named[spec.Name] || !o.goodMoves(spec.Moves) {
			return refusal(quota.Invalid, ""), configuration{}
		}
		named[spec.Name] = true
	}
	next := o.configuration
	var wishes []string
	for _, spec := range c.Trees {
		if !o.goodTree(spec) {
			return o.firstRefusal(next, wishes, quota.Invalid), configuration{}
		}
		next = o.replaced(next, spec, rename(o.ids[spec.Name], spec.Moves))
		wishes = append(wishes, spec.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(o.trees)) {
		if c.Prune && !named[name] {
			next = removed(next, name)
			wishes = append(wishes, name)
		}
	}
	return o.judge(next, wishes)
}

// firstRefusal is that of earlier trees, or else the one given.
func (o *oracle) firstRefusal(next configuration, wishes []string, kind quota.Kind) verdict {
	return o.judgeTrees(next, wishes).and(refusal(kind, ""))
}

// judgeTrees judges trees up to the first refusal, and from there those that are refused for the same.
func (o *oracle) judgeTrees(next configuration, wishes []string) verdict {
	var v verdict
	for _, name := range wishes {
		judged := o.judgeTree(next, name)
		if v = v.and(judged); judged.refused != 0 && judged.refused != v.refused {
			break
		}
	}
	return v
}

// and joins what is said of two trees: the first refusal counts, and breaches add up.
func (v verdict) and(other verdict) verdict {
	switch {
	case v.refused == 0 && other.refused != 0:
		return other
	case v.refused == other.refused:
		v.breaches, v.over = append(v.breaches, other.breaches...), append(v.over, other.over...)
	}
	return v
}

// judge decides about a change of some trees.
func (o *oracle) judge(next configuration, wishes []string) (verdict, configuration) {
	v := o.judgeTrees(next, wishes)
	if v.refused != 0 {
		return v, configuration{}
	}
	nodes := 0
	for name := range next.trees {
		nodes += len(o.after(next).nodesOf(name))
	}
	if len(next.trees) > o.bounds.Trees || nodes > o.bounds.Nodes {
		return refusal(quota.Full, ""), configuration{}
	}
	next.named = wishes
	return v, next
}

func (o *oracle) judgeTree(next configuration, name string) verdict {
	spec, stays := next.trees[name]
	if o.takesWhatIsHeld(next, name) {
		return refusal(quota.InUse, "")
	}
	if !stays {
		return verdict{}
	}
	alone := o.clone() // with this tree only as it is to be
	alone.trees[name], alone.ids[name] = spec, next.ids[name]
	after := o.after(alone)
	paths := after.nodesOf(name)
	switch {
	case len(paths) > o.bounds.NodesPerTree:
		return refusal(quota.Full, "")
	case slices.ContainsFunc(paths, func(p string) bool { return !o.goodPath(p) }):
		return refusal(quota.Invalid, "")
	}
	if breaches := breachesOf(o, after, next, name); len(breaches) > 0 {
		return verdict{refused: quota.PolicyBreach, breaches: breaches}
	}
	var v verdict
	for _, path := range paths {
		v.over = append(v.over, after.over(spec, path)...)
	}
	return v
}

func (o *oracle) setMaintenance(c quota.SetMaintenance) (verdict, configuration) {
	spec, known := o.trees[c.Tree]
	if !known {
		return refusal(quota.NotFound, ""), configuration{}
	}
	spec.Maintenance = c.On
	var v verdict
	for _, path := range o.nodesOf(c.Tree) {
		if !c.On {
			v.over = append(v.over, o.over(spec, path)...)
		}
	}
	return v, o.replaced(o.configuration, spec, o.ids[c.Tree])
}

// comparePlaces orders parents before children and siblings by name.
func comparePlaces(a, b string) int {
	return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
}

func (o *oracle) setLimits(c quota.SetLimits) (verdict, configuration) {
	spec, known := o.trees[c.Tree]
	if !known || nodeOf(spec, c.Node) == nil {
		return refusal(quota.NotFound, ""), configuration{}
	}
	if len(c.Limits) == 0 {
		return refusal(quota.Invalid, ""), configuration{}
	}
	spec.Nodes = slices.Clone(spec.Nodes)
	n := nodeOf(spec, c.Node)
	for i, l := range c.Limits {
		switch {
		case !registers(spec, l.Resource):
			return refusal(quota.NotFound, ""), configuration{}
		case !goodLimit(l.Limit), i > 0 && c.Limits[i-1].Resource >= l.Resource:
			return refusal(quota.Invalid, ""), configuration{}
		}
		n.Limits = slices.DeleteFunc(slices.Clone(n.Limits), func(old quota.ResourceLimit) bool { return old.Resource == l.Resource })
		if l.Limit.Kind != quota.Unset {
			n.Limits = append(n.Limits, l)
		}
	}
	slices.SortFunc(n.Limits, func(a, b quota.ResourceLimit) int { return cmp.Compare(a.Resource, b.Resource) })
	next := o.replaced(o.configuration, spec, o.ids[c.Tree])
	if breaches := breachesOf(o, o.after(next), next, c.Tree); len(breaches) > 0 {
		return verdict{refused: quota.PolicyBreach, breaches: breaches}, configuration{}
	}
	var v verdict
	for _, path := range o.nodesOf(c.Tree) {
		v.over = append(v.over, o.over(spec, path)...)
	}
	return v, next
}

func (o *oracle) deleteTree(c quota.DeleteTree) (verdict, configuration) {
	if _, known := o.trees[c.Tree]; !known {
		return refusal(quota.NotFound, ""), configuration{}
	}
	return o.judge(removed(o.configuration, c.Tree), []string{c.Tree})
}

// claimsIn counts the held claims that name a resource in a tree; an empty name counts all.
func (o *oracle) claimsIn(tree, resource string) int {
	n := 0
	for _, g := range o.held() {
		for _, c := range g.request.Claims {
			if c.Tree == tree && (resource == "" || slices.ContainsFunc(c.Amounts, func(a quota.Component) bool { return a.Resource == resource })) {
				n++
			}
		}
	}
	return n
}

// takesWhatIsHeld tells whether a tree would lose a node or a resource on which held claims stand.
func (o *oracle) takesWhatIsHeld(next configuration, name string) bool {
	for _, r := range o.trees[name].Resources {
		if o.claimsIn(name, r.Name) > 0 && !slices.Contains(next.trees[name].Resources, r) {
			return true
		}
	}
	for _, g := range o.held() {
		for i, c := range g.request.Claims {
			if c.Tree != name {
				continue
			}
			if _, there := o.moved(next, name, g.placed[i]); !there {
				return true
			}
		}
	}
	return false
}

// nodesOf are the paths of all nodes of a tree in walk order, also of those that were made on demand.
func (o *oracle) nodesOf(tree string) []string {
	var list []string
	for _, n := range o.trees[tree].Nodes {
		list = append(list, n.Path)
	}
	for _, g := range o.held() {
		for i, c := range g.request.Claims {
			if c.Tree == tree {
				list = append(list, upwards(g.placed[i])...)
			}
		}
	}
	slices.SortFunc(list, comparePlaces)
	return slices.Compact(list)
}

// over lists what a node holds above the limits of spec.
func (o *oracle) over(spec quota.TreeSpec, path string) []quota.Overuse {
	var list []quota.Overuse
	for _, r := range spec.Resources {
		used := quota.Amount(o.used(spec.Name, path, r.Name).Int64())
		if l := effective(spec, path, r.Name); l.Kind == quota.Limited && used > l.Amount {
			list = append(list, quota.Overuse{Tree: spec.Name, Node: path, Resource: r.Name, Limit: l.Amount, Used: used})
		}
	}
	return list
}
