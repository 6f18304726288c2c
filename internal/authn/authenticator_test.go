package authn

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/internal/authn/authntest"
)

var caller = netip.MustParseAddr("192.0.2.1")

func bearer(token string) Credentials {
	return Credentials{Authorization: []string{"Bearer " + token}, Address: caller}
}

func basic(user, password string) Credentials {
	text := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
	return Credentials{Authorization: []string{"Basic " + text}, Address: caller}
}

// TestAuthenticate tries each kind of credential, and combinations of them.
func TestAuthenticate(t *testing.T) {
	t.Parallel()
	token, record := newTestToken(t)
	unknown, _ := newTestToken(t)
	i, ca := authntest.New(testURL), newTestCA(t)
	pool := ca.pool()
	a := New(Options{
		Cluster: "blue", Tokens: tokensOf(map[TokenID]TokenRecord{token.ID(): record}),
		ClientRoots: func() *x509.CertPool { return pool }, KeyTransport: i.Transport(),
	})
	t.Cleanup(a.Close)
	rules := []CertificateRule{{DNS: "ci.example.org", User: "ci"}}
	if err := a.Configure(Config{[]Issuer{testIssuer(i)}, rules}); err != nil {
		t.Fatal(err)
	}
	text, jwt := token.Reveal(), i.Sign(goodClaims(i, nil))
	longJWT := i.Sign(goodClaims(i, map[string]any{"pad": strings.Repeat("a", 5700)}))
	chain := []*x509.Certificate{ca.leaf(t, nil, clientURI)}
	tests := map[string]struct {
		credentials Credentials
		user        string
		want        Reason
	}{
		"an API token":             {bearer(text), "account/ci", ""},
		"another case":             {Credentials{Authorization: []string{"bEARER  " + text + " "}}, "account/ci", ""},
		"a JWT":                    {bearer(jwt), "ci/someone", ""},
		"a long JWT":               {basic("user", longJWT), "ci/someone", ""},
		"a password":               {basic("boskos", text), "account/ci", ""},
		"a password without user":  {basic("", text), "account/ci", ""},
		"a JWT as a password":      {basic("x", jwt), "ci/someone", ""},
		"a certificate":            {Credentials{Chain: chain}, "cert/zuul", ""},
		"a mapped certificate":     {Credentials{Chain: []*x509.Certificate{ca.leaf(t, names("ci.example.org"))}}, "cert/ci", ""},
		"nothing":                  {Credentials{}, "", NoCredential},
		"two headers":              {Credentials{Authorization: []string{"Bearer " + text, "Bearer " + text}}, "", SeveralCredentials},
		"two in one header":        {bearer(text + ", Bearer " + text), "", TokenMalformed},
		"a header and a chain":     {Credentials{Authorization: []string{"Bearer " + text}, Chain: chain}, "", SeveralCredentials},
		"an empty header":          {Credentials{Authorization: []string{""}}, "", HeaderMalformed},
		"a scheme only":            {Credentials{Authorization: []string{"Bearer"}}, "", HeaderMalformed},
		"an empty token":           {bearer(" "), "", HeaderMalformed},
		"another scheme":           {Credentials{Authorization: []string{"Negotiate abc"}}, "", HeaderMalformed},
		"a token without a scheme": {Credentials{Authorization: []string{text}}, "", HeaderMalformed},
		"a password not in base64": {Credentials{Authorization: []string{"Basic a:b"}}, "", HeaderMalformed},
		"an empty password":        {basic("user", ""), "", HeaderMalformed},
		"a password with a colon":  {basic("user", "x:"+text), "", JWTMalformed},
		"a header beyond bounds":   {bearer(strings.Repeat("a", 20_000)), "", TooLarge},
		"an unknown token":         {bearer(unknown.Reveal()), "", TokenUnknown},
		"a wrong check":            {bearer(text[:67] + "!"), "", TokenMalformed},
		"a node's certificate":     {Credentials{Chain: []*x509.Certificate{ca.leaf(t, nil, "quorate://cluster/blue/node/n")}}, "", CertificateNode},
	}
	n := 0
	for name, test := range tests {
		n++
		test.credentials.Address = netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}) // no failures in common
		identity, err := a.Authenticate(t.Context(), test.credentials)
		if got, _ := ReasonOf(err); got != test.want || identity.User != test.user {
			t.Errorf("%s: %q, reason %q (%v), want %q and %q", name, identity.User, got, err, test.user, test.want)
		}
		says := fmt.Sprint(err)
		if strings.Contains(says, text[secretStart:checkStart-1]) || strings.Contains(says, jwt) {
			t.Errorf("%s: the error has the secret: %v", name, err)
		}
	}
}

// TestFailuresAreLimited: an address may fail ten times, and then once a second; valid credentials never wait.
func TestFailuresAreLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		token, record := newTestToken(t)
		bad, _ := newTestToken(t)
		a := New(Options{Tokens: tokensOf(map[TokenID]TokenRecord{token.ID(): record})})
		t.Cleanup(a.Close)
		try := func(address string) (reason Reason, wait time.Duration) {
			c := bearer(bad.Reveal())
			c.Address = netip.MustParseAddr(address)
			_, err := a.Authenticate(context.Background(), c)
			refused := &CredentialError{}
			if !errors.As(err, &refused) {
				t.Fatal("a bad token was accepted")
			}
			if refused.Reason == Throttled {
				if cause, _ := ReasonOf(errors.Unwrap(refused)); cause != TokenUnknown {
					t.Errorf("the cause is %q", cause)
				}
			}
			return refused.Reason, refused.RetryAfter
		}
		for n := range 15 {
			want := TokenUnknown
			if n >= failureBurst {
				want = Throttled
			}
			if got, _ := try("192.0.2.1"); got != want {
				t.Errorf("failure %d: %q", n+1, got)
			}
			if _, err := a.Authenticate(context.Background(), bearer(token.Reveal())); err != nil {
				t.Errorf("a good token after %d failures: %v", n+1, err)
			}
		}
		if got, wait := try("::ffff:192.0.2.1"); got != Throttled || wait <= 0 || wait > time.Second {
			t.Errorf("the same address in IPv6: %q, wait %s", got, wait)
		}
		if got, _ := try("192.0.2.2"); got != TokenUnknown {
			t.Errorf("its neighbour: %q", got)
		}
		for n := range failureBurst {
			try(fmt.Sprintf("2001:db8::%x", n))
		}
		if got, _ := try("2001:db8::ffff:1%eth0"); got != Throttled {
			t.Errorf("another address of the same /64: %q", got)
		}
		if got, _ := try("2001:db8:0:1::1"); got != TokenUnknown {
			t.Errorf("another /64: %q", got)
		}
		time.Sleep(time.Second)
		if got, _ := try("192.0.2.1"); got != TokenUnknown {
			t.Errorf("a second later: %q", got)
		}
		if got, _ := try("192.0.2.1"); got != Throttled {
			t.Errorf("the next one: %q", got)
		}
		for range 20 {
			if _, err := a.Authenticate(context.Background(), Credentials{Address: caller}); err != nil {
				wantReason(t, err, NoCredential)
			}
		}
	})
}

// TestAddressesAreBounded fails from more addresses than are remembered.
func TestAddressesAreBounded(t *testing.T) {
	t.Parallel()
	l, now := newFailureLimiter(), time.Now()
	address := func(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}) }
	for range failureBurst {
		l.count(address(0), now)
	}
	for n := 1; n < maxAddresses; n++ {
		l.count(address(n), now)
	}
	if l.mayFail(address(0), now) {
		t.Error("an address is forgotten before the bound")
	}
	for n := range 100 {
		l.count(address(0), now) // keeps it
		l.count(address(maxAddresses+n), now)
	}
	if len(l.entries) != maxAddresses || l.byAge.Len() != maxAddresses || l.mayFail(address(0), now) {
		t.Errorf("%d addresses are remembered", len(l.entries))
	}
	for range failureBurst + 1 {
		l.count(netip.Addr{}, now) // a pipe
	}
	if l.mayFail(netip.Addr{}, now) {
		t.Error("callers without an address are not limited")
	}
}

// TestCatchUp: a token that this node does not know yet is looked up again after it caught up.
func TestCatchUp(t *testing.T) {
	t.Parallel()
	token, record := newTestToken(t)
	records, calls, failure := map[TokenID]TokenRecord{}, 0, error(nil)
	a := New(Options{Tokens: tokensOf(records), CatchUp: func(context.Context) error {
		if calls++; failure == nil {
			records[token.ID()] = record
		}
		return failure
	}})
	t.Cleanup(a.Close)
	failure = errTest
	_, err := a.Authenticate(t.Context(), bearer(token.Reveal()))
	wantReason(t, err, TokenUnverifiable)
	failure = nil
	for range 2 {
		if _, err := a.Authenticate(t.Context(), bearer(token.Reveal())); err != nil {
			t.Error(err)
		}
	}
	if calls != 2 {
		t.Errorf("%d catch-ups, want 2", calls)
	}
	for range 50 {
		unknown, _ := newTestToken(t)
		_, _ = a.Authenticate(t.Context(), bearer(unknown.Reveal()))
	}
	if calls > 2+failureBurst {
		t.Errorf("%d catch-ups for one address", calls)
	}
}

// TestThrottledAddressesMayCatchUp: a new token that this node does not know yet is not refused because its address has
// failed before. If the address has asked for unknown tokens too often, the caller is told to repeat, and no failure is
// counted.
func TestThrottledAddressesMayCatchUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		token, record := newTestToken(t)
		known, other := newTestToken(t)
		other.Hash[0]++ // the secret of another token
		records := map[TokenID]TokenRecord{known.ID(): other}
		isReplicated := false
		a := New(Options{Tokens: tokensOf(records), CatchUp: func(context.Context) error {
			if isReplicated {
				records[token.ID()] = record
			}
			return nil
		}})
		t.Cleanup(a.Close)
		for range 2 * failureBurst {
			_, _ = a.Authenticate(t.Context(), bearer(known.Reveal()))
		}
		_, err := a.Authenticate(t.Context(), bearer(known.Reveal()))
		wantReason(t, err, Throttled)
		for range 2 * failureBurst { // of ids that do not exist
			unknown, _ := newTestToken(t)
			_, err = a.Authenticate(t.Context(), bearer(unknown.Reveal()))
		}
		wantReason(t, err, TokenUnverifiable)
		isReplicated = true
		_, err = a.Authenticate(t.Context(), bearer(token.Reveal()))
		wantReason(t, err, TokenUnverifiable)
		time.Sleep(time.Second)
		if _, err := a.Authenticate(t.Context(), bearer(token.Reveal())); err != nil {
			t.Errorf("a good new token after its address may ask again: %v", err)
		}
	})
}

// TestConfigureIsAllOrNothing refuses a configuration of which one half is not valid.
func TestConfigureIsAllOrNothing(t *testing.T) {
	t.Parallel()
	a := New(Options{})
	t.Cleanup(a.Close)
	err := a.Configure(Config{
		Issuers: []Issuer{{Name: "Bad"}}, Certificates: []CertificateRule{{DNS: "ci.example.org", User: "ci"}},
	})
	if err == nil || len(a.certificates.rules.Load().hosts) > 0 {
		t.Errorf("%v; rules %v", err, *a.certificates.rules.Load())
	}
	if len(a.JWT().Keys()) != 0 {
		t.Error("an issuer is in use")
	}
}

// TestReasonsAreListed: metrics begin with all reasons, so the list must have each constant of the package.
func TestReasonsAreListed(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("reason.go")
	if err != nil {
		t.Fatal(err)
	}
	var declared []string
	for _, match := range regexp.MustCompile(`(?m)^\t\w+ +Reason = "(\w+)"`).FindAllStringSubmatch(string(source), -1) {
		declared = append(declared, match[1])
	}
	listed := []string{string(NoCredential)}
	for _, reason := range Reasons() {
		listed = append(listed, string(reason))
	}
	slices.Sort(declared)
	slices.Sort(listed)
	if len(declared) == 0 || !slices.Equal(declared, listed) {
		t.Errorf("declared are %v,\nlisted %v", declared, listed)
	}
}
