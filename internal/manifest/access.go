package manifest

import (
	"fmt"
	"time"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/access"
)

// parseAccess reads the access section in canonical order. Its roles are those that bindings of trees may name beside
// the built-in ones.
func (p *parser) parseAccess(v value) *quoratev1.AccessSection {
	const what = "access"
	sections := p.knownSections(what, v, accessMap)
	before := len(p.problems)
	s := access.Section{
		Roles:        p.parseRoles(sections["roles"]),
		Issuers:      p.parseIssuers(sections["issuers"]),
		Certificates: p.parseCertificates(sections["certificates"]),
		TokenLife:    p.parseSpan(what, "token-life", sections, milliseconds(access.MaxTokenLife)),
	}
	if len(p.problems) == before { // else bindings of roles with problems would be problems too
		roles, err := s.Check()
		if err != nil {
			p.addRefusal(what, v.asEntry(), err)
		} else {
			p.roles, p.rolesKnown = roles, true
		}
	}
	s.Bindings = p.parseBindings(what, sections["bindings"], access.ClusterScope)
	return sectionMessage(s.Canonical())
}

func milliseconds(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// parseRoles keeps the order of the text. A role is a list of verbs, or a map with a description.
func (p *parser) parseRoles(roles value) []access.Role {
	var parsed []access.Role
	for _, e := range p.mapEntries("roles", roles, access.MaxRoles) {
		what := fmt.Sprintf("role %q", e.key)
		if e.value.kind == kindList {
			verbs := entry{line: e.value.line, column: e.value.column, key: "verbs", value: e.value}
			e.value = value{line: e.value.line, column: e.value.column, kind: kindMap, entries: []entry{verbs}}
		}
		before := len(p.problems)
		sections := p.knownSections(what, e.value, roleMap)
		r := access.Role{Name: e.key, Description: p.filledText(what, "description", sections)}
		names := p.parseNames(what, "verbs", sections, len(access.AllVerbs.Names()))
		if len(p.problems) > before {
			continue
		}
		var err *access.Error
		if r.Verbs, err = access.ParseVerbs(names); err == nil {
			_, err = access.NewRoles([]access.Role{r})
			err = ofElement(err)
		}
		if err != nil {
			p.addRefusal(what, e, err)
			continue
		}
		parsed = append(parsed, r)
	}
	return parsed
}

// parseIssuers keeps the order of the text.
func (p *parser) parseIssuers(issuers value) []access.Issuer {
	var parsed []access.Issuer
	for _, e := range p.mapEntries("issuers", issuers, access.MaxIssuers) {
		what := fmt.Sprintf("issuer %q", e.key)
		before := len(p.problems)
		sections := p.knownSections(what, e.value, issuerMap)
		i := access.Issuer{
			Name:       e.key,
			URL:        p.filledText(what, "url", sections),
			KeysURL:    p.filledText(what, "keys-url", sections),
			KeysFile:   p.filledText(what, "keys-file", sections),
			Audience:   p.filledText(what, "audience", sections),
			User:       p.filledText(what, "user", sections),
			Require:    p.parseClaims(what, "claim-rules", sections["claim-rules"]),
			Groups:     p.parseGroups(what, sections["groups"]),
			Algorithms: p.parseNames(what, "algorithms", sections, len(access.SignatureAlgorithms())),
			MaxAge:     p.parseSpan(what, "max-age", sections, milliseconds(access.LongestMaxAge)),
		}
		if len(p.problems) > before {
			continue
		}
		alone := access.Section{Issuers: []access.Issuer{i}}
		if _, err := alone.Check(); err != nil {
			p.addRefusal(what, e, ofElement(err))
			continue
		}
		parsed = append(parsed, i)
	}
	return parsed
}

func (p *parser) parseGroups(what string, groups value) []access.GroupRule {
	var parsed []access.GroupRule
	for _, e := range p.mapEntries("groups", groups, access.MaxGroupRules) {
		place := fmt.Sprintf("group %q of %s", e.key, what)
		parsed = append(parsed, access.GroupRule{Group: e.key, Match: p.parseClaims(place, "groups", e.value)})
	}
	return parsed
}

func (p *parser) parseClaims(what, key string, claims value) []access.ClaimRule {
	var parsed []access.ClaimRule
	for _, e := range p.mapEntries(key, claims, access.MaxClaimRules) {
		values := p.parseNames(what, e.key, map[string]value{e.key: e.value}, access.MaxClaimValues)
		parsed = append(parsed, access.ClaimRule{Claim: e.key, Values: values})
	}
	return parsed
}

// parseCertificates keeps the order of the text.
func (p *parser) parseCertificates(list value) []access.CertificateRule {
	var parsed []access.CertificateRule
	lines := map[access.CertificateRule]int{}
	for i, v := range p.listItems("certificates", list, access.MaxCertificates) {
		what := fmt.Sprintf("certificate %d", i+1)
		before := len(p.problems)
		sections := p.knownSections(what, v, certificateMap)
		c := access.CertificateRule{
			Name: p.filledText(what, "name", sections), DNS: p.filledText(what, "dns", sections),
			User: p.filledText(what, "user", sections),
		}
		if len(p.problems) > before {
			continue
		}
		alone := access.Section{Certificates: []access.CertificateRule{c}}
		if _, err := alone.Check(); err != nil {
			p.addRefusal(what, v.asEntry(), ofElement(err))
			continue
		}
		if line, again := lines[c]; again {
			p.addProblem(v.line, v.column, "%s is given twice; the first is in line %d", what, line)
		}
		lines[c] = v.line
		parsed = append(parsed, c)
	}
	return parsed
}

func sectionValue(m *quoratev1.AccessSection) (value, error) {
	v := value{kind: kindMap}
	s, err := sectionOf(m)
	if err != nil {
		return value{}, err
	}
	s = s.Canonical()
	v.addSpan("token-life", s.TokenLife)
	roles := value{kind: kindMap}
	for _, r := range s.Roles {
		verbs := namesValue(r.Verbs.Names())
		if r.Description != "" {
			described := value{kind: kindMap}
			described.addText("description", r.Description)
			described.addEntry("verbs", verbs)
			verbs = described
		}
		roles.addEntry(r.Name, verbs)
	}
	v.addFilled("roles", roles)
	issuers := value{kind: kindMap}
	for i := range s.Issuers {
		issuers.addEntry(s.Issuers[i].Name, issuerValue(&s.Issuers[i]))
	}
	v.addFilled("issuers", issuers)
	certificates := value{kind: kindList}
	for _, c := range s.Certificates {
		rule := value{kind: kindMap}
		rule.addText("name", c.Name)
		rule.addText("dns", c.DNS)
		rule.addText("user", c.User)
		certificates.items = append(certificates.items, rule)
	}
	v.addFilled("certificates", certificates)
	v.addFilled("bindings", bindingsValue(s.Bindings))
	return v, nil
}

func issuerValue(i *access.Issuer) value {
	v := value{kind: kindMap}
	v.addText("url", i.URL)
	v.addText("keys-url", i.KeysURL)
	v.addText("keys-file", i.KeysFile)
	v.addText("audience", i.Audience)
	v.addText("user", i.User)
	v.addFilled("claim-rules", claimsValue(i.Require))
	groups := value{kind: kindMap}
	for _, g := range i.Groups {
		groups.addEntry(g.Group, claimsValue(g.Match))
	}
	v.addFilled("groups", groups)
	v.addFilled("algorithms", namesValue(i.Algorithms))
	v.addSpan("max-age", i.MaxAge)
	return v
}

func claimsValue(rules []access.ClaimRule) value {
	v := value{kind: kindMap}
	for _, r := range rules {
		v.addEntry(r.Claim, namesValue(r.Values))
	}
	return v
}
