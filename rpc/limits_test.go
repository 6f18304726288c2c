package rpc

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cluster"
	peerv1 "github.com/quorate/quorate/gen/quorate/peer/v1"
	"github.com/quorate/quorate/gen/quorate/peer/v1/peerv1connect"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/rpc/admission"
	"github.com/quorate/quorate/rpc/codec"
	"github.com/quorate/quorate/rpc/wire"
)

// limited starts a cluster of one node.
func limited(t *testing.T, limits admission.Limits) *testServer {
	t.Helper()
	c := newFakeCluster()
	d := openWith(t, c, "n1", limits)
	c.lead("n1")
	d.applyCERN(t)
	return d
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within two minutes: %s", what)
		}
	}
}

// letOthersRun calls f after many short pauses. A long one could be over at once on a machine that stalls, before what
// the test has sent was received.
func letOthersRun(f func()) {
	go func() {
		for range 50 {
			time.Sleep(2 * time.Millisecond)
		}
		f()
	}()
}

// wantOverloaded checks that the error says that the call was not executed, the reason, and when to retry.
func wantOverloaded(t *testing.T, err error, setting string) {
	t.Helper()
	var failed *connect.Error
	if !errors.As(err, &failed) || failed.Code() != connect.CodeUnavailable ||
		!strings.Contains(failed.Message(), setting) {
		t.Fatalf("got %v, want unavailable because of %s", err, setting)
	}
	if p := problemOf(t, err); p.GetReason() != "OVERLOADED" || !p.GetNotApplied() {
		t.Errorf("the problem is %v", p)
	}
	if _, denied := detailOf[*quoratev1.Decision](err); denied {
		t.Error("an overload looks like a denial")
	}
	info, found := detailOf[*errdetails.RetryInfo](err)
	if !found || info.GetRetryDelay().AsDuration() != time.Second || failed.Meta().Get("Retry-After") != "1" {
		t.Errorf("the hint is %v, the header %q", info, failed.Meta().Get("Retry-After"))
	}
}

// TestTooManyCalls: calls beyond the limit are refused at once in every protocol; calls that keep the cluster running
// are still admitted.
func TestTooManyCalls(t *testing.T) {
	d := limited(t, admission.Limits{Calls: 1})
	goOn := make(chan struct{})
	d.node.proposing = func(context.Context) error { <-goOn; return nil }
	done := make(chan error, 1)
	go func() {
		_, err := d.allocations().Allocate(t.Context(), request("a", "cern", 1))
		done <- err
	}()
	eventually(t, "the first call is inside",
		func() bool { return d.admission.Limiters.Clients.Calls.InUse.Load() == 1 })

	for _, options := range [][]connect.ClientOption{nil, {connect.WithGRPC()}, {connect.WithGRPCWeb()}} {
		_, err := d.allocations(options...).GetAllocation(t.Context(), &quoratev1.GetAllocationRequest{Id: "a"})
		wantOverloaded(t, err, "max-calls")
	}
	curl := send(t, "POST", d.url+allocatePath, `{"id":"b"}`)
	if curl.status != http.StatusServiceUnavailable || curl.header.Get("Retry-After") != "1" ||
		!strings.Contains(curl.body, "max-calls") {
		t.Errorf("curl got %v", curl)
	}
	if got := send(t, "GET", d.url+"/readyz", ""); got.status != http.StatusOK {
		t.Errorf("readyz: %v", got)
	}
	if got := send(t, "POST", d.url+"/"+grpchealth.HealthV1ServiceName+"/Check", "{}"); got.status != http.StatusOK {
		t.Errorf("health: %v", got)
	}
	if _, err := peerv1connect.NewPeerServiceClient(overHTTP2, d.url).GetStanding(t.Context(),
		&peerv1.GetStandingRequest{}); err != nil {
		t.Errorf("a question of another member: %v", err)
	}

	close(goOn)
	if err := <-done; err != nil {
		t.Error(err)
	}
	eventually(t, "there is room again", func() bool {
		_, err := d.allocations().GetAllocation(t.Context(), &quoratev1.GetAllocationRequest{Id: "a"})
		return err == nil
	})
}

func TestTooManyStreams(t *testing.T) {
	d := limited(t, admission.Limits{Calls: 1, Streams: 1})
	if _, err := d.allocations().Allocate(t.Context(), request("a", "cern", 100)); err != nil {
		t.Fatal(err)
	}
	waits := waitingRequest("b", 0)
	waits.PollMs = 60_000
	done := make(chan error, 1)
	go func() {
		answer, err := d.allocations().Allocate(t.Context(), waits)
		if err == nil && answer.GetAllocation().GetState() != quoratev1.AllocationState_ALLOCATION_STATE_HELD {
			err = fmt.Errorf("it was answered %v", answer)
		}
		done <- err
	}()
	eventually(t, "b waits", func() bool {
		return d.admission.Limiters.Clients.Streams.InUse.Load() == 1 &&
			d.admission.Limiters.Clients.Calls.InUse.Load() == 0
	})

	stream, err := d.allocations().WatchEvents(t.Context(), &quoratev1.WatchEventsRequest{})
	if err == nil {
		stream.Receive()
		err = stream.Err()
	}
	wantOverloaded(t, err, "max-streams")
	more := waitingRequest("c", 0)
	more.PollMs = 1000
	_, err = d.allocations().Allocate(t.Context(), more)
	wantOverloaded(t, err, "max-streams")
	if _, err := d.allocations().Release(t.Context(), &quoratev1.ReleaseRequest{Id: "a"}); err != nil {
		t.Errorf("an ordinary call has no place while somebody waits: %v", err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	eventually(t, "the place of b is free", func() bool {
		return d.admission.Limiters.Clients.Streams.InUse.Load() == 0
	})
}

// TestTooManyConnections: a few connections beyond the limit get an answer, further ones are closed, and closed
// connections free their places.
func TestTooManyConnections(t *testing.T) {
	d := limited(t, admission.Limits{Connections: 2})
	overHTTP2.CloseIdleConnections()
	inside := func(n int) func() bool {
		return func() bool { return d.admission.Limiters.Callers.ConnectionCount() == n }
	}
	eventually(t, "all callers have left", inside(0))
	address := strings.TrimPrefix(d.url, "http://")
	dial := func() net.Conn {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	first := dial()
	dial()
	eventually(t, "two are there", inside(2))

	got := send(t, "POST", d.url+"/quorate.v1.TreeService/ListTrees", "{}")
	if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") != "1" ||
		!strings.Contains(got.body, "max-connections") {
		t.Errorf("the third got %v", got)
	}
	_, err := d.trees(connect.WithGRPC()).ListTrees(t.Context(), &quoratev1.ListTreesRequest{})
	wantOverloaded(t, err, "max-connections")
	overHTTP2.CloseIdleConnections()
	eventually(t, "those that were sent away are gone", inside(2))
	for range admission.ExtraConnections {
		dial()
	}
	eventually(t, "so many may still ask", inside(2+admission.ExtraConnections))
	if _, err := dial().Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("one more reads %v, want the end", err)
	}
	_ = first.Close()
	eventually(t, "a place is free", inside(1+admission.ExtraConnections))
}

// TestBodySizeLimit sends bodies of exactly the allowed size and of one byte more.
func TestBodySizeLimit(t *testing.T) {
	t.Parallel()
	d := oneNode(t)
	frame := `{"id":"","claims":[{"tree":"cern","amounts":{"cores":"1"}}]}`
	sized := func(n int) string { return strings.Repeat(" ", n-len(frame)) + frame }
	if got := send(t, "POST", d.url+allocatePath, sized(codec.MaxBody)); !strings.Contains(got.body, "id") ||
		strings.Contains(got.body, "larger") {
		t.Errorf("the largest body is answered %v", got)
	}
	for _, over := range []int{1, codec.Envelope, codec.Envelope + 1} {
		got := send(t, "POST", d.url+allocatePath, sized(codec.MaxBody+over))
		if got.status != http.StatusBadRequest || !strings.Contains(got.body, "larger than 4194304 bytes") {
			t.Errorf("%d bytes too many are answered %v", over, got)
		}
	}
	if got := send(t, "GET", d.url+"/readyz", "", "X-Large",
		strings.Repeat("x", admission.MaxHeader+8<<10)); got.status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("too large a header is answered %v", got)
	}
}

// TestTooManyBytes: the bodies of all running calls share one limit.
func TestTooManyBytes(t *testing.T) {
	d := oneNode(t)
	allocate := func() error {
		_, err := d.allocations().Allocate(t.Context(), request("a", "cern", 1))
		return err
	}
	if err := allocate(); err != nil {
		t.Fatal(err)
	}
	small, large := d.admission.Limiters.Clients.SmallBodies, d.admission.Limiters.Clients.LargeBodies
	eventually(t, "no body is being received", func() bool { return small.InUse.Load() == 0 })
	if err := large.TryAcquire(nil, admission.MaxLargeBodies); err != nil {
		t.Fatal(err)
	}
	if err := allocate(); err != nil {
		t.Errorf("large bodies take the place of small ones: %v", err)
	}
	curl := send(t, "POST", d.url+allocatePath, strings.Repeat(" ", admission.SmallBody)+"{}")
	if curl.status != http.StatusServiceUnavailable || curl.header.Get("Retry-After") != "1" ||
		!strings.Contains(curl.body, "beyond 64 KiB") {
		t.Errorf("a large body got %v", curl)
	}
	large.Release(nil, admission.MaxLargeBodies)
	if err := small.TryAcquire(nil, admission.MaxSmallBodies); err != nil {
		t.Fatal(err)
	}
	wantOverloaded(t, allocate(), "all bodies up to 64 KiB together")
	small.Release(nil, admission.MaxSmallBodies)
	if err := allocate(); err != nil {
		t.Error(err)
	}
	eventually(t, "all of it is given back", func() bool { return small.InUse.Load() == 0 && large.InUse.Load() == 0 })
}

// TestAStalledReaderIsCutOff: a watcher over TCP that stops reading does not delay others and loses its stream; the
// data that it received has the position from which to continue.
func TestAStalledReaderIsCutOff(t *testing.T) {
	t.Parallel()
	d := limited(t, admission.Limits{SendPatience: time.Second})
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(d.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if err := c.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	body := binary.BigEndian.AppendUint32([]byte{0}, 2)
	_, err = fmt.Fprintf(
		c, "POST /quorate.v1.EventService/WatchEvents HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"+
			"Content-Type: application/connect+json\r\nContent-Length: %d\r\n\r\n%s{}", len(body)+2, body)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the stream is open", func() bool { return d.admission.Limiters.Clients.Streams.InUse.Load() == 1 })
	largeLabels := map[string]string{}
	for i := range 32 {
		largeLabels[fmt.Sprintf("label-%02d", i)] = strings.Repeat("x", 256)
	}
	n := 0
	eventually(t, "the stream is cut", func() bool {
		for ; n < 1000; n++ { // 16 MB of events, more than the connection buffers; none waits for the reader
			large := request(fmt.Sprintf("x%d", n), "cern:physics", 20)
			large.Labels = largeLabels
			d.node.apply(wire.ToAllocate(large, quota.DefaultNamespace), quota.Release{ID: large.GetId()})
		}
		return d.admission.Limiters.Clients.Streams.InUse.Load() == 0
	})
	if err := c.(*net.TCPConn).SetReadBuffer(4 << 20); err != nil { // drains the rest faster
		t.Fatal(err)
	}
	index, number := lastPosition(t, c)
	stream := d.watch(t, &quoratev1.WatchEventsRequest{AfterIndex: index, AfterNumber: number})
	next := changes(t, stream, 1)[0]
	page, err := d.node.ReadFeed(cluster.Position{Index: index, Number: number}, 1)
	if err != nil || len(page.Events) != 1 || page.Events[0].Index != next.GetIndex() ||
		page.Events[0].Number != next.GetNumber() {
		t.Errorf("after %d:%d the stream goes on with %v, and the next fact is %v, %v", index, number, next,
			page.Events, err)
	}
}

func lastPosition(t *testing.T, from io.Reader) (index uint64, number uint32) {
	t.Helper()
	response, err := http.ReadResponse(bufio.NewReader(from), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	received := 0
	for head := make([]byte, codec.Envelope); ; received++ {
		if _, err := io.ReadFull(response.Body, head); err != nil {
			break
		}
		content := make([]byte, binary.BigEndian.Uint32(head[1:]))
		if _, err := io.ReadFull(response.Body, content); err != nil {
			break
		}
		if head[0]&2 != 0 { // the end of the stream, if it was still sent
			break
		}
		var message struct {
			Index  uint64 `json:"index,string"`
			Number uint32 `json:"number"`
		}
		if err := json.Unmarshal(content, &message); err != nil {
			t.Fatalf("%s: %v", content, err)
		}
		index, number = message.Index, message.Number
	}
	if received < 2 {
		t.Fatalf("only %d messages were received", received)
	}
	return index, number
}
