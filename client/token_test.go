package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/client"
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// secretToken is what no text may contain.
const secretToken = "qrt_canary-in-the-token"

// gate is a network that lets calls with one token pass, and answers all others that they are unauthenticated.
type gate struct {
	next connect.HTTPClient

	mu      sync.Mutex
	accept  string
	seen    map[string]int // calls by method
	refused int
}

func newGate(next connect.HTTPClient, accept string) *gate {
	return &gate{next: next, accept: accept, seen: map[string]int{}}
}

func (g *gate) Do(r *http.Request) (*http.Response, error) {
	time.Sleep(time.Millisecond) // on the way
	g.mu.Lock()
	good := r.Header.Get("Authorization") == "Bearer "+g.accept
	g.seen[r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]]++
	if !good {
		g.refused++
	}
	g.mu.Unlock()
	if good {
		return g.next.Do(r)
	}
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
	}
	answer := httptest.NewRecorder()
	err := connect.NewErrorWriter().Write(answer, r, connectUnauthenticated())
	return answer.Result(), err
}

func connectUnauthenticated() error {
	return connect.NewError(connect.CodeUnauthenticated, errors.New("the token has ended"))
}

func (g *gate) set(accept string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.accept = accept
}

func (g *gate) counts() (seen map[string]int, refused int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen, g.refused
}

// replaceableToken is a source whose token can be replaced.
type replaceableToken struct {
	mu    sync.Mutex
	token string
	asked int
}

func (v *replaceableToken) source(context.Context) (string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asked++
	return v.token, nil
}

func (v *replaceableToken) set(token string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.token = token
}

func (g *gate) client(t *testing.T, v *replaceableToken, options ...client.Option) *client.Client {
	t.Helper()
	return newClient(t, playServers, append([]client.Option{
		client.WithHTTPClient(g), client.WithTokenSource(v.source), client.WithInsecureToken(),
	}, options...)...)
}

// TestTheTokenGoesWithEveryCall: unary and joined calls, streams, renewals and shares.
func TestTheTokenGoesWithEveryCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		batches := newGate(newBatchServer(), "t")
		for _, err := range callTogether(t.Context(), t, batches.client(t, &replaceableToken{token: "t"}), "a", 100, 0) {
			if err != nil {
				t.Error(err)
			}
		}
		p := newFakeCluster()
		g := newGate(p, "t")
		c := g.client(t, &replaceableToken{token: "t"})
		s, err := client.NewShare(c, client.ShareConfig{
			Tree: "ci", Resource: "units", Step: 1, Min: 1, Max: 2, TTL: time.Minute,
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Watch(ctx, &quoratev1.WatchEventsRequest{}, ignoreChange) }()
		time.Sleep(time.Hour)
		cancel()
		<-ended
		closeShare(t, s)
		seen, refused := g.counts()
		joined, more := batches.counts()
		for _, method := range []string{"Allocate", "BatchRenew", "WatchEvents", "Release"} {
			if seen[method] == 0 {
				t.Errorf("%s was not called: %v", method, seen)
			}
		}
		if joined["BatchAllocate"] == 0 || refused+more > 0 {
			t.Errorf("%d calls had no token; the batches: %v", refused+more, joined)
		}
	})
}

func ignoreChange(*quoratev1.WatchEventsResponse) error { return nil }

func TestTokensDoNotLeaveInPlainText(t *testing.T) {
	token := client.WithTokenSource((&replaceableToken{token: "t"}).source)
	for address, good := range map[string]bool{
		"https://quorate.example.org": true, "http://127.0.0.1:7101": true, "127.9.9.9": true, "http://[::1]:1": true,
		"localhost:7101": true, "http://[::ffff:127.0.0.1]:1": true,
		"http://10.0.0.1:7101": false, "quorate.example.org:7101": false, "http://localhost.example.org": false,
		"http://127.0.0.1.example.org": false, "http://0.0.0.0:7101": false, "http://[::]:1": false,
		"https://ann:pw@quorate.example.org": false,
	} {
		_, err := client.New([]string{"https://first", address}, token)
		if (err == nil) != good {
			t.Errorf("New(%q) with a token = %v", address, err)
		}
		if err != nil && strings.Contains(err.Error(), "pw") {
			t.Errorf("New(%q) tells the password: %v", address, err)
		}
		if _, err := client.New([]string{address}); err != nil {
			t.Errorf("New(%q) without a token = %v", address, err)
		}
	}
	_, err := client.New([]string{"http://10.0.0.1:7101"}, token)
	if err == nil || !strings.Contains(err.Error(), "https://10.0.0.1:7101") {
		t.Errorf("the error gives no advice: %v", err)
	}
	if _, err := client.New([]string{"http://10.0.0.1:7101"}, token, client.WithInsecureToken()); err != nil {
		t.Errorf("allowed, but %v", err)
	}
	if _, err := client.New([]string{"127.0.0.1"}, token, client.WithTokenFile("x")); err == nil {
		t.Error("New takes a source and a file")
	}
}

// TestRedirectsAreNotFollowed: neither the token nor the call reaches the host that a redirect names.
func TestRedirectsAreNotFollowed(t *testing.T) {
	elsewhere := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the redirect was followed with %q", r.Header.Get("Authorization"))
	}))
	for _, status := range []int{301, 302, 303, 307, 308} {
		url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere+r.URL.Path, status)
		}))
		for name, options := range map[string][]client.Option{
			"default": nil, "another client": {client.WithHTTPClient(&http.Client{})},
		} {
			source := client.WithTokenSource((&replaceableToken{token: secretToken}).source)
			c := newClient(t, []string{url}, append(options, source)...)
			_, err := c.Allocations.Allocate(t.Context(), &quoratev1.AllocateRequest{Id: "a"})
			if connect.CodeOf(err) != connect.CodeUnimplemented || client.MayBeDone(err) ||
				!strings.Contains(err.Error(), "redirects to "+elsewhere) {
				t.Errorf("%d, %s: %v", status, name, err)
			}
		}
	}
}

// TestAReplacedTokenIsTriedOnce: a call whose token was refused is repeated once if the source has another one by now.
func TestAReplacedTokenIsTriedOnce(t *testing.T) {
	call := func(t *testing.T, c *client.Client) error {
		t.Helper()
		_, err := c.Allocations.Allocate(t.Context(), &quoratev1.AllocateRequest{Id: "a"})
		return err
	}
	for name, tc := range map[string]struct {
		tokens  []string // that the source has, one after the other
		options []client.Option
		refused int
		good    bool
	}{
		"replaced meanwhile":     {[]string{"old", "new"}, nil, 1, true},
		"not replaced":           {[]string{"old", "old", "new"}, nil, 1, false},
		"replaced by a bad one":  {[]string{"old", "bad", "bad"}, nil, 2, false},
		"replaced without retry": {[]string{"old", "new"}, []client.Option{client.WithoutRetries()}, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				source := func(context.Context) (string, error) {
					asked++
					return tc.tokens[min(asked, len(tc.tokens))-1], nil
				}
				g := newGate(newFakeCluster(), "new")
				err := call(t, g.client(t, &replaceableToken{}, append(tc.options, client.WithTokenSource(source))...))
				if _, refused := g.counts(); refused != tc.refused || (err == nil) != tc.good ||
					err != nil && connect.CodeOf(err) != connect.CodeUnauthenticated {
					t.Errorf("refused %d times: %v", refused, err)
				}
			})
		})
	}
}

// TestABatchIsRefusedOnce: the calls of a batch have one credential, so that one refusal answers all of them, and one
// new token serves all of them.
func TestABatchIsRefusedOnce(t *testing.T) {
	for name, tc := range map[string]struct{ replacedAfter, failed, refused int }{
		"revoked":              {1000, 100, 10},
		"replaced":             {1, 0, 4},
		"replaced for batches": {3, 2, 5}, // the two calls that were not joined fail
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGate(newBatchServer(), "new")
				c := g.client(t, &replaceableToken{}, client.WithTokenSource(func(context.Context) (string, error) {
					if _, refused := g.counts(); refused >= tc.replacedAfter {
						return "new", nil
					}
					return "old", nil
				}))
				failed := 0
				for _, err := range callTogether(t.Context(), t, c, "a", 100, 0) {
					if err != nil {
						failed++
					}
				}
				if _, refused := g.counts(); failed != tc.failed || refused > tc.refused {
					t.Errorf("%d of 100 calls failed, %d calls were refused", failed, refused)
				}
			})
		})
	}
}

// TestAStreamIsRefusedOnce: a stream that is refused is opened again only with another token.
func TestAStreamIsRefusedOnce(t *testing.T) {
	v, streams := &replaceableToken{token: "old"}, 0
	s := &server{watch: func() error {
		streams++
		v.set("new")
		return connectUnauthenticated()
	}}
	c := newClient(t, []string{s.start(t)}, client.WithTokenSource(v.source))
	err := c.Watch(t.Context(), &quoratev1.WatchEventsRequest{}, ignoreChange)
	if connect.CodeOf(err) != connect.CodeUnauthenticated || streams != 2 {
		t.Errorf("Watch = %v after %d streams, want 2", err, streams)
	}
}

type snapshotServer struct {
	adminv1connect.UnimplementedSnapshotServiceHandler
}

func (snapshotServer) Restore(
	_ context.Context, stream *connect.ClientStream[adminv1.RestoreRequest],
) (*adminv1.RestoreResponse, error) {
	if stream.RequestHeader().Get("Authorization") != "Bearer new" {
		return nil, connectUnauthenticated()
	}
	return &adminv1.RestoreResponse{}, nil
}

// TestARestoreFollowsTheToken: a restore that was refused for its token is sent again with the next one, once.
func TestARestoreFollowsTheToken(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle(adminv1connect.NewSnapshotServiceHandler(snapshotServer{}))
	url := serve(t, mux)
	for last, good := range map[string]bool{"new": true, "other": false} {
		asked := 0
		c := newClient(t, []string{url}, client.WithTokenSource(func(context.Context) (string, error) {
			if asked++; asked == 1 {
				return "old", nil
			}
			return last, nil
		}))
		_, err := c.RestoreBackup(t.Context(), &adminv1.RestoreConfirmation{}, strings.NewReader("state"))
		if (err == nil) != good || asked > 4 {
			t.Errorf("with %s after old: %v, the source was asked %d times", last, err, asked)
		}
	}
}

// TestWatchFollowsTheToken: a stream that the end of its token ended continues with the next token.
func TestWatchFollowsTheToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, v := newFakeCluster(), &replaceableToken{token: "old"}
		g := newGate(p, "old")
		c := g.client(t, v)
		var seen []string
		ended := make(chan error)
		go func() {
			ended <- c.Watch(t.Context(), &quoratev1.WatchEventsRequest{},
				func(m *quoratev1.WatchEventsResponse) error {
					seen = append(seen, m.GetChange().GetAllocation().GetId())
					return nil
				})
		}()
		time.Sleep(time.Minute)
		p.set(func() { p.grant(&quoratev1.Allocation{Id: "a"}) })
		v.set("new") // the stream goes on with the old one until the servers end it
		g.set("new")
		p.set(func() { p.cuts, p.gone = 1, map[string]bool{} })
		p.set(func() { p.grant(&quoratev1.Allocation{Id: "b"}) })
		time.Sleep(time.Minute)
		g.set("none") // the next stream is refused, and there is no other token
		p.set(func() { p.cuts = 1 })
		p.set(func() { p.grant(&quoratev1.Allocation{Id: "c"}) })
		err := <-ended
		if connect.CodeOf(err) != connect.CodeUnauthenticated || !slices.Equal(seen, []string{"a", "b", "c"}) {
			t.Errorf("Watch = %v, seen %q", err, seen)
		}
	})
}

// TestASourceThatFails fails the call without sending it.
func TestASourceThatFails(t *testing.T) {
	for name, tc := range map[string]struct {
		source func(context.Context) (string, error)
		says   string
	}{
		"an error": {func(context.Context) (string, error) { return "", errors.New("the vault is sealed") }, "sealed"},
		"nothing":  {func(context.Context) (string, error) { return "", nil }, "empty"},
		"a line":   {func(context.Context) (string, error) { return secretToken + "\n", nil }, "blanks"},
		"too long": {func(context.Context) (string, error) { return strings.Repeat(secretToken, 1000), nil }, "8192"},
		"a header": {func(context.Context) (string, error) { return "x\r\nHost: " + secretToken, nil }, "blanks"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newFakeCluster()
				c := p.client(t, client.WithTokenSource(tc.source), client.WithInsecureToken())
				_, err := c.Allocations.Allocate(t.Context(), &quoratev1.AllocateRequest{Id: "a"})
				if connect.CodeOf(err) != connect.CodeUnauthenticated || client.MayBeDone(err) || p.count("Allocate") > 0 ||
					!strings.Contains(fmt.Sprint(err), tc.says) || strings.Contains(fmt.Sprint(err), secretToken) {
					t.Errorf("Allocate = %v, the server was asked %d times", err, p.count("Allocate"))
				}
			})
		})
	}
}

// TestTheCallersOwnHeaderStays: a call carries one credential.
func TestTheCallersOwnHeaderStays(t *testing.T) {
	own := func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
			r.Header().Set("Authorization", "Bearer own")
			return next(ctx, r)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		v := &replaceableToken{token: "t"}
		c := newGate(newFakeCluster(), "own").client(t, v, client.WithInterceptors(connect.UnaryInterceptorFunc(own)))
		if _, err := c.Allocations.Allocate(t.Context(), &quoratev1.AllocateRequest{Id: "a"}); err != nil || v.asked > 0 {
			t.Errorf("Allocate = %v, the source was asked %d times", err, v.asked)
		}
	})
}

// TestNoTextHasTheToken: neither the client nor an error or notice of it prints the token.
func TestNoTextHasTheToken(t *testing.T) {
	var texts []string
	url := (&server{allocate: refuse(connect.CodeUnavailable), watch: connectUnauthenticated}).start(t)
	c := newClient(t, []string{closedPort(t), url},
		client.WithTokenSource((&replaceableToken{token: secretToken}).source), client.WithPatience(200*time.Millisecond),
		client.WithNotice(func(err error) { texts = append(texts, fmt.Sprintf("%v %+v %#v", err, err, err)) }))
	_, err := c.Allocations.Allocate(t.Context(), &quoratev1.AllocateRequest{Id: "a"})
	watched := c.Watch(t.Context(), &quoratev1.WatchEventsRequest{}, ignoreChange)
	for _, value := range []any{c, *c, err, watched, c.Allocations, c.Trees} {
		texts = append(texts, fmt.Sprintf("%v %+v %#v", value, value, value))
	}
	if err == nil || watched == nil || len(texts) < 7 {
		t.Fatalf("nothing failed: %v, %v, %d texts", err, watched, len(texts))
	}
	for _, text := range texts {
		if strings.Contains(text, secretToken) {
			t.Errorf("a text has the token: %s", text)
		}
	}
}

// tokenServer makes tokens, and then does not answer in time.
// tokenServer fails the first two calls.
type tokenServer struct {
	adminv1connect.UnimplementedAccessServiceHandler

	failure error
	made    atomic.Int32
}

func (s *tokenServer) fail() error {
	if s.made.Add(1) < 3 {
		return s.failure
	}
	return nil
}

func (s *tokenServer) CreateToken(
	context.Context, *adminv1.CreateTokenRequest,
) (*adminv1.CreateTokenResponse, error) {
	return &adminv1.CreateTokenResponse{}, s.fail()
}

func (s *tokenServer) ListTokens(context.Context, *adminv1.ListTokensRequest) (*adminv1.ListTokensResponse, error) {
	return &adminv1.ListTokensResponse{}, s.fail()
}

// TestTokensAreMadeOnce: a call that makes a token is not repeated once the token may exist.
func TestTokensAreMadeOnce(t *testing.T) {
	doubtful := connect.NewError(connect.CodeUnavailable, errors.New("no answer in time"))
	certain := connect.NewError(connect.CodeUnavailable, errors.New("no leader"))
	detail, err := connect.NewErrorDetail(&quoratev1.Problem{Reason: "NO_LEADER", NotApplied: true})
	if err != nil {
		t.Fatal(err)
	}
	certain.AddDetail(detail)
	for name, failure := range map[string]*connect.Error{"doubtful": doubtful, "certain": certain} {
		s := &tokenServer{failure: failure}
		mux := http.NewServeMux()
		mux.Handle(adminv1connect.NewAccessServiceHandler(s))
		c := newClient(t, []string{serve(t, mux)}, client.WithPatience(time.Minute))
		_, err := c.Access.CreateToken(t.Context(), &adminv1.CreateTokenRequest{Account: "ci"})
		made, mayBeDone := s.made.Swap(0), err != nil && client.MayBeDone(err)
		if want := name == "doubtful"; (err != nil) != want || mayBeDone != want || (made == 1) != want {
			t.Errorf("%s: %d calls, %v", name, made, err)
		}
		if _, err := c.Access.ListTokens(t.Context(), &adminv1.ListTokensRequest{Account: "ci"}); err != nil {
			t.Errorf("%s: a read is not repeated: %v", name, err)
		}
	}
}
