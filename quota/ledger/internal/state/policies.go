package state

import (
	"maps"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// Find returns a policy by its name, or nil. A definition precedes a built-in policy of its name, which a later version
// may have introduced.
func (s *PolicySet) Find(name string) *policy.Policy {
	if p := s.Defined[name]; p != nil {
		return p
	}
	return BuiltIn[name]
}

// Names lists all policies, for messages.
func (s *PolicySet) Names() string {
	if len(s.Defined) == 0 {
		return BuiltIn.Names()
	}
	all := maps.Clone(BuiltIn)
	maps.Copy(all, s.Defined)
	return all.Names()
}

func (s *PolicySet) Spec(name string) (quota.PolicySpec, bool) {
	i, found := slices.BinarySearchFunc(s.Specs, name,
		func(spec quota.PolicySpec, name string) int { return strings.Compare(spec.Name, name) })
	if !found {
		return quota.PolicySpec{Name: name}, false
	}
	return s.Specs[i], true
}

// With adds a definition, which must come after those that are there.
func (s *PolicySet) With(spec quota.PolicySpec, p *policy.Policy) {
	if s.Defined == nil {
		s.Defined = map[string]*policy.Policy{}
	}
	s.Specs = append(s.Specs, spec)
	s.Defined[spec.Name] = p
}

// PolicySet is the policies that a configuration may name: the built-in ones and those that it defines. It is never
// changed: a change of definitions makes another one, in which a policy whose rules stay is the same value. So equal
// pointers mean that no rule of a node has changed.
type PolicySet struct {
	Specs   []quota.PolicySpec // by name
	Defined map[string]*policy.Policy
}

// BuiltIn are the policies that every configuration may name; tests add more.
var BuiltIn = policy.Presets()
