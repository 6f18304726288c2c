package identify_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/authn"
	"github.com/quorate/quorate/internal/authn/authntest"
	"github.com/quorate/quorate/internal/pki"
	"github.com/quorate/quorate/rpc/identify"
	"github.com/quorate/quorate/rpc/pipeline"
)

// TestCertificates: a certificate identifies its client on the listener for clients, and on that for nodes if a node
// that proved to be one has sent it. A node's certificate is not a user.
func TestCertificates(t *testing.T) {
	t.Parallel()
	state, all := guarded(t)
	state.Section.Certificates = []access.CertificateRule{{Name: "robot", User: "zuul"}}
	b := newTestIdentifier(t, state)
	authority := b.trustAuthority(t)
	b.chain = append(b.chain, certificateOf(t, authority, "robot"))
	caller, _ := b.call(allocatePath, nil)
	if caller == nil || caller.Kind != access.External || caller.User != "cert/zuul" || caller.Check() != nil {
		t.Errorf("a client is %+v", caller)
	}
	if caller, answer := b.call(allocatePath, bearer(all.valid.Reveal())); caller != nil || answer.Code != 401 {
		t.Errorf("a certificate and a token are those of %v", caller)
	}
	relayed := bearer(all.valid.Reveal())
	relayed.Set("Quorate-Relayed-By", "n9")
	if caller, _ := b.call(allocatePath, relayed); caller == nil || caller.User != "account/ci" {
		t.Errorf("a member of an earlier version that relays with its certificate: %v", caller)
	}
	b.options.CertificateRequired = true
	b.start(t)
	if caller, _ := b.call(allocatePath, bearer(all.valid.Reveal())); caller == nil || caller.User != "account/ci" {
		t.Errorf("where all must have a certificate, the token is that of %v", caller)
	}
	if caller, _ := b.call(allocatePath, nil); caller == nil || caller.User != "cert/zuul" {
		t.Errorf("where all must have a certificate, one alone is that of %v", caller)
	}
	relayedHeader := http.Header{}
	authn.SetClientCert(relayedHeader, b.chain)
	for name, c := range map[string]struct {
		from identify.NodeCall
		user string
	}{
		"a node":        {identify.NodeCall{ID: "n2", Internal: true}, "cert/zuul"},
		"in plain text": {identify.NodeCall{Internal: true}, ""},
	} {
		b.node = c.from
		if caller, _ := b.call(allocatePath, relayedHeader.Clone()); caller == nil || caller.User != c.user {
			t.Errorf("%s says who the caller is: %+v", name, caller)
		}
	}
	b.node = identify.NodeCall{ID: "n2", Internal: true}
	if caller, answer := b.call(allocatePath, http.Header{"Client-Cert": {"x"}}); caller != nil || answer.Code != 401 {
		t.Errorf("a header that is not a certificate: %v, %s", caller, answer.Body)
	}
	b.node = identify.NodeCall{}
	b.chain[0] = nodeCertificate(t, authority)
	caller, answer := b.call(allocatePath, nil)
	if caller != nil || !strings.Contains(answer.Body.String(), "nodes are not users") {
		t.Errorf("a node is %v: %s", caller, answer.Body)
	}
}

// TestRefusals: what the list names does not count, although it is otherwise valid.
func TestRefusals(t *testing.T) {
	t.Parallel()
	state, all := guarded(t)
	now := time.Now()
	issuer := authntest.New("https://issuer.example.org")
	state.Section = sectionWith(issuer)
	b := newTestIdentifier(t, state)
	b.options.KeyTransport = issuer.Transport()
	b.start(t)
	b.chain = append(b.chain, certificateOf(t, b.trustAuthority(t), "robot"))
	fingerprint := sha256.Sum256(b.chain[0].Raw)
	chain, jwt := b.chain, issuer.Sign(issuer.Claims("quorate", map[string]any{"sub": "ann", "team": "sre", "jti": "j1"}))
	credentials := map[string]func() *access.Caller{
		"token": func() *access.Caller { return b.caller(all.valid.Reveal()) },
		"jwt":   func() *access.Caller { return b.caller(jwt) },
		"cert": func() *access.Caller {
			b.chain = chain
			defer func() { b.chain = nil }()
			return b.caller("")
		},
	}
	b.chain = nil
	id := access.TokenID(all.valid.ID()).String()
	for name, c := range map[string]struct {
		refused access.Refused
		stops   string
	}{
		"nothing":           {access.Refused{RefusedKey: access.RefusedKey{Kind: access.RefusedUser, Name: "x/y"}}, ""},
		"a token":           {access.Refused{RefusedKey: access.RefusedKey{Kind: access.RefusedToken, Name: id}}, "token"},
		"an account":        {access.Refused{RefusedKey: access.RefusedKey{Kind: access.RefusedUser, Name: "account/ci"}}, "token"},
		"a user":            {access.Refused{RefusedKey: access.RefusedKey{Kind: access.RefusedUser, Name: "corp/ann"}}, "jwt"},
		"a jti":             {access.Refused{RefusedKey: access.RefusedKey{Kind: access.RefusedJTI, Issuer: "corp", Name: "j1"}}, "jwt"},
		"a jti elsewhere":   {access.Refused{RefusedKey: access.RefusedKey{Kind: access.RefusedJTI, Issuer: "other", Name: "j1"}}, ""},
		"a certificate":     {access.Refused{RefusedKey: access.RefusedKey{Kind: access.RefusedCertificate, Name: hex.EncodeToString(fingerprint[:])}}, "cert"},
		"older tokens":      {access.Refused{RefusedKey: access.RefusedKey{Kind: access.RefusedUser, Name: "account/ci"}, IssuedBefore: now.Add(time.Hour).UnixMilli()}, "token"},
		"much older tokens": {access.Refused{RefusedKey: access.RefusedKey{Kind: access.RefusedUser, Name: "account/ci"}, IssuedBefore: now.Add(-time.Hour).UnixMilli()}, ""},
		"older JWTs":        {access.Refused{RefusedKey: access.RefusedKey{Kind: access.RefusedUser, Name: "corp/ann"}, IssuedBefore: now.Add(time.Hour).UnixMilli()}, "jwt"},
		"much older JWTs":   {access.Refused{RefusedKey: access.RefusedKey{Kind: access.RefusedUser, Name: "corp/ann"}, IssuedBefore: now.Add(-time.Hour).UnixMilli()}, ""},
		"older certs":       {access.Refused{RefusedKey: access.RefusedKey{Kind: access.RefusedUser, Name: "cert/robot"}, IssuedBefore: now.Add(time.Hour).UnixMilli()}, "cert"},
	} {
		c.refused.Until = now.Add(time.Hour).UnixMilli()
		state.Refused = []access.Refused{c.refused}
		b.use(t, state)
		for kind, use := range credentials {
			if caller := use(); (caller == nil) != (kind == c.stops) {
				t.Errorf("%s is refused, and a %s is that of %v", name, kind, caller)
			}
		}
	}
	if b.failures(t, authn.Withdrawn) == 0 {
		t.Error("not counted")
	}
}

// caller returns nil if a call with the bearer token is refused.
func (b *testIdentifier) caller(text string) *access.Caller {
	header := http.Header{}
	if text != "" {
		header = bearer(text)
	}
	caller, _ := b.call(allocatePath, header)
	return caller
}

func sectionWith(i *authntest.Issuer) access.Section {
	return access.Section{Issuers: []access.Issuer{{
		Name: "corp", URL: i.URL, Audience: "quorate", User: "sub",
		Require: []access.ClaimRule{{Claim: "team", Values: []string{"sre"}}},
		Groups: []access.GroupRule{
			{Group: "z", Match: []access.ClaimRule{{Claim: "team", Values: []string{"sre"}}}},
			{Group: "a", Match: []access.ClaimRule{{Claim: "team", Values: []string{"sre"}}}},
		},
	}}}
}

// TestIssuersFollowTheBook: an issuer is believed once the book has it, and not for one call longer than that. A part
// that cannot be used does not keep others from being used, or in use.
func TestIssuersFollowTheBook(t *testing.T) {
	t.Parallel()
	state, _ := guarded(t)
	issuer := authntest.New("https://issuer.example.org")
	b := newTestIdentifier(t, state)
	b.options.KeyTransport = issuer.Transport()
	b.start(t)
	jwt := issuer.Sign(issuer.Claims("quorate", map[string]any{"sub": "ann", "team": "sre"}))
	if caller := b.caller(jwt); caller != nil {
		t.Errorf("a caller of an unknown issuer is %v", caller)
	}
	state.Section = sectionWith(issuer)
	unusable := state.Section.Issuers[0]
	unusable.Name, unusable.URL, unusable.User = "broken", "https://other.example.org", "iss"
	state.Section.Issuers = append(state.Section.Issuers, unusable)
	if err := identify.CheckSection(state.Section); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("the section is checked with %v", err)
	}
	b.use(t, state)
	caller := b.caller(jwt)
	if caller == nil || caller.User != "corp/ann" || strings.Join(caller.Groups, " ") != "corp/a corp/z" ||
		caller.Check() != nil {
		t.Errorf("the caller is %+v", caller)
	}
	if !strings.Contains(b.log.String(), "broken") {
		t.Errorf("the log does not say what is not used: %s", b.log.String())
	}
	state.Section.Issuers[0].Require[0].Values = []string{"other"}
	b.use(t, state)
	if caller := b.caller(jwt); caller != nil {
		t.Errorf("after its rules were narrowed, the token is that of %v", caller)
	}
	state.Section.Issuers = nil
	b.use(t, state)
	if caller := b.caller(jwt); caller != nil {
		t.Errorf("after its issuer was removed, the token is that of %v", caller)
	}
}

// TestPassOn: another node gets the credential, and the listener for nodes what only nodes may say.
func TestPassOn(t *testing.T) {
	t.Parallel()
	state, all := guarded(t)
	b := newTestIdentifier(t, state)
	passed := func(header http.Header, toNodes bool) http.Header {
		sent := http.Header{}
		calls := &pipeline.Pipeline{
			Steps: []pipeline.Step{b.AuthenticateFrontEnd("boskos", b.options.WriteError)},
			Last: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				identify.PassOn(r.Context(), sent, toNodes)
			}),
		}
		r := httptest.NewRequest(http.MethodPost, "/acquire", http.NoBody)
		r.Header = header
		calls.ServeHTTP(httptest.NewRecorder(), r)
		return sent
	}
	basic := "Basic dXNlcjp4"
	for _, c := range []struct {
		authorization string
		toNodes       bool
		want          string
	}{
		{"Bearer " + all.valid.Reveal(), false, "Authorization"},
		{"Bearer " + all.valid.Reveal(), true, "Authorization Quorate-Via"},
		{"", true, "Quorate-Via"},
		{"", false, ""},
	} {
		header := http.Header{}
		if c.authorization != "" {
			header.Set("Authorization", c.authorization)
		}
		sent := passed(header, c.toNodes)
		if got := names(sent); got != c.want || sent.Get("Authorization") != c.authorization {
			t.Errorf("%+v: passed on %v", c, sent)
		}
	}
	state.Mode = access.Open
	b.use(t, state)
	if sent := passed(http.Header{"Authorization": {basic}}, false); sent.Get("Authorization") != basic {
		t.Errorf("in an open cluster %v is passed on", sent)
	}
	b.chain = append(b.chain, certificateOf(t, b.trustAuthority(t), "robot"))
	sent := passed(http.Header{}, true)
	if chain, err := authn.ParseClientCert(sent); err != nil || len(chain) != 1 || !chain[0].Equal(b.chain[0]) {
		t.Errorf("a certificate is passed on as %v: %v", sent, err)
	}
	if sent := passed(http.Header{}, false); len(sent) != 0 {
		t.Errorf("a certificate is passed on to a listener for clients: %v", sent)
	}
	identify.PassOn(context.Background(), sent, true) // the server's own calls have nothing to pass on
}

func names(h http.Header) string {
	var list []string
	for _, name := range []string{"Authorization", "Client-Cert", "Client-Cert-Chain", identify.ViaHeader} {
		if h.Get(name) != "" {
			list = append(list, name)
		}
	}
	return strings.Join(list, " ")
}

// TestVia: nodes say which front end a call came through, clients cannot.
func TestVia(t *testing.T) {
	t.Parallel()
	state, _ := guarded(t)
	b := newTestIdentifier(t, state)
	for _, c := range []struct {
		from       identify.NodeCall
		says, want string
	}{
		{identify.NodeCall{}, "boskos", ""},
		{identify.NodeCall{ID: "n1", Internal: true}, "boskos", "boskos"},
		{identify.NodeCall{ID: "n1", Internal: true}, "two words", ""},
	} {
		b.node = c.from
		caller, _ := b.call(allocatePath, http.Header{identify.ViaHeader: {c.says}})
		if caller == nil || caller.Via != c.want {
			t.Errorf("%+v: %+v", c, caller)
		}
	}
}

func nodeCertificate(t testing.TB, authority *pki.Authority) *x509.Certificate {
	t.Helper()
	pair, err := authority.Node("n1", []string{"localhost"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return parsePEM(t, pair.Cert)
}

// TestIDsOfTokensHaveOneText: an administrator finds the id of a token in its text, in errors and in records alike.
func TestIDsOfTokensHaveOneText(t *testing.T) {
	t.Parallel()
	for _, id := range []authn.TokenID{{}, {1}, {7: 1}, {0x12, 0xab}, authn.TokenID(bytes.Repeat([]byte{255}, 8))} {
		text := access.TokenID(id).String()
		if text != id.String() {
			t.Errorf("%x is %s and %s", id[:], id, text)
		}
		if again, err := authn.ParseTokenID(text); err != nil || again != id {
			t.Errorf("%s is parsed as %x, %v", text, again[:], err)
		}
	}
	for _, wrong := range []string{"", "aaaaaaaaaaaab", "aaaaaaaaaaaaaa", "aaaaaaaaaaaa1", "aaaaaaaaaaaaA"} {
		_, err := authn.ParseTokenID(wrong)
		if _, refused := access.ParseTokenID(wrong); err == nil || refused == nil {
			t.Errorf("%q is an id", wrong)
		}
	}
}

// TestOpenFrontEnds: a caller without a credential is the user of its front end if that is open, and no other
// caller can become that user.
func TestOpenFrontEnds(t *testing.T) {
	t.Parallel()
	state, all := guarded(t)
	b := newTestIdentifier(t, state)
	b.options.OpenFrontEnds = []string{"boskos"}
	b.start(t)
	caller := func(name string, header http.Header) (found access.Caller, status int) {
		calls := &pipeline.Pipeline{
			Steps: []pipeline.Step{b.AuthenticateFrontEnd(name, b.options.WriteError)},
			Last: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				found = *identify.CallerOf(r.Context())
			}),
		}
		r := httptest.NewRequest(http.MethodPost, "/acquire", http.NoBody)
		r.Header = header
		w := httptest.NewRecorder()
		calls.ServeHTTP(w, r)
		return found, w.Code
	}
	if got, _ := caller("boskos", nil); got.User != "frontend/boskos" || got.Kind != access.External ||
		got.Via != "boskos" || got.Check() != nil {
		t.Errorf("without a credential: %+v", got)
	}
	if got, _ := caller("yunikorn", nil); got.Kind != access.Anonymous {
		t.Errorf("through a front end that is not open: %+v", got)
	}
	good := http.Header{"Authorization": {"Bearer " + all.valid.Reveal()}}
	if got, _ := caller("boskos", good); got.Kind != access.AccountCaller {
		t.Errorf("with a token: %+v", got)
	}
	if got, status := caller("boskos", http.Header{"Authorization": {"Bearer wrong"}}); status != http.StatusUnauthorized {
		t.Errorf("with a bad token: %+v, %d", got, status)
	}
	// On the port of the API only another node can say that a front end was passed.
	said := http.Header{identify.ViaHeader: {"boskos"}}
	if got, _ := b.call(allocatePath, said); got.Kind != access.Anonymous || got.Via != "" {
		t.Errorf("a client that says it came through Boskos: %+v", got)
	}
	b.node = identify.NodeCall{ID: "n2", Internal: true}
	if got, _ := b.call(allocatePath, said); got.User != "frontend/boskos" {
		t.Errorf("relayed by a node: %+v", got)
	}
	state.Refused = append(state.Refused, access.Refused{
		RefusedKey: access.RefusedKey{Kind: access.RefusedUser, Name: "frontend/boskos"}, Reason: "closed",
		Until: time.Now().Add(time.Hour).UnixMilli(),
	})
	b.use(t, state)
	if got, status := caller("boskos", nil); status != http.StatusUnauthorized {
		t.Errorf("after it was refused: %+v, %d", got, status)
	}
}
