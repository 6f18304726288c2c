package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// parsePolicies reads the definitions of policies and sorts them by name. They are checked completely, because what
// they may say does not depend on the server's state.
func (p *parser) parsePolicies(policies value) []*quoratev1.Policy {
	var parsed []*quoratev1.Policy
	for _, e := range p.mapEntries("policies", policies, MaxPolicies) {
		if !nodeName().MatchString(e.key) {
			p.failName(e, "policy", "_ . @ + -")
			continue
		}
		parsed = append(parsed, PolicyMessage(p.parsePolicy(e)))
	}
	slices.SortFunc(parsed, func(a, b *quoratev1.Policy) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return parsed
}

func (p *parser) parsePolicy(e entry) quota.PolicySpec {
	sections := p.knownSections(fmt.Sprintf("policy %q", e.key), e.value, policyMap)
	spec := quota.PolicySpec{Name: e.key}
	if e.value.kind != kindMap {
		return spec
	}
	before := len(p.problems)
	spec.Base = p.policyWord(e.key, "base", sections)
	for _, s := range policy.Switches() {
		*s.Field(&spec) = p.policyWord(e.key, s.Name, sections)
	}
	if len(p.problems) > before {
		return spec
	}
	if policy.Presets()[e.key] != nil {
		p.addProblem(e.line, e.column, "policy %q is built in and never changes: define a policy of another name", e.key)
		return spec
	}
	if _, problem := policy.Presets().Define(spec); problem != nil {
		line, column := e.line, e.column
		if at, found := sections[problem.Field]; found {
			line, column = at.line, at.column
		}
		p.addProblem(line, column, "%s", problem.Text)
	}
	return spec
}

// policyWord reads the base of a policy or the value of a switch. An empty text would mean the value of the base.
func (p *parser) policyWord(name, key string, sections map[string]value) string {
	v, found := sections[key]
	if found && (v.kind != kindText || v.text == "") {
		p.addProblem(v.line, v.column, "%s of policy %q is a word, not %s", key, name, v.describeValue())
		return ""
	}
	return v.text
}

// PolicyMessage converts a definition. Each switch of the table is a field of the message, and the values of an enum
// are those of the table in the same order; a test compares them.
func PolicyMessage(s quota.PolicySpec) *quoratev1.Policy {
	m := &quoratev1.Policy{Name: s.Name, Base: s.Base}
	for _, sw := range policy.Switches() {
		if number := slices.Index(sw.Values, *sw.Field(&s)) + 1; number > 0 {
			m.ProtoReflect().Set(fieldOf(sw), protoreflect.ValueOfEnum(protoreflect.EnumNumber(number)))
		}
	}
	return m
}

// PolicySpec is the inverse of PolicyMessage. A value that does not exist becomes a word that no switch has.
func PolicySpec(m *quoratev1.Policy) quota.PolicySpec {
	spec := quota.PolicySpec{Name: m.GetName(), Base: m.GetBase()}
	for _, sw := range policy.Switches() {
		number := int(m.ProtoReflect().Get(fieldOf(sw)).Enum())
		switch {
		case number > 0 && number <= len(sw.Values):
			*sw.Field(&spec) = sw.Values[number-1]
		case number != 0:
			*sw.Field(&spec) = strconv.Itoa(number)
		}
	}
	return spec
}

// fieldOf is the field of a switch in the message.
func fieldOf(s *policy.Switch) protoreflect.FieldDescriptor {
	name := protoreflect.Name(strings.ReplaceAll(s.Name, "-", "_"))
	return (&quoratev1.Policy{}).ProtoReflect().Descriptor().Fields().ByName(name)
}

// DescribeSwitches says which switches of its base a policy changes: "unset unlimited, sum unchecked".
func DescribeSwitches(m *quoratev1.Policy) string {
	spec := PolicySpec(m)
	var parts []string
	for _, s := range policy.Switches() {
		if word := *s.Field(&spec); word != "" {
			parts = append(parts, s.Name+" "+word)
		}
	}
	return strings.Join(parts, ", ")
}

func policiesValue(policies []*quoratev1.Policy) value {
	all := value{kind: kindMap}
	for _, m := range policies {
		spec := PolicySpec(m)
		v := value{kind: kindMap}
		v.addText("base", spec.Base)
		for _, s := range policy.Switches() {
			v.addText(s.Name, *s.Field(&spec))
		}
		all.addEntry(spec.Name, v)
	}
	slices.SortFunc(all.entries, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
	return all
}
