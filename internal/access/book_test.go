package access_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/access"
)

// Times of the tests, in milliseconds since 1970.
const (
	now  = int64(1_800_000_000_000)
	hour = int64(60 * 60 * 1000)
)

// script applies commands to a book and fails where one is refused.
type script struct {
	t    testing.TB
	book *access.Book
	at   access.Moment
}

func newScript(t testing.TB) *script {
	t.Helper()
	return &script{t: t, book: access.NewBook(access.Open), at: access.Moment{Wall: now, Index: 7}}
}

func (s *script) do(commands ...access.Command) access.Change {
	s.t.Helper()
	var change access.Change
	for _, c := range commands {
		var err *access.Error
		if change, err = s.book.Apply(c, s.at); err != nil {
			s.t.Fatalf("%+v: %v", c, err)
		}
		s.book = change.After
	}
	return change
}

func (s *script) refuses(c access.Command, kind access.ErrorKind, field, text string) {
	s.t.Helper()
	before := s.book.State()
	_, err := s.book.Apply(c, s.at)
	refused(s.t, err, kind, field, text)
	if !equalStates(before, s.book.State()) {
		s.t.Errorf("the refused command %+v has changed the book", c)
	}
}

func equalStates(a, b access.State) bool { return fmt.Sprintf("%#v", a) == fmt.Sprintf("%#v", b) }

func token(account string, n byte) access.CreateToken {
	return access.CreateToken{
		Account: account, Ceiling: access.AllVerbs,
		Token: access.NewToken{ID: access.TokenID{n}, Hash: [32]byte{n}, Ends: now + hour},
	}
}

func create(name string, groups ...string) access.CreateAccount {
	return access.CreateAccount{Account: access.Account{Name: name, Groups: groups}}
}

func refuseUser(name string, until int64) access.Refuse {
	return access.Refuse{Refused: access.Refused{
		RefusedKey: access.RefusedKey{Kind: access.RefusedUser, Name: name}, Until: until,
	}}
}

func section(bindings ...access.Binding) access.ReplaceSection {
	return access.ReplaceSection{Section: access.Section{Bindings: bindings}}
}

func TestAccounts(t *testing.T) {
	s := newScript(t)
	ci := access.Account{Name: "ci", Description: "nightly", Groups: []string{"b", "a", "b"}}
	c := s.do(access.CreateAccount{Account: ci})
	if got, _ := s.book.Account("ci"); !slices.Equal(got.Groups, []string{"a", "b"}) || got.User() != "account/ci" {
		t.Errorf("account is %+v", got)
	}
	want := access.Difference{Object: "account", Name: "ci", After: `enabled, group a, group b, "nightly"`}
	if !slices.Equal(c.Differences, []access.Difference{want}) || s.book.Revision() != 1 {
		t.Errorf("differences are %+v, revision %d", c.Differences, s.book.Revision())
	}
	if c := s.do(access.CreateAccount{Account: ci}); !c.IsEmpty() {
		t.Errorf("a repeated creation changes %+v", c.Differences)
	}
	s.refuses(create("ci"), access.AlreadyExists, "account.name", "other content")
	s.refuses(create("a/b"), access.Invalid, "account.name", "not a name")
	s.refuses(create("x", "corp/sre"), access.Invalid,
		"account.groups[0]", "groups with a slash belong to issuers")
	s.refuses(access.UpdateAccount{Account: access.Account{Name: "x"}}, access.NotFound, "name", `no account "x"`)
	s.refuses(access.DeleteAccount{Name: "x"}, access.NotFound, "name", `no account "x"`)

	s.do(token("ci", 1), access.UpdateAccount{Account: access.Account{Name: "ci", Disabled: true}})
	if len(s.book.TokensOf("ci")) != 1 {
		t.Error("an update loses tokens")
	}
	s.do(access.DeleteAccount{Name: "ci"})
	if _, found := s.book.Token(access.TokenID{1}); found || s.book.TokensOf("ci") != nil {
		t.Error("a deleted account leaves a token")
	}
}

func TestRefusals(t *testing.T) {
	s := newScript(t)
	user := access.RefusedKey{Kind: access.RefusedUser, Name: "corp/ann"}
	lost := refuseUser("corp/ann", now+hour)
	lost.Refused.IssuedBefore, lost.Refused.Reason = 500, "laptop lost"
	s.do(lost)
	for issued, want := range map[int64]bool{0: true, 499: true, 500: false} {
		if _, found := s.book.Refusal(user, issued, now); found != want {
			t.Errorf("a credential issued at %d: refused is %v, want %v", issued, found, want)
		}
	}
	if _, found := s.book.Refusal(user, 0, now+hour); found {
		t.Error("the refusal does not end")
	}
	s.do(access.Refuse{Refused: access.Refused{RefusedKey: user, Until: now + hour}})
	if _, found := s.book.Refusal(user, 500, now); !found {
		t.Error("the refusal was not replaced")
	}
	s.do(access.Unrefuse{Key: user})
	s.refuses(access.Unrefuse{Key: user}, access.NotFound, "key", "no refusal of user corp/ann")

	hex := "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for name, test := range map[string]struct {
		refused     access.Refused
		field, text string
	}{
		"kind":        {access.Refused{}, "refused.kind", "not a kind of refusal"},
		"token":       {access.Refused{RefusedKey: access.RefusedKey{Kind: access.RefusedToken, Name: "x"}}, "refused.name", "not an id"},
		"user":        {access.Refused{RefusedKey: access.RefusedKey{Kind: access.RefusedUser, Name: "ann"}}, "refused.name", "not a user"},
		"certificate": {access.Refused{RefusedKey: access.RefusedKey{Kind: access.RefusedCertificate, Name: "A" + hex[1:]}}, "refused.name", "not a certificate"},
		"jti":         {access.Refused{RefusedKey: access.RefusedKey{Kind: access.RefusedJTI, Name: "x"}}, "refused.issuer", "name the issuer of a jti"},
		"issuer":      {access.Refused{RefusedKey: access.RefusedKey{Kind: access.RefusedCertificate, Name: hex, Issuer: "corp"}}, "refused.issuer", "of nothing else"},
		"issued":      {access.Refused{RefusedKey: access.RefusedKey{Kind: access.RefusedCertificate, Name: hex}, IssuedBefore: 5}, "refused.issued-before", "give it for a user"},
		"no end":      {access.Refused{RefusedKey: user}, "refused.until", "not a time to end"},
		"far end":     {access.Refused{RefusedKey: user, Until: now + access.MaxRefusalSpan + 1}, "refused.until", "not a time to end"},
	} {
		t.Run(name, func(t *testing.T) {
			s.t = t
			s.refuses(access.Refuse{Refused: test.refused}, access.Invalid, test.field, test.text)
		})
	}
}

// TestRefusalsAreNeverForgotten fills the list: a full one refuses more until some have ended.
func TestRefusalsAreNeverForgotten(t *testing.T) {
	s := newScript(t)
	refuse := func(i int, until int64) access.Refuse { return refuseUser(fmt.Sprintf("corp/%d", i), until) }
	for i := range access.MaxRefusals {
		s.do(refuse(i, now+1+int64(i%2)))
	}
	if _, err := s.book.Apply(refuse(-1, now+hour), s.at); err == nil || err.Kind != access.Full {
		t.Fatalf("a full list takes more: %v", err)
	}
	s.do(refuse(5, now+hour)) // one that is there can be replaced
	s.at.Wall++
	s.do(refuse(-1, now+hour))
	left := 0
	for r := range s.book.RefusedEntries() {
		if left++; r.Until <= s.at.Wall {
			t.Fatalf("%s has ended and is kept", r.Name)
		}
	}
	if left != access.MaxRefusals/2+1 {
		t.Errorf("%d are left", left)
	}
}

func TestAccountsAreBounded(t *testing.T) {
	s := newScript(t)
	for i := range access.MaxAccounts {
		s.do(create(fmt.Sprint(i)))
	}
	if _, err := s.book.Apply(create("x"), s.at); err == nil || err.Kind != access.Full {
		t.Errorf("a full book takes more: %v", err)
	}
}

func TestModes(t *testing.T) {
	s := newScript(t)
	s.do(access.SetMode{Mode: access.Watching}, access.SetMode{Mode: access.Open}, access.SetMode{Mode: access.Watching})
	s.refuses(access.SetMode{Mode: access.Guarded}, access.Conflict, "mode", "no administrator could log in")
	s.refuses(access.SetMode{Mode: 9}, access.Invalid, "mode", "not a mode")
	s.do(create("boss"), token("boss", 1), section(to("root", "account boss")))
	s.do(access.SetMode{Mode: access.Guarded})
	for _, m := range []access.Mode{access.Open, access.Watching} {
		s.refuses(access.SetMode{Mode: m}, access.Conflict, "mode", "guarded and stays so")
	}
	if c := s.do(access.SetMode{Mode: access.Guarded}); !c.IsEmpty() {
		t.Error("a repeated mode changes something")
	}
}

// FuzzMode checks that the modes that are read are written back.
func FuzzMode(f *testing.F) {
	f.Add("guarded")
	f.Add("Open")
	f.Fuzz(func(t *testing.T, text string) {
		if m, err := access.ParseMode(text); err == nil && m.String() != text {
			t.Errorf("mode %q is written %s", text, m)
		}
	})
}

func TestBootstrap(t *testing.T) {
	s := newScript(t)
	first := access.Bootstrap{Secret: [32]byte{1}, Account: "boss", Token: token("", 1).Token}
	s.do(first)
	if !s.book.HasAdministrator(now) || s.book.SpentSecret() != first.Secret || s.book.Recoveries() != 0 {
		t.Errorf("book is %+v", s.book.State())
	}
	s.refuses(first, access.Conflict, "secret", "has been used")
	again := access.Bootstrap{Secret: [32]byte{2}, Account: "boss", Token: token("", 2).Token}
	s.refuses(again, access.Conflict, "secret", "has been bootstrapped")
	again.Secret = [32]byte{}
	s.refuses(again, access.Invalid, "secret", "zero")

	// All that could lock the administrator out.
	s.do(create("other"), token("other", 9), section(to("root", "account other")),
		access.UpdateAccount{Account: access.Account{Name: "boss", Disabled: true}},
		refuseUser("account/boss", now+hour))
	recovery := again
	recovery.Secret, recovery.IsRecovery, recovery.Recoveries = [32]byte{3}, true, 1
	s.refuses(recovery, access.Conflict, "recoveries", "the count is 0")
	recovery.Recoveries, recovery.Member = 0, "n1\n"
	s.refuses(recovery, access.Invalid, "member", "control character")
	recovery.Member = "n1"
	s.do(recovery)
	last := s.book.LastRecovery()
	if last.Member != "n1" || last.Account != "boss" || last.Index == 0 || last.Wall != now {
		t.Errorf("the last recovery is %+v", last)
	}
	c := access.Caller{Kind: access.AccountCaller, User: "account/boss", Credential: [16]byte{2}}
	id, err := s.book.Identify(&c, now)
	path := access.Path{s.book.Cluster()}
	if err != nil || s.book.Recoveries() != 1 || !access.Allows(id, access.AccessManage, now, path) {
		t.Errorf("after the recovery: %v, count %d", err, s.book.Recoveries())
	}
	recovery.Secret, recovery.Token = [32]byte{4}, token("", 3).Token
	s.refuses(recovery, access.Conflict, "recoveries", "the count is 1")

	closed := newScript(t)
	first.Guard = true
	closed.do(first)
	if closed.book.Mode() != access.Guarded || s.book.Mode() != access.Open {
		t.Errorf("bootstrap has led to %s and %s", closed.book.Mode(), s.book.Mode())
	}
}
