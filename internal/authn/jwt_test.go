package authn

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/internal/authn/authntest"
)

func testIssuer(i *authntest.Issuer) Issuer {
	return Issuer{
		Name: "ci", URL: i.URL, Audience: testAudience, User: "sub",
		Require: []ClaimRule{{Claim: "org", Values: []string{"42", "43"}}},
		Groups: []GroupRule{
			{Group: "deploy", When: []ClaimRule{{Claim: "ref", Values: []string{"main"}}, {"env", []string{"prod"}}}},
			{Group: "all", When: []ClaimRule{{Claim: "org", Values: []string{"42"}}}},
		},
	}
}

// goodClaims are claims that testIssuer accepts, with some replaced; nil removes a claim.
func goodClaims(i *authntest.Issuer, more map[string]any) map[string]any {
	claims := i.Claims(testAudience, map[string]any{
		"org": "42", "ref": "main", "env": []string{"test", "prod"}, "jti": "7",
	})
	for name, value := range more {
		if claims[name] = value; value == nil {
			delete(claims, name)
		}
	}
	return claims
}

// newTestVerifier returns a verifier of tokens of one issuer, which reads keys without a network.
func newTestVerifier(t testing.TB, i *authntest.Issuer, configs ...Issuer) *JWTVerifier {
	t.Helper()
	v := NewJWTVerifier(JWTOptions{Transport: i.Transport()})
	t.Cleanup(v.Close)
	if len(configs) == 0 {
		configs = []Issuer{testIssuer(i)}
	}
	if err := v.Configure(configs); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestVerifyJWT verifies a token with each algorithm, from a server, and from memory.
func TestVerifyJWT(t *testing.T) {
	t.Parallel()
	i := authntest.Start(t)
	v := NewJWTVerifier(JWTOptions{})
	t.Cleanup(v.Close)
	if err := v.Configure([]Issuer{testIssuer(i)}); err != nil {
		t.Fatal(err)
	}
	for _, algorithm := range algorithms {
		i.AddKey(algorithm)
	}
	for _, algorithm := range algorithms {
		for i.SigningKey().Algorithm != algorithm {
			i.AddKey(algorithm)
		}
	}
	claims := goodClaims(i, nil)
	raw := i.Sign(claims)
	for range 2 {
		identity, err := v.Verify(t.Context(), raw)
		if err != nil {
			t.Fatal(err)
		}
		if identity.User != "ci/someone" || identity.Kind != IssuerKind || identity.JWTID != "7" ||
			!slices.Equal(identity.Groups, []string{"ci/deploy", "ci/all"}) ||
			identity.Ends.Unix() != claims["exp"] || identity.Issued.Unix() != claims["iat"] ||
			identity.CredentialID == [16]byte{} {
			t.Errorf("identity %+v", identity)
		}
	}
	if status := v.Keys(); len(status) != 1 || status[0].Keys == 0 || status[0].Err != nil || status[0].Issuer != "ci" {
		t.Errorf("status of keys: %+v", status)
	}
}

// TestAlgorithms verifies one token of each algorithm, and refuses those that the issuer may not use.
func TestAlgorithms(t *testing.T) {
	t.Parallel()
	for _, algorithm := range algorithms {
		i := authntest.New(testURL)
		i.AddKey(algorithm)
		config := testIssuer(i)
		config.Algorithms = []string{algorithm}
		raw := i.Sign(goodClaims(i, nil))
		if _, err := newTestVerifier(t, i, config).Verify(t.Context(), raw); err != nil {
			t.Errorf("%s: %v", algorithm, err)
		}
		config.Algorithms = slices.DeleteFunc(slices.Clone(algorithms), func(a string) bool { return a == algorithm })
		_, err := newTestVerifier(t, i, config).Verify(t.Context(), raw)
		wantReason(t, err, JWTAlgorithm)
	}
}

// TestClaims tries claims that must be refused, or accepted, each with its reason.
func TestClaims(t *testing.T) {
	t.Parallel()
	now := time.Now().Unix()
	tests := map[string]struct {
		change map[string]any
		want   Reason
	}{
		"good":                       {nil, ""},
		"foreign audience":           {map[string]any{"aud": "other"}, JWTAudience},
		"several audiences":          {map[string]any{"aud": []string{testAudience, "other"}}, JWTAudience},
		"the audience twice":         {map[string]any{"aud": []string{testAudience, testAudience}}, JWTAudience},
		"a list of one audience":     {map[string]any{"aud": []string{testAudience}}, ""},
		"no audience":                {map[string]any{"aud": nil}, JWTAudience},
		"an audience of a number":    {map[string]any{"aud": 5}, JWTAudience},
		"part of the audience":       {map[string]any{"aud": testAudience + "/"}, JWTAudience},
		"foreign issuer":             {map[string]any{"iss": testURL + "/"}, JWTIssuer},
		"no issuer":                  {map[string]any{"iss": nil}, JWTIssuer},
		"issuer of a wrong type":     {map[string]any{"iss": []string{testURL}}, JWTIssuer},
		"no exp":                     {map[string]any{"exp": nil}, JWTTimes},
		"no iat":                     {map[string]any{"iat": nil}, JWTTimes},
		"exp as text":                {map[string]any{"exp": "9999999999"}, JWTTimes},
		"exp beyond all bounds":      {map[string]any{"exp": 1e300}, JWTTimes},
		"negative iat":               {map[string]any{"iat": -5}, JWTTimes},
		"exp with a fraction":        {map[string]any{"exp": float64(now) + 60.5}, ""},
		"exp in the past":            {map[string]any{"iat": now - 100, "exp": now - 1}, JWTExpired},
		"exp has no leeway":          {map[string]any{"iat": now - 100, "exp": now}, JWTExpired},
		"exp too far":                {map[string]any{"exp": now + 3700}, JWTLifetime},
		"iat after exp":              {map[string]any{"iat": now + 50, "exp": now + 40}, JWTLifetime},
		"iat long ago":               {map[string]any{"iat": now - 3600, "exp": now + 100}, JWTLifetime},
		"iat in the future":          {map[string]any{"iat": now + 90, "exp": now + 600}, JWTNotYetValid},
		"iat within the leeway":      {map[string]any{"iat": now + 30}, ""},
		"nbf in the future":          {map[string]any{"nbf": now + 90}, JWTNotYetValid}, // go-oidc would allow it
		"nbf within the leeway":      {map[string]any{"nbf": now + 30}, ""},
		"nbf as text":                {map[string]any{"nbf": "soon"}, JWTTimes},
		"a required claim missing":   {map[string]any{"org": nil}, JWTRequiredClaim},
		"another value":              {map[string]any{"org": "44"}, JWTRequiredClaim},
		"another case":               {map[string]any{"org": nil, "ORG": "42"}, JWTRequiredClaim},
		"a number for a text":        {map[string]any{"org": 42}, JWTRequiredClaim},
		"a list with another type":   {map[string]any{"org": []any{"42", 42}}, JWTRequiredClaim},
		"an object":                  {map[string]any{"org": map[string]any{"42": "42"}}, JWTRequiredClaim},
		"null":                       {map[string]any{"org": any((*int)(nil))}, JWTRequiredClaim},
		"a list with the value":      {map[string]any{"org": []string{"1", "43"}}, ""},
		"an empty list":              {map[string]any{"org": []string{}}, JWTRequiredClaim},
		"no user":                    {map[string]any{"sub": nil}, JWTUser},
		"an empty user":              {map[string]any{"sub": ""}, JWTUser},
		"a list of users":            {map[string]any{"sub": []string{"a"}}, JWTMalformed},
		"a user with a space":        {map[string]any{"sub": "a b"}, JWTUser},
		"a user with a star":         {map[string]any{"sub": "a*"}, JWTUser},
		"a user that is too long":    {map[string]any{"sub": strings.Repeat("a", 254)}, JWTUser},
		"a user beyond ASCII":        {map[string]any{"sub": "änne"}, JWTUser},
		"a user with a control code": {map[string]any{"sub": "a\x00"}, JWTUser},
		"a token that is too large":  {map[string]any{"pad": strings.Repeat("a", MaxJWTLength)}, TooLarge},
		"deep claims":                {map[string]any{"x": nested(maxClaimDepth)}, JWTMalformed},
		"claims within the depth":    {map[string]any{"x": nested(maxClaimDepth - 2)}, ""},
	}
	i := authntest.New(testURL)
	v := newTestVerifier(t, i)
	for name, test := range tests {
		identity, err := v.Verify(t.Context(), i.Sign(goodClaims(i, test.change)))
		if got, _ := ReasonOf(err); got != test.want {
			t.Errorf("%s: reason %q (%v), want %q", name, got, err, test.want)
		}
		if (err == nil) != (identity.User != "") {
			t.Errorf("%s: %+v with %v", name, identity, err)
		}
	}
}

// nested returns a list in a list, and so on.
func nested(depth int) any {
	value := any(1)
	for range depth {
		value = []any{value}
	}
	return value
}

// TestFailureNamesTheRule checks that an error says which rule of which issuer fails, and shows no claim.
func TestFailureNamesTheRule(t *testing.T) {
	t.Parallel()
	i := authntest.New(testURL)
	v := newTestVerifier(t, i)
	_, err := v.Verify(t.Context(), i.Sign(goodClaims(i, map[string]any{"org": "secret-org"})))
	text := err.Error()
	if !strings.Contains(text, `issuer ci fails the rule "require org"`) || strings.Contains(text, "secret-org") {
		t.Errorf("got %q", text)
	}
	i.AddKey("ES256") // not served when the token of another key claims to be of the issuer
	foreign := authntest.New(testURL)
	_, err = v.Verify(t.Context(), foreign.Sign(goodClaims(foreign, map[string]any{"org": "44"})))
	if strings.Contains(err.Error(), "org") {
		t.Errorf("a caller without a genuine token learns the rules: %v", err)
	}
}

// TestTokensAreRememberedBriefly checks how long a verified token is believed without verification.
func TestTokensAreRememberedBriefly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		i := authntest.New(testURL)
		v := newTestVerifier(t, i)
		synctest.Wait() // the keys are read: a token that waited for them is verified twice
		verify := func(raw string) Reason {
			t.Helper()
			_, err := v.Verify(context.Background(), raw)
			reason, _ := ReasonOf(err)
			return reason
		}
		long := i.Sign(goodClaims(i, nil))
		short := i.Sign(goodClaims(i, map[string]any{"exp": time.Now().Unix() + 20}))
		if verify(long) != "" || verify(short) != "" || len(v.config.Load().verified.newer) != 2 {
			t.Fatal("good tokens are refused or not remembered")
		}
		time.Sleep(20 * time.Second)
		if got := verify(short); got != JWTExpired {
			t.Errorf("a token that ended is remembered: %q", got)
		}
		// A rule that the token fails is set: it must not be remembered as good.
		config := testIssuer(i)
		config.Require[0].Values = []string{"43"}
		if err := v.Configure([]Issuer{config}); err != nil {
			t.Fatal(err)
		}
		if got := verify(long); got != JWTRequiredClaim {
			t.Errorf("after a change of the rules: %q", got)
		}
	})
}

// TestMemoryIsBounded fills the memory and checks that it keeps the newest tokens.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	m, now := newTokenMemory(), time.Now()
	set := &keySet{}
	for n := range 3 * maxRemembered {
		hash := [32]byte{byte(n), byte(n >> 8), byte(n >> 16)}
		m.put(hash, verifiedToken{keys: set, identity: Identity{Ends: now.Add(time.Hour)}}, now)
		if _, known := m.get(hash, now); !known {
			t.Fatalf("token %d was forgotten at once", n)
		}
		if size := len(m.newer) + len(m.older); size > maxRemembered {
			t.Fatalf("%d tokens are remembered", size)
		}
	}
	if _, known := m.get([32]byte{0, 0, 0}, now); known {
		t.Error("the oldest token is remembered")
	}
}

func BenchmarkVerifyJWT(b *testing.B) {
	for _, algorithm := range algorithms {
		i := authntest.New(testURL)
		i.AddKey(algorithm)
		v := newTestVerifier(b, i)
		raw := i.Sign(goodClaims(i, nil))
		b.Run(algorithm+"/remembered", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := v.Verify(b.Context(), raw); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(algorithm+"/new", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				v.config.Load().verified = newTokenMemory()
				if _, err := v.Verify(b.Context(), raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
