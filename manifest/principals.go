package manifest

import (
	"fmt"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// principals reads the limits of users and groups. Their order is kept: it is the order in which groups are looked for.
func (p *parser) principals(what string, list value, units map[string]quoratev1.Unit) []*quoratev1.PrincipalLimit {
	var parsed []*quoratev1.PrincipalLimit
	for i, item := range p.items("principals", list, maxPrincipals) {
		parsed = append(parsed, p.principal(fmt.Sprintf("principal %d of %s", i+1, what), item, units))
	}
	return parsed
}

func (p *parser) principal(what string, v value, units map[string]quoratev1.Unit) *quoratev1.PrincipalLimit {
	sections := p.sections(what, v, "applications", "description", "groups", "limits", "users")
	limit := &quoratev1.PrincipalLimit{
		Users:        p.names(what, "users", sections, maxPrincipalNames),
		Groups:       p.names(what, "groups", sections, maxPrincipalNames),
		Limits:       p.amounts(what, sections, units),
		Applications: p.applications(what, sections),
		Description:  p.description(what, sections),
	}
	if v.kind == kindMap && len(sections["users"].items)+len(sections["groups"].items) == 0 {
		p.fail(v.line, v.column, "%s names nobody: write users: [name], or groups: [name]", what)
	}
	return limit
}

// amounts reads limits that are amounts only: who is not limited is not listed.
func (p *parser) amounts(what string, sections map[string]value, units map[string]quoratev1.Unit) map[string]int64 {
	var parsed map[string]int64
	for _, e := range p.registered(what, "limits", sections, units) {
		v := e.value
		if v.kind != kindText || v.text == unlimitedWord || v.text == unsetWord {
			p.fail(v.line, v.column, "%s, limit of %q: it is a quantity, not %s; leave the line out for no limit",
				what, e.key, v.shown())
			continue
		}
		amount, err := ParseQuantity(v.text, units[e.key])
		if err != nil {
			p.fail(v.line, v.column, "%s, limit of %q: %v", what, e.key, err)
			continue
		}
		if parsed == nil {
			parsed = map[string]int64{}
		}
		parsed[e.key] = amount
	}
	return parsed
}

func (p *parser) description(what string, sections map[string]value) string {
	v, found := sections["description"]
	if found && (v.kind != kindText || len(v.text) > maxText) {
		p.fail(v.line, v.column, "the description of %s is a text of up to %d bytes", what, maxText)
	}
	return v.text
}
