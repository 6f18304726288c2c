package access_test

import (
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/access"
)

func TestTokens(t *testing.T) {
	s := newScript(t)
	s.do(create("ci"), token("ci", 1))
	if got, _ := s.book.Token(access.TokenID{1}); got.Created != now || got.Ends != now+hour || got.Account != "ci" {
		t.Errorf("token is %+v", got)
	}
	if c := s.do(token("ci", 1)); !c.IsEmpty() {
		t.Error("a repeated creation changes something")
	}
	other := token("ci", 1)
	other.Token.Hash = [32]byte{9}
	s.refuses(other, access.AlreadyExists, "token.id", "other content")
	s.refuses(token("bot", 2), access.NotFound, "account", `no account "bot"`)
	for _, ends := range []int64{0, now, now + access.MaxTokenLife + 1} {
		late := token("ci", 2)
		late.Token.Ends = ends
		s.refuses(late, access.Invalid, "token.ends", "would live for")
	}
	bad := token("ci", 2)
	bad.Ceiling = 0
	s.refuses(bad, access.Invalid, "ceiling", "at least one verb")
	bad = token("ci", 2)
	bad.Token.Hash = [32]byte{}
	s.refuses(bad, access.Invalid, "token.hash", "zero")

	for n := byte(2); n <= access.MaxLiveTokens; n++ {
		s.do(token("ci", n))
	}
	s.refuses(token("ci", 9), access.Full, "account", "has 8 live tokens")
	s.do(access.RevokeToken{ID: access.TokenID{3}}, token("ci", 9))
	if got, _ := s.book.Token(access.TokenID{3}); got.Revoked != 7 || got.IsLive(now) {
		t.Errorf("token is %+v", got)
	}
	if c := s.do(access.RevokeToken{ID: access.TokenID{3}}); !c.IsEmpty() {
		t.Error("a repeated revocation changes something")
	}
	s.refuses(access.RevokeToken{ID: access.TokenID{99}}, access.NotFound, "id", "there is no token")
	s.at.Wall += 2 * hour // all have ended
	late := token("ci", 10)
	late.Token.Ends = s.at.Wall + 1
	s.do(late)
}

// TestDeadTokensAreForgotten checks that the oldest dead tokens go first, and live ones never.
func TestDeadTokensAreForgotten(t *testing.T) {
	s := newScript(t)
	s.do(create("ci"), token("ci", 100))
	for n := byte(1); n <= 20; n++ {
		s.do(token("ci", n), access.RevokeToken{ID: access.TokenID{n}})
	}
	var kept []byte
	for _, tok := range s.book.TokensOf("ci") {
		kept = append(kept, tok.ID[0])
	}
	if want := []byte{100, 12, 13, 14, 15, 16, 17, 18, 19, 20}; !slices.Equal(kept, want) {
		t.Errorf("kept are %v, want %v", kept, want)
	}
}

func TestRotation(t *testing.T) {
	s := newScript(t)
	s.do(create("ci"))
	old := token("ci", 1)
	old.Ceiling, old.Description = access.SetOf(access.Hold), "cron"
	s.do(old)
	rotate := access.RotateToken{
		Old: access.TokenID{1}, Overlap: 1000,
		Token: access.NewToken{ID: access.TokenID{2}, Hash: [32]byte{2}, Ends: now + 2*hour},
	}
	s.do(rotate)
	before, _ := s.book.Token(access.TokenID{1})
	after, _ := s.book.Token(access.TokenID{2})
	if before.Ends != now+1000 || after.Ends != now+2*hour || after.Ceiling != old.Ceiling || after.Description != "cron" {
		t.Errorf("the old token is %+v, the new one %+v", before, after)
	}
	if c := s.do(rotate); !c.IsEmpty() {
		t.Error("a repeated rotation changes something")
	}
	next := rotate
	next.Token.ID = access.TokenID{3}
	next.Overlap = access.MaxOverlap + 1
	s.refuses(next, access.Invalid, "overlap", "at most 7 days")
	next.Overlap, next.Old = 0, access.TokenID{9}
	s.refuses(next, access.NotFound, "old", "there is no token")
	next.Old, next.Token.ID = access.TokenID{2}, access.TokenID{1}
	s.refuses(next, access.AlreadyExists, "token.id", "other content")
	s.do(access.RevokeToken{ID: access.TokenID{2}})
	next.Token.ID = access.TokenID{3}
	s.refuses(next, access.Conflict, "old", "is revoked or has ended")
}

// TestRotatedTokensLiveNoLonger: a token of an hour that replaces itself does not become one of many days.
func TestRotatedTokensLiveNoLonger(t *testing.T) {
	s := newScript(t)
	s.do(create("ci"))
	old := token("ci", 1)
	old.Token.Ends = now + hour
	s.do(old)
	s.at.KeepsLife, s.at.Wall = true, now+hour/2
	for n := byte(2); n < 5; n++ {
		s.do(access.RotateToken{
			Old: access.TokenID{n - 1}, Overlap: 1000,
			Token: access.NewToken{ID: access.TokenID{n}, Hash: [32]byte{n}, Ends: s.at.Wall + 100*hour},
		})
		next, _ := s.book.Token(access.TokenID{n})
		if next.Ends != s.at.Wall+hour {
			t.Errorf("token %d lives for %d ms", n, next.Life())
		}
		s.at.Wall += hour / 2
	}
}
