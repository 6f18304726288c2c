package policy

import (
	"fmt"
	"strings"

	"github.com/quorate/quorate/quota"
)

// Problem is what is wrong with a definition.
type Problem struct {
	// Field is "name", "base" or the name of a switch.
	Field string
	// Text says what is wrong and what is allowed.
	Text string
}

// Define makes the policy of a definition: its base with the values that the definition gives to switches. Bases are
// the policies of r. The problem is nil if the definition is right; whether the name is free is not asked.
func (r Registry) Define(spec quota.PolicySpec) (*Policy, *Problem) {
	if !quota.IsName(spec.Name) {
		return nil, problemf("name",
			"the name of a policy is 1 to %d letters, digits and %s, beginning with a letter, digit or _; got %q",
			quota.MaxName, quota.NodeNameExtra, quota.Clip(spec.Name))
	}
	base := r[spec.Base]
	switch {
	case spec.Base == "":
		return nil, problemf("base", "policy %s has no base, whose other switches it keeps; name one of %s", spec.Name,
			r.Names())
	case base == nil:
		return nil, problemf("base", "the base of policy %s is a built-in policy, which %q is not; there are %s",
			spec.Name, quota.Clip(spec.Base), r.Names())
	}
	p := *base
	p.Name = spec.Name
	for _, s := range switches {
		if problem := s.apply(&p, &spec); problem != nil {
			return nil, problem
		}
	}
	return &p, p.conflictIn(&spec)
}

// apply gives a policy the value that a definition has for the switch, if it has one.
func (s *Switch) apply(p *Policy, spec *quota.PolicySpec) *Problem {
	word := *s.Field(spec)
	if word == "" {
		return nil
	}
	for v, known := range s.Values {
		if word == known {
			s.set(p, uint8(v))
			return nil
		}
	}
	return problemf(s.Name, "%s of policy %s is one of %s, not %q", s.Name, spec.Name, strings.Join(s.Values, ", "),
		quota.Clip(word))
}

// conflictIn reports values that exclude each other, at a switch that the definition names itself.
func (p *Policy) conflictIn(spec *quota.PolicySpec) *Problem {
	e := p.excluded()
	if e == nil {
		return nil
	}
	origin := func(s *Switch) string {
		if *s.Field(spec) == "" {
			return " (of the base " + spec.Base + ")"
		}
		return ""
	}
	field := e.name
	if *switchNamed(e.name).Field(spec) == "" {
		field = e.with
	}
	return problemf(field, "in policy %s, %s", spec.Name, e.describe(p, origin))
}

func problemf(field, format string, args ...any) *Problem {
	return &Problem{Field: field, Text: fmt.Sprintf(format, args...)}
}

// DescribeSpec says what a definition says, in the order of the switches: "base strict, unset zero". The history keeps
// this text, so replicas of all versions must write it alike.
func DescribeSpec(spec quota.PolicySpec) string {
	parts := []string{"base " + spec.Base}
	for _, s := range switches {
		if word := *s.Field(&spec); word != "" {
			parts = append(parts, s.Name+" "+word)
		}
	}
	return strings.Join(parts, ", ")
}
