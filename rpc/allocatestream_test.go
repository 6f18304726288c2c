package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/rpc/admission"
	"github.com/quorate/quorate/rpc/handlers"
)

type (
	allocateStream = connect.BidiStreamForClientSimple[
		quoratev1.AllocateStreamRequest, quoratev1.AllocateStreamResponse]
	streamRequest  = quoratev1.AllocateStreamRequest
	streamResponse = quoratev1.AllocateStreamResponse
)

func openStream(t testing.TB, d *testServer, options ...connect.ClientOption) *allocateStream {
	t.Helper()
	stream, err := d.allocations(options...).AllocateStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stream.CloseResponse() }) // most tests read to its end
	return stream
}

func sendOn(t testing.TB, stream *allocateStream, requests ...*streamRequest) {
	t.Helper()
	for _, r := range requests {
		if err := stream.Send(r); err != nil {
			t.Fatal(err)
		}
	}
}

// receiveAll ends the stream and returns the answers by number, and how it ended.
func receiveAll(t testing.TB, stream *allocateStream) (map[uint64]*streamResponse, error) {
	t.Helper()
	_ = stream.CloseRequest() // it may have ended already
	return receiveRest(t, stream)
}

func receiveRest(t testing.TB, stream *allocateStream) (map[uint64]*streamResponse, error) {
	t.Helper()
	answers := map[uint64]*streamResponse{}
	for {
		answer, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return answers, nil
		}
		if err != nil {
			return answers, err
		}
		if answers[answer.GetNumber()] != nil {
			t.Errorf("number %d was answered twice", answer.GetNumber())
		}
		answers[answer.GetNumber()] = answer
	}
}

func streamAllocate(number uint64, r *quoratev1.AllocateRequest) *streamRequest {
	return &streamRequest{Number: number, Request: &quoratev1.AllocateStreamRequest_Allocate{Allocate: r}}
}

func streamRelease(number uint64, r *quoratev1.ReleaseRequest) *streamRequest {
	return &streamRequest{Number: number, Request: &quoratev1.AllocateStreamRequest_Release{Release: r}}
}

// TestAllocateStream makes requests of all kinds, good and bad, with both protocols, at the leader and at a follower.
func TestAllocateStream(t *testing.T) {
	for name, options := range map[string][]connect.ClientOption{
		"connect": nil, "connect json": {connect.WithProtoJSON()}, "grpc": {connect.WithGRPC()},
	} {
		for _, at := range []string{"n1", "n2"} {
			t.Run(name+" at "+at, func(t *testing.T) {
				c := newFakeCluster()
				servers := map[string]*testServer{"n1": openServer(t, c, "n1"), "n2": openServer(t, c, "n2")}
				c.lead("n1")
				servers["n1"].applyCERN(t)
				stream := openStream(t, servers[at], options...)
				sendOn(t, stream, streamAllocate(1, leaseOf("a", "cern:physics", 5)))
				if first, err := stream.Receive(); err != nil || first.GetGranted().GetAllocation().GetId() != "a" {
					t.Fatalf("got %v, %v", first, err)
				}
				two := streamAllocate(7, request("e", "cern:physics", 1))
				two.TimeoutMs = -1
				sendOn(t, stream,
					streamAllocate(2, request("b", "cern:physics", 50)),
					streamAllocate(3, request("two words", "cern:physics", 1)),
					streamRelease(4, &quoratev1.ReleaseRequest{Id: "unknown"}),
					&streamRequest{Number: 5, Request: &quoratev1.AllocateStreamRequest_Renew{
						Renew: &quoratev1.RenewRequest{Id: "a"},
					}},
					&streamRequest{Number: 6}, two,
					streamRelease(8, &quoratev1.ReleaseRequest{Id: "a", Items: []*quoratev1.ItemName{{Resource: "x", Name: "y"}}}),
					streamRelease(9, &quoratev1.ReleaseRequest{Id: "two words"}),
					streamAllocate(10, request("g", "cern:"+strings.Repeat("x", handlers.MaxStreamRequest), 1)),
					streamAllocate(1, request("h", "cern:operations", 1)), // its number was answered
				)
				answers, err := receiveAll(t, stream)
				if err != nil || len(answers) != 10 {
					t.Fatalf("%d answers, %v", len(answers), err)
				}
				if answers[5].GetRenewed().GetAllocation().GetId() != "a" || answers[1].GetGranted() == nil ||
					len(answers[2].GetFailure().GetDecision().GetViolations()) == 0 {
					t.Errorf("got %v, %v, %v", answers[5], answers[1], answers[2])
				}
				for number, want := range map[uint64]string{
					2: "resource_exhausted ", 3: "invalid_argument id", 4: "not_found id", 6: "invalid_argument request",
					7: "invalid_argument timeout_ms", 9: "invalid_argument id", 10: "invalid_argument ",
				} {
					failure := answers[number].GetFailure()
					if got := failure.GetCode() + " " + failure.GetProblem().GetField(); got != want {
						t.Errorf("%d: %q, want %q (%s)", number, got, want, failure.GetMessage())
					}
				}
				if answers[8].GetFailure() == nil {
					t.Errorf("items of an allocation without items: %v", answers[8])
				}
			})
		}
	}
}

// TestRequestsOfAStreamAreJoined sends many requests while one is decided.
func TestRequestsOfAStreamAreJoined(t *testing.T) {
	d := oneNode(t)
	var proposals atomic.Int64
	hold := make(chan struct{})
	d.node.proposing = func(context.Context) error {
		proposals.Add(1)
		<-hold
		return nil
	}
	stream := openStream(t, d)
	for i := range 900 {
		sendOn(t, stream, streamAllocate(uint64(i), request(fmt.Sprint("a-", i), "cern:operations", 0)))
	}
	awaitCharged(t, d, 900)
	close(hold)
	if answers, err := receiveAll(t, stream); err != nil || len(answers) != 900 || proposals.Load() > 50 {
		t.Errorf("%d answers of %d proposals, %v", len(answers), proposals.Load(), err)
	}
}

// TestANumberInUseEndsTheStream also answers what was read.
func TestANumberInUseEndsTheStream(t *testing.T) {
	d := oneNode(t)
	hold := make(chan struct{})
	d.node.proposing = func(context.Context) error { <-hold; return nil }
	stream := openStream(t, d)
	sendOn(t, stream, streamAllocate(1, request("a", "cern:physics", 1)))
	sendOn(t, stream, streamAllocate(1, request("b", "cern:physics", 1)))
	letOthersRun(func() { close(hold) })
	answers, err := receiveAll(t, stream)
	if connect.CodeOf(err) != connect.CodeInvalidArgument || len(answers) != 1 {
		t.Errorf("%v, %v", answers, err)
	}
}

// TestStreamsKeepToTheLimits: requests in a stream count like calls, and a stream that is not read is not served on.
func TestStreamsKeepToTheLimits(t *testing.T) {
	c := newFakeCluster()
	d := openWith(t, c, "n1", admission.Limits{Calls: 40})
	c.lead("n1")
	d.applyCERN(t)
	hold := make(chan struct{})
	d.node.proposing = func(context.Context) error { <-hold; return nil }
	stream := openStream(t, d)
	for i := range 100 {
		sendOn(t, stream, streamAllocate(uint64(i), request(fmt.Sprint("a-", i), "cern:operations", 0)))
	}
	refused := 0
	for range 60 {
		answer, err := stream.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if answer.GetFailure().GetProblem().GetReason() == cluster.Overloaded.String() {
			refused++
		}
	}
	close(hold)
	answers, err := receiveAll(t, stream)
	if refused != 60 || err != nil || len(answers) != 40 {
		t.Errorf("%d refused, then %d answers, %v", refused, len(answers), err)
	}
	if left := d.admission.Limiters.Clients.Calls.InUse.Load(); left != 0 {
		t.Errorf("%d calls are still charged", left)
	}
}

func awaitCharged(t *testing.T, d *testServer, want int64) {
	t.Helper()
	calls := &d.admission.Limiters.Clients.Calls.InUse
	eventually(t, fmt.Sprintf("%d calls are charged", want), func() bool { return calls.Load() == want })
}

// TestUnansweredRequestsAreBounded sends without an end while nothing is decided.
func TestUnansweredRequestsAreBounded(t *testing.T) {
	t.Parallel()
	d := oneNode(t)
	hold := make(chan struct{})
	d.node.proposing = func(context.Context) error { <-hold; return nil }
	stream := openStream(t, d)
	sent := make(chan int)
	go func() {
		for i := range 25_000 {
			if stream.Send(streamAllocate(uint64(i), request(fmt.Sprint("a-", i), "cern:operations", 0))) != nil {
				break
			}
		}
		close(sent)
	}()
	select {
	case <-sent:
		t.Error("the server read everything")
	case <-time.After(time.Second):
	}
	awaitCharged(t, d, handlers.MaxUnanswered)
	close(hold)
	go func() {
		<-sent
		_ = stream.CloseRequest() // the answers tell
	}()
	for n := range 25_000 {
		if _, err := stream.Receive(); err != nil {
			t.Fatalf("after %d answers: %v", n, err)
		}
	}
}

// TestDeadlinesInAStream: a request is answered when its time is over, with whether it was begun.
func TestDeadlinesInAStream(t *testing.T) {
	t.Parallel()
	d := oneNode(t)
	hold := make(chan struct{})
	started := make(chan struct{}, 2)
	d.node.proposing = func(context.Context) error { started <- struct{}{}; <-hold; return nil }
	stream := openStream(t, d)
	for i := range uint64(2) {
		r := streamAllocate(i, request(fmt.Sprint("a-", i), "cern:physics", 1))
		r.TimeoutMs = 500
		if i == 0 {
			r.TimeoutMs = 3000 // it must begin
		}
		sendOn(t, stream, r)
		if i == 0 {
			<-started
		}
	}
	answers := map[uint64]*streamResponse{}
	for range 2 {
		answer, err := stream.Receive()
		if err != nil {
			t.Fatal(err)
		}
		answers[answer.GetNumber()] = answer
	}
	close(hold) // both were answered before
	_, err := receiveAll(t, stream)
	begun, waited := answers[0].GetFailure(), answers[1].GetFailure()
	if err != nil || begun.GetCode() != "deadline_exceeded" || begun.GetProblem().GetNotApplied() ||
		waited.GetCode() != "deadline_exceeded" || !waited.GetProblem().GetNotApplied() {
		t.Errorf("%v, %v, %v", begun, waited, err)
	}
}

// TestStreamsEndWithTheServer: what was read is answered, and the stream ends.
func TestStreamsEndWithTheServer(t *testing.T) {
	d := oneNode(t)
	hold := make(chan struct{})
	begun := make(chan struct{}, 2)
	d.node.proposing = func(context.Context) error { begun <- struct{}{}; <-hold; return nil }
	stream := openStream(t, d)
	sendOn(t, stream, streamAllocate(1, request("a", "cern:physics", 1)))
	<-begun
	sendOn(t, stream, streamAllocate(2, request("b", "cern:physics", 1)))
	awaitCharged(t, d, 2)
	d.endStreams()
	letOthersRun(func() { close(hold) })
	answers, err := receiveRest(t, stream)
	if connect.CodeOf(err) != connect.CodeUnavailable || answers[1].GetGranted() == nil ||
		!answers[2].GetFailure().GetProblem().GetNotApplied() {
		t.Errorf("%v, %v", answers, err)
	}
}

// TestStreamsOutliveLeaders: while there is no leader requests are refused as unavailable, and the stream goes on.
func TestStreamsOutliveLeaders(t *testing.T) {
	t.Parallel()
	c := newFakeCluster()
	first, second := openServer(t, c, "n1"), openServer(t, c, "n2")
	c.lead("n1")
	first.applyCERN(t)
	stream := openStream(t, second)
	for number, leader := range map[uint64]string{1: "n1", 2: "n2"} {
		c.lead(leader)
		sendOn(t, stream, streamAllocate(number, request(fmt.Sprint("a-", number), "cern:physics", 1)))
		if answer, err := stream.Receive(); err != nil || answer.GetGranted() == nil {
			t.Errorf("led by %s: %v, %v", leader, answer, err)
		}
	}
	c.lead("")
	none := streamAllocate(3, request("a-3", "cern:physics", 1))
	none.TimeoutMs = 1000
	sendOn(t, stream, none)
	if answer, err := stream.Receive(); err != nil || answer.GetFailure() == nil {
		t.Errorf("without a leader: %v, %v", answer, err)
	}
}

// TestSlowReadersOfStreams: a caller that sends and does not receive loses its stream, and holds nothing afterwards.
func TestSlowReadersOfStreams(t *testing.T) {
	t.Parallel()
	c := newFakeCluster()
	d := openWith(t, c, "n1", admission.Limits{SendPatience: 300 * time.Millisecond})
	c.lead("n1")
	d.applyCERN(t)
	stream := openStream(t, d)
	broken := false
	for i := 0; i < 200_000 && !broken; i++ {
		broken = stream.Send(streamAllocate(uint64(i), request(fmt.Sprint("a-", i), "cern:operations", 0))) != nil
	}
	if !broken {
		t.Error("the stream was served without a reader")
	}
	awaitCharged(t, d, 0)
}
