package ledger_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
)

// configure carries out a change of configuration that plan answers: what it should do, and the trees afterwards.
func (o *oracle) configure(m quota.ChangeMeta, plan func() (verdict, map[string]quota.TreeSpec), named ...string) verdict {
	if len(m.Actor) > quota.MaxActor || len(m.Reason) > quota.MaxReason || m.RequestID != "" && !idPattern.MatchString(m.RequestID) {
		return refusal(quota.Invalid, "")
	}
	for _, r := range o.history {
		switch {
		case m.RequestID == "" || r.RequestID != m.RequestID:
		case r.Fingerprint != m.Fingerprint:
			return refusal(quota.IDTaken, "")
		default:
			return verdict{configured: true, repeated: true, revision: r.Number, changes: r.Changes}
		}
	}
	if m.ExpectedRevision != nil && *m.ExpectedRevision != o.revision {
		return refusal(quota.RevisionMismatch, "")
	}
	v, after := plan()
	if v.refused != 0 {
		return v
	}
	v.configured, v.changes = true, changesOf(o.trees, after)
	if len(v.changes) > 0 {
		before := o.trees
		o.trees = after
		o.revision++
		for _, name := range named {
			o.reseat(name, before[name])
		}
		o.settleItems(before)
		o.markChanges(v.changes)
		o.history = append(o.history, quota.Revision{
			Number: o.revision, Actor: m.Actor, Reason: m.Reason, RequestID: m.RequestID, Fingerprint: m.Fingerprint,
			Wall: o.now.Wall, Changes: v.changes, ChangeCount: len(v.changes),
		})
		o.history = o.history[max(0, len(o.history)-o.bounds.Revisions):]
	}
	v.revision = o.revision
	return v
}

func (o *oracle) applyTrees(c quota.ApplyTrees) (verdict, map[string]quota.TreeSpec) {
	if len(c.Trees) == 0 || len(c.Trees) > o.bounds.TreesPerChange {
		return refusal(quota.Invalid, ""), nil
	}
	after := maps.Clone(o.trees)
	for i, spec := range c.Trees {
		if slices.ContainsFunc(c.Trees[:i], func(other quota.TreeSpec) bool { return other.Name == spec.Name }) {
			return refusal(quota.Invalid, ""), nil
		}
	}
	var v verdict
	for _, spec := range c.Trees {
		spec.Nodes = slices.Clone(spec.Nodes)
		judged := o.judgeTree(spec)
		switch {
		case v.refused == 0 && judged.refused != 0:
			v = judged
		case v.refused == 0:
			v.over = append(v.over, judged.over...)
		case judged.refused == v.refused:
			v.breaches = append(v.breaches, judged.breaches...)
		case judged.refused != 0:
			return v, nil
		}
		after[spec.Name] = spec
	}
	if v.refused != 0 {
		return v, nil
	}
	nodes := 0
	for _, spec := range after {
		nodes += len(spec.Nodes)
	}
	if len(after) > o.bounds.Trees || nodes > o.bounds.Nodes {
		return refusal(quota.Full, ""), nil
	}
	return v, after
}

// judgeTree says whether a tree may be so, and what is over then. It puts the nodes in order.
func (o *oracle) judgeTree(spec quota.TreeSpec) verdict {
	if !o.goodTree(spec) {
		return refusal(quota.Invalid, "")
	}
	if o.takesWhatIsHeld(spec) {
		return refusal(quota.InUse, "")
	}
	slices.SortFunc(spec.Nodes, func(a, b quota.NodeSpec) int { return comparePlaces(a.Path, b.Path) })
	if breaches := append(breachesOf(spec), o.borrowersOutside(spec)...); len(breaches) > 0 {
		return verdict{refused: quota.PolicyBreach, breaches: breaches}
	}
	return verdict{over: o.overAfter(spec)}
}

// comparePlaces orders parents before children and siblings by name.
func comparePlaces(a, b string) int {
	return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
}

func (o *oracle) setLimits(c quota.SetLimits) (verdict, map[string]quota.TreeSpec) {
	spec, known := o.trees[c.Tree]
	if !known || nodeOf(spec, c.Node) == nil {
		return refusal(quota.NotFound, ""), nil
	}
	if len(c.Limits) == 0 {
		return refusal(quota.Invalid, ""), nil
	}
	spec.Nodes = slices.Clone(spec.Nodes)
	n := nodeOf(spec, c.Node)
	for i, l := range c.Limits {
		switch {
		case !registers(spec, l.Resource):
			return refusal(quota.NotFound, ""), nil
		case !goodLimit(l.Limit), i > 0 && c.Limits[i-1].Resource >= l.Resource:
			return refusal(quota.Invalid, ""), nil
		}
		n.Limits = slices.DeleteFunc(slices.Clone(n.Limits), func(old quota.ResourceLimit) bool { return old.Resource == l.Resource })
		if l.Limit.Kind != quota.Unset {
			n.Limits = append(n.Limits, l)
		}
	}
	slices.SortFunc(n.Limits, func(a, b quota.ResourceLimit) int { return cmp.Compare(a.Resource, b.Resource) })
	if breaches := breachesOf(spec); len(breaches) > 0 {
		return verdict{refused: quota.PolicyBreach, breaches: breaches}, nil
	}
	after := maps.Clone(o.trees)
	after[c.Tree] = spec
	var over []quota.Overuse
	for _, n := range spec.Nodes {
		over = append(over, o.over(spec, n.Path)...)
	}
	return verdict{over: over}, after
}

func (o *oracle) deleteTree(c quota.DeleteTree) (verdict, map[string]quota.TreeSpec) {
	if _, known := o.trees[c.Tree]; !known {
		return refusal(quota.NotFound, ""), nil
	}
	if o.claimsIn(c.Tree, "") > 0 {
		return refusal(quota.InUse, ""), nil
	}
	after := maps.Clone(o.trees)
	delete(after, c.Tree)
	return verdict{}, after
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
func (o *oracle) takesWhatIsHeld(spec quota.TreeSpec) bool {
	for _, r := range o.trees[spec.Name].Resources {
		sameUnit := func(is quota.Resource) bool { return is.Name == r.Name && is.Unit == r.Unit }
		if o.claimsIn(spec.Name, r.Name) > 0 && !slices.ContainsFunc(spec.Resources, sameUnit) {
			return true
		}
	}
	for _, g := range o.held() {
		for i, c := range g.request.Claims {
			if c.Tree == spec.Name && (nodeOf(spec, g.placed[i]) == nil || nodeOf(spec, g.homes[i]) == nil) {
				return true
			}
		}
	}
	return false
}

// overAfter lists what the nodes of spec will hold above their limits when every claim has found its node.
func (o *oracle) overAfter(spec quota.TreeSpec) []quota.Overuse {
	before, known := o.trees[spec.Name]
	saved := o.save()
	o.trees = maps.Clone(o.trees)
	o.trees[spec.Name] = spec
	o.reseat(spec.Name, before)
	var list []quota.Overuse
	for _, n := range spec.Nodes {
		list = append(list, o.over(spec, n.Path)...)
	}
	o.restore(saved)
	delete(o.trees, spec.Name)
	if known {
		o.trees[spec.Name] = before
	}
	return list
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

// breachesOf lists every strict node whose children's limits add up to more than its own.
func breachesOf(spec quota.TreeSpec) []string {
	var list []string
	for _, n := range spec.Nodes {
		for _, r := range spec.Resources {
			limit := effective(spec, n.Path, r.Name)
			if policyOf(spec, n.Path) != "strict" || limit.Kind == quota.Unlimited {
				continue
			}
			sum, unlimited := new(big.Int), false
			for _, child := range spec.Nodes {
				if child.Path == "" || above(child.Path) != n.Path {
					continue
				}
				l := effective(spec, child.Path, r.Name)
				sum.Add(sum, big.NewInt(int64(l.Amount)))
				unlimited = unlimited || l.Kind == quota.Unlimited
			}
			if unlimited || sum.Cmp(big.NewInt(int64(limit.Amount))) > 0 {
				list = append(list, quota.Place(spec.Name, n.Path)+" "+r.Name)
			}
		}
	}
	return list
}

func goodLimit(l quota.Limit) bool {
	if l.Kind == quota.Limited {
		return l.Amount >= 0 && l.Amount <= quota.MaxAmount
	}
	return l.Kind <= quota.Unlimited && l.Amount == 0
}

func (o *oracle) goodPath(path string) bool {
	names := strings.Split(path, "/")
	return path == "" || len(path) <= quota.MaxPath && len(names) <= o.bounds.Depth && !slices.ContainsFunc(names, func(name string) bool {
		return !namePattern.MatchString(name)
	})
}

func (o *oracle) goodLabels(labels []quota.Label) bool {
	for i, l := range labels {
		if l.Key == "" || len(l.Key) > quota.MaxLabelKey || len(l.Value) > quota.MaxLabelValue || i > 0 && labels[i-1].Key >= l.Key {
			return false
		}
	}
	return len(labels) <= o.bounds.Labels
}

func (o *oracle) goodTree(spec quota.TreeSpec) bool {
	for i, r := range spec.Resources {
		if !resourcePattern.MatchString(r.Name) || r.Unit < quota.Count || r.Unit > quota.Items || (r.Unit == quota.Items) != (r.Items != nil) || i > 0 && spec.Resources[i-1].Name >= r.Name {
			return false
		}
	}
	for i, n := range spec.Nodes {
		if nodeOf(spec, above(n.Path)) == nil {
			return false
		}
		if n.Hard && policyOf(spec, n.Path) != "borrowing" {
			return false
		}
		if !o.goodNode(spec, n) || (n.Path == "") != (i == 0) || nodeOf(spec, n.Path) != &spec.Nodes[i] {
			return false
		}
	}
	for _, n := range spec.Nodes {
		if n.Hard && holdersPolicy(spec, n.Path) != "borrowing" {
			return false
		}
	}
	return namePattern.MatchString(spec.Name) &&
		len(spec.Resources) > 0 && len(spec.Resources) <= o.bounds.Resources &&
		len(spec.Nodes) > 0 && len(spec.Nodes) <= o.bounds.NodesPerTree
}

func (o *oracle) goodNode(spec quota.TreeSpec, n quota.NodeSpec) bool {
	for i, l := range n.Limits {
		if !registers(spec, l.Resource) || !goodLimit(l.Limit) || l.Limit.Kind == quota.Unset || i > 0 && n.Limits[i-1].Resource >= l.Resource {
			return false
		}
	}
	return o.goodPath(n.Path) && o.goodLabels(n.Labels) && slices.Contains([]string{"", "open", "strict", "borrowing"}, n.Policy) &&
		nodeOf(spec, above(n.Path)) != nil
}

// changesOf compares two configurations as flat lists of facts.
func changesOf(before, after map[string]quota.TreeSpec) []quota.Change {
	was, is := facts(before), facts(after)
	var list []quota.Change
	for key, text := range is {
		switch old, known := was[key]; {
		case !known:
			list = append(list, quota.Change{Kind: quota.Added, Tree: key.tree, Node: key.node, Field: key.field, After: text})
		case old != text:
			field := strings.Replace(key.field, "resource ", "unit ", 1) // a resource that stays can only change its unit
			list = append(list, quota.Change{Kind: quota.Changed, Tree: key.tree, Node: key.node, Field: field, Before: old, After: text})
		}
	}
	for key, text := range was {
		// With a tree or a node goes all that is said about it.
		_, still := is[key]
		_, tree := is[fact{key.tree, "", "tree"}]
		_, node := is[fact{key.tree, key.node, "node"}]
		if resource, ofItems := strings.CutPrefix(key.field, "items "); ofItems && is[fact{key.tree, "", "resource " + resource}] == "" {
			continue
		}
		if !still && (key.field == "tree" || tree && (key.field == "node" || key.node == "" || node)) {
			list = append(list, quota.Change{Kind: quota.Removed, Tree: key.tree, Node: key.node, Field: key.field, Before: text})
		}
	}
	return withoutItemTexts(list)
}

// fact is one thing that a configuration says.
type fact struct{ tree, node, field string }

func facts(trees map[string]quota.TreeSpec) map[fact]string {
	all := map[fact]string{}
	for name, spec := range trees {
		all[fact{name, "", "tree"}] = name
		for field, s := range map[string]quota.Span{"lease default": spec.Leases.Default, "lease max": spec.Leases.Max} {
			if s != 0 {
				all[fact{name, "", field}] = fmt.Sprintf("%dms", s)
			}
		}
		for _, r := range spec.Resources {
			all[fact{name, "", "resource " + r.Name}] = r.Unit.String()
			if r.Items != nil {
				all[fact{name, "", "items " + r.Name}] = fmt.Sprintf("%+v", *r.Items)
			}
		}
		for _, n := range spec.Nodes {
			if n.Path != "" {
				all[fact{name, n.Path, "node"}] = n.Path
			}
			if p := n.Policy; p != "" || n.Path == "" {
				all[fact{name, n.Path, "policy"}] = cmp.Or(p, "open")
			}
			if n.Hard {
				all[fact{name, n.Path, "hard"}] = "on"
			}
			for _, l := range n.Limits {
				all[fact{name, n.Path, "limit " + l.Resource}] = l.Limit.String()
			}
			for _, l := range n.Labels {
				all[fact{name, n.Path, "label " + l.Key}] = fmt.Sprintf(`"%s"`, l.Value)
			}
		}
	}
	return all
}
