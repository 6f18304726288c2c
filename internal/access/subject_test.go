package access_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/access"
)

func TestSubjects(t *testing.T) {
	for text, want := range map[string]access.Subject{
		"user github/456789":     {Kind: access.User, Name: "github/456789"},
		"user k8s/system:sa:x:y": {Kind: access.User, Name: "k8s/system:sa:x:y"},
		"group corp/sre":         {Kind: access.Group, Name: "corp/sre"},
		"group robots":           {Kind: access.Group, Name: "robots"},
		"account ci":             {Kind: access.AccountSubject, Name: "ci"},
		"everyone":               {Kind: access.Everyone},
		"anonymous":              {Kind: access.AnonymousSubject},
	} {
		if got, err := access.ParseSubject(text); err != nil || got != want || got.String() != text {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	for text, says := range map[string]string{
		"":                "is not a subject",
		"user":            "is not a subject",
		"users corp/ann":  "is not a subject",
		"User corp/ann":   "is not a subject",
		"everyone ":       "is not a subject",
		"anonymous x":     "is not a subject",
		"user ann":        "is not a user ISSUER/NAME",
		"user  corp/ann":  "is not a user ISSUER/NAME",
		"user corp/":      "is not a user ISSUER/NAME",
		"user /ann":       "is not a user ISSUER/NAME",
		"user corp/*":     "is not a user ISSUER/NAME",
		"user corp/a b":   "is not a user ISSUER/NAME",
		"user corp/é":     "is not a user ISSUER/NAME",
		"user account/ci": `write "account ci"`,
		"group *":         "is not a group",
		"group corp/":     "is not a group",
		"account a/b":     "is not a name of an account",
		"account ":        "is not a name of an account",
		"user corp/\n":    "is not a user ISSUER/NAME",
		long(257):         "is not a user ISSUER/NAME",
	} {
		refused(t, second(access.ParseSubject(text)), access.Invalid, "", says)
	}
	if _, err := access.ParseSubject(long(256)); err != nil {
		t.Errorf("a name of 256 bytes is refused: %v", err)
	}
	for _, s := range []access.Subject{{}, {Kind: 9, Name: "x"}, {Kind: access.Everyone, Name: "x"}} {
		if s.Check() == nil {
			t.Errorf("subject %#v passes", s)
		}
	}
}

func long(n int) string { return "user corp/" + strings.Repeat("x", n-len("corp/")) }

// FuzzSubject checks that each text that is accepted is canonical and passes Check.
func FuzzSubject(f *testing.F) {
	for _, seed := range []string{
		"user github/456789", "group corp/sre", "account ci", "everyone", "anonymous", "user a/*",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := access.ParseSubject(text)
		if err != nil {
			return
		}
		if s.String() != text || s.Check() != nil || strings.ContainsAny(text, "*\n\x00") || len(s.Name) > 256 {
			t.Errorf("%q is read as %#v", text, s)
		}
	})
}

// FuzzNames checks the other parsers: what they accept, they write back.
func FuzzNames(f *testing.F) {
	for _, seed := range []string{"hold.as", "0000000000000", "fzzzzzzzzzzzz", "gzzzzzzzzzzzz", "10"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if v, err := access.ParseVerb(text); err == nil && v.String() != text {
			t.Errorf("verb %q is written %s", text, v)
		}
		if id, err := access.ParseTokenID(text); err == nil && id.String() != text {
			t.Errorf("id %q is written %s", text, id)
		}
		set, err := access.ParseVerbs(strings.Fields(text))
		if err != nil {
			return
		}
		if again, err := access.ParseVerbs(set.Names()); err != nil || again != set {
			t.Errorf("verbs %q are read again as %s, %v", text, again, err)
		}
	})
}

func TestTokenIDs(t *testing.T) {
	for text, id := range map[string]access.TokenID{
		"aaaaaaaaaaaaa": {},
		"aaaaaaaaaaaac": {7: 1},
		"caaaaaaaaaaaa": {0: 16},
		"7777777777776": {255, 255, 255, 255, 255, 255, 255, 255},
	} {
		if got, err := access.ParseTokenID(text); err != nil || got != id || id.String() != text {
			t.Errorf("%s is %v, %v; %v is %s", text, got, err, id, id)
		}
	}
	for _, text := range []string{
		"", "aaaaaaaaaaaa", "aaaaaaaaaaaaaa", "aaaaaaaaaaaab", "aaaaaaaaaaaa1", "aaaaaaaaaaaaA", "aaaaaaaaaaaa=",
	} {
		refused(t, second(access.ParseTokenID(text)), access.Invalid, "", "is not an id of a token")
	}
}
