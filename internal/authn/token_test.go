package authn

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func newTestToken(t testing.TB) (Token, TokenRecord) {
	t.Helper()
	token, err := NewToken(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return token, TokenRecord{Hash: token.Hash(), User: "account/ci", Groups: []string{"account/builders"}}
}

func tokensOf(records map[TokenID]TokenRecord) TokenLookup {
	return func(id TokenID) (TokenRecord, bool) {
		record, known := records[id]
		return record, known
	}
}

func wantReason(t testing.TB, err error, want Reason) {
	t.Helper()
	if got, _ := ReasonOf(err); got != want {
		t.Errorf("reason %q (%v), want %q", got, err, want)
	}
}

// TestTokenText fixes the text of a token, because scanners for leaked secrets know it and tokens live long.
func TestTokenText(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		random []byte
		want   string
	}{
		{make([]byte, 40), "qrt_aaaaaaaaaaaaa_" + strings.Repeat("0", 43) + "_01g77K"},
		{bytes.Repeat([]byte{255}, 40), "qrt_777777777777 6_"},
	} {
		token, err := NewToken(bytes.NewReader(test.random))
		if err != nil {
			t.Fatal(err)
		}
		if text := token.Reveal(); len(text) != 68 || !strings.HasPrefix(text, strings.ReplaceAll(test.want, " ", "")) {
			t.Errorf("a token of %x… is %s", test.random[:4], text)
		}
		again, err := ParseToken(token.Reveal())
		if err != nil || again.ID() != token.ID() || again.Hash() != token.Hash() {
			t.Errorf("parsed again: %v, %v", again, err)
		}
	}
	if _, err := NewToken(bytes.NewReader(make([]byte, 39))); err == nil {
		t.Error("a token was made from too few random bytes")
	}
}

// TestTypingErrorsAreFound changes each character of a token: every change is found without a lookup.
func TestTypingErrorsAreFound(t *testing.T) {
	t.Parallel()
	token, _ := newTestToken(t)
	text := token.Reveal()
	for i := range text {
		for _, c := range []byte("aZ7_-\x00é") {
			wrong := text[:i] + string(rune(c)) + text[i+1:]
			if wrong == text {
				continue
			}
			_, err := ParseToken(wrong)
			if reason, _ := ReasonOf(err); reason != TokenMistyped && reason != TokenMalformed {
				t.Fatalf("with %q at %d: %v", c, i, err)
			}
			if strings.Contains(err.Error(), wrong[secretStart:checkStart-1]) {
				t.Fatalf("the error repeats the secret: %v", err)
			}
		}
	}
	for _, wrong := range []string{"", "qrt_", text[1:], text + "x", text[:67], strings.ToUpper(text)} {
		_, err := ParseToken(wrong)
		wantReason(t, err, TokenMalformed)
	}
	swapped := []byte(text) // neighbours that a person exchanges
	swapped[30], swapped[31] = text[31], text[30]
	if _, err := ParseToken(string(swapped)); text[30] != text[31] {
		wantReason(t, err, TokenMistyped)
	}
}

// TestTokensDoNotShowTheirSecret writes a token in every way that a program may do by accident.
func TestTokensDoNotShowTheirSecret(t *testing.T) {
	t.Parallel()
	token, _ := newTestToken(t)
	secret := token.Reveal()[secretStart : checkStart-1]
	type holder struct {
		Open   Token
		hidden Token
		behind *Token
	}
	h := holder{token, token, &token}
	var out bytes.Buffer
	for _, value := range []any{token, &token, h, &h, []Token{token}, map[string]Token{"a": token}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%p", "%o"} {
			fmt.Fprintf(&out, verb+"\n", value)
		}
	}
	slog.New(slog.NewTextHandler(&out, nil)).Info("text", "token", token, "holder", h)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("json", "token", token, "holder", h)
	if err := json.NewEncoder(&out).Encode(h); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(&out, errors.Join(fmt.Errorf("with %v", token)), token.GoString(), token.LogValue())
	hex, decimal := fmt.Sprintf("%x", secret), strings.Trim(fmt.Sprintf("%d", []byte(secret)), "[]")
	for _, leak := range []string{secret, hex, strings.ToUpper(hex), decimal} {
		if strings.Contains(out.String(), leak) {
			t.Errorf("the secret was written: %s", out.String())
		}
	}
	if text := fmt.Sprintf("%d", token); text != token.String() || !strings.Contains(text, token.ID().String()) {
		t.Errorf("a token is written as %q", text)
	}
	if zero := (Token{}); zero.Reveal() != "" || zero.Hash() == token.Hash() || zero.String() == "" {
		t.Errorf("the zero token is %v", zero)
	}
}

// TestVerifyToken tries tokens that must be refused, each with its reason.
func TestVerifyToken(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	token, record := newTestToken(t)
	other, otherRecord := newTestToken(t)
	lookup := func(change func(*TokenRecord)) TokenLookup {
		changed := record
		change(&changed)
		return tokensOf(map[TokenID]TokenRecord{token.ID(): changed, other.ID(): otherRecord})
	}
	kept := func(*TokenRecord) {}
	unknown, _ := newTestToken(t)
	// The id of one account's token with the secret of another one's, with a check that matches.
	mixed := tokenPrefix + token.ID().String() + "_" + other.Reveal()[secretStart:checkStart-1] + "_"
	check := checkOf(mixed[:checkStart-1])
	mixed += string(check[:])
	tests := map[string]struct {
		text   string
		change func(*TokenRecord)
		want   Reason
	}{
		"valid":          {token.Reveal(), kept, ""},
		"ends later":     {token.Reveal(), func(r *TokenRecord) { r.Ends = now.Add(1) }, ""},
		"ends now":       {token.Reveal(), func(r *TokenRecord) { r.Ends = now }, TokenExpired},
		"revoked":        {token.Reveal(), func(r *TokenRecord) { r.Revoked = true }, TokenRevoked},
		"disabled":       {token.Reveal(), func(r *TokenRecord) { r.Disabled = true }, AccountDisabled},
		"unknown":        {unknown.Reveal(), kept, TokenUnknown},
		"of another one": {mixed, kept, TokenMismatched},
		"revoked, but the secret is wrong": {
			mixed, func(r *TokenRecord) { r.Revoked = true }, TokenMismatched,
		},
		"no hash": {token.Reveal(), func(r *TokenRecord) { r.Hash = [32]byte{} }, TokenMismatched},
	}
	for name, test := range tests {
		identity, err := VerifyToken(test.text, lookup(test.change), now)
		if test.want != "" {
			wantReason(t, err, test.want)
			if identity.User != "" || strings.Contains(fmt.Sprint(err), test.text[secretStart:checkStart-1]) {
				t.Errorf("%s: %+v, %v", name, identity, err)
			}
			continue
		}
		if err != nil || identity.User != "account/ci" || identity.Kind != AccountKind || len(identity.Groups) != 1 ||
			!bytes.HasPrefix(identity.CredentialID[:], token.id[:]) {
			t.Errorf("%s: %+v, %v", name, identity, err)
		}
	}
	_, err1 := VerifyToken(mixed, lookup(kept), now)
	_, err2 := VerifyToken(token.Reveal(), tokensOf(nil), now)
	if err1.Error() != err2.Error() {
		t.Errorf("texts tell which ids exist: %q and %q", err1, err2)
	}
}

// TestVerifyTokenDoesNotAllocate keeps the budget of the hottest path.
func TestVerifyTokenDoesNotAllocate(t *testing.T) {
	token, record := newTestToken(t)
	text, lookup, now := token.Reveal(), tokensOf(map[TokenID]TokenRecord{token.ID(): record}), time.Now()
	allocations := testing.AllocsPerRun(100, func() {
		if _, err := VerifyToken(text, lookup, now); err != nil {
			t.Fatal(err)
		}
	})
	if allocations != 0 {
		t.Errorf("%v allocations", allocations)
	}
}

func BenchmarkVerifyToken(b *testing.B) {
	token, record := newTestToken(b)
	text, lookup, now := token.Reveal(), tokensOf(map[TokenID]TokenRecord{token.ID(): record}), time.Now()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := VerifyToken(text, lookup, now); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzParseToken(f *testing.F) {
	token, _ := newTestToken(f)
	f.Add(token.Reveal())
	f.Add("qrt_aaaaaaaaaaaaa_")
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := ParseToken(text)
		if _, typed := ReasonOf(err); err != nil && !typed {
			t.Fatalf("an error without a reason: %v", err)
		}
		if err == nil && (parsed.Reveal() != text || !strings.Contains(text, parsed.ID().String())) {
			t.Fatalf("%q became %q", text, parsed.Reveal())
		}
		if id, err := ParseTokenID(text); err == nil && id.String() != text {
			t.Fatalf("id %q became %s", text, id)
		}
	})
}
