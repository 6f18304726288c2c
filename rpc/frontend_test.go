package rpc

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/rpc/observe"
	"github.com/quorate/quorate/rpc/pipeline"
	"github.com/quorate/quorate/rpc/relay"
	"github.com/quorate/quorate/rpc/wire"
)

// TestFrontEndsWriteAnywhere: every write of the API that a front end sends on a follower is executed exactly once.
func TestFrontEndsWriteAnywhere(t *testing.T) {
	follower, leader := twoNodes(t)
	var s Services
	handler := follower.FrontEnd(FrontEnd{Name: "test", New: func(given Services) http.Handler {
		s = given
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, limited := r.Context().Deadline(); !limited {
				t.Error("a front end's call has no deadline")
			}
			_, _ = io.WriteString(w, "served")
		})
	}})
	ctx := t.Context()
	calls := []func() error{
		func() error { _, err := s.Allocations.Allocate(ctx, leaseOf("a", "cern:physics", 1)); return err },
		func() error { _, err := s.Allocations.Renew(ctx, &quoratev1.RenewRequest{Id: "a"}); return err },
		func() error {
			_, err := s.Allocations.BatchRenew(ctx,
				&quoratev1.BatchRenewRequest{Renewals: []*quoratev1.RenewRequest{{Id: "a"}}})
			return err
		},
		func() error { _, err := s.Allocations.Release(ctx, &quoratev1.ReleaseRequest{Id: "a"}); return err },
		func() error {
			_, err := s.Allocations.BatchAllocate(ctx,
				&quoratev1.BatchAllocateRequest{Requests: []*quoratev1.AllocateRequest{request("b", "cern", 1)}})
			return err
		},
		func() error {
			_, err := s.Allocations.BatchRelease(ctx,
				&quoratev1.BatchReleaseRequest{Requests: []*quoratev1.ReleaseRequest{{Id: "b"}}})
			return err
		},
		func() error { _, err := s.Allocations.Allocate(ctx, reservation("c")); return err },
		func() error { _, err := s.Allocations.Confirm(ctx, &quoratev1.ConfirmRequest{Id: "c"}); return err },
		func() error { _, err := s.Allocations.Allocate(ctx, reservation("d")); return err },
		func() error { _, err := s.Allocations.Cancel(ctx, &quoratev1.CancelRequest{Id: "d"}); return err },
		func() error {
			_, err := s.Trees.SetLimits(ctx, &quoratev1.SetLimitsRequest{Tree: "cern", Limits: cores(101)})
			return err
		},
		func() error {
			_, err := s.Trees.MoveNode(ctx, &quoratev1.MoveNodeRequest{Tree: "cern", Node: "operations", NewNode: "ops"})
			return err
		},
		func() error {
			_, err := s.Configuration.RollBack(ctx, &adminv1.RollBackRequest{Revision: 1})
			return err
		},
	}
	for i, call := range calls {
		if err := call(); err != nil {
			t.Errorf("call %d: %v", i, err)
		}
		if leader.node.index != uint64(i+2) {
			t.Fatalf("call %d: the log is at %d", i, leader.node.index)
		}
	}
	read, err := s.Allocations.GetAllocation(ctx, &quoratev1.GetAllocationRequest{Id: "a"})
	if err != nil || read.GetRead().GetServedBy() != "n1" {
		t.Errorf("a read is of %v, %v", read.GetRead(), err)
	}
	served := serveFrontEnd(t, handler)
	if got := send(t, "GET", served, ""); got.body != "served" || got.header.Get("Cache-Control") != "no-store" {
		t.Errorf("got %v", got)
	}
}

func reservation(id string) *quoratev1.AllocateRequest {
	r := request(id, "cern", 1)
	r.Mode = quoratev1.Mode_MODE_RESERVE
	return r
}

func serveFrontEnd(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// TestFrontEndsWatch: front ends can open streams, which end when the server stops.
func TestFrontEndsWatch(t *testing.T) {
	d := oneNode(t)
	stream, err := d.services.Events.WatchEvents(t.Context(), &quoratev1.WatchEventsRequest{})
	if err != nil || !stream.Receive() {
		t.Fatalf("no stream: %v, %v", err, stream.Err())
	}
	if _, err := d.services.Allocations.Allocate(t.Context(), request("a", "cern", 1)); err != nil {
		t.Fatal(err)
	}
	if !stream.Receive() || stream.Msg().GetChange().GetAllocation().GetId() != "a" {
		t.Fatalf("got %v, %v", stream.Msg(), stream.Err())
	}
	d.endStreams()
	for stream.Receive() {
		t.Logf("late: %v", stream.Msg())
	}
	if err := stream.Close(); err != nil {
		t.Error(err)
	}
}

// TestFrontEndsShareTheirCallersPlaces: a call of a front end takes one place in total and releases it while a request
// waits, its API requests carry its request id, and it chooses its own status code.
func TestFrontEndsShareTheirCallersPlaces(t *testing.T) {
	d := fullNode(t)
	var allocate func(ctx context.Context) error
	handler := d.FrontEnd(FrontEnd{Name: "test", New: func(s Services) http.Handler {
		allocate = func(ctx context.Context) error {
			_, err := s.Allocations.Allocate(ctx, waitingRequest("b", 10*time.Second))
			return err
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := allocate(r.Context()); err != nil {
				t.Error(err)
			}
			_, err := s.Allocations.GetAllocation(r.Context(), &quoratev1.GetAllocationRequest{Id: "none"})
			if connect.CodeOf(err) != connect.CodeNotFound || observe.CallOf(r.Context()).Code != "" {
				t.Errorf("got %v, and the front end's own call is %q", err, observe.CallOf(r.Context()).Code)
			}
			w.WriteHeader(http.StatusNoContent)
		})
	}})
	seen := make(chan string, 1)
	d.node.proposing = func(ctx context.Context) error {
		seen <- observe.CallOf(ctx).RequestID
		return nil
	}
	served := serveFrontEnd(t, handler)
	answered := make(chan int, 1)
	go func() {
		r, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodGet, served, nil)
		if err != nil {
			t.Error(err)
		}
		r.Header.Set(observe.RequestIDHeader, "the-callers-own")
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Error(err)
			return
		}
		answered <- response.StatusCode
		_ = response.Body.Close() // the feed is empty
	}()
	d.until(t, func() bool { return d.waiting("b") })
	if calls, streams := d.admission.Limiters.Clients.Calls.InUse.Load(),
		d.admission.Limiters.Clients.Streams.InUse.Load(); calls != 0 || streams != 1 {
		t.Errorf("%d calls under way and %d that wait", calls, streams)
	}
	if id := <-seen; id != "the-callers-own" {
		t.Errorf("the node sees request %q", id)
	}
	d.node.apply(quota.Release{ID: "holder"})
	if status := <-answered; status != http.StatusNoContent {
		t.Errorf("answered %d", status)
	}
	d.until(t, func() bool {
		return d.admission.Limiters.Clients.Calls.InUse.Load()+d.admission.Limiters.Clients.Streams.InUse.Load() == 0
	})
}

// TestFrontEndsGetPanicsAsErrors: a panic in a handler reaches the front end as an error.
func TestFrontEndsGetPanicsAsErrors(t *testing.T) {
	d := oneNode(t)
	d.node.proposing = func(context.Context) error { panic("a bug") }
	_, err := d.services.Allocations.Confirm(t.Context(), &quoratev1.ConfirmRequest{Id: "a"})
	if connect.CodeOf(err) != connect.CodeInternal || problemOf(t, err).GetReason() != wire.ReasonInternal {
		t.Errorf("got %v", err)
	}
}

func TestFrontEndsAreAnsweredAsCallersAre(t *testing.T) {
	follower, leader := twoNodes(t)
	for name, s := range map[string]Services{"here": leader.services, "there": follower.services} {
		_, err := s.Allocations.Allocate(t.Context(), request(name, "cern:physics", 21))
		decision, ok := detailOf[*quoratev1.Decision](err)
		if connect.CodeOf(err) != connect.CodeResourceExhausted || !ok ||
			decision.GetViolations()[0].GetMissing() != 1 {
			t.Errorf("%s: a denial is %v", name, err)
		}
		_, err = s.Allocations.Allocate(t.Context(), request("two words", "cern", 1))
		if connect.CodeOf(err) != connect.CodeInvalidArgument || problemOf(t, err).GetField() != "id" {
			t.Errorf("%s: an invalid request is %v", name, err)
		}
	}
}

// TestFrontEndsOutliveLeaders: calls of front ends succeed although the leader refuses connections, was deposed, or
// stops before it answers.
func TestFrontEndsOutliveLeaders(t *testing.T) {
	for name, dead := range map[string]func(t *testing.T) string{
		"refuses connections": closedPort,
		"dies in the middle": func(t *testing.T) string {
			t.Helper()
			return serveHTTP2(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newFakeCluster()
			follower, next := openServer(t, c, "n1"), openServer(t, c, "n3")
			c.lead("n3")
			next.applyCERN(t)
			c.members = append(c.members, cluster.Member{ID: "n2", HTTPAddr: dead(t)})
			c.lead("n2")
			time.AfterFunc(3*relay.RelayPause, func() { c.lead("n3") })
			granted, err := follower.services.Allocations.Allocate(t.Context(), request("a", "cern", 1))
			if err != nil || granted.GetAllocation().GetFence() != 1 {
				t.Errorf("got %v, %v", granted, err)
			}
		})
	}
	t.Run("was deposed", func(t *testing.T) {
		follower, leader := twoNodes(t)
		var attempts atomic.Int64
		leader.node.proposing = func(context.Context) error {
			if attempts.Add(1) < 3 {
				return &cluster.Error{Reason: cluster.LeadershipLost, Text: "n2 lost the leadership"}
			}
			return nil
		}
		if _, err := follower.services.Allocations.Allocate(t.Context(), request("a", "cern", 1)); err != nil ||
			attempts.Load() != 3 {
			t.Errorf("after %d attempts: %v", attempts.Load(), err)
		}
	})
}

func TestFrontEndsDoNotInsist(t *testing.T) {
	follower, leader := twoNodes(t)
	var attempts atomic.Int64
	leader.node.proposing = func(context.Context) error {
		attempts.Add(1)
		return &cluster.Error{Reason: cluster.Overloaded, NotApplied: true, Text: "too much waits"}
	}
	_, err := follower.services.Allocations.Allocate(t.Context(), request("a", "cern", 1))
	if connect.CodeOf(err) != connect.CodeUnavailable || attempts.Load() != 1 {
		t.Errorf("an overloaded leader was asked %d times: %v", attempts.Load(), err)
	}
	leader.node.lead("")
	err = answerBefore(t, 300*time.Millisecond, func(ctx context.Context) error {
		_, err := follower.services.Allocations.Allocate(ctx, request("a", "cern", 1))
		return err
	})
	if problemOf(t, err).GetReason() != "NO_LEADER" {
		t.Errorf("without a leader: %v", err)
	}
	c := newFakeCluster()
	alone := openServer(t, c, "n1")
	c.members = append(c.members, cluster.Member{ID: "n2"})
	c.lead("n2")
	err = answerBefore(t, 300*time.Millisecond, func(ctx context.Context) error {
		_, err := alone.services.Allocations.Allocate(ctx, request("a", "cern", 1))
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "not known yet") {
		t.Errorf("a leader without an address: %v", err)
	}
}

// TestTokenHeaders: a token in the header of a front end's system is a bearer token, unless the call has an
// Authorization header or the front end names no header.
func TestTokenHeaders(t *testing.T) {
	for _, c := range []struct{ name, authorization, token, want string }{
		{"X-Auth-Token", "", "qrt_a", "Bearer qrt_a"},
		{"X-Auth-Token", "Bearer qrt_b", "qrt_a", "Bearer qrt_b"},
		{"X-Auth-Token", "", "", ""},
		{"", "", "qrt_a", ""},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		r.Header.Set("X-Auth-Token", c.token)
		if c.authorization != "" {
			r.Header.Set("Authorization", c.authorization)
		}
		if passes := readTokenHeader(c.name)(&pipeline.Exchange{Request: r}); !passes ||
			r.Header.Get("Authorization") != c.want {
			t.Errorf("%+v: %q, %v", c, r.Header.Get("Authorization"), passes)
		}
	}
}
