package quotatest

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// PolicyNames is the pool of names of policies that configurations define.
var PolicyNames = []string{"p", "q", "r"}

// bases are the built-in policies that definitions begin with. Bounded borrowing is compared elsewhere.
var bases = []string{"open", "strict", "nested", "capped", "project", "borrowing", "borrowing"}

// PolicyChanges define, redefine and remove policies. Most definitions are right.
func PolicyChanges() *rapid.Generator[quota.ApplyTrees] {
	return rapid.Custom(func(t *rapid.T) quota.ApplyTrees {
		c := quota.ApplyTrees{Meta: reasoned(t)}
		if oneIn(t, 6, "remove") {
			c.RemovePolicies = subset(t, append([]string{"open"}, PolicyNames...), 1, true, "removed")
			if oneIn(t, 8, "spoil") {
				c.RemovePolicies = append(c.RemovePolicies, c.RemovePolicies[0])
			}
		}
		if len(c.RemovePolicies) == 0 || oneIn(t, 3, "define too") {
			c.Policies = Policies().Draw(t, "policies")
		}
		if oneIn(t, 12, "twice") && len(c.Policies) > 0 {
			c.Policies = append(c.Policies, c.Policies[0])
		}
		return c
	})
}

// Policies are definitions of some policies, by name.
func Policies() *rapid.Generator[[]quota.PolicySpec] {
	return rapid.Custom(func(t *rapid.T) []quota.PolicySpec {
		var list []quota.PolicySpec
		for _, name := range subset(t, PolicyNames, 2, true, "names") {
			list = append(list, PolicySpec(name).Draw(t, name))
		}
		return list
	})
}

// PolicySpec is a definition of one policy, most often one whose values do not exclude each other.
func PolicySpec(name string) *rapid.Generator[quota.PolicySpec] {
	return rapid.Custom(func(t *rapid.T) quota.PolicySpec {
		var spec quota.PolicySpec
		for range 4 {
			spec = quota.PolicySpec{Name: name, Base: pick(t, bases, "base")}
			for _, s := range policy.Switches() {
				if oneIn(t, 4, s.Name) {
					values := slices.DeleteFunc(slices.Clone(s.Values), func(v string) bool { return v == "bounded" })
					*s.Field(&spec) = pick(t, values, "value")
				}
			}
			if _, problem := policy.Presets().Define(spec); problem == nil {
				break
			}
		}
		if oneIn(t, 40, "spoil") {
			switch Die(t, 4, "how") {
			case 0:
				spec.Name = pick(t, []string{"", "strict", "a/b", "-"}, "bad name")
			case 1:
				spec.Base = pick(t, []string{"", "p", "lenient"}, "bad base")
			case 2:
				spec.Sum = "maybe"
			case 3:
				spec.Borrowing = "on"
			}
		}
		return spec
	})
}

// WithPolicies gives nodes of a tree built-in and defined policies, and makes no node hard.
func WithPolicies(t *rapid.T, spec quota.TreeSpec) quota.TreeSpec {
	spec.Nodes = slices.Clone(spec.Nodes)
	for i := range spec.Nodes {
		n := &spec.Nodes[i]
		n.Hard, n.Policy = false, ""
		if i == 0 || oneIn(t, 4, "own policy") {
			n.Policy = pick(t, slices.Concat(PolicyNames, PolicyNames, []string{"open", "strict", "borrowing"}), "policy")
		}
	}
	return spec
}
