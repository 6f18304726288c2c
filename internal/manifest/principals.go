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
		Limits:       p.parseBounds(what, sections, units),
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

// parseBounds reads limits of a user or group: a resource that is not listed is unlimited.
func (p *parser) parseBounds(
	what string,
	sections map[string]value,
	units map[string]quoratev1.Unit,
) map[string]*quoratev1.Limit {
	var parsed map[string]*quoratev1.Limit
	for _, e := range p.registeredEntries(what, "limits", sections, units) {
		limit, err := parseBound(e.value, units[e.key])
		if err != nil {
			p.addProblem(e.value.line, e.value.column, "%s, limit of %q: %v", what, e.key, err)
			continue
		}
		if parsed == nil {
			parsed = map[string]*quoratev1.Limit{}
		}
		parsed[e.key] = limit
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
