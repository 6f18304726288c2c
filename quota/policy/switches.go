package policy

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
)

// Switch is one choice of a policy, in the words of manifests, the API and the log. The words are permanent: they stand
// in logs, so a new value or switch needs a new feature level (docs/adr/0080).
type Switch struct {
	Name string
	// Values are the words of the values, in the order of the constants.
	Values []string
	// Field is the place of the value in a definition; an empty text there keeps the value of the base.
	Field func(*quota.PolicySpec) *string

	get func(*Policy) uint8
	set func(*Policy, uint8)
}

// Value is the word of the value that a policy has.
func (s *Switch) Value(p *Policy) string { return s.Values[s.get(p)] }

// switches are all choices that a definition can make. A policy's further rule in Go (FamilyRule) has no words, so a
// definition takes over that of its base.
var switches = []*Switch{
	{
		Name: "unset", Values: strings.Fields("unlimited zero"),
		Field: func(s *quota.PolicySpec) *string { return &s.Unset },
		get:   func(p *Policy) uint8 { return number(p.Unset.Kind != quota.Unlimited) },
		set:   func(p *Policy, v uint8) { p.Unset = []quota.Limit{quota.NoLimit(), quota.AtMost(0)}[v] },
	},
	{
		Name: "sum", Values: strings.Fields("unchecked within-limit within-limit-less-own"),
		Field: func(s *quota.PolicySpec) *string { return &s.Sum },
		get:   func(p *Policy) uint8 { return uint8(p.Sum) },
		set:   func(p *Policy, v uint8) { p.Sum = SumRule(v) },
	},
	{
		Name: "child-limit", Values: strings.Fields("unchecked within-parent"),
		Field: func(s *quota.PolicySpec) *string { return &s.ChildLimit },
		get:   func(p *Policy) uint8 { return number(p.ChildWithinParent) },
		set:   func(p *Policy, v uint8) { p.ChildWithinParent = v == 1 },
	},
	{
		Name: "unknown-nodes", Values: strings.Fields("refuse count-at-ancestor create"),
		Field: func(s *quota.PolicySpec) *string { return &s.UnknownNodes },
		get:   func(p *Policy) uint8 { return uint8(p.UnknownNodes) },
		set:   func(p *Policy, v uint8) { p.UnknownNodes = UnknownRule(v) },
	},
	{
		Name: "claim-nodes", Values: strings.Fields("any-node leaves"),
		Field: func(s *quota.PolicySpec) *string { return &s.ClaimNodes },
		get:   func(p *Policy) uint8 { return number(p.LeavesOnly) },
		set:   func(p *Policy, v uint8) { p.LeavesOnly = v == 1 },
	},
	{
		Name: "borrowing", Values: strings.Fields("none soft bounded"),
		Field: func(s *quota.PolicySpec) *string { return &s.Borrowing },
		get:   func(p *Policy) uint8 { return uint8(p.Borrowing) },
		set:   func(p *Policy, v uint8) { p.Borrowing = Borrowing(v) },
	},
	{
		Name: "preemption", Values: strings.Fields("none lower-priority borrowers all"),
		Field: func(s *quota.PolicySpec) *string { return &s.Preemption },
		get:   func(p *Policy) uint8 { return uint8(p.Preemption) },
		set:   func(p *Policy, v uint8) { p.Preemption = Preemption(v) },
	},
}

// Switches are all switches, in the order in which they are listed to people. The list must not be changed.
func Switches() []*Switch { return switches }

func number(set bool) uint8 {
	if set {
		return 1
	}
	return 0
}

func switchNamed(name string) *Switch {
	return switches[slices.IndexFunc(switches, func(s *Switch) bool { return s.Name == name })]
}

// SameRules is true if two policies decide alike, whatever their names. A further rule in Go is taken for different
// from every other, because functions cannot be compared.
func (p *Policy) SameRules(other *Policy) bool {
	different := func(s *Switch) bool { return s.get(p) != s.get(other) }
	return !slices.ContainsFunc(switches, different) && p.Unset == other.Unset &&
		p.FamilyRule == nil && other.FamilyRule == nil
}

// exclusion is values of two switches that cannot be combined.
type exclusion struct {
	name   string
	values []string
	with   string
	others []string
	reason string
}

var exclusions = []exclusion{
	{
		"preemption", strings.Fields("lower-priority borrowers all"), "borrowing", strings.Fields("none bounded"),
		"without soft borrowing only limits are in the way of a claim",
	},
	{
		"unknown-nodes",
		[]string{"create"},
		"sum", strings.Fields("within-limit within-limit-less-own"),
		"a node that a claim creates would change a sum of limits that is checked only in configurations",
	},
	{
		"unknown-nodes",
		[]string{"create"},
		"claim-nodes",
		[]string{"leaves"},
		"a claim below a leaf would make it an inner node, with claims",
	},
	{
		"unknown-nodes",
		[]string{"create"},
		"borrowing", strings.Fields("soft bounded"),
		"a node that a claim creates has no share to lend, and would be removed while claims are counted above it",
	},
}

// excluded returns nil if no exclusion is violated.
func (p *Policy) excluded() *exclusion {
	for i := range exclusions {
		e := &exclusions[i]
		if slices.Contains(e.values, switchNamed(e.name).Value(p)) &&
			slices.Contains(e.others, switchNamed(e.with).Value(p)) {
			return e
		}
	}
	return nil
}

// describe says what excludes what in a policy, why, and what is allowed. origin says where the value of a switch comes
// from, as a clause in brackets or as nothing.
func (e *exclusion) describe(p *Policy, origin func(*Switch) string) string {
	subject, with := switchNamed(e.name), switchNamed(e.with)
	say := func(s *Switch) string { return s.Name + ": " + s.Value(p) + origin(s) }
	return say(subject) + " excludes " + say(with) + ", because " + e.reason + "; use " + with.Name + ": " +
		otherValues(with, e.others) + ", or " + subject.Name + ": " + otherValues(subject, e.values)
}

func otherValues(s *Switch, without []string) string {
	list := slices.DeleteFunc(slices.Clone(s.Values), func(v string) bool { return slices.Contains(without, v) })
	return strings.Join(list, " or ")
}
