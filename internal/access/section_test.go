package access_test

import (
	"fmt"
	"testing"

	"github.com/quorate/quorate/internal/access"
)

func TestSections(t *testing.T) {
	hold := access.SetOf(access.Hold)
	with := func(change func(*access.Issuer)) access.Section {
		i := corpIssuer()
		change(&i)
		return access.Section{Issuers: []access.Issuer{i}}
	}
	for name, test := range map[string]struct {
		section     access.Section
		field, text string
	}{
		"role":              {access.Section{Roles: []access.Role{{Name: "root", Verbs: hold}}}, "access.roles[0].name", "built-in"},
		"binding":           {access.Section{Bindings: []access.Binding{to("boss", "account ci")}}, "access.bindings[0].role", "is not a role"},
		"token life":        {access.Section{TokenLife: access.MaxTokenLife + 1}, "access.token-life", "400 days"},
		"reserved issuer":   {with(func(i *access.Issuer) { i.Name = "account" }), "access.issuers[0].name", "reserved"},
		"issuer name":       {with(func(i *access.Issuer) { i.Name = "a/b" }), "access.issuers[0].name", "not a name"},
		"plain text":        {with(func(i *access.Issuer) { i.URL = "http://login.example.org" }), "access.issuers[0].url", "not the URL"},
		"not loopback":      {with(func(i *access.Issuer) { i.URL = "http://localhost.example.org" }), "access.issuers[0].url", "not the URL"},
		"user in url":       {with(func(i *access.Issuer) { i.URL = "http://localhost:1@example.org" }), "access.issuers[0].url", "not the URL"},
		"two sets of keys":  {with(func(i *access.Issuer) { i.KeysURL, i.KeysFile = "https://x", "y" }), "access.issuers[0].keys-file", "keys-url and keys-file"},
		"keys in the clear": {with(func(i *access.Issuer) { i.KeysURL = "http://x" }), "access.issuers[0].keys-url", "not a URL"},
		"no audience":       {with(func(i *access.Issuer) { i.Audience = "" }), "access.issuers[0].audience", "not an audience"},
		"no user":           {with(func(i *access.Issuer) { i.User = "" }), "access.issuers[0].user", "not a claim"},
		"no rule":           {with(func(i *access.Issuer) { i.Require = nil }), "access.issuers[0].claim-rules", "everyone whom it serves"},
		"audience as rule":  {with(func(i *access.Issuer) { i.Require[0].Claim = "aud" }), "access.issuers[0].claim-rules[0]", "other than aud"},
		"rule twice":        {with(func(i *access.Issuer) { i.Require = append(i.Require, i.Require...) }), "access.issuers[0].claim-rules.hd", "given twice"},
		"pattern in rule":   {with(func(i *access.Issuer) { i.Require[0].Values = []string{"*.org"} }), "access.issuers[0].claim-rules.hd", "not a value"},
		"rule without any":  {with(func(i *access.Issuer) { i.Require[0].Values = nil }), "access.issuers[0].claim-rules.hd", "has 0 values"},
		"age":               {with(func(i *access.Issuer) { i.MaxAge = access.LongestMaxAge + 1 }), "access.issuers[0].max-age", "24 hours"},
		"algorithm":         {with(func(i *access.Issuer) { i.Algorithms = []string{"none"} }), "access.issuers[0].algorithms[0]", "allowed are ES256"},
		"group of all":      {with(func(i *access.Issuer) { i.Groups[0].Match = nil }), "access.issuers[0].groups[0]", "has no rule"},
		"group name":        {with(func(i *access.Issuer) { i.Groups[0].Group = "*" }), "access.issuers[0].groups[0]", "not a name"},
		"group twice":       {with(func(i *access.Issuer) { i.Groups = append(i.Groups, i.Groups...) }), "access.issuers[0].groups[1]", "given twice"},
		"issuer twice":      {access.Section{Issuers: []access.Issuer{corpIssuer(), corpIssuer()}}, "access.issuers[1]", "given twice"},
		"two users":         {access.Section{Issuers: []access.Issuer{corpIssuer(), renamed("other")}}, "access.issuers[1]", "two users"},
		"no certificate":    {access.Section{Certificates: []access.CertificateRule{{User: "zuul"}}}, "access.certificates[0].name", "by name or by dns"},
		"both":              {access.Section{Certificates: []access.CertificateRule{{Name: "a", DNS: "b", User: "c"}}}, "access.certificates[0].name", "by name or by dns"},
		"pattern of names":  {access.Section{Certificates: []access.CertificateRule{{DNS: "*.org", User: "c"}}}, "access.certificates[0].dns", "not a DNS name"},
		"user of cert":      {access.Section{Certificates: []access.CertificateRule{{Name: "a", User: "b/c"}}}, "access.certificates[0].user", "not a name"},
		"cert of two":       {access.Section{Certificates: []access.CertificateRule{{Name: "a", User: "b"}, {Name: "a", User: "c"}}}, "access.certificates[1]", "of b and of c"},
	} {
		t.Run(name, func(t *testing.T) {
			newScript(t).refuses(access.ReplaceSection{Section: test.section}, access.Invalid, test.field, test.text)
		})
	}
	for _, url := range []string{
		"https://a", "http://localhost", "http://127.0.0.1:8080/x", "http://[::1]:1", "http://[::1]",
	} {
		s := access.ReplaceSection{Section: with(func(i *access.Issuer) { i.URL = url })}
		if _, err := access.NewBook(access.Open).Apply(s, access.Moment{}); err != nil {
			t.Errorf("%s is refused: %v", url, err)
		}
	}
	var many access.Section
	for i := range access.MaxIssuers + 1 {
		many.Issuers = append(many.Issuers, renamed(fmt.Sprint(i)))
	}
	newScript(t).refuses(access.ReplaceSection{Section: many}, access.Full, "access.issuers", "there are 17")
}

func renamed(name string) access.Issuer {
	i := corpIssuer()
	i.Name = name
	return i
}

// TestRolesInUse checks that roles that nodes bind stay, and that the caller of Apply learns when tables are stale.
func TestRolesInUse(t *testing.T) {
	s := newScript(t)
	night := access.Role{Name: "night", Verbs: access.SetOf(access.Hold)}
	c := s.do(access.ReplaceSection{Section: access.Section{Roles: []access.Role{night}}})
	if !c.ChangesRoles() {
		t.Error("a new role does not make tables stale")
	}
	s.at.BindsRole = func(role string) bool { return role == "night" }
	s.refuses(section(), access.InUse, "access.roles[0]", "role night is bound at a node")
	bound := section(to("night", "account ci"))
	bound.Section.Roles = []access.Role{night}
	c = s.do(bound)
	if c.ChangesRoles() {
		t.Error("a binding makes tables stale")
	}
	s.at.NodeBindings = access.MaxAllBindings - 1
	s.refuses(access.ReplaceSection{Section: access.Section{
		Roles: []access.Role{night}, Bindings: []access.Binding{to("night", "account ci"), to("viewer", "account ci")},
	}}, access.Full, "access.bindings", "50001 bindings")
}

// TestDifferencesOfSections checks what an audit record says.
func TestDifferencesOfSections(t *testing.T) {
	s := newScript(t)
	s.do(section(to("viewer", "everyone")))
	replace := section(to("holder", "account ci", "user corp/ann"))
	replace.Section.Roles = []access.Role{{Name: "night", Verbs: access.SetOf(access.Hold), Description: "on call"}}
	replace.Section.TokenLife = hour
	c := s.do(replace)
	want := "[{role night  hold, \"on call\"} {binding viewer to everyone viewer to everyone } " +
		"{binding holder to user corp/ann, account ci  holder to user corp/ann, account ci} " +
		"{token-life  34560000000 ms 3600000 ms}]"
	if got := fmt.Sprint(c.Differences); got != want {
		t.Errorf("differences are\n%s, want\n%s", got, want)
	}
	if c := s.do(replace); !c.IsEmpty() {
		t.Errorf("a repeated section changes %v", c.Differences)
	}
}

func TestCoversSection(t *testing.T) {
	s := newScript(t)
	night := access.Role{Name: "night", Verbs: access.SetOf(access.ClusterRead)}
	base := access.Section{Roles: []access.Role{night}, Bindings: []access.Binding{to("security-admin", "user corp/ann")}}
	s.do(access.ReplaceSection{Section: base})
	for name, test := range map[string]struct {
		change func(*access.Section)
		want   string
	}{
		"nothing":         {func(*access.Section) {}, ""},
		"a role of nodes": {func(s *access.Section) { s.Bindings = append(s.Bindings, to("operator", "user corp/bob")) }, ""},
		"its own role":    {func(s *access.Section) { s.Bindings = append(s.Bindings, to("security-admin", "user corp/bob")) }, ""},
		"fewer":           {func(s *access.Section) { s.Bindings = nil }, ""},
		"root": {
			func(s *access.Section) { s.Bindings = append(s.Bindings, to("root", "user corp/ann")) },
			"tree.create, cluster.read, cluster.operate, cluster.debug, metrics.read, snapshot.save, snapshot.restore",
		},
		"a wider role": {func(s *access.Section) { s.Roles[0].Verbs |= access.SetOf(access.ClusterOperate) }, "cluster.operate"},
		"a role anew": {func(s *access.Section) {
			s.Roles = append(s.Roles, access.Role{Name: "x", Verbs: access.SetOf(access.MetricsRead)})
		}, ""},
		"a bound role":  {func(s *access.Section) { s.Bindings = append(s.Bindings, to("night", "user corp/bob")) }, "cluster.read"},
		"a role at all": {func(s *access.Section) { s.Roles[0].Verbs |= access.SetOf(access.UsageRead, access.Hold) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			after := base.Canonical()
			test.change(&after)
			got, err := s.book.CoversSection(ann(), now, after)
			if err != nil || got.String() != test.want {
				t.Errorf("missing is %q, %v; want %q", got.String(), err, test.want)
			}
		})
	}
	_, err := s.book.CoversSection(ann(), now, access.Section{TokenLife: -1})
	refused(t, err, access.Invalid, "token-life", "400 days")
}
