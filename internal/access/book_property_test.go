package access_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/access/accesstest"
	"github.com/quorate/quorate/internal/verify"
)

// drawCommand draws a command over few names, so that commands meet each other.
func drawCommand(t *rapid.T, wall int64, roles access.Roles) access.Command {
	name := rapid.SampledFrom([]string{"ci", "bot", "boss", ""}).Draw(t, "name")
	id := access.TokenID{0: byte(rapid.IntRange(1, 12).Draw(t, "id"))}
	fresh := access.NewToken{ID: id, Hash: [32]byte{1}, Ends: wall + rapid.Int64Range(0, 40).Draw(t, "life")}
	account := access.Account{
		Name: name, Disabled: rapid.IntRange(0, 3).Draw(t, "disabled") == 0,
		Groups: rapid.SliceOfN(rapid.SampledFrom([]string{"robots", "x"}), 0, 2).Draw(t, "groups"),
	}
	key := access.RefusedKey{Kind: access.RefusedUser, Name: "account/boss"}
	if rapid.Bool().Draw(t, "by id") {
		key = access.RefusedKey{Kind: access.RefusedToken, Name: access.TokenID{1}.String()}
	}
	switch rapid.IntRange(0, 13).Draw(t, "command") {
	case 0, 1:
		return access.CreateAccount{Account: account}
	case 2:
		return access.UpdateAccount{Account: account}
	case 3:
		return access.DeleteAccount{Name: name}
	case 4, 5, 6:
		return access.CreateToken{Account: name, Token: fresh, Ceiling: access.AllVerbs}
	case 7:
		return access.RotateToken{Old: access.TokenID{byte(rapid.IntRange(1, 12).Draw(t, "old"))}, Token: fresh, Overlap: 3}
	case 8:
		return access.RevokeToken{ID: id}
	case 9:
		return access.Refuse{Refused: access.Refused{RefusedKey: key, Until: wall + 5}}
	case 10:
		return access.Unrefuse{Key: key}
	case 11:
		return access.SetMode{Mode: access.Mode(rapid.IntRange(0, 3).Draw(t, "mode"))}
	case 12:
		return access.Bootstrap{
			Secret: [32]byte{byte(rapid.IntRange(0, 3).Draw(t, "secret"))}, Account: name, Token: fresh,
			IsRecovery: rapid.Bool().Draw(t, "recovery"), Recoveries: rapid.Uint64Range(0, 2).Draw(t, "count"),
		}
	}
	return access.ReplaceSection{Section: access.Section{
		Roles: roles.Custom(), Bindings: accesstest.Bindings(t, 3, roles, access.ClusterScope),
	}}
}

// TestBookProperties applies random commands and checks after each: a refusal changes nothing; a change can be undone
// exactly; replicas agree; the books before it are as they were; a snapshot restores the book; and the promises about
// modes, administrators and tokens are true.
func TestBookProperties(t *testing.T) {
	changed := map[string]int{}
	verify.Check(t, func(t *rapid.T) {
		roles, _ := access.NewRoles(accesstest.CustomRoles())
		book, replica := access.NewBook(access.Open), access.NewBook(access.Open)
		var books []*access.Book
		var texts []string
		at := access.Moment{Wall: 1000, Index: 1}
		for range 150 {
			at.Wall += rapid.Int64Range(0, 2).Draw(t, "passes")
			at.Index++
			command := drawCommand(t, at.Wall, roles)
			change, err := book.Apply(command, at)
			again, errAgain := replica.Apply(command, at)
			if fmt.Sprint(err) != fmt.Sprint(errAgain) {
				t.Fatalf("replicas disagree: %v and %v", err, errAgain)
			}
			if err != nil {
				continue
			}
			checkChange(t, book, change, at)
			if !change.IsEmpty() {
				changed[fmt.Sprintf("%T", command)]++
			}
			books, texts = append(books, book), append(texts, stateText(book))
			book, replica = change.After, again.After
			if stateText(book) != stateText(replica) {
				t.Fatal("replicas differ")
			}
		}
		for i := range books {
			if stateText(books[i]) != texts[i] {
				t.Fatalf("book %d has changed", i)
			}
		}
	})
	for _, command := range []access.Command{
		access.CreateAccount{},
		access.UpdateAccount{},
		access.DeleteAccount{},
		access.CreateToken{},
		access.RotateToken{},
		access.RevokeToken{},
		access.Refuse{},
		access.Unrefuse{},
		access.SetMode{},
		access.Bootstrap{},
		access.ReplaceSection{},
	} {
		if changed[fmt.Sprintf("%T", command)] == 0 && verify.Enabled() { // a few runs may not meet each
			t.Errorf("no %T changed anything", command)
		}
	}
}

func stateText(b *access.Book) string { return fmt.Sprintf("%#v", b.State()) }

func checkChange(t *rapid.T, before *access.Book, c access.Change, at access.Moment) {
	after := c.After
	same := stateText(before) == stateText(after)
	if c.Undo() != before || c.IsEmpty() != same || same != (len(c.Differences) == 0) {
		t.Fatalf("the change is empty: %v; differences %v", c.IsEmpty(), c.Differences)
	}
	if !same && after.Revision() != before.Revision()+1 {
		t.Fatalf("revision %d follows %d", after.Revision(), before.Revision())
	}
	if before.Mode() == access.Guarded && after.Mode() != access.Guarded {
		t.Fatal("the cluster was opened")
	}
	if before.HasAdministrator(at.Wall) && !after.HasAdministrator(at.Wall) {
		t.Fatal("the last administrator is gone")
	}
	loaded, err := access.Load(after.State())
	if err != nil || stateText(loaded) != stateText(after) {
		t.Fatalf("the snapshot does not restore the book: %v", err)
	}
	tokens := 0
	for account := range after.Accounts() {
		live := 0
		for _, token := range after.TokensOf(account.Name) {
			if tokens++; token.IsLive(at.Wall) {
				live++
			}
			if byID, found := after.Token(token.ID); !found || byID != token || token.Account != account.Name {
				t.Fatalf("account %s lists %+v, which is %+v", account.Name, token, byID)
			}
		}
		if live > access.MaxLiveTokens {
			t.Fatalf("account %s has %d live tokens", account.Name, live)
		}
	}
	for range after.Tokens() {
		tokens--
	}
	if tokens != 0 {
		t.Fatalf("%d tokens have no account, or more than one", -tokens)
	}
}

// TestLoadRefuses checks that a damaged snapshot is not taken.
func TestLoadRefuses(t *testing.T) {
	s := newScript(t)
	s.do(create("a"), create("b"),
		token("a", 1), token("b", 2),
		refuseUser("x/y", now+1),
		refuseUser("x/z", now+1))
	for name, test := range map[string]struct {
		damage      func(*access.State)
		kind        access.ErrorKind
		field, text string
	}{
		"mode":            {func(s *access.State) { s.Mode = 9 }, access.Invalid, "mode", "not a mode"},
		"section":         {func(s *access.State) { s.Section.TokenLife = -1 }, access.Invalid, "section.token-life", "not a life"},
		"account":         {func(s *access.State) { s.Accounts[0].Name = "*" }, access.Invalid, "accounts[0].name", "not a name"},
		"account twice":   {func(s *access.State) { s.Accounts[1].Name = "a" }, access.Invalid, "accounts[1]", "not in order"},
		"token of none":   {func(s *access.State) { s.Tokens[0].Account = "c" }, access.NotFound, "tokens[0]", "no account"},
		"token twice":     {func(s *access.State) { s.Tokens[1].ID = s.Tokens[0].ID }, access.AlreadyExists, "tokens[1]", "given twice"},
		"tokens in order": {func(s *access.State) { s.Tokens[0], s.Tokens[1] = s.Tokens[1], s.Tokens[0] }, access.Invalid, "tokens[1]", "not in order"},
		"ceiling":         {func(s *access.State) { s.Tokens[0].Ceiling = 0 }, access.Invalid, "tokens[0]", "the ceiling"},
		"refusal":         {func(s *access.State) { s.Refused[0].Name = "x" }, access.Invalid, "refused[0].name", "not a user"},
		"refusal twice":   {func(s *access.State) { s.Refused[1] = s.Refused[0] }, access.Invalid, "refused[1]", "not in order"},
		"many tokens": {func(s *access.State) {
			for i := range 16 {
				token := s.Tokens[1]
				token.ID[1] = byte(i + 1)
				s.Tokens = append(s.Tokens, token)
			}
		}, access.Full, "tokens[17]", "has 16 tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			state := s.book.State()
			test.damage(&state)
			_, err := access.Load(state)
			refused(t, err, test.kind, test.field, test.text)
		})
	}
}

func BenchmarkCreateToken(b *testing.B) {
	s := newScript(b)
	for i := range access.MaxAccounts {
		name := fmt.Sprint(i)
		s.do(create(name))
		s.do(access.CreateToken{Account: name, Ceiling: access.AllVerbs, Token: access.NewToken{
			ID: access.TokenID{byte(i), byte(i >> 8), byte(i * 7)}, Hash: [32]byte{1}, Ends: now + hour,
		}})
	}
	c := token("5000", 1)
	c.Token.ID = access.TokenID{1, 2, 3, 4, 5}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.book.Apply(c, s.at); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkIdentify(b *testing.B) {
	s := newScript(b)
	s.do(create("ci"), token("ci", 1))
	c := access.Caller{Kind: access.AccountCaller, User: "account/ci", Credential: [16]byte{1}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.book.Identify(&c, now); err != nil {
			b.Fatal(err)
		}
	}
}
