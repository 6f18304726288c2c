package authn

import (
	"crypto/x509"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/quorate/quorate/internal/authn/authntest"
)

// FuzzVerifyJWT verifies any text: only what the issuer signed may pass, and errors never repeat the text.
func FuzzVerifyJWT(f *testing.F) {
	i := authntest.New(testURL)
	v := newTestVerifier(f, i)
	key := i.SigningKey()
	good := i.Sign(goodClaims(i, nil))
	f.Add(good)
	f.Add(authntest.SignText(key, []byte(`{"iss":"https://issuer.example.org","aud":[1]}`), nil))
	f.Add("e30.e30.")
	f.Add("..")
	f.Fuzz(func(t *testing.T, raw string) {
		_, err := v.Verify(t.Context(), raw)
		if err == nil && raw != good {
			t.Fatalf("a token that was not signed passes: %q", raw)
		}
		if _, typed := ReasonOf(err); err != nil && !typed {
			t.Fatalf("an error without a reason: %v", err)
		}
		if err != nil && len(raw) > 40 && strings.Contains(err.Error(), raw) {
			t.Fatalf("the error repeats the token: %v", err)
		}
		if _, err := v.Explain(t.Context(), "ci", raw); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzSignedClaims verifies genuine tokens with any claims: they must be refused or give a valid name.
func FuzzSignedClaims(f *testing.F) {
	i := authntest.New(testURL)
	v := newTestVerifier(f, i)
	key := i.SigningKey()
	f.Add([]byte(`{"iss":"https://issuer.example.org","aud":"quorate.example.org","sub":"x","org":"42","iat":1,"exp":2}`))
	f.Add([]byte(`{"a":[{"b":[1,"x",null,true]}],"a":1e9}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		identity, err := v.Verify(t.Context(), authntest.SignText(key, payload, nil))
		if err == nil && (!isName(identity.User) || !strings.HasPrefix(identity.User, "ci/")) {
			t.Fatalf("user %q", identity.User)
		}
		if _, err := v.Explain(t.Context(), "ci", authntest.SignText(key, payload, nil)); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzParseClaims parses any text; go-oidc's parser accepts everything that it accepts.
func FuzzParseClaims(f *testing.F) {
	f.Add([]byte(`{"a":[{"b":[1,"x",null,true]}],"c":1e9}`))
	f.Add([]byte(`{"a":1,"a":2}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		parsed, err := parseClaims(text)
		if err == nil && parsed == nil {
			t.Fatal("neither claims nor an error")
		}
		for name := range parsed {
			if !utf8.ValidString(name) {
				t.Fatalf("name %q", name)
			}
			_, _ = parsed.time(name)
			_, _ = stringsOf(parsed[name])
		}
	})
}

// FuzzClaimPath parses any path and looks it up.
func FuzzClaimPath(f *testing.F) {
	f.Add("kubernetes.io/serviceaccount/name")
	f.Add("a~1b/~0")
	f.Fuzz(func(t *testing.T, text string) {
		path, err := parsePath(text)
		if err != nil {
			return
		}
		claims, inner := claims{}, any("x")
		for n := len(path.names) - 1; n > 0; n-- {
			inner = map[string]any{path.names[n]: inner}
		}
		claims[path.names[0]] = inner
		if value, found := claims.at(path); !found || value != "x" {
			t.Fatalf("%q is not found", text)
		}
	})
}

// FuzzKeySet parses any key set.
func FuzzKeySet(f *testing.F) {
	i := authntest.New(testURL)
	i.AddKey("RS256")
	i.AddKey("EdDSA")
	f.Add(i.KeySet())
	f.Add([]byte(`{"keys":[{"kty":"oct","k":"AAAA"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		table, err := parseKeySet(text)
		if err != nil {
			return
		}
		for _, key := range table.keys {
			if key.fits("none") || key.fits("HS256") || len(table.find(key.id, "HS256")) > 0 {
				t.Fatalf("a key fits a shared one: %+v", key)
			}
		}
	})
}

// FuzzAuthorization parses any header.
func FuzzAuthorization(f *testing.F) {
	f.Add("Bearer x")
	f.Add("Basic " + base64.StdEncoding.EncodeToString([]byte("a:b")))
	f.Fuzz(func(t *testing.T, value string) {
		token, err := bearerOf([]string{value})
		if err == nil && token == "" {
			t.Fatal("an empty token")
		}
		if _, typed := ReasonOf(err); err != nil && !typed {
			t.Fatalf("an error without a reason: %v", err)
		}
	})
}

// FuzzClientCert parses any headers.
func FuzzClientCert(f *testing.F) {
	header, ca := http.Header{}, newTestCA(f).certificate
	SetClientCert(header, []*x509.Certificate{ca, ca})
	f.Add(header.Get(ClientCertHeader), header.Get(ClientCertChainHeader))
	f.Add("::", "")
	f.Fuzz(func(t *testing.T, leaf, above string) {
		header := http.Header{ClientCertHeader: {leaf}}
		if above != "" {
			header.Set(ClientCertChainHeader, above)
		}
		chain, err := ParseClientCert(header)
		if (chain == nil) == (err == nil) || len(chain) > maxChain {
			t.Fatalf("%v, %v", chain, err)
		}
	})
}
