package manifest

import (
	"fmt"
	"strconv"
	"time"

	"github.com/quorate/quorate/internal/access"
)

// anyWord is the value of hold-as that allows all holders.
const anyWord = "any"

// parseBindings reads the bindings of one place in canonical order. The access section must have been read before,
// because it may define their roles.
func (p *parser) parseBindings(what string, list value, scope access.Scope) []access.Binding {
	var parsed []access.Binding
	var lines []int
	for i, v := range p.listItems("bindings", list, access.MaxBindings) {
		place := fmt.Sprintf("binding %d of %s", i+1, what)
		before := len(p.problems)
		b := p.parseBinding(place, v)
		if len(p.problems) > before {
			continue
		}
		if err := p.checkBinding(b, scope); err != nil {
			p.addRefusal(place, v.asEntry(), err)
			continue
		}
		b = b.Canonical()
		for at, other := range parsed {
			if b.Compare(other) == 0 {
				p.addProblem(v.line, v.column, "%s is given twice; the first is in line %d", place, lines[at])
			}
		}
		parsed, lines = append(parsed, b), append(lines, v.line)
	}
	return access.CanonicalBindings(parsed)
}

func (p *parser) parseBinding(what string, v value) access.Binding {
	sections := p.knownSections(what, v, bindingMap)
	for _, key := range []string{"role", "subjects"} {
		if _, found := sections[key]; !found && v.kind == kindMap {
			p.addProblem(v.line, v.column, `%s has no %q: write {role: viewer, subjects: ["group corp/users"]}`, what, key)
		}
	}
	return access.Binding{
		Role:          p.parseWord(what, "role", sections),
		To:            p.parseSubjects(what, sections["subjects"]),
		MaxPriority:   p.parsePriority(what, sections),
		Unpreemptable: p.parseFlag(what, "unpreemptable", sections),
		HoldAs:        p.parseHolders(what, sections),
		Until:         p.parseInstant(what, "ends", sections),
	}
}

// checkBinding refuses a binding that the server would refuse too. If the manifest has no access section, a role that
// is not built in may be defined on the server; then everything is checked that does not depend on its verbs.
func (p *parser) checkBinding(b access.Binding, scope access.Scope) *access.Error {
	roles := p.roles
	if _, found := roles.Find(b.Role); !found && !p.rolesKnown && b.Role != "" {
		var err *access.Error
		if roles, err = access.NewRoles([]access.Role{{Name: b.Role, Verbs: access.AllVerbs}}); err != nil {
			return &access.Error{Kind: err.Kind, Field: "role", Text: err.Text, Allowed: err.Allowed}
		}
		b.To = withoutWideSubjects(b.To)
	}
	return ofElement(access.CheckBindings([]access.Binding{b}, roles, scope))
}

// withoutWideSubjects replaces subjects that only some roles can be bound to. The positions stay.
func withoutWideSubjects(list []access.Subject) []access.Subject {
	named := make([]access.Subject, len(list))
	for i, s := range list {
		if s.Kind == access.Everyone || s.Kind == access.AnonymousSubject {
			s = access.Subject{Kind: access.AccountSubject, Name: "any"}
		}
		named[i] = s
	}
	return named
}

func (p *parser) parseSubjects(what string, list value) []access.Subject {
	var parsed []access.Subject
	lines := map[access.Subject]int{}
	for _, v := range p.listItems("subjects", list, access.MaxSubjects) {
		if v.kind != kindText {
			p.addProblem(v.line, v.column, `%s, subjects: a subject is a text, such as "user corp/ann", not %s`, what,
				v.describeValue())
			continue
		}
		s, err := access.ParseSubject(v.text)
		if err != nil {
			p.addProblem(v.line, v.column, "%s, subjects: %v", what, err)
			continue
		}
		if line, again := lines[s]; again {
			p.addProblem(v.line, v.column, "%s, subjects: %q is given twice; the first is in line %d", what, v.text, line)
			continue
		}
		lines[s] = v.line
		parsed = append(parsed, s)
	}
	return parsed
}

func (p *parser) parsePriority(what string, sections map[string]value) int64 {
	v, found := sections["max-priority"]
	if !found {
		return 0
	}
	priority, err := strconv.ParseInt(v.text, 10, 64)
	if v.kind != kindText || err != nil || strconv.FormatInt(priority, 10) != v.text {
		p.addProblem(v.line, v.column, "max-priority of %s is a whole number of 64 bits, such as 10, not %s", what,
			v.describeValue())
		return 0
	}
	return priority
}

// parseHolders reads hold-as: the word any, or a list of users and groups.
func (p *parser) parseHolders(what string, sections map[string]value) access.Holders {
	v, found := sections["hold-as"]
	switch {
	case !found:
	case v.kind == kindText && v.text == anyWord:
		return access.Holders{Any: true}
	case v.kind != kindList || len(v.items) == 0:
		p.addProblem(v.line, v.column, "hold-as of %s is the word any, or a list of users and groups, not %s", what,
			v.describeHolders())
	default:
		return access.Holders{Names: p.parseNames(what, "hold-as", sections, access.MaxHoldAs)}
	}
	return access.Holders{}
}

func (v value) describeHolders() string {
	if v.kind == kindList {
		return "an empty list"
	}
	return v.describeValue()
}

// parseInstant reads a point of time in milliseconds since 1970; 0 if it is absent.
func (p *parser) parseInstant(what, key string, sections map[string]value) int64 {
	v, found := sections[key]
	if !found {
		return 0
	}
	at, err := time.Parse(time.RFC3339, v.text)
	switch {
	case v.kind != kindText || err != nil:
		p.addProblem(v.line, v.column, "%s of %s is a time in quotes, such as \"2027-01-01T00:00:00Z\", not %s", key, what,
			v.describeValue())
	case at.UnixMilli() <= 0:
		p.addProblem(v.line, v.column, "%s of %s is before 1970: write a later time, or leave the line out", key, what)
	case at.Nanosecond()%int(time.Millisecond) != 0:
		p.addProblem(v.line, v.column, "%s of %s is not a whole number of milliseconds", key, what)
	default:
		return at.UnixMilli()
	}
	return 0
}

// filledText refuses an empty text. It is empty if the key is absent.
func (p *parser) filledText(what, key string, sections map[string]value) string {
	v, found := sections[key]
	p.checkPlain(key+" of "+what, v)
	if found && (v.kind != kindText || v.text == "") {
		p.addProblem(v.line, v.column, "%s of %s is a text, not %s", key, what, v.describeValue())
		return ""
	}
	return v.text
}

// bindingsValue expects canonical bindings.
func bindingsValue(bindings []access.Binding) value {
	all := value{kind: kindList}
	for _, b := range bindings {
		v := value{kind: kindMap}
		v.addText("role", b.Role)
		subjects := value{kind: kindList}
		for _, s := range b.To {
			subjects.items = append(subjects.items, value{text: s.String()})
		}
		v.addFilled("subjects", subjects)
		v.addCount("max-priority", b.MaxPriority)
		v.addFlag("unpreemptable", b.Unpreemptable)
		if b.HoldAs.Any {
			v.addText("hold-as", anyWord)
		}
		v.addFilled("hold-as", namesValue(b.HoldAs.Names))
		if b.Until != 0 {
			ends := time.UnixMilli(b.Until).UTC().Format(time.RFC3339Nano)
			v.addText("ends", ends)
		}
		all.items = append(all.items, v)
	}
	return all
}
