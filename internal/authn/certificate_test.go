package authn

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/pki"
)

type testCA struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newTestCA(t testing.TB) *testCA {
	t.Helper()
	ca := &testCA{}
	template := &x509.Certificate{Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true}
	ca.certificate, ca.key = ca.sign(t, template, time.Hour)
	return ca
}

func (ca *testCA) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.certificate)
	return pool
}

func (ca *testCA) sign(
	t testing.TB, template *x509.Certificate, life time.Duration,
) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber, template.NotBefore = big.NewInt(time.Now().UnixNano()), time.Now().Add(-time.Hour)
	template.NotAfter = time.Now().Add(life)
	parent, signer := ca.certificate, ca.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, key
}

// leaf makes a certificate for use as a client, unless change says otherwise.
func (ca *testCA) leaf(t testing.TB, change func(*x509.Certificate), uris ...string) *x509.Certificate {
	t.Helper()
	template := &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	for _, text := range uris {
		uri, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		template.URIs = append(template.URIs, uri)
	}
	if change != nil {
		change(template)
	}
	certificate, _ := ca.sign(t, template, 30*time.Minute)
	return certificate
}

func names(list ...string) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.DNSNames = list }
}

const clientURI = "quorate://cluster/blue/client/zuul"

// TestCertificates tries certificates that must be refused, or accepted, each twice: the second time from memory.
func TestCertificates(t *testing.T) {
	t.Parallel()
	ca, foreign := newTestCA(t), newTestCA(t)
	pool := ca.pool()
	v := NewCertificateVerifier("blue", func() *x509.CertPool { return pool }, nil)
	err := v.Configure([]CertificateRule{
		{DNS: "Zuul.example.org", User: "zuul"},
		{DNS: "ci.example.org", User: "ci"},
		{DNS: "z2.example.org", User: "zuul"},
		{Name: "robot", User: "zuul"},
	})
	if err != nil {
		t.Fatal(err)
	}
	expired := func() *x509.Certificate {
		c, _ := ca.sign(t, &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, -time.Minute)
		return c
	}
	use := func(usages ...x509.ExtKeyUsage) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.ExtKeyUsage = usages }
	}
	tests := map[string]struct {
		leaf *x509.Certificate
		user string
		want Reason
	}{
		"a client":                {ca.leaf(t, nil, clientURI), "cert/zuul", ""},
		"a client with a rule":    {ca.leaf(t, nil, "quorate://cluster/blue/client/robot"), "cert/zuul", ""},
		"any use":                 {ca.leaf(t, use(x509.ExtKeyUsageAny), clientURI), "cert/zuul", ""},
		"a rule":                  {ca.leaf(t, names("other.example.org", "ZUUL.example.org")), "cert/zuul", ""},
		"two names of one user":   {ca.leaf(t, names("zuul.example.org", "z2.example.org")), "cert/zuul", ""},
		"two users":               {ca.leaf(t, names("zuul.example.org", "ci.example.org")), "", CertificateUnmapped},
		"no name":                 {ca.leaf(t, nil), "", CertificateUnmapped},
		"a wildcard":              {ca.leaf(t, names("*.example.org")), "", CertificateUnmapped},
		"a node":                  {ca.leaf(t, nil, "quorate://cluster/blue/node/n1"), "", CertificateNode},
		"a node with a rule":      {ca.leaf(t, names("ci.example.org"), "quorate://cluster/blue/node/n1"), "", CertificateNode},
		"a client elsewhere":      {ca.leaf(t, nil, "quorate://cluster/green/client/zuul"), "", CertificateRole},
		"two roles":               {ca.leaf(t, nil, clientURI, "quorate://cluster/blue/client/root"), "", CertificateRole},
		"a role that is not one":  {ca.leaf(t, names("ci.example.org"), "quorate://cluster/blue/admin/x"), "", CertificateRole},
		"expired":                 {expired(), "", CertificateExpired},
		"a foreign authority":     {foreign.leaf(t, nil, clientURI), "", CertificateUntrusted},
		"for servers only":        {ca.leaf(t, use(x509.ExtKeyUsageServerAuth), clientURI), "", CertificateUsage},
		"without any use":         {ca.leaf(t, use(), clientURI), "", CertificateUsage},
		"the authority itself":    {ca.certificate, "", CertificateUsage},
		"the foreign one, itself": {foreign.certificate, "", CertificateUsage},
	}
	for name, test := range tests {
		for range 2 {
			identity, err := v.Verify([]*x509.Certificate{test.leaf})
			if got, _ := ReasonOf(err); got != test.want || identity.User != test.user {
				t.Errorf("%s: %q, reason %q (%v), want %q and %q", name, identity.User, got, err, test.user, test.want)
			}
			if err == nil && (!identity.Ends.Equal(test.leaf.NotAfter) || identity.CredentialID == [16]byte{}) {
				t.Errorf("%s: %+v", name, identity)
			}
		}
	}
	_, err = v.Verify(nil)
	wantReason(t, err, NoCredential)
	_, err = v.Verify(make([]*x509.Certificate, maxChain+1))
	wantReason(t, err, TooLarge)
}

// TestCertificatesOfQuorateTLS verifies certificates that pki makes.
func TestCertificatesOfQuorateTLS(t *testing.T) {
	t.Parallel()
	authority, own, err := pki.NewAuthority("blue", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(own.Cert)
	v := NewCertificateVerifier("blue", func() *x509.CertPool { return pool }, nil)
	parse := func(pair pki.Pair, err error) []*x509.Certificate {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(pair.Cert)
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		return []*x509.Certificate{certificate}
	}
	client, node := parse(authority.Client("ops", time.Hour)), parse(authority.Node("n1", nil, time.Hour))
	if identity, err := v.Verify(client); err != nil || identity.User != "cert/ops" {
		t.Errorf("%+v, %v", identity, err)
	}
	_, err = v.Verify(node)
	wantReason(t, err, CertificateNode)
}

// TestCertificatesAreVerifiedNow: what was accepted is refused when the certificate ends, the authority changes, or a
// rule does.
func TestCertificatesAreVerifiedNow(t *testing.T) {
	t.Parallel()
	ca, now := newTestCA(t), time.Now()
	pool := ca.pool()
	v := NewCertificateVerifier("blue", func() *x509.CertPool { return pool }, func() time.Time { return now })
	intermediate := &testCA{}
	authority := &x509.Certificate{IsCA: true, BasicConstraintsValid: true}
	intermediate.certificate, intermediate.key = ca.sign(t, authority, 10*time.Minute)
	direct := []*x509.Certificate{ca.leaf(t, nil, clientURI)}
	chain := []*x509.Certificate{intermediate.leaf(t, nil, clientURI), intermediate.certificate}
	mapped := []*x509.Certificate{ca.leaf(t, names("ci.example.org"))}
	reason := func(chain []*x509.Certificate) Reason {
		_, err := v.Verify(chain)
		reason, _ := ReasonOf(err)
		return reason
	}
	if err := v.Configure([]CertificateRule{{DNS: "ci.example.org", User: "ci"}}); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(reason(direct), reason(chain), reason(mapped)); got != "" && strings.TrimSpace(got) != "" {
		t.Fatalf("good certificates: %s", got)
	}
	now = now.Add(15 * time.Minute)
	if reason(direct) != "" || reason(chain) != CertificateExpired {
		t.Errorf("after the end of the intermediate: %q, %q", reason(direct), reason(chain))
	}
	if err := v.Configure(nil); err != nil || reason(mapped) != CertificateUnmapped {
		t.Errorf("without its rule: %q", reason(mapped))
	}
	now = now.Add(16 * time.Minute)
	if got := reason(direct); got != CertificateExpired {
		t.Errorf("after its end: %q", got)
	}
	now = now.Add(-20 * time.Minute)
	if got := reason(direct); got != "" {
		t.Errorf("valid again: %q", got)
	}
	pool = newTestCA(t).pool()
	if got := reason(direct); got != CertificateUntrusted {
		t.Errorf("after a change of the authority: %q", got)
	}
	pool = nil
	if got := reason(direct); got != CertificateUntrusted {
		t.Errorf("without an authority: %q", got)
	}
}

// TestKnownCertificatesAreBounded remembers more certificates than the bound.
func TestKnownCertificatesAreBounded(t *testing.T) {
	t.Parallel()
	pool := x509.NewCertPool()
	v := NewCertificateVerifier("blue", nil, nil)
	for n := range 2*maxKnownCertificates + 1 {
		v.remember([32]byte{byte(n), byte(n >> 8)}, pool, time.Now())
		if len(v.known) > maxKnownCertificates {
			t.Fatalf("%d certificates are remembered", len(v.known))
		}
	}
}

// TestCertificateRules refuses rules that could never match, or would match too much.
func TestCertificateRules(t *testing.T) {
	t.Parallel()
	for _, rules := range [][]CertificateRule{
		{{DNS: "", User: "ci"}},
		{{DNS: "*.example.org", User: "ci"}},
		{{DNS: "a b", User: "ci"}},
		{{DNS: "a/b", User: "ci"}},
		{{DNS: "a.example.org", User: ""}},
		{{DNS: "a.example.org", User: "c*"}},
		{{DNS: "a.example.org", User: "a"}, {DNS: "A.example.org", User: "b"}},
		{{Name: "zuul"}},
		{{Name: "zuul", DNS: "ci.example.org", User: "ci"}},
		{{Name: "z*", User: "ci"}},
		{{Name: "zuul", User: "a"}, {Name: "zuul", User: "b"}},
		make([]CertificateRule, 1001),
	} {
		if err := CheckCertificateRules(rules); err == nil {
			t.Errorf("no error for %+v", rules[0])
		}
	}
}

// TestClientCertHeader passes a chain from one node to another one.
func TestClientCertHeader(t *testing.T) {
	t.Parallel()
	ca := newTestCA(t)
	leaf := ca.leaf(t, nil, clientURI)
	header := http.Header{}
	if c, err := ParseClientCert(header); c != nil || err != nil {
		t.Errorf("without the header: %v, %v", c, err)
	}
	for _, chain := range [][]*x509.Certificate{{leaf}, {leaf, ca.certificate}, {leaf, ca.certificate, ca.certificate}} {
		header = http.Header{}
		SetClientCert(header, chain)
		got, err := ParseClientCert(header)
		if err != nil || !slices.EqualFunc(got, chain, (*x509.Certificate).Equal) {
			t.Errorf("%d certificates: got %d, %v", len(chain), len(got), err)
		}
	}
	tooLong := http.Header{}
	SetClientCert(tooLong, slices.Repeat([]*x509.Certificate{leaf}, maxChain+1))
	SetClientCert(tooLong, nil)
	if len(tooLong) != 0 {
		t.Errorf("a chain that cannot be sent is sent as %v", tooLong)
	}
	good, above := header.Get(ClientCertHeader), header.Get(ClientCertChainHeader)
	for _, c := range []struct {
		leaf, above []string
		want        Reason
	}{
		{[]string{""}, nil, HeaderMalformed},
		{[]string{":"}, nil, HeaderMalformed},
		{[]string{"::"}, nil, HeaderMalformed},
		{[]string{good[1:]}, nil, HeaderMalformed},
		{[]string{good + "," + good}, nil, HeaderMalformed},
		{[]string{":AAAA:"}, nil, HeaderMalformed},
		{[]string{strings.Repeat("A", 20<<10)}, nil, TooLarge},
		{[]string{good, good}, nil, SeveralCredentials},
		{nil, []string{above}, SeveralCredentials},
		{[]string{good}, []string{above, above}, SeveralCredentials},
		{[]string{good}, []string{above + ","}, HeaderMalformed},
		{[]string{good}, []string{above[1:]}, HeaderMalformed},
		{[]string{good}, []string{strings.Repeat(",", maxChain)}, TooLarge},
		{[]string{good}, []string{strings.Repeat("A", 40<<10)}, TooLarge},
	} {
		_, err := ParseClientCert(http.Header{ClientCertHeader: c.leaf, ClientCertChainHeader: c.above})
		wantReason(t, err, c.want)
	}
}

func BenchmarkVerifyCertificate(b *testing.B) {
	ca := newTestCA(b)
	pool := ca.pool()
	v := NewCertificateVerifier("blue", func() *x509.CertPool { return pool }, nil)
	chain := []*x509.Certificate{ca.leaf(b, nil, clientURI)}
	for name, forget := range map[string]bool{"remembered": false, "new": true} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if forget {
					v.known = nil
				}
				if _, err := v.Verify(chain); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
