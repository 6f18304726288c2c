package oracle

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/quotatest"
)

// builtIn are the rules of the built-in policies as docs/policies.md lists them, without those that are not compared
// here: no base, and a value for each switch.
var builtIn = map[string]quota.PolicySpec{
	"open":      {Unset: "unlimited", UnknownNodes: "count-at-ancestor"},
	"strict":    {Unset: "zero", Sum: "within-limit"},
	"nested":    {Unset: "zero", Sum: "within-limit-less-own"},
	"capped":    {Unset: "unlimited", ChildLimit: "within-parent"},
	"project":   {Unset: "unlimited", ChildLimit: "within-parent", UnknownNodes: "create"},
	"borrowing": {Unset: "zero", ClaimNodes: "leaves", Borrowing: "soft", Preemption: "all"},
}

// usual are the values that most of them have.
var usual = quota.PolicySpec{
	Sum: "unchecked", ChildLimit: "unchecked", UnknownNodes: "refuse", ClaimNodes: "any-node",
	Borrowing: "none", Preemption: "none",
}

// overlay has the values of a definition, and those of another one where it has none.
func overlay(s, base quota.PolicySpec) quota.PolicySpec {
	return quota.PolicySpec{
		Unset: cmp.Or(s.Unset, base.Unset), Sum: cmp.Or(s.Sum, base.Sum),
		ChildLimit:   cmp.Or(s.ChildLimit, base.ChildLimit),
		UnknownNodes: cmp.Or(s.UnknownNodes, base.UnknownNodes), ClaimNodes: cmp.Or(s.ClaimNodes, base.ClaimNodes),
		Borrowing: cmp.Or(s.Borrowing, base.Borrowing), Preemption: cmp.Or(s.Preemption, base.Preemption),
	}
}

// complete fills a definition with the values of its base.
func complete(s quota.PolicySpec) quota.PolicySpec {
	return overlay(s, overlay(builtIn[s.Base], usual))
}

// policy are the rules of a policy by its name.
func (c configuration) policy(name string) quota.PolicySpec {
	if spec, defined := c.policies[name]; defined {
		return complete(spec)
	}
	if spec, known := builtIn[name]; known {
		return overlay(spec, usual)
	}
	if name == "cohort" { // which no definition can be based on
		return overlay(quota.PolicySpec{Unset: "zero", Borrowing: "bounded"}, usual)
	}
	return quota.PolicySpec{}
}

// rulesAt are the rules at a node of a specification.
func (c configuration) rulesAt(spec quota.TreeSpec, path string) quota.PolicySpec {
	return c.policy(quotatest.PolicyOf(spec, path))
}

// ruleSet is what must be equal for the rules of a node to count as unchanged.
type ruleSet struct {
	policy string
	rules  quota.PolicySpec
}

func (c configuration) ruleSet(tree, path string) ruleSet {
	name := quotatest.PolicyOf(c.trees[tree], path)
	return ruleSet{name, c.policy(name)}
}

// goodPolicy is true if a definition is well formed and its values do not exclude each other.
func goodPolicy(s quota.PolicySpec) bool {
	if _, known := builtIn[s.Base]; !known || !namePattern.MatchString(s.Name) {
		return false
	}
	r := complete(s)
	allowed := []string{
		"unlimited zero", "unchecked within-limit within-limit-less-own", "unchecked within-parent",
		"refuse count-at-ancestor create", "any-node leaves", "none soft", "none lower-priority borrowers all",
		"ancestors parent",
	}
	for i, w := range words(r) {
		if !slices.Contains(strings.Fields(allowed[i]), w[1]) {
			return false
		}
	}
	return (r.Preemption == "none" || r.Borrowing == "soft") && (r.UnknownNodes != "create" ||
		r.Sum == "unchecked" && r.ClaimNodes == "any-node" && r.Borrowing == "none")
}

// definePolicies are the definitions after a command, or its refusal. The configuration has no trees of the command.
func (o *oracle) definePolicies(c quota.ApplyTrees) (map[string]quota.PolicySpec, quota.Kind) {
	next := maps.Clone(o.policies)
	for i, name := range c.RemovePolicies {
		if i > 0 && c.RemovePolicies[i-1] >= name {
			return nil, quota.Invalid
		}
		if _, defined := o.policies[name]; !defined {
			if _, known := builtIn[name]; known || name == "cohort" {
				return nil, quota.Invalid
			}
			return nil, quota.NotFound
		}
	}
	if c.Prune {
		next = nil
	}
	next = maps.Clone(next)
	for _, name := range c.RemovePolicies {
		delete(next, name)
	}
	for i, s := range c.Policies {
		if i > 0 && c.Policies[i-1].Name >= s.Name || slices.Contains(c.RemovePolicies, s.Name) {
			return nil, quota.Invalid
		}
		if next == nil {
			next = map[string]quota.PolicySpec{}
		}
		next[s.Name] = s
	}
	if len(next) > o.bounds.Policies {
		return nil, quota.Full
	}
	for name, s := range next {
		if _, taken := builtIn[name]; o.policies[name] != s && (!goodPolicy(s) || taken) {
			return nil, quota.Invalid
		}
	}
	return next, 0
}

// usesRemoved is true if a tree that a change does not name uses a policy that is not defined any more.
func (o *oracle) usesRemoved(policies map[string]quota.PolicySpec, named []string) bool {
	for tree, spec := range o.trees {
		for _, n := range spec.Nodes {
			_, was := o.policies[n.Policy]
			if _, is := policies[n.Policy]; was && !is && !slices.Contains(named, tree) {
				return true
			}
		}
	}
	return false
}

// affected are the trees, by name, that a change does not name and that use a policy with other rules.
func (o *oracle) affected(next configuration, named []string) []string {
	var list []string
	for _, tree := range slices.Sorted(maps.Keys(o.trees)) {
		redefined := func(n quota.NodeSpec) bool {
			_, was := o.policies[n.Policy]
			return was && o.policy(n.Policy) != next.policy(n.Policy)
		}
		if !slices.Contains(named, tree) && slices.ContainsFunc(o.trees[tree].Nodes, redefined) {
			list = append(list, tree)
		}
	}
	return list
}

// policyConflicts are the hard nodes of a tree under policies without soft borrowing.
func (c configuration) policyConflicts(tree string) []string {
	var list []string
	for _, n := range c.trees[tree].Nodes {
		if n.Hard && c.rulesAt(c.trees[tree], n.Path).Borrowing != "soft" {
			list = append(list, quota.Place(tree, n.Path)+" ")
		}
	}
	return list
}

// policyChanges lists how the definitions of two configurations differ.
func policyChanges(before, after configuration) []quota.Change {
	var list []quota.Change
	add := func(kind quota.ChangeKind, field, was, is string) {
		if was != is {
			list = append(list, quota.Change{Kind: kind, Field: "policy " + field, Before: was, After: is})
		}
	}
	for name, was := range before.policies {
		is, still := after.policies[name]
		if !still {
			add(quota.Removed, name, describe(was), "")
			continue
		}
		add(quota.Changed, name+" base", was.Base, is.Base)
		one, other := words(complete(was)), words(complete(is))
		for i, w := range one {
			add(quota.Changed, name+" "+w[0], w[1], other[i][1])
		}
	}
	for name, is := range after.policies {
		if _, known := before.policies[name]; !known {
			add(quota.Added, name, "", describe(is))
		}
	}
	return list
}

func words(s quota.PolicySpec) [][2]string {
	return [][2]string{
		{"unset", s.Unset},
		{"sum", s.Sum},
		{"child-limit", s.ChildLimit},
		{"unknown-nodes", s.UnknownNodes},
		{"claim-nodes", s.ClaimNodes},
		{"borrowing", s.Borrowing},
		{"preemption", s.Preemption},
	}
}

func describe(s quota.PolicySpec) string {
	text := "base " + s.Base
	for _, w := range words(s) {
		if w[1] != "" {
			text += ", " + w[0] + " " + w[1]
		}
	}
	return text
}

// hasOtherRules is true if a node of a tree stays and gets other rules.
func (o *oracle) hasOtherRules(after configuration, tree string) bool {
	for path, id := range after.ids[tree] {
		if was, exists := o.pathOf(tree, id); exists && o.ruleSet(tree, was) != after.ruleSet(tree, path) {
			return true
		}
	}
	return false
}
