package manifest

import (
	"fmt"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// parsePrincipals reads the limits of users and groups. It keeps their order, in which groups are matched.
func (p *parser) parsePrincipals(what string, list value, units map[string]quoratev1.Unit) []*quoratev1.PrincipalLimit {
	var parsed []*quoratev1.PrincipalLimit
	for i, item := range p.listItems("principals", list, maxPrincipals) {
		parsed = append(parsed, p.parsePrincipal(fmt.Sprintf("principal %d of %s", i+1, what), item, units))
	}
	return parsed
}

func (p *parser) parsePrincipal(what string, v value, units map[string]quoratev1.Unit) *quoratev1.PrincipalLimit {
	sections := p.knownSections(what, v, principalMap)
	limit := &quoratev1.PrincipalLimit{
		Users:        p.parseNames(what, "users", sections, maxPrincipalNames),
		Groups:       p.parseNames(what, "groups", sections, maxPrincipalNames),
		Limits:       p.parseAmounts(what, sections, units),
		Applications: p.parseApplications(what, sections),
		Description:  p.parseDescription(what, sections),
	}
	if v.kind == kindMap && len(sections["users"].items)+len(sections["groups"].items) == 0 {
		p.addProblem(v.line, v.column, "%s names no users or groups: write users: [name], or groups: [name]", what)
	}
	if p.origins != nil {
		p.origins[limit] = origin{what, v.line, v.column}
	}
	return limit
}

// parseAmounts reads limits that must be amounts: a principal without a limit for a resource is not listed.
func (p *parser) parseAmounts(
	what string,
	sections map[string]value,
	units map[string]quoratev1.Unit,
) map[string]int64 {
	var parsed map[string]int64
	for _, e := range p.registeredEntries(what, "limits", sections, units) {
		v := e.value
		if v.kind != kindText || v.text == unlimitedWord || v.text == unsetWord {
			p.addProblem(v.line, v.column, "%s, limit of %q: it is a quantity, not %s; leave the line out for no limit",
				what, e.key, v.describeValue())
			continue
		}
		amount, err := ParseQuantity(v.text, units[e.key])
		if err != nil {
			p.addProblem(v.line, v.column, "%s, limit of %q: %v", what, e.key, err)
			continue
		}
		if parsed == nil {
			parsed = map[string]int64{}
		}
		parsed[e.key] = amount
	}
	return parsed
}

func (p *parser) parseDescription(what string, sections map[string]value) string {
	v, found := sections["description"]
	p.checkPlain("description of "+what, v)
	if found && (v.kind != kindText || len(v.text) > maxText) {
		p.addProblem(v.line, v.column, "the description of %s must be a text of at most %d bytes", what, maxText)
	}
	return v.text
}
