package access

import (
	"slices"
	"strings"
)

// HasAdministrator reports whether a caller who manages access can log in: root or security-admin is bound on the
// cluster, without an end, to an account with a live token, to a user of an issuer or of a certificate rule, or to a
// group that one of them can be in. Certificates need no rule if they name a client of the cluster, but a name alone
// does not say that one exists, so only those with a rule count.
func (b *Book) HasAdministrator(wall int64) bool {
	for i := range b.section.Bindings {
		binding := &b.section.Bindings[i]
		if binding.Role != RoleRoot && binding.Role != RoleSecurityAdmin || binding.Until != 0 {
			continue
		}
		if slices.ContainsFunc(binding.To, func(s Subject) bool { return b.canLogIn(s, wall) }) {
			return true
		}
	}
	return false
}

// canLogIn reports whether a subject is at least one caller that can log in.
func (b *Book) canLogIn(s Subject, wall int64) bool {
	switch s.Kind {
	case AccountSubject:
		record, found := b.accounts.Get(s.Name)
		return found && b.canAccountLogIn(record, wall)
	case User:
		return b.canUserLogIn(s.Name, wall)
	case Group:
		return b.canGroupLogIn(s.Name, wall)
	case Everyone, AnonymousSubject:
	}
	return false
}

func (b *Book) canAccountLogIn(record *accountRecord, wall int64) bool {
	if record.Disabled || b.isRefused(RefusedKey{Kind: RefusedUser, Name: record.User()}, wall) {
		return false
	}
	return slices.ContainsFunc(record.tokens, func(id TokenID) bool {
		t, found := b.tokens.Get(id.number())
		return found && t.IsLive(wall) && t.Ceiling.Has(AccessManage) &&
			!b.isRefused(RefusedKey{Kind: RefusedToken, Name: id.String()}, wall)
	})
}

func (b *Book) canUserLogIn(user string, wall int64) bool {
	issuer, name, _ := strings.Cut(user, "/")
	if b.isRefused(RefusedKey{Kind: RefusedUser, Name: user}, wall) {
		return false
	}
	if issuer == CertificateIssuer {
		return slices.ContainsFunc(b.section.Certificates, func(c CertificateRule) bool { return c.User == name })
	}
	return b.issuer(issuer) != nil
}

func (b *Book) canGroupLogIn(group string, wall int64) bool {
	if name, rest, issued := strings.Cut(group, "/"); issued {
		issuer := b.issuer(name)
		return issuer != nil &&
			slices.ContainsFunc(issuer.Groups, func(g GroupRule) bool { return g.Group == rest })
	}
	for _, record := range b.accounts.All() {
		if slices.Contains(record.Groups, group) && b.canAccountLogIn(record, wall) {
			return true
		}
	}
	return false
}
