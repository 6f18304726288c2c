package access_test

import (
	"testing"

	"github.com/quorate/quorate/internal/access"
)

func corpIssuer() access.Issuer {
	rule := []access.ClaimRule{{Claim: "hd", Values: []string{"example.org"}}}
	return access.Issuer{
		Name: "corp", URL: "https://login.example.org", Audience: "quorate", User: "sub", Require: rule,
		Groups: []access.GroupRule{{Group: "sre", Match: rule}},
	}
}

// TestLastAdministrator takes away the only way in, in every way that there is.
func TestLastAdministrator(t *testing.T) {
	account := func(s *script) {
		s.do(create("boss", "bosses"), token("boss", 1))
	}
	const text = "could log in any more"
	removals := map[string]struct {
		bound   access.Binding
		command access.Command
	}{
		"the binding":       {to("root", "account boss"), section()},
		"the account":       {to("root", "account boss"), access.DeleteAccount{Name: "boss"}},
		"disabled":          {to("security-admin", "account boss"), access.UpdateAccount{Account: access.Account{Name: "boss", Disabled: true}}},
		"the token":         {to("root", "account boss"), access.RevokeToken{ID: access.TokenID{1}}},
		"an end":            {to("root", "account boss"), section(access.Binding{Role: "root", To: to("root", "account boss").To, Until: now + hour})},
		"another role":      {to("root", "account boss"), section(to("auditor", "account boss"))},
		"to an empty group": {to("root", "account boss"), section(to("root", "group nobody"))},
		"out of the group":  {to("root", "group bosses"), access.UpdateAccount{Account: access.Account{Name: "boss"}}},
		"refused user":      {to("root", "account boss"), refuseUser("account/boss", now+hour)},
		"refused token": {to("root", "account boss"), access.Refuse{Refused: access.Refused{
			RefusedKey: access.RefusedKey{Kind: access.RefusedToken, Name: access.TokenID{1}.String()}, Until: now + hour,
		}}},
	}
	for name, test := range removals {
		t.Run(name, func(t *testing.T) {
			s := newScript(t)
			account(s)
			s.do(section(test.bound))
			s.refuses(test.command, access.LastAdministrator, "", text)
			s.do(create("two"), token("two", 2), section(test.bound, to("root", "account two")))
			if _, replaces := test.command.(access.ReplaceSection); !replaces {
				s.do(test.command) // another one can log in
			}
		})
	}
}

// TestAdministratorsOfIssuers checks which users and groups count.
func TestAdministratorsOfIssuers(t *testing.T) {
	for subject, want := range map[string]bool{
		"user corp/ann":   true,
		"user other/ann":  false,
		"user cert/zuul":  true,
		"user cert/nozul": false,
		"group corp/sre":  true,
		"group corp/dev":  false,
		"group other/sre": false,
	} {
		s := newScript(t)
		replace := section(to("security-admin", subject))
		replace.Section.Issuers = []access.Issuer{corpIssuer()}
		replace.Section.Certificates = []access.CertificateRule{{Name: "zuul", User: "zuul"}}
		s.do(replace)
		if got := s.book.HasAdministrator(now); got != want {
			t.Errorf("%s counts: %v, want %v", subject, got, want)
		}
		if want {
			s.refuses(section(to("security-admin", subject)), access.LastAdministrator, "", "could log in any more")
		}
	}
}

// TestACeilingIsNoAdministrator checks that a token that cannot manage access does not count.
func TestACeilingIsNoAdministrator(t *testing.T) {
	s := newScript(t)
	low := token("boss", 1)
	low.Ceiling = access.SetOf(access.UsageRead)
	s.do(create("boss"), low, section(to("root", "account boss")))
	if s.book.HasAdministrator(now) {
		t.Error("a token with a low ceiling counts")
	}
	s.do(section()) // what does not count can be removed
}

func TestIdentify(t *testing.T) {
	s := newScript(t)
	s.do(create("ci", "robots"), token("ci", 1), token("ci", 2),
		create("off"), token("off", 3),
		access.UpdateAccount{Account: access.Account{Name: "off", Disabled: true}},
		access.RevokeToken{ID: access.TokenID{2}})
	replace := section(to("holder", "group robots"))
	replace.Section.Issuers = []access.Issuer{corpIssuer()}
	s.do(replace)
	account := func(name string, n byte) access.Caller {
		return access.Caller{Kind: access.AccountCaller, User: "account/" + name, Credential: [16]byte{n}}
	}
	for name, test := range map[string]struct {
		caller access.Caller
		wall   int64
		text   string
	}{
		"token":         {account("ci", 1), now, ""},
		"ended":         {account("ci", 1), now + hour, "has ended"},
		"revoked":       {account("ci", 2), now, "is revoked"},
		"of another":    {account("ci", 3), now, "has no token"},
		"unknown":       {account("ci", 9), now, "has no token"},
		"disabled":      {account("off", 3), now, "is disabled"},
		"system":        {access.SystemCaller(), now, ""},
		"anonymous":     {access.Caller{Kind: access.Anonymous}, now, ""},
		"issuer":        {access.Caller{Kind: access.External, User: "corp/ann"}, now, ""},
		"certificate":   {access.Caller{Kind: access.External, User: "cert/zuul"}, now, ""},
		"front end":     {access.Caller{Kind: access.External, User: "frontend/boskos"}, now, ""},
		"other issuer":  {access.Caller{Kind: access.External, User: "github/1"}, now, "is not an issuer"},
		"zero":          {access.Caller{}, now, "not a kind of caller"},
		"short account": {access.Caller{Kind: access.AccountCaller, User: "x", Credential: [16]byte{1}}, now, "has no token"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.book.Identify(&test.caller, test.wall)
			switch {
			case test.text != "":
				refused(t, err, access.Unauthenticated, err.Field, test.text)
			case err != nil:
				t.Error(err)
			}
		})
	}
	// The groups are those of the book: the caller names none.
	c := account("ci", 1)
	id, _ := s.book.Identify(&c, now)
	if !access.Allows(id, access.Hold, now, access.Path{s.book.Cluster()}) {
		t.Error("the account has not the rights of its group")
	}
	for _, key := range []access.RefusedKey{
		{Kind: access.RefusedUser, Name: "account/ci"},
		{Kind: access.RefusedToken, Name: access.TokenID{1}.String()},
	} {
		s.do(access.Refuse{Refused: access.Refused{RefusedKey: key, Until: now + hour}})
		if _, err := s.book.Identify(&c, now); err == nil {
			t.Errorf("the %s is refused and can log in", key.Kind)
		}
		s.do(access.Unrefuse{Key: key})
	}
}
