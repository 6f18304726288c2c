package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/client"
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
)

// server answers with functions of the test; calls without a function are unimplemented.
type server struct {
	quoratev1connect.UnimplementedTreeServiceHandler
	adminv1connect.UnimplementedConfigurationServiceHandler
	adminv1connect.UnimplementedCordonServiceHandler
	quoratev1connect.UnimplementedAllocationServiceHandler
	quoratev1connect.UnimplementedEventServiceHandler
	allocate func(context.Context, *quoratev1.AllocateRequest) (*quoratev1.AllocateResponse, error)
	batch    func(context.Context, *quoratev1.BatchAllocateRequest) (*quoratev1.BatchAllocateResponse, error)
	apply    func(context.Context, *quoratev1.ApplyTreesRequest) (*quoratev1.ApplyTreesResponse, error)
	limits   func(context.Context, *quoratev1.SetLimitsRequest) (*quoratev1.SetLimitsResponse, error)
	remove   func(context.Context, *quoratev1.DeleteTreeRequest) (*quoratev1.DeleteTreeResponse, error)
	move     func(context.Context, *quoratev1.MoveNodeRequest) (*quoratev1.MoveNodeResponse, error)
	hold     func(context.Context, *adminv1.CordonNodeRequest) (*adminv1.CordonNodeResponse, error)
	resume   func(context.Context, *adminv1.UncordonNodeRequest) (*adminv1.UncordonNodeResponse, error)
	back     func(context.Context, *adminv1.RollBackRequest) (*adminv1.RollBackResponse, error)
	explain  func(context.Context, *quoratev1.ExplainRequest) (*quoratev1.ExplainResponse, error)
	watch    func() error
}

func (s *server) WatchEvents(
	context.Context, *quoratev1.WatchEventsRequest, *connect.ServerStream[quoratev1.WatchEventsResponse],
) error {
	return s.watch()
}

func (s *server) Allocate(ctx context.Context, r *quoratev1.AllocateRequest) (*quoratev1.AllocateResponse, error) {
	return s.allocate(ctx, r)
}

func (s *server) BatchAllocate(
	ctx context.Context,
	r *quoratev1.BatchAllocateRequest,
) (*quoratev1.BatchAllocateResponse, error) {
	return s.batch(ctx, r)
}

func (s *server) ApplyTrees(
	ctx context.Context,
	r *quoratev1.ApplyTreesRequest,
) (*quoratev1.ApplyTreesResponse, error) {
	return s.apply(ctx, r)
}

func (s *server) SetLimits(ctx context.Context, r *quoratev1.SetLimitsRequest) (*quoratev1.SetLimitsResponse, error) {
	return s.limits(ctx, r)
}

func (s *server) DeleteTree(
	ctx context.Context,
	r *quoratev1.DeleteTreeRequest,
) (*quoratev1.DeleteTreeResponse, error) {
	return s.remove(ctx, r)
}

func (s *server) MoveNode(ctx context.Context, r *quoratev1.MoveNodeRequest) (*quoratev1.MoveNodeResponse, error) {
	return s.move(ctx, r)
}

func (s *server) CordonNode(ctx context.Context, r *adminv1.CordonNodeRequest) (*adminv1.CordonNodeResponse, error) {
	return s.hold(ctx, r)
}

func (s *server) UncordonNode(
	ctx context.Context, r *adminv1.UncordonNodeRequest,
) (*adminv1.UncordonNodeResponse, error) {
	return s.resume(ctx, r)
}

func (s *server) RollBack(ctx context.Context, r *adminv1.RollBackRequest) (*adminv1.RollBackResponse, error) {
	return s.back(ctx, r)
}

func (s *server) Explain(ctx context.Context, r *quoratev1.ExplainRequest) (*quoratev1.ExplainResponse, error) {
	return s.explain(ctx, r)
}

func (s *server) start(t *testing.T) string {
	t.Helper()
	return serve(t, s.handler())
}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(quoratev1connect.NewTreeServiceHandler(s))
	mux.Handle(adminv1connect.NewConfigurationServiceHandler(s))
	mux.Handle(adminv1connect.NewCordonServiceHandler(s))
	mux.Handle(quoratev1connect.NewAllocationServiceHandler(s))
	mux.Handle(quoratev1connect.NewEventServiceHandler(s))
	return mux
}

func serve(t *testing.T, handler http.Handler) string {
	t.Helper()
	listening := httptest.NewServer(handler)
	t.Cleanup(listening.Close)
	return listening.URL
}

func grant(_ context.Context, r *quoratev1.AllocateRequest) (*quoratev1.AllocateResponse, error) {
	return &quoratev1.AllocateResponse{Allocation: &quoratev1.Allocation{Id: r.GetId(), Fence: 7}}, nil
}

func refuse(code connect.Code) func(context.Context, *quoratev1.AllocateRequest) (*quoratev1.AllocateResponse, error) {
	return func(context.Context, *quoratev1.AllocateRequest) (*quoratev1.AllocateResponse, error) {
		return nil, connect.NewError(code, errors.New("says the test"))
	}
}

// hang blocks until the caller disconnects, which a server notices only after it has read the request.
func hang(_ http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err == nil {
		<-r.Context().Done()
	}
}

func newClient(t *testing.T, servers []string, options ...client.Option) *client.Client {
	t.Helper()
	c, err := client.New(servers, options...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// closedPort returns an address that refuses connections.
func closedPort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return listener.Addr().String()
}

func TestNewRefusesAddresses(t *testing.T) {
	for _, servers := range [][]string{
		nil,
		{""},
		{"ftp://x"},
		{"http://"},
		{"http://x?y"},
		{"http://x y"},
		{"http://a", "::"},
	} {
		if c, err := client.New(servers); err == nil || c != nil {
			t.Errorf("New(%q) = %v, %v; want an error", servers, c, err)
		}
	}
	for _, servers := range [][]string{
		{"127.0.0.1:7101"},
		{"http://x"},
		{"https://x:1/path/"},
		{"[::1]:7101", "localhost:1"},
	} {
		if _, err := client.New(servers); err != nil {
			t.Errorf("New(%q): %v", servers, err)
		}
	}
	for _, option := range []client.Option{client.WithPatience(0), client.WithAttemptTimeout(-1)} {
		if _, err := client.New([]string{"x"}, option); err == nil {
			t.Error("New takes a time that is not positive")
		}
	}
}

func TestCallsReachTheServer(t *testing.T) {
	url := (&server{allocate: grant}).start(t)
	for _, address := range []string{url, strings.TrimPrefix(url, "http://"), url + "/"} {
		answer, err := newClient(t, []string{address}).Allocations.Allocate(t.Context(),
			&quoratev1.AllocateRequest{Id: "a"})
		if err != nil || answer.GetAllocation().GetId() != "a" || answer.GetAllocation().GetFence() != 7 {
			t.Errorf("%s: Allocate = %v, %v", address, answer, err)
		}
	}
}

func TestServersMayLiveUnderAPath(t *testing.T) {
	url := serve(t, http.StripPrefix("/quota/eu", (&server{allocate: grant}).handler()))
	if _, err := newClient(
		t,
		[]string{url + "/quota/eu"},
	).Allocations.Allocate(
		t.Context(),
		&quoratev1.AllocateRequest{Id: "a"},
	); err != nil {
		t.Error(err)
	}
}

func TestAnswersAreNotRepeated(t *testing.T) {
	for _, code := range []connect.Code{
		connect.CodeResourceExhausted, connect.CodeInvalidArgument, connect.CodeNotFound, connect.CodeAlreadyExists,
		connect.CodeAborted, connect.CodeFailedPrecondition, connect.CodePermissionDenied, connect.CodeUnauthenticated,
		connect.CodeInternal, connect.CodeUnimplemented,
	} {
		var calls atomic.Int32
		s := &server{allocate: func(ctx context.Context, r *quoratev1.AllocateRequest) (*quoratev1.AllocateResponse, error) {
			calls.Add(1)
			return refuse(code)(ctx, r)
		}}
		_, err := newClient(t, []string{s.start(t)}).Allocations.Allocate(t.Context(),
			&quoratev1.AllocateRequest{Id: "a"})
		if connect.CodeOf(err) != code || calls.Load() != 1 {
			t.Errorf("%v: got %v after %d calls", code, err, calls.Load())
		}
	}
}

func TestFailuresGoToTheNextServer(t *testing.T) {
	handle := func(answer http.HandlerFunc) string { return serve(t, answer) }
	code := func(c connect.Code) string { return (&server{allocate: refuse(c)}).start(t) }
	failing := map[string]string{
		"refuses connections":    closedPort(t),
		"has no leader":          code(connect.CodeUnavailable),
		"shuts down":             code(connect.CodeCanceled),
		"is too slow for itself": code(connect.CodeDeadlineExceeded),
		"hangs":                  handle(hang),
		"is a proxy without a server": handle(
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
		),
		"hangs up": handle(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
		"hangs up in the middle of its answer": handle(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/proto")
			w.Header().Set("Content-Length", "100")
			if _, err := io.WriteString(w, "half"); err != nil {
				t.Error(err)
			}
			panic(http.ErrAbortHandler)
		}),
	}
	for name, bad := range failing {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			good := &server{
				allocate: func(ctx context.Context, r *quoratev1.AllocateRequest) (*quoratev1.AllocateResponse, error) {
					calls.Add(1)
					return grant(ctx, r)
				},
			}
			c := newClient(t, []string{bad, good.start(t)}, client.WithAttemptTimeout(2*time.Second))
			for range 3 {
				answer, err := c.Allocations.Allocate(t.Context(), &quoratev1.AllocateRequest{Id: "a"})
				if err != nil || answer.GetAllocation().GetFence() != 7 {
					t.Fatalf("Allocate = %v, %v", answer, err)
				}
			}
			if calls.Load() != 3 {
				t.Errorf("the good server was called %d times, want 3", calls.Load())
			}
		})
	}
}

func TestOneServerIsAskedAgain(t *testing.T) {
	var calls atomic.Int32
	s := &server{allocate: func(ctx context.Context, r *quoratev1.AllocateRequest) (*quoratev1.AllocateResponse, error) {
		if calls.Add(1) < 3 {
			return refuse(connect.CodeUnavailable)(ctx, r)
		}
		return grant(ctx, r)
	}}
	var noticed []error
	c := newClient(t, []string{s.start(t)}, client.WithNotice(func(err error) { noticed = append(noticed, err) }))
	answer, err := c.Allocations.Allocate(t.Context(), &quoratev1.AllocateRequest{Id: "a"})
	if err != nil || answer.GetAllocation().GetFence() != 7 || calls.Load() != 3 {
		t.Errorf("Allocate = %v, %v after %d calls", answer, err, calls.Load())
	}
	if len(noticed) != 2 || connect.CodeOf(noticed[0]) != connect.CodeUnavailable {
		t.Errorf("noticed %v, want both failures", noticed)
	}
}

// isGivenUp is true if no attempt was answered. On a busy machine the time may end during the last one.
func isGivenUp(err error) bool {
	code := connect.CodeOf(err)
	return code == connect.CodeUnavailable || code == connect.CodeDeadlineExceeded
}

func TestGivesUpInTimeAndSaysWhy(t *testing.T) {
	unavailable := &server{allocate: refuse(connect.CodeUnavailable)}
	request := &quoratev1.AllocateRequest{Id: "a"}
	check := func(t *testing.T, err error) {
		t.Helper()
		if !isGivenUp(err) || !strings.Contains(err.Error(), "says the test") ||
			!strings.Contains(err.Error(), "no answer after") {
			t.Errorf("got %v, want unavailable with the server's own words", err)
		}
	}
	t.Run("at the deadline", func(t *testing.T) {
		t.Parallel() // it waits
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err := newClient(t, []string{unavailable.start(t)}).Allocations.Allocate(ctx, request)
		check(t, err)
	})
	t.Run("when patience ends", func(t *testing.T) {
		t.Parallel() // it waits
		c := newClient(t, []string{unavailable.start(t)}, client.WithPatience(3*time.Second))
		_, err := c.Allocations.Allocate(t.Context(), request)
		check(t, err)
	})
	t.Run("when cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := &server{allocate: func(ctx context.Context, r *quoratev1.AllocateRequest) (*quoratev1.AllocateResponse, error) {
			cancel()
			return refuse(connect.CodeUnavailable)(ctx, r)
		}}
		_, err := newClient(t, []string{s.start(t)}).Allocations.Allocate(ctx, request)
		if connect.CodeOf(err) != connect.CodeCanceled {
			t.Errorf("got %v, want canceled", err)
		}
	})
	t.Run("when no server answers", func(t *testing.T) {
		c := newClient(t, []string{closedPort(t)}, client.WithPatience(200*time.Millisecond))
		_, err := c.Allocations.Allocate(t.Context(), request)
		code := connect.CodeOf(err) // of the deadline, if that cuts the last attempt
		if code != connect.CodeUnavailable && code != connect.CodeDeadlineExceeded ||
			!strings.Contains(err.Error(), "refused") {
			t.Errorf("got %v, want unavailable", err)
		}
	})
	t.Run("when it hangs", func(t *testing.T) {
		c := newClient(t, []string{serve(t, http.HandlerFunc(hang))}, client.WithPatience(200*time.Millisecond))
		_, err := c.Allocations.Allocate(t.Context(), request)
		if connect.CodeOf(err) != connect.CodeDeadlineExceeded || !strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("got %v, want deadline_exceeded with the server's address", err)
		}
	})
}

// TestALateAnswerIsReturned: an answer that follows failed attempts is returned instead of their errors.
func TestALateAnswerIsReturned(t *testing.T) {
	busy := &server{allocate: refuse(connect.CodeUnavailable)}
	full := &server{allocate: refuse(connect.CodeResourceExhausted)}
	c := newClient(t, []string{busy.start(t), full.start(t)})
	_, err := c.Allocations.Allocate(t.Context(), &quoratev1.AllocateRequest{Id: "a"})
	if connect.CodeOf(err) != connect.CodeResourceExhausted || strings.Contains(err.Error(), "no answer") {
		t.Errorf("got %v, want the denial itself", err)
	}
}

func TestDecisionOf(t *testing.T) {
	want := &quoratev1.Decision{Outcome: quoratev1.Outcome_OUTCOME_DENIED, Explanation: "no room"}
	s := &server{allocate: func(context.Context, *quoratev1.AllocateRequest) (*quoratev1.AllocateResponse, error) {
		failure := connect.NewError(connect.CodeResourceExhausted, errors.New("no room"))
		detail, err := connect.NewErrorDetail(want)
		if err != nil {
			return nil, err
		}
		failure.AddDetail(detail)
		return nil, failure
	}}
	_, err := newClient(t, []string{s.start(t)}).Allocations.Allocate(t.Context(), &quoratev1.AllocateRequest{Id: "a"})
	got, denied := client.DecisionOf(err)
	if !denied || got.GetExplanation() != "no room" {
		t.Errorf("DecisionOf(%v) = %v, %v", err, got, denied)
	}
	for _, other := range []error{
		nil, errors.New("x"),
		connect.NewError(connect.CodeResourceExhausted, errors.New("x")),
	} {
		if got, denied := client.DecisionOf(other); denied {
			t.Errorf("DecisionOf(%v) = %v", other, got)
		}
	}
}

func refuseWith(code connect.Code, problem *quoratev1.Problem) error {
	failure := connect.NewError(code, errors.New("says the test"))
	if detail, err := connect.NewErrorDetail(problem); err == nil {
		failure.AddDetail(detail)
	}
	return failure
}

func TestProblemOf(t *testing.T) {
	err := fmt.Errorf("wrapped: %w", refuseWith(connect.CodeFailedPrecondition, &quoratev1.Problem{
		Reason: "POLICY_BREACH", Breaches: []*quoratev1.Breach{{Tree: "cern"}},
	}))
	if got, found := client.ProblemOf(err); !found || got.GetReason() != "POLICY_BREACH" ||
		len(got.GetBreaches()) != 1 {
		t.Errorf("ProblemOf = %v, %v", got, found)
	}
	if got, found := client.DecisionOf(err); found {
		t.Errorf("DecisionOf = %v of an error that is not a denial", got)
	}
}

func TestMayBeDone(t *testing.T) {
	problem := func(code connect.Code, notApplied bool) error {
		return refuseWith(code, &quoratev1.Problem{NotApplied: notApplied})
	}
	dial := connect.NewError(connect.CodeUnavailable, &net.OpError{Op: "dial", Err: errors.New("refused")})
	read := connect.NewError(connect.CodeUnavailable, &net.OpError{Op: "read", Err: errors.New("reset")})
	for _, test := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{problem(connect.CodeUnavailable, false), true},
		{problem(connect.CodeUnavailable, true), false},
		{problem(connect.CodeDeadlineExceeded, false), true},
		{problem(connect.CodeInternal, false), true},
		{connect.NewError(connect.CodeUnavailable, errors.New("a proxy")), true},
		{connect.NewError(connect.CodeCanceled, errors.New("gone")), true},
		{connect.NewError(connect.CodeNotFound, errors.New("an answer")), false},
		{connect.NewError(connect.CodeResourceExhausted, errors.New("an answer")), false},
		{dial, false},
		{fmt.Errorf("wrapped: %w", dial), false},
		{read, true},
	} {
		if got := client.MayBeDone(test.err); got != test.want {
			t.Errorf("MayBeDone(%v) = %v", test.err, got)
		}
	}
}

// TestUnknownOutcomeIsReported: if any attempt may have been executed, the error says so, for any result of the last
// attempt.
func TestUnknownOutcomeIsReported(t *testing.T) {
	t.Parallel() // it waits
	var calls atomic.Int32
	s := &server{allocate: func(context.Context, *quoratev1.AllocateRequest) (*quoratev1.AllocateResponse, error) {
		lost := calls.Add(1) == 2 // only the answer to the second attempt was lost
		return nil, refuseWith(connect.CodeUnavailable, &quoratev1.Problem{Reason: "NO_LEADER", NotApplied: !lost})
	}}
	c := newClient(t, []string{s.start(t)}, client.WithPatience(3*time.Second))
	_, err := c.Allocations.Allocate(t.Context(), &quoratev1.AllocateRequest{Id: "a"})
	if calls.Load() < 3 || !isGivenUp(err) || !client.MayBeDone(err) {
		t.Errorf("after %d calls: %v, MayBeDone %v", calls.Load(), err, client.MayBeDone(err))
	}
}

func TestConnectionsAreKept(t *testing.T) {
	var connections atomic.Int32
	listening := httptest.NewUnstartedServer((&server{allocate: grant}).handler())
	listening.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	listening.Start()
	t.Cleanup(listening.Close)
	c := newClient(t, []string{listening.URL})
	for range 10 {
		if _, err := c.Allocations.Allocate(t.Context(), &quoratev1.AllocateRequest{Id: "a"}); err != nil {
			t.Fatal(err)
		}
	}
	if connections.Load() != 1 {
		t.Errorf("ten calls made %d connections, want 1", connections.Load())
	}
}
