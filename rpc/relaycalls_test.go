package rpc

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	peerv1 "github.com/quorate/quorate/gen/quorate/peer/v1"
	"github.com/quorate/quorate/gen/quorate/peer/v1/peerv1connect"
	"github.com/quorate/quorate/rpc/relay"
	"github.com/quorate/quorate/rpc/wire"
)

// TestManyCallsShareAStream: all of them are answered, each with its own answer.
func TestManyCallsShareAStream(t *testing.T) {
	t.Parallel()
	follower, leader := streamingNodes(t)
	before := streamedCalls(t, follower)
	var callers sync.WaitGroup
	for i := range 64 {
		callers.Go(func() {
			id := "a-" + string(rune('a'+i%26)) + strings.Repeat("x", i)
			granted, err := follower.allocations().Allocate(t.Context(), request(id, "cern:physics", 0))
			if err != nil || granted.GetAllocation().GetId() != id {
				t.Errorf("%s: %v, %v", id, granted, err)
			}
		})
	}
	callers.Wait()
	if n := streamedCalls(t, follower) - before; n != 64 {
		t.Errorf("%d of 64 calls went over the stream", n)
	}
	if inside := leader.admission.Limiters.Members.Calls.InUse.Load(); inside != 0 {
		t.Errorf("%d calls are still inside", inside)
	}
}

// TestCancelledCallsEndOnTheLeader: a caller that goes away ends its call there.
func TestCancelledCallsEndOnTheLeader(t *testing.T) {
	t.Parallel()
	follower, leader := streamingNodes(t)
	ended := make(chan error, 1)
	begun := make(chan struct{})
	leader.node.proposing = func(ctx context.Context) error {
		close(begun)
		<-ctx.Done()
		ended <- ctx.Err()
		return ctx.Err()
	}
	ctx, leave := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := follower.allocations().Allocate(ctx, request("a", "cern:physics", 1))
		failed <- err
	}()
	<-begun
	leave()
	if err := <-failed; connect.CodeOf(err) != connect.CodeCanceled {
		t.Errorf("got %v", err)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the call ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("the call goes on at the leader")
	}
}

// TestALeaderThatStopsAnswersWhatItCan: calls on a stream that breaks off may have been carried out, and say so.
func TestALeaderThatStopsAnswersWhatItCan(t *testing.T) {
	follower, leader := streamingNodes(t)
	begun := make(chan struct{})
	leader.node.proposing = func(ctx context.Context) error { close(begun); <-ctx.Done(); return ctx.Err() }
	failed := make(chan error, 1)
	go func() {
		_, err := follower.allocations().Allocate(t.Context(), request("a", "cern:physics", 1))
		failed <- err
	}()
	<-begun
	leader.endStreams()
	err := <-failed
	if connect.CodeOf(err) != connect.CodeUnavailable || problemOf(t, err).GetNotApplied() ||
		!strings.Contains(err.Error(), "may have been carried out") {
		t.Errorf("got %v", err)
	}
}

// TestRemovedMembersLoseTheirCalls: who relays is asked for each call, not for the stream.
func TestRemovedMembersLoseTheirCalls(t *testing.T) {
	t.Parallel()
	follower, leader := streamingNodes(t)
	leader.node.refused = "n1"
	_, err := follower.allocations().Allocate(t.Context(), request("a", "cern:physics", 1))
	if connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("got %v", err)
	}
}

func relayDirectly(t *testing.T, w *fakeNetworks, to string) *connect.BidiStreamForClientSimple[
	peerv1.RelayCallsRequest, peerv1.RelayCallsResponse] {
	t.Helper()
	transport := relay.NewPeerTransport(relay.TransportConfig{Network: w.networkOf(t, "n1"), Silence: longSilence})
	t.Cleanup(transport.CloseIdleConnections)
	client := peerv1connect.NewPeerServiceClient(&http.Client{Transport: transport},
		relay.NodeURL(to, "raft:"+to, relay.NodePort))
	stream, err := client.RelayCalls(t.Context())
	if err == nil {
		err = stream.Send(&peerv1.RelayCallsRequest{})
	}
	if err == nil {
		_, err = stream.Receive()
	}
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// TestCallsOfAStreamAreTheMembersOwn: whatever headers a member sends, a call counts as relayed by the node that opened
// the connection, and reaches methods for clients with one answer only.
func TestCallsOfAStreamAreTheMembersOwn(t *testing.T) {
	t.Parallel()
	w, servers := wired(t, "n1", "n2")
	servers["n2"].node.leader = "n3" // so that the refusal says who relayed
	stream := relayDirectly(t, w, "n2")
	call := func(path string) *peerv1.RelayedAnswer {
		t.Helper()
		headers := "Content-Type: application/json\n" + wire.RelayedByHeader + ": n9\n"
		if err := stream.Send(&peerv1.RelayCallsRequest{Calls: []*peerv1.RelayedCall{
			{Number: 1, Path: path, Headers: headers, Body: []byte(`{"id":"a"}`)},
		}}); err != nil {
			t.Fatal(err)
		}
		m, err := stream.Receive()
		if err != nil {
			t.Fatal(err)
		}
		return m.GetAnswers()[0]
	}
	if body := string(call(allocatePath).GetBody()); !strings.Contains(body, "n1 relayed this call") {
		t.Errorf("answered %s", body)
	}
	for _, path := range []string{
		"/quorate.v1.EventService/WatchEvents", peerv1connect.PeerServiceRelayCallsProcedure,
		peerv1connect.PeerServiceNotifyProcedure, "/metrics", "", "nothing",
	} {
		if status := call(path).GetStatus(); status != http.StatusNotFound {
			t.Errorf("%q was answered %d", path, status)
		}
	}
}

// TestStreamsWithoutRulesEnd: a member that uses a number twice or begins too many calls loses its stream.
func TestStreamsWithoutRulesEnd(t *testing.T) {
	w, servers := wired(t, "n1", "n2")
	servers["n2"].node.proposing = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for name, numbers := range map[string][]uint64{
		"a number that is used twice": {1, 1}, "too many calls": make([]uint64, relay.MaxStreamedCalls+1),
	} {
		m := &peerv1.RelayCallsRequest{}
		for i, number := range numbers {
			if number == 0 {
				number = uint64(i + 10)
			}
			m.Calls = append(m.Calls, &peerv1.RelayedCall{
				Number: number, Path: allocatePath, Body: []byte(`{"id":"a","claims":[{"tree":"cern","node":"physics"}]}`),
				Headers: "Content-Type: application/json\n",
			})
		}
		stream := relayDirectly(t, w, "n2")
		if err := stream.Send(m); err != nil {
			t.Fatal(err)
		}
		var err error
		for err == nil {
			_, err = stream.Receive()
		}
		if connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestCancelledCallsDoNotCount: a member may have as many calls as allowed after it has cancelled others, even if those
// have not ended yet.
func TestCancelledCallsDoNotCount(t *testing.T) {
	t.Parallel()
	w, servers := wired(t, "n1", "n2")
	held := make(chan struct{})
	servers["n2"].node.proposing = func(context.Context) error { <-held; return errors.New("held") }
	stream := relayDirectly(t, w, "n2")
	call := func(number uint64) *peerv1.RelayedCall {
		return &peerv1.RelayedCall{
			Number: number, Path: allocatePath, Headers: "Content-Type: application/json\n",
			Body: []byte(`{"id":"a","claims":[{"tree":"cern","node":"physics"}]}`),
		}
	}
	first, second := &peerv1.RelayCallsRequest{}, &peerv1.RelayCallsRequest{}
	for number := range uint64(relay.MaxStreamedCalls) {
		first.Calls = append(first.Calls, call(1+number))
		second.Cancelled = append(second.Cancelled, 1+number)
	}
	second.Calls = []*peerv1.RelayedCall{call(relay.MaxStreamedCalls + 1)}
	for _, m := range []*peerv1.RelayCallsRequest{first, second} {
		if err := stream.Send(m); err != nil {
			t.Fatal(err)
		}
	}
	letOthersRun(func() { close(held) })
	for answers := 0; answers <= relay.MaxStreamedCalls; {
		m, err := stream.Receive()
		if err != nil {
			t.Fatalf("after %d answers: %v", answers, err)
		}
		answers += len(m.GetAnswers())
	}
}

// TestClientsCannotRelay: on the listener for clients there are no streams of relayed calls.
func TestClientsCannotRelay(t *testing.T) {
	d := oneNode(t)
	stream, err := peerv1connect.NewPeerServiceClient(overHTTP2, d.url).RelayCalls(t.Context())
	if err == nil {
		_, err = stream.Receive()
	}
	if code := connect.CodeOf(err); code != connect.CodeUnimplemented && code != connect.CodePermissionDenied {
		t.Errorf("got %v", err)
	}
}
