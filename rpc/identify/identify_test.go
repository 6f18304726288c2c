package identify_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/authn"
	"github.com/quorate/quorate/internal/pki"
	"github.com/quorate/quorate/rpc/identify"
	"github.com/quorate/quorate/rpc/pipeline"
	"github.com/quorate/quorate/rpc/procedures"
)

const (
	allocatePath = "/quorate.v1.AllocationService/Allocate"
	watchPath    = "/quorate.v1.EventService/WatchEvents"
	healthPath   = "/grpc.health.v1.Health/Check"
)

// testIdentifier is an Identifier with a book that the test replaces.
type testIdentifier struct {
	*identify.Identifier

	options  identify.Options
	registry *prometheus.Registry
	book     atomic.Pointer[access.Book]
	node     identify.NodeCall
	chain    []*x509.Certificate
	roots    atomic.Pointer[x509.CertPool]
	catchUp  func(context.Context) error
	log      bytes.Buffer
	// from is the address of the next call; empty for one that all have.
	from string
	// end is what the handler of the last call found.
	end credentialEnd
}

func newTestIdentifier(t testing.TB, state access.State) *testIdentifier {
	t.Helper()
	b := &testIdentifier{registry: prometheus.NewRegistry(), catchUp: func(context.Context) error { return nil }}
	b.use(t, state)
	errors := connect.NewErrorWriter()
	table, err := procedures.New()
	if err != nil {
		t.Fatal(err)
	}
	b.options = identify.Options{
		Cluster: "blue", Log: hclog.New(&hclog.LoggerOptions{Output: &b.log}), Registerer: b.registry,
		Table: table, Book: b.book.Load, ClientRoots: b.roots.Load,
		CatchUp:   func(ctx context.Context) error { return b.catchUp(ctx) },
		NodeCall:  func(context.Context) identify.NodeCall { return b.node },
		IsRelayed: func(r *http.Request) bool { return r.Header.Get("Quorate-Relayed-By") != "" },
		WriteError: func(w http.ResponseWriter, r *http.Request, err error) {
			_ = errors.Write(w, r, err) // a recorder takes everything
		},
		Chain: func(*tls.ConnectionState) []*x509.Certificate { return b.chain },
	}
	b.start(t)
	return b
}

// start makes the Identifier again, with changed options.
func (b *testIdentifier) start(t testing.TB) {
	t.Helper()
	b.registry = prometheus.NewRegistry()
	b.options.Registerer = b.registry
	made, err := identify.New(b.options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(made.Close)
	b.Identifier = made
}

func (b *testIdentifier) use(t testing.TB, state access.State) {
	t.Helper()
	book, err := access.Load(state)
	if err != nil {
		t.Fatal(err)
	}
	b.book.Store(book)
}

type credentialEnd struct {
	at   time.Time
	ends bool
}

// call returns the caller that the handler sees, nil if the call is refused.
func (b *testIdentifier) call(path string, header http.Header) (*access.Caller, *httptest.ResponseRecorder) {
	var caller *access.Caller
	calls := &pipeline.Pipeline{
		Steps: []pipeline.Step{b.Authenticate},
		Last: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			caller = identify.CallerOf(r.Context())
			b.end.at, b.end.ends = identify.CredentialEnds(r.Context())
		}),
	}
	r, w := httptest.NewRequest(http.MethodPost, path, http.NoBody), httptest.NewRecorder()
	if b.from != "" {
		r.RemoteAddr = b.from
	}
	r.Header = header
	if header == nil {
		r.Header = http.Header{}
	}
	r.Header.Set("Content-Type", "application/json")
	calls.ServeHTTP(w, r)
	return caller, w
}

func (b *testIdentifier) failures(t *testing.T, reason authn.Reason) int {
	t.Helper()
	families, err := b.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if m.GetLabel()[0].GetValue() == string(reason) {
				return int(m.GetCounter().GetValue())
			}
		}
	}
	return 0
}

func bearer(text string) http.Header { return http.Header{"Authorization": {"Bearer " + text}} }

func newToken(t testing.TB, seed byte, account string) (authn.Token, access.Token) {
	t.Helper()
	token, err := authn.NewToken(bytes.NewReader(bytes.Repeat([]byte{seed}, 40)))
	if err != nil {
		t.Fatal(err)
	}
	return token, access.Token{
		ID: access.TokenID(token.ID()), Hash: token.Hash(), Account: account, Created: time.Now().UnixMilli(),
		Ends: time.Now().Add(time.Hour).UnixMilli(), Ceiling: access.AllVerbs,
	}
}

// tokens are those of the account ci: valid, revoked, ended; and one of an account that is disabled.
type tokens struct{ valid, revoked, ended, disabled, unknown authn.Token }

func guarded(t testing.TB) (access.State, tokens) {
	t.Helper()
	var all tokens
	var records [4]access.Token
	all.valid, records[0] = newToken(t, 1, "ci")
	all.revoked, records[1] = newToken(t, 2, "ci")
	all.ended, records[2] = newToken(t, 3, "ci")
	all.disabled, records[3] = newToken(t, 4, "old")
	all.unknown, _ = newToken(t, 5, "ci")
	records[1].Revoked, records[2].Ends = 7, records[2].Created
	return access.State{
		Mode:     access.Guarded,
		Accounts: []access.Account{{Name: "ci", Groups: []string{"robots"}}, {Name: "old", Disabled: true}},
		Tokens:   records[:],
	}, all
}

// TestCallersByMode: in an open and in a watching cluster a bad credential is none; a guarded one refuses it.
func TestCallersByMode(t *testing.T) {
	t.Parallel()
	state, all := guarded(t)
	b := newTestIdentifier(t, state)
	for name, c := range map[string]struct {
		header http.Header
		reason authn.Reason // empty if the credential holds
		text   string
	}{
		"valid":      {bearer(all.valid.Reveal()), "", ""},
		"revoked":    {bearer(all.revoked.Reveal()), authn.TokenRevoked, "was revoked"},
		"ended":      {bearer(all.ended.Reveal()), authn.TokenExpired, "expired at"},
		"disabled":   {bearer(all.disabled.Reveal()), authn.AccountDisabled, "is disabled"},
		"unknown":    {bearer(all.unknown.Reveal()), authn.TokenUnknown, "is not known"},
		"mistyped":   {bearer(all.valid.Reveal()[:67] + "x"), authn.TokenMistyped, "typing error"},
		"not bearer": {http.Header{"Authorization": {"Negotiate x"}}, authn.HeaderMalformed, "must be Bearer"},
		"two": {
			http.Header{"Authorization": {"Bearer " + all.valid.Reveal(), "Bearer x"}}, authn.SeveralCredentials, "there are 2",
		},
	} {
		for _, mode := range []access.Mode{access.Open, access.Watching, access.Guarded} {
			state.Mode, b.from = mode, fmt.Sprintf("10.0.%d.%d:80", mode, len(name)) // fails once from each address
			b.use(t, state)
			before := b.failures(t, c.reason)
			caller, answer := b.call(allocatePath, c.header.Clone())
			counted := b.failures(t, c.reason) - before
			switch {
			case c.reason == "":
				if caller == nil || caller.Kind != access.AccountCaller || caller.User != "account/ci" ||
					!slices.Equal(caller.Groups, []string{"robots"}) || caller.Check() != nil {
					t.Errorf("%s, %s: %+v", name, mode, caller)
				}
			case mode == access.Guarded:
				if caller != nil || answer.Code != http.StatusUnauthorized ||
					answer.Header().Get("WWW-Authenticate") != "Bearer" || !strings.Contains(answer.Body.String(), c.text) {
					t.Errorf("%s, %s: %v and %d %v %s", name, mode, caller, answer.Code, answer.Header(), answer.Body)
				}
			case caller == nil || caller.Kind != access.Anonymous:
				t.Errorf("%s, %s: %v", name, mode, caller)
			}
			if want := c.reason != "" && mode != access.Open; counted != map[bool]int{true: 1}[want] {
				t.Errorf("%s, %s: counted %d failures", name, mode, counted)
			}
		}
	}
	if caller, _ := b.call(allocatePath, nil); caller == nil || caller.Kind != access.Anonymous || b.end.ends {
		t.Errorf("a call without a credential is of %v and ends %+v", caller, b.end)
	}
	b.call(allocatePath, bearer(all.valid.Reveal()))
	if want := state.Tokens[0].Ends; !b.end.ends || b.end.at.UnixMilli() != want {
		t.Errorf("the credential ends %+v, want %d", b.end, want)
	}
}

// TestWhoNeedsNoCredential: health checks are answered whatever they carry, and calls between nodes have no user.
func TestWhoNeedsNoCredential(t *testing.T) {
	t.Parallel()
	state, all := guarded(t)
	b := newTestIdentifier(t, state)
	for path, served := range map[string]bool{
		healthPath: true, "/grpc.health.v1.Health/Watch": true, "/quorate.peer.v1.PeerService/ReadIndex": true,
		"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo": false, allocatePath: false, watchPath: false,
	} {
		caller, _ := b.call(path, bearer(all.revoked.Reveal()))
		if (caller != nil) != served {
			t.Errorf("%s with a bad credential: served to %v", path, caller)
		}
	}
	if identify.CallerOf(t.Context()) != nil {
		t.Error("what the server does by itself has a caller")
	}
}

// TestUnknownTokensMakeTheNodeCatchUp: a token that was created elsewhere is known after one linearizable read. Calls
// that wait for it are bounded.
func TestUnknownTokensMakeTheNodeCatchUp(t *testing.T) {
	t.Parallel()
	state, all := guarded(t)
	later := state
	state.Tokens = state.Tokens[1:]
	b := newTestIdentifier(t, state)
	reads := 0
	b.catchUp = func(ctx context.Context) error {
		if _, limited := ctx.Deadline(); !limited {
			t.Error("the read has no deadline")
		}
		reads++
		b.use(t, later)
		return nil
	}
	for range 2 {
		if caller, answer := b.call(allocatePath, bearer(all.valid.Reveal())); caller == nil {
			t.Errorf("the token is not known: %s", answer.Body)
		}
	}
	if reads != 1 {
		t.Errorf("caught up %d times", reads)
	}
	b.catchUp = func(context.Context) error { return context.DeadlineExceeded }
	caller, answer := b.call(allocatePath, bearer(all.unknown.Reveal()))
	if caller != nil || answer.Code != http.StatusServiceUnavailable || answer.Header().Get("Retry-After") != "1" ||
		!strings.Contains(answer.Body.String(), "try again later") {
		t.Errorf("a node that cannot catch up answers %v, %d %s", caller, answer.Code, answer.Body)
	}
}

// TestCatchUpsAreBounded: too many calls with unknown tokens are answered at once.
func TestCatchUpsAreBounded(t *testing.T) {
	t.Parallel()
	state, all := guarded(t)
	b := newTestIdentifier(t, state)
	waiting, release := make(chan struct{}), make(chan struct{})
	b.catchUp = func(context.Context) error {
		waiting <- struct{}{}
		<-release
		return nil
	}
	codes := make(chan int, identify.MaxCatchUps)
	for range identify.MaxCatchUps {
		go func() {
			_, answer := b.call(allocatePath, bearer(all.unknown.Reveal()))
			codes <- answer.Code
		}()
	}
	for range identify.MaxCatchUps {
		<-waiting
	}
	if _, answer := b.call(allocatePath, bearer(all.unknown.Reveal())); answer.Code != http.StatusServiceUnavailable {
		t.Errorf("one more: %d %s", answer.Code, answer.Body)
	}
	close(release)
	for range identify.MaxCatchUps {
		if code := <-codes; code != http.StatusUnauthorized && code != http.StatusTooManyRequests {
			t.Errorf("one that waited: %d", code)
		}
	}
}

// TestFailuresAreThrottled: an address that fails too often is told to wait; a good credential never waits.
func TestFailuresAreThrottled(t *testing.T) {
	t.Parallel()
	state, all := guarded(t)
	b := newTestIdentifier(t, state)
	var answer *httptest.ResponseRecorder
	for range 11 {
		_, answer = b.call(allocatePath, bearer(all.revoked.Reveal()))
	}
	if answer.Code != http.StatusTooManyRequests || answer.Header().Get("Retry-After") != "1" {
		t.Errorf("%d %v %s", answer.Code, answer.Header(), answer.Body)
	}
	if caller, _ := b.call(allocatePath, bearer(all.valid.Reveal())); caller == nil {
		t.Error("a good credential waits")
	}
}

func certificateOf(t testing.TB, authority *pki.Authority, name string) *x509.Certificate {
	t.Helper()
	pair, err := authority.Client(name, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return parsePEM(t, pair.Cert)
}

func parsePEM(t testing.TB, text []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(text)
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (b *testIdentifier) trustAuthority(t testing.TB) *pki.Authority {
	t.Helper()
	authority, own, err := pki.NewAuthority("blue", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(parsePEM(t, own.Cert))
	b.roots.Store(roots)
	return authority
}
