package accesstest

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/access"
)

// Few names, so that random bindings often name random callers.
var (
	accounts = []string{"ci", "bot"}
	users    = []string{"corp/ann", "corp/bob", "github/1"}
	groups   = []string{"corp/sre", "corp/dev", "github/deploy", "robots"}
)

// CustomRoles are the custom roles of random trees.
func CustomRoles() []access.Role {
	return []access.Role{
		{Name: "night-shift", Verbs: access.SetOf(access.UsageRead, access.HoldersRead, access.HoldOperate)},
		{Name: "submitter", Verbs: access.SetOf(access.Hold, access.HoldAs)},
	}
}

// Caller draws a caller of any kind.
func Caller(t *rapid.T) access.Caller {
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0:
		return access.SystemCaller()
	case 1:
		return access.Caller{Kind: access.Anonymous}
	case 2, 3, 4:
		c := access.Caller{Kind: access.AccountCaller, User: "account/" + rapid.SampledFrom(accounts).Draw(t, "account")}
		if rapid.Bool().Draw(t, "grouped") {
			c.Groups = []string{"robots"}
		}
		return c
	}
	c := access.Caller{Kind: access.External, User: rapid.SampledFrom(users).Draw(t, "user")}
	for _, group := range []string{"dev", "sre", "deploy"} {
		if full := c.Issuer() + "/" + group; slices.Contains(groups, full) && rapid.Bool().Draw(t, "in "+full) {
			c.Groups = append(c.Groups, full)
		}
	}
	return c
}

// Subject draws a subject that is often a caller of [Caller].
func Subject(t *rapid.T) access.Subject {
	switch rapid.IntRange(0, 11).Draw(t, "subject") {
	case 0:
		return access.Subject{Kind: access.Everyone}
	case 1:
		return access.Subject{Kind: access.AnonymousSubject}
	case 2, 3, 4:
		return access.Subject{Kind: access.AccountSubject, Name: rapid.SampledFrom(accounts).Draw(t, "account")}
	case 5, 6, 7:
		return access.Subject{Kind: access.Group, Name: rapid.SampledFrom(groups).Draw(t, "group")}
	}
	return access.Subject{Kind: access.User, Name: rapid.SampledFrom(users).Draw(t, "user")}
}

// Bindings draws up to most valid bindings in canonical form. Their ends are between 1 and 9.
func Bindings(t *rapid.T, most int, roles access.Roles, scope access.Scope) []access.Binding {
	var list []access.Binding
	for range rapid.IntRange(0, most).Draw(t, "bindings") {
		b := binding(t)
		if access.CheckBindings([]access.Binding{b}, roles, scope) == nil {
			list = append(list, b)
		}
	}
	return access.CanonicalBindings(list)
}

func binding(t *rapid.T) access.Binding {
	roles := []string{
		"viewer", "holder", "broker", "cleaner", "operator", "limit-admin", "node-admin", "auditor",
		"cluster-operator", "security-admin", "root", "night-shift", "submitter",
	}
	b := access.Binding{Role: rapid.SampledFrom(roles).Draw(t, "role")}
	for range rapid.IntRange(1, 3).Draw(t, "subjects") {
		b.To = append(b.To, Subject(t))
	}
	if rapid.Bool().Draw(t, "timed") {
		b.Until = rapid.Int64Range(1, 9).Draw(t, "until")
	}
	holds := slices.Contains([]string{"holder", "broker", "operator", "submitter"}, b.Role)
	if holds && rapid.Bool().Draw(t, "ceilings") {
		b.MaxPriority = rapid.Int64Range(-2, 3).Draw(t, "priority")
		b.Unpreemptable = rapid.Bool().Draw(t, "unpreemptable")
		if b.Role != "holder" {
			b.HoldAs.Any = rapid.IntRange(0, 3).Draw(t, "any") == 0
			if !b.HoldAs.Any {
				b.HoldAs.Names = rapid.SliceOfN(rapid.SampledFrom(users), 0, 2).Draw(t, "hold as")
			}
		}
	}
	return b
}
