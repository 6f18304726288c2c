package rpc

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpcreflect"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/authn"
	"github.com/quorate/quorate/internal/pki"
	"github.com/quorate/quorate/rpc/admission"
	"github.com/quorate/quorate/rpc/identify"
	"github.com/quorate/quorate/rpc/relay"
)

// guard makes a cluster guarded and returns a token of its account ci; change may edit the account's record.
func (c *fakeCluster) guard(t testing.TB, change func(*access.State)) authn.Token {
	t.Helper()
	token, err := authn.NewToken(bytes.NewReader(bytes.Repeat([]byte{7}, 40)))
	if err != nil {
		t.Fatal(err)
	}
	state := access.State{
		Mode: access.Guarded, Accounts: []access.Account{{Name: "ci"}},
		Section: access.Section{Bindings: []access.Binding{{
			Role: access.RoleRoot, To: []access.Subject{{Kind: access.AccountSubject, Name: "ci"}},
		}}},
		Tokens: []access.Token{{
			ID: access.TokenID(token.ID()), Account: "ci", Hash: token.Hash(), Ends: time.Now().Add(time.Hour).UnixMilli(),
			Ceiling: access.AllVerbs,
		}},
	}
	if change != nil {
		change(&state)
	}
	book, failed := access.Load(state)
	if failed != nil {
		t.Fatal(failed)
	}
	c.book.Store(book)
	return token
}

// withHeader is a client that sends a header with each call; none if the value is empty.
type withHeader struct{ name, value string }

func (h withHeader) Do(r *http.Request) (*http.Response, error) {
	if h.value != "" {
		r.Header.Set(h.name, h.value)
	}
	return overHTTP2.Do(r)
}

func withToken(token authn.Token) withHeader {
	return withHeader{"Authorization", "Bearer " + token.Reveal()}
}

func (d *testServer) allocationsOf(client connect.HTTPClient) allocationCalls {
	return allocationCallsOf(client, d.url)
}

// proposers makes a node record the caller of each proposal.
func (d *testServer) proposers() *atomic.Pointer[access.Caller] {
	noted := new(atomic.Pointer[access.Caller])
	d.node.proposing = func(ctx context.Context) error {
		noted.Store(identify.CallerOf(ctx))
		return nil
	}
	return noted
}

// TestCallersReachTheLog: the leader finds the caller of a call itself, whichever node it came to and however it was
// relayed; a bad credential is refused where it comes in.
func TestCallersReachTheLog(t *testing.T) {
	t.Parallel()
	inBothWays(t, func(t *testing.T, nodes startNodes) {
		t.Helper()
		follower, leader := nodes(t)
		token := leader.node.guard(t, nil)
		proposer := leader.proposers()
		for i, d := range []*testServer{follower, leader} {
			id := string(rune('a' + i))
			if _, err := d.allocationsOf(withToken(token)).Allocate(t.Context(), request(id, "cern:physics", 1)); err != nil {
				t.Fatal(err)
			}
			caller := proposer.Load()
			if caller.User != "account/ci" || caller.Kind != access.AccountCaller || caller.Request == "" || caller.Via != "" {
				t.Errorf("%s: %+v", d.id, caller)
			}
			if _, err := d.allocations().Allocate(t.Context(), request(id, "cern:physics", 1)); err != nil {
				t.Fatal(err)
			}
			if caller := proposer.Load(); caller.Kind != access.Anonymous {
				t.Errorf("%s, without a token: %+v", d.id, caller)
			}
			relayed := leader.node.index
			stranger := d.allocationsOf(withHeader{"Authorization", "Bearer x"})
			_, err := stranger.Allocate(t.Context(), request("x", "cern:physics", 1))
			if connect.CodeOf(err) != connect.CodeUnauthenticated || leader.node.index != relayed ||
				problemOf(t, err).GetReason() != "JWT_MALFORMED" || !problemOf(t, err).GetNotApplied() {
				t.Errorf("%s, with a bad token: %v", d.id, err)
			}
		}
	})
}

// TestTheLeaderAuthenticatesAgain: a follower that has not heard of the end of a token relays the call, and the leader
// refuses it.
func TestTheLeaderAuthenticatesAgain(t *testing.T) {
	inBothWays(t, func(t *testing.T, nodes startNodes) {
		t.Helper()
		follower, leader := nodes(t)
		token := leader.node.guard(t, nil)
		follower.node.behind.Store(follower.node.book.Load())
		leader.node.guard(t, func(s *access.State) { s.Tokens[0].Revoked = 5 })
		before := leader.node.index
		_, err := follower.allocationsOf(withToken(token)).Allocate(t.Context(), request("a", "cern:physics", 1))
		if connect.CodeOf(err) != connect.CodeUnauthenticated || leader.node.index != before {
			t.Errorf("got %v", err)
		}
	})
}

// TestCredentialsCostNoBody: a bad credential is answered before the body is there and takes no place.
func TestCredentialsCostNoBody(t *testing.T) {
	d := oneNode(t)
	d.node.guard(t, nil)
	body, sends := io.Pipe()
	defer sends.Close() //nolint:errcheck // nothing was sent
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.url+allocatePath, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer x"}}
	answer, err := overHTTP2.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	if answer.StatusCode != http.StatusUnauthorized || answer.Header.Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("%d %v", answer.StatusCode, answer.Header)
	}
}

// TestFrontEndsPassCallersOn: what a front end asks has the caller of the request, at the leader too, with the name of
// the front end; what it refuses is written in its own way.
func TestFrontEndsPassCallersOn(t *testing.T) {
	t.Parallel()
	inBothWays(t, func(t *testing.T, nodes startNodes) {
		t.Helper()
		follower, leader := nodes(t)
		token := leader.node.guard(t, nil)
		proposer := leader.proposers()
		for i, d := range []*testServer{follower, leader} {
			id := string(rune('p' + i))
			url := serveFrontEnd(t, d.FrontEnd(FrontEnd{
				Name: "boskos",
				WriteError: func(w http.ResponseWriter, _ *http.Request, err error) {
					http.Error(w, err.Error(), http.StatusForbidden)
				},
				New: func(s Services) http.Handler {
					return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						_, err := s.Allocations.Allocate(r.Context(), request(id, "cern:physics", 1))
						_, _ = io.WriteString(w, connect.CodeOf(err).String()+" "+errorText(err))
					})
				},
			}))
			basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("anyone:"+token.Reveal()))
			if got := send(t, http.MethodPost, url+"/acquire", "", "Authorization", basic); got.status != http.StatusOK {
				t.Fatalf("%s: %v", d.id, got)
			}
			caller, via := proposer.Load(), "boskos"
			if i == 0 && d.network == nil {
				via = "" // the listener for clients takes no word about front ends
			}
			if caller.User != "account/ci" || caller.Via != via {
				t.Errorf("%s: %+v", d.id, caller)
			}
			got := send(t, http.MethodPost, url+"/acquire", "", "Authorization", basic[:len(basic)-8])
			if got.status != http.StatusForbidden {
				t.Errorf("%s, a bad credential: %v", d.id, got)
			}
		}
	})
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestRevokedTokensEndWatches: the stream says why it ends.
func TestRevokedTokensEndWatches(t *testing.T) {
	t.Parallel()
	d := oneNode(t)
	token := d.node.guard(t, nil)
	stream, err := d.allocationsOf(withToken(token)).WatchEvents(t.Context(), &quoratev1.WatchEventsRequest{})
	if err != nil || !stream.Receive() { // the first message says where it begins
		t.Fatal(err, stream.Err())
	}
	bidirectional, err := d.allocationsOf(withToken(token)).AllocateStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sendOn(t, bidirectional, streamAllocate(1, request("a", "cern:physics", 1)))
	d.node.guard(t, func(s *access.State) { s.Tokens[0].Revoked = 5 })
	for stream.Receive() {
		t.Log("a heartbeat")
	}
	if err := stream.Err(); connect.CodeOf(err) != connect.CodeUnauthenticated ||
		!strings.Contains(err.Error(), "is revoked") {
		t.Errorf("the watch ended with %v", err)
	}
	for err == nil {
		_, err = bidirectional.Receive()
	}
	if connect.CodeOf(err) != connect.CodeUnauthenticated {
		t.Errorf("the stream of calls ended with %v", err)
	}
	_ = stream.Close()
	_ = bidirectional.CloseResponse()
}

// TestMetricsAuthenticate: a bad credential gets no page.
func TestMetricsAuthenticate(t *testing.T) {
	d := oneNode(t)
	token := d.node.guard(t, nil)
	for credential, want := range map[string]int{
		"Bearer " + token.Reveal(): http.StatusOK, "Bearer x": http.StatusUnauthorized,
	} {
		if got := send(t, http.MethodGet, d.url+"/metrics", "", "Authorization", credential); got.status != want {
			t.Errorf("%s: %v", credential, got)
		}
	}
	for _, path := range []string{"/livez", "/readyz"} {
		if got := send(t, http.MethodGet, d.url+path, "", "Authorization", "Bearer x"); got.status != http.StatusOK {
			t.Errorf("%s: %v", path, got)
		}
	}
}

// TestCertificatesAreToldToTheLeader: a node tells the leader whose certificate it saw, and only on the listener for
// nodes; in plain text no such node is believed.
func TestCertificatesAreToldToTheLeader(t *testing.T) {
	t.Parallel()
	authority, own, err := pki.NewAuthority("test", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Client("zuul", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	roots, leaf := x509.NewCertPool(), parseCertificate(t, pair.Cert)
	roots.AddCert(parseCertificate(t, own.Cert))
	security := Security{
		ClientRoots: func() *x509.CertPool { return roots },
		ClientChain: func(*tls.ConnectionState) []*x509.Certificate { return []*x509.Certificate{leaf} },
	}
	w, c := &fakeNetworks{listeners: map[string]chan net.Conn{}}, newFakeCluster()
	servers := map[string]*testServer{}
	for _, id := range []string{"n1", "n2"} {
		n := w.networkOf(t, id)
		d := openSecured(t, c, id, admission.Limits{}, n, security)
		go func() { _ = d.ServeNodes() }()
		t.Cleanup(n.end)
		servers[id] = d
	}
	c.lead("n2")
	servers["n2"].applyCERN(t)
	c.guard(t, nil)
	proposer := servers["n2"].proposers()
	eventually(t, "calls go over a stream", func() bool {
		_, err := servers["n1"].allocations().Allocate(t.Context(), request("a", "cern:physics", 1))
		if caller := proposer.Load(); err != nil || caller.User != "cert/zuul" || caller.Kind != access.External {
			t.Fatalf("%v, %+v", err, caller)
		}
		return streamedCalls(t, servers["n1"]) > 0
	})
	plain := relay.NewPeerTransport(
		relay.TransportConfig{Network: unproved{w.networkOf(t, "n1")}, Silence: longSilence})
	defer plain.CloseIdleConnections()
	to := relay.NodeURL("n2", "raft:n2", relay.NodePort)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to+allocatePath, strings.NewReader(`{"id":"b"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	authn.SetClientCert(r.Header, []*x509.Certificate{leaf})
	answer, err := plain.RoundTrip(relay.WithHostAddress(r))
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(answer.Body)
	if err != nil || answer.Body.Close() != nil || answer.StatusCode != http.StatusBadRequest ||
		!strings.Contains(string(content), authn.ClientCertHeader) {
		t.Errorf("a node in plain text: %d %s, %v", answer.StatusCode, content, err)
	}
}

// unproved is a network whose nodes do not prove who they are.
type unproved struct{ *fakeNetwork }

func (n unproved) DialNode(ctx context.Context, _, address string) (net.Conn, error) {
	near, far, err := tcpPair(ctx)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	to := n.listeners[address]
	n.mu.Unlock()
	to <- far
	return near, nil
}

func parseCertificate(t *testing.T, text []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(text)
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestClientsSayNothingThatNodesSay: headers about callers are refused from clients.
func TestClientsSayNothingThatNodesSay(t *testing.T) {
	_, servers := wired(t, "n1")
	for _, name := range []string{identify.ViaHeader, authn.ClientCertHeader, authn.ClientCertChainHeader} {
		_, err := servers["n1"].allocationsOf(withHeader{name, "x"}).Allocate(t.Context(), request("a", "cern:physics", 1))
		if connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNodesAskWithTheCallersCredential: what a node asks another one for a caller is asked by that caller.
func TestNodesAskWithTheCallersCredential(t *testing.T) {
	follower, leader := twoNodes(t)
	token := leader.node.guard(t, nil)
	asked := make(chan string, 1)
	inner := leader.http.Handler
	leader.http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case asked <- r.Header.Get("Authorization"):
		default:
		}
		inner.ServeHTTP(w, r)
	})
	client := withToken(token)
	for name, ask := range map[string]func() error{
		"diagnostics": func() error {
			_, err := adminv1connect.NewDebugServiceClient(client, follower.url).GetDiagnostics(t.Context(),
				&adminv1.GetDiagnosticsRequest{Member: "n2"})
			return err
		},
		"members": func() error {
			to := cluster.Member{ID: "n2", HTTPAddr: strings.TrimPrefix(leader.url, "http://")}
			_, err := follower.peers.ListMembers(contextOf(t, follower, client), to, &adminv1.ListMembersRequest{})
			return ignoreCode(err, connect.CodeInternal) // the fake node has no members
		},
	} {
		if err := ask(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := <-asked; got != client.value {
			t.Errorf("%s: asked with %q", name, got)
		}
	}
}

func contextOf(t *testing.T, d *testServer, client withHeader) context.Context {
	t.Helper()
	var ctx context.Context
	url := serveFrontEnd(t, d.FrontEnd(FrontEnd{Name: "test", New: func(Services) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			ctx = context.WithoutCancel(r.Context()) //nolint:fatcontext // for the test alone
		})
	}}))
	send(t, http.MethodGet, url, "", client.name, client.value)
	return ctx
}

func ignoreCode(err error, code connect.Code) error {
	if connect.CodeOf(err) == code {
		return nil
	}
	return err
}

// TestRevokedTokensEndStreamsThatListen: a handler that waits for the next message does not keep a stream open.
func TestRevokedTokensEndStreamsThatListen(t *testing.T) {
	t.Parallel()
	d := oneNode(t)
	d.admission.Pacing.Tool = time.Hour // so that only the span of a minute ends the stream otherwise
	token := d.node.guard(t, nil)
	client := grpcreflect.NewClient(withToken(token), d.url, connect.WithGRPC())
	stream := client.NewStream(t.Context())
	if _, err := stream.ListServices(); err != nil {
		t.Fatal(err)
	}
	open := &d.admission.Limiters.Reflection.InUse
	if open.Load() != 1 {
		t.Fatalf("%d streams are open", open.Load())
	}
	d.node.guard(t, func(s *access.State) { s.Tokens[0].Revoked = 5 })
	revoked := time.Now()
	eventually(t, "the stream has ended", func() bool { return open.Load() == 0 })
	if took := time.Since(revoked); took > 30*time.Second {
		t.Errorf("the stream has ended after %s", took)
	}
	_, _ = stream.Close()
}

// TestAuthenticatingAllocatesLittle: a token costs a call the memory of its caller and of its user's name.
func TestAuthenticatingAllocatesLittle(t *testing.T) {
	d := oneNode(t)
	token := d.node.guard(t, nil)
	empty := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	steps := d.newPipeline(empty, d.identifier.Authenticate)
	measure := func(header http.Header) float64 {
		r := httptest.NewRequest(http.MethodPost, allocatePath, http.NoBody)
		r.Header = header
		w := httptest.NewRecorder()
		return testing.AllocsPerRun(1000, func() { steps.ServeHTTP(w, r) })
	}
	without := measure(http.Header{})
	with := measure(http.Header{"Authorization": {"Bearer " + token.Reveal()}})
	if with-without > 3 {
		t.Errorf("a call with a token makes %v allocations, one without %v", with, without)
	}
}

// TestStreamsOfCallsHaveTheirCaller: each call of an AllocateStream is its caller's, on this node and at the leader.
func TestStreamsOfCallsHaveTheirCaller(t *testing.T) {
	t.Parallel()
	follower, leader := streamingNodes(t)
	token := leader.node.guard(t, nil)
	proposer := leader.proposers()
	for i, d := range []*testServer{follower, leader} {
		stream, err := d.allocationsOf(withToken(token)).AllocateStream(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		proposer.Store(nil)
		sendOn(t, stream, streamAllocate(1, request(string(rune('a'+i)), "cern:physics", 1)))
		if _, err := receiveAll(t, stream); err != nil {
			t.Error(err)
		}
		if caller := proposer.Load(); caller == nil || caller.User != "account/ci" {
			t.Errorf("%s: %+v", d.id, caller)
		}
	}
}
