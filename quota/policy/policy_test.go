package policy_test

import (
	"testing"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// TestSwitches asks every switch about small families.
func TestSwitches(t *testing.T) {
	capped := policy.Policy{Name: "capped", Unset: quota.NoLimit(), ChildWithinParent: true}
	strict := policy.Policy{Name: "strict", Unset: quota.AtMost(0), Sum: policy.SumWithinLimit}
	nested := policy.Policy{Name: "nested", Sum: policy.SumWithinLimitLessOwn}
	open := policy.Policy{Name: "open", Unset: quota.NoLimit(), UnknownNodes: policy.CountAtAncestor}
	ten, none := quota.AtMost(10), quota.NoLimit()

	for name, c := range map[string]struct {
		policy   policy.Policy
		limit    quota.Limit
		own      quota.Amount
		children []quota.Limit
		want     string
	}{
		"open minds nothing":       {open, ten, 10, []quota.Limit{ten, none, ten}, ""},
		"strict: equal is allowed": {strict, ten, 10, []quota.Limit{quota.AtMost(4), quota.AtMost(6)}, ""},
		"strict: one too many": {
			strict, ten, 0,
			[]quota.Limit{quota.AtMost(5), quota.AtMost(6)},
			"the limits of its children add up to 11, more than its limit of 10: lower one of them, or raise it first",
		},
		"strict: unlimited child": {
			strict, ten, 0,
			[]quota.Limit{none},
			"its child a is unlimited, but the children's limits must add up to at most its limit of 10: give the " +
				"child an amount",
		},
		"strict: a child with an advisory limit is not bounded": {
			strict, ten, 0,
			[]quota.Limit{quota.AdvisoryLimit(1)},
			"its child a is advisory:1, which denies nothing, but the children's limits must add up to at most its limit of 10: " +
				"give the child an amount",
		},
		"strict: a parent with an advisory limit": {
			strict, quota.AdvisoryLimit(1), 0,
			[]quota.Limit{none, ten, quota.AdvisoryLimit(5)},
			"",
		},
		"capped: advisory limits are compared": {
			capped, ten, 0,
			[]quota.Limit{quota.AdvisoryLimit(10), quota.AdvisoryLimit(11)},
			"the limit of its child b is advisory:11, above its own 10: lower the child's, or raise its own first",
		},
		"capped: a parent with an advisory limit": {capped, quota.AdvisoryLimit(1), 0, []quota.Limit{none, ten}, ""},
		"strict: unlimited parent": {
			strict, none, 0,
			[]quota.Limit{none, ten, quota.AtMost(quota.MaxAmount)},
			"",
		},
		"strict: nothing of nothing": {strict, quota.AtMost(0), 0, []quota.Limit{quota.AtMost(0)}, ""},
		"strict: no children":        {strict, quota.AtMost(0), 5, nil, ""},
		"nested: own use counts":     {nested, ten, 3, []quota.Limit{quota.AtMost(7)}, ""},
		"nested: own use counts against": {
			nested, ten, 4,
			[]quota.Limit{quota.AtMost(7)},
			"the limits of its children add up to 7, more than its limit of 10 less its own use of 4: lower one of " +
				"them, or raise it first",
		},
		"nested: own use above the limit":     {nested, ten, 40, []quota.Limit{quota.AtMost(0)}, ""},
		"capped: each child, but not the sum": {capped, ten, 0, []quota.Limit{ten, ten, ten}, ""},
		"capped: a child above": {
			capped, ten, 0,
			[]quota.Limit{ten, quota.AtMost(11)},
			"the limit of its child b is 11, above its own 10: lower the child's, or raise its own first",
		},
		"capped: an unlimited child": {
			capped, ten, 0,
			[]quota.Limit{none},
			"the limit of its child a is unlimited, above its own 10: lower the child's, or raise its own first",
		},
		"capped: unlimited is no amount": {
			capped, quota.AtMost(quota.MaxAmount), 0,
			[]quota.Limit{none},
			"the limit of its child a is unlimited, above its own 4611686018427387903: lower the child's, or " +
				"raise its own first",
		},
		"capped: unlimited parent": {
			capped, none, 0,
			[]quota.Limit{none, quota.AtMost(quota.MaxAmount)},
			"",
		},
	} {
		family := policy.Family{Limit: c.limit, Own: c.own}
		for i, l := range c.children {
			family.Children = append(family.Children,
				policy.ChildLimit{Name: string(rune('a' + i)), Limit: l, Set: true})
		}
		if got := c.policy.CheckFamily(family); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestEffectiveLimits(t *testing.T) {
	open := policy.Policy{Unset: quota.NoLimit()}
	strict := policy.Policy{Unset: quota.AtMost(0)}
	for _, set := range []quota.Limit{quota.AtMost(0), quota.AtMost(7), quota.NoLimit()} {
		if open.Effective(set, quota.Limit{}) != set || strict.Effective(set, quota.Limit{}) != set {
			t.Errorf("a limit of %s that is set does not stay so", set)
		}
	}
	if got := open.Effective(quota.Limit{}, quota.Limit{}); got != quota.NoLimit() {
		t.Errorf("unset under open is %s", got)
	}
	if got := strict.Effective(quota.Limit{}, quota.Limit{}); got != quota.AtMost(0) {
		t.Errorf("unset under strict is %s", got)
	}
}
