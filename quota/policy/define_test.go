package policy_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

func everyDefinition(base string, yield func(quota.PolicySpec)) {
	var combine func(spec quota.PolicySpec, rest []*policy.Switch)
	combine = func(spec quota.PolicySpec, rest []*policy.Switch) {
		if len(rest) == 0 {
			yield(spec)
			return
		}
		for _, value := range rest[0].Values {
			*rest[0].Field(&spec) = value
			combine(spec, rest[1:])
		}
	}
	combine(quota.PolicySpec{Name: "lab", Base: base}, policy.Switches())
}

// TestDefineCombinesEveryValue: a policy has exactly the values of its definition, and what is refused could not be a
// built-in policy either.
func TestDefineCombinesEveryValue(t *testing.T) {
	allowed := 0
	everyDefinition("open", func(spec quota.PolicySpec) {
		p, problem := policy.Presets().Define(spec)
		if problem != nil {
			if spec.Preemption == "none" && spec.UnknownNodes != "create" {
				t.Errorf("%+v: %s", spec, problem.Text)
			}
			return
		}
		allowed++
		policy.MustRegistry(p) // panics if it contradicts itself
		for _, s := range policy.Switches() {
			if s.Value(p) != *s.Field(&spec) {
				t.Errorf("%+v has %s %s", spec, s.Name, s.Value(p))
			}
		}
		if p.Name != "lab" {
			t.Errorf("the policy is called %s", p.Name)
		}
	})
	if allowed != 292 {
		t.Errorf("%d combinations are allowed", allowed)
	}
}

// TestADefinitionKeepsItsBase: without other values it decides like the base, and with all values of another built-in
// policy like that one.
func TestADefinitionKeepsItsBase(t *testing.T) {
	names := strings.Split(policy.Presets().Names(), ", ")
	for _, base := range names {
		p, problem := policy.Presets().Define(quota.PolicySpec{Name: "lab", Base: base})
		if problem != nil || !p.SameRules(policy.Presets()[base]) {
			t.Errorf("%s: %+v, %+v", base, p, problem)
		}
		for _, other := range names {
			spec := quota.PolicySpec{Name: "lab", Base: base}
			for _, s := range policy.Switches() {
				*s.Field(&spec) = s.Value(policy.Presets()[other])
			}
			p, problem := policy.Presets().Define(spec)
			if problem != nil || !p.SameRules(policy.Presets()[other]) || base != other &&
				p.SameRules(policy.Presets()[base]) {
				t.Errorf("%s from %s: %+v, %+v", other, base, p, problem)
			}
		}
	}
}

// TestRulesInGoAreNeverTheSame: a further rule cannot be compared.
func TestRulesInGoAreNeverTheSame(t *testing.T) {
	ruled := policy.Policy{Name: "ruled", Unset: quota.NoLimit(), FamilyRule: func(policy.Family) string { return "" }}
	plain := policy.Policy{Name: "plain", Unset: quota.NoLimit()}
	if ruled.SameRules(&plain) || plain.SameRules(&ruled) || ruled.SameRules(&ruled) || !plain.SameRules(&plain) {
		t.Error("a policy with a further rule is the same as another one")
	}
	derived, problem := policy.MustRegistry(&ruled).Define(quota.PolicySpec{Name: "lab", Base: "ruled"})
	if problem != nil || derived.FamilyRule == nil {
		t.Errorf("a definition does not keep the further rule of its base: %+v", problem)
	}
}
