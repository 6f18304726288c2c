package access

import (
	"cmp"
	"slices"
	"strings"
)

// Section is the part of the book that is written as text: what may be done, by whom, and who may log in. It has no
// secrets.
type Section struct {
	// Roles are the custom roles.
	Roles []Role
	// Issuers and Certificates say who may log in beside accounts.
	Issuers      []Issuer
	Certificates []CertificateRule
	// Bindings are those on the cluster.
	Bindings []Binding
	// TokenLife is the longest life of new tokens in milliseconds; 0 is MaxTokenLife.
	TokenLife int64
}

// IsEmpty reports whether the section says nothing.
func (s *Section) IsEmpty() bool {
	return len(s.Roles)+len(s.Issuers)+len(s.Certificates)+len(s.Bindings) == 0 && s.TokenLife == 0
}

// Canonical returns a copy with sorted lists; elements that are the same twice are kept once. Sections that say the
// same in another order have equal canonical forms.
func (s Section) Canonical() Section {
	s.Roles = cloneList(s.Roles)
	slices.SortFunc(s.Roles, func(a, b Role) int { return strings.Compare(a.Name, b.Name) })
	s.Issuers = cloneList(s.Issuers)
	for i := range s.Issuers {
		s.Issuers[i] = s.Issuers[i].canonical()
	}
	slices.SortFunc(s.Issuers, func(a, b Issuer) int { return strings.Compare(a.Name, b.Name) })
	s.Certificates = cloneList(s.Certificates)
	slices.SortFunc(s.Certificates, func(a, b CertificateRule) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.DNS, b.DNS), strings.Compare(a.User, b.User))
	})
	s.Certificates = slices.Compact(s.Certificates)
	s.Bindings = CanonicalBindings(s.Bindings)
	return s
}

func (i Issuer) canonical() Issuer {
	i.Require = canonicalClaims(i.Require)
	i.Groups = cloneList(i.Groups)
	for n := range i.Groups {
		i.Groups[n].Match = canonicalClaims(i.Groups[n].Match)
	}
	slices.SortFunc(i.Groups, func(a, b GroupRule) int { return strings.Compare(a.Group, b.Group) })
	i.Algorithms = canonicalNames(i.Algorithms)
	return i
}

func canonicalClaims(rules []ClaimRule) []ClaimRule {
	sorted := cloneList(rules)
	for i := range sorted {
		sorted[i].Values = canonicalNames(sorted[i].Values)
	}
	slices.SortFunc(sorted, func(a, b ClaimRule) int { return strings.Compare(a.Claim, b.Claim) })
	return sorted
}

// Check refuses a section with a malformed or contradictory element, or beyond a bound, and returns its roles.
func (s *Section) Check() (Roles, *Error) {
	roles, err := NewRoles(s.Roles)
	if err != nil {
		return Roles{}, err
	}
	if s.TokenLife < 0 || s.TokenLife > MaxTokenLife {
		return Roles{}, invalid("token-life", "at most 400 days are allowed", "%d ms is not a life", s.TokenLife)
	}
	for _, check := range []func() *Error{s.checkIssuers, s.checkCertificates} {
		if err := check(); err != nil {
			return Roles{}, err
		}
	}
	return roles, CheckBindings(s.Bindings, roles, ClusterScope)
}

func (s *Section) checkIssuers() *Error {
	if len(s.Issuers) > MaxIssuers {
		return refusal(Full, "issuers", "at most 16 are allowed", "there are %d", len(s.Issuers))
	}
	for n := range s.Issuers {
		i := &s.Issuers[n]
		if err := i.check(); err != nil {
			return err.below(indexed("issuers", n))
		}
		for _, other := range s.Issuers[:n] {
			if other.Name == i.Name {
				return invalid(indexed("issuers", n), "name each issuer once", "issuer %s is given twice", i.Name)
			}
			if other.URL == i.URL && other.Audience == i.Audience {
				return invalid(indexed("issuers", n), "give one of them another audience",
					"issuer %s has the URL and the audience of %s, so a token would have two users", i.Name, other.Name)
			}
		}
	}
	return nil
}

func (s *Section) checkCertificates() *Error {
	if len(s.Certificates) > MaxCertificates {
		return refusal(Full, "certificates", "at most 1000 are allowed", "there are %d", len(s.Certificates))
	}
	users := map[CertificateRule]string{} // look-ups only
	for n, c := range s.Certificates {
		field := indexed("certificates", n)
		if err := c.check(); err != nil {
			return err.below(field)
		}
		key := CertificateRule{Name: c.Name, DNS: c.DNS}
		if user, again := users[key]; again && user != c.User {
			return invalid(field, "give a certificate one user", "%q is the certificate of %s and of %s", c.Name+c.DNS,
				user, c.User)
		}
		users[key] = c.User
	}
	return nil
}

// tokenLife is the longest life of new tokens.
func (s *Section) tokenLife() int64 {
	if s.TokenLife == 0 {
		return MaxTokenLife
	}
	return s.TokenLife
}

// CoversSection returns what the caller lacks to replace the section of the book: every verb of each binding that the
// new one adds on the cluster, and every verb that a custom role gains, because it gains it wherever it is bound.
func (b *Book) CoversSection(id *Identity, wall int64, after Section) (Missing, *Error) {
	after = after.Canonical()
	roles, err := after.Check()
	if err != nil {
		return Missing{}, err
	}
	path := Path{b.cluster}
	for _, added := range AddedBindings(b.section.Bindings, after.Bindings) {
		role, _ := roles.Find(added.Role)
		if missing := Covers(id, wall, path, ClusterScope, role, added); !missing.IsEmpty() {
			return missing, nil
		}
	}
	for _, role := range after.Roles {
		old, found := b.roles.Find(role.Name)
		if !found {
			continue // not bound yet
		}
		gained := Role{Name: role.Name, Verbs: role.Verbs &^ old.Verbs}
		if missing := Covers(id, wall, path, ClusterScope, gained, Binding{}); missing.Verbs != 0 {
			return Missing{Verbs: missing.Verbs}, nil
		}
	}
	return Missing{}, nil
}
