package rpc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/rpc/handlers"
	"github.com/quorate/quorate/rpc/notify"
)

// watch opens a stream that is closed at the end of the test.
func (d *testServer) watch(
	t *testing.T, r *quoratev1.WatchEventsRequest, options ...connect.ClientOption,
) *connect.ServerStreamForClient[quoratev1.WatchEventsResponse] {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	stream, err := d.allocations(options...).WatchEvents(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stream.Close() })
	return stream
}

// changes skips heartbeats.
func changes(
	t *testing.T, stream *connect.ServerStreamForClient[quoratev1.WatchEventsResponse], n int,
) []*quoratev1.WatchEventsResponse {
	t.Helper()
	var list []*quoratev1.WatchEventsResponse
	for len(list) < n && stream.Receive() {
		if m := stream.Msg(); m.GetChange().GetAllocation() != nil {
			list = append(list, m)
		}
	}
	if len(list) < n {
		t.Fatalf("the stream ended after %d changes of %d: %v", len(list), n, stream.Err())
	}
	return list
}

func said(list []*quoratev1.WatchEventsResponse) []string {
	var words []string
	for _, m := range list {
		change := strings.ToLower(strings.TrimPrefix(m.GetChange().GetKind().String(), "ALLOCATION_CHANGE_KIND_"))
		a := m.GetChange().GetAllocation()
		words = append(words, fmt.Sprintf("%s %s: %s", a.GetId(), change, stateOf(a)))
	}
	return words
}

func wantSaid(t *testing.T, list []*quoratev1.WatchEventsResponse, want ...string) {
	t.Helper()
	if got := said(list); !slices.Equal(got, want) {
		t.Errorf("the stream says %q, want %q", got, want)
	}
}

// history applies commands: a is held and b waits; a is released and b granted in the same entry; c is held at another
// node.
func history(t *testing.T, d *testServer) (begin uint64) {
	t.Helper()
	begin = d.node.index
	d.hold(t, "a")
	if _, err := d.allocations().Allocate(t.Context(), waitingRequest("b", 0)); err != nil {
		t.Fatal(err)
	}
	d.node.apply(quota.Release{ID: "a"})
	if _, err := d.allocations().Allocate(t.Context(), request("c", "cern:operations", 1)); err != nil {
		t.Fatal(err)
	}
	return begin
}

func TestWatching(t *testing.T) {
	t.Parallel()
	d := oneNode(t)
	begin := history(t, d)
	for name, options := range protocols {
		t.Run(name, func(t *testing.T) {
			all := changes(t, d.watch(t, &quoratev1.WatchEventsRequest{AfterIndex: begin}, options...), 5)
			wantSaid(t, all, "a granted: HELD", "b waiting: WAITING", "a ended: RELEASED", "b granted: HELD",
				"c granted: HELD")
			if all[2].GetIndex() != all[3].GetIndex() || all[3].GetNumber() != 2 || all[3].GetLedgerTimeMs() == 0 {
				t.Errorf("they belong to one entry: %v", all[2:4])
			}
			stream := d.watch(
				t, &quoratev1.WatchEventsRequest{AfterIndex: all[2].GetIndex(), AfterNumber: all[2].GetNumber()},
				options...)
			wantSaid(t, changes(t, stream, 2), "b granted: HELD", "c granted: HELD")
			live := strings.ReplaceAll(name, " ", "-")
			if _, err := d.allocations().Allocate(t.Context(), request(live, "cern", 1)); err != nil {
				t.Fatal(err)
			}
			stream = d.watch(t, &quoratev1.WatchEventsRequest{AfterIndex: d.node.index - 1}, options...)
			wantSaid(t, changes(t, stream, 1), live+" granted: HELD")
			d.node.apply(quota.Release{ID: live})
			wantSaid(t, changes(t, stream, 1), live+" ended: RELEASED")
			for what, c := range map[string]struct {
				r    *quoratev1.WatchEventsRequest
				want []string
			}{
				"of an id": {
					&quoratev1.WatchEventsRequest{Allocations: []*quoratev1.AllocationRef{{Id: "b"}, {Id: "x"}}},
					[]string{"b waiting: WAITING", "b granted: HELD"},
				},
				"of a node": {
					&quoratev1.WatchEventsRequest{Tree: "cern", Node: "operations"},
					[]string{"c granted: HELD"},
				},
				"of a tree": {
					&quoratev1.WatchEventsRequest{Tree: "cern"},
					[]string{"a granted: HELD", "b waiting: WAITING"},
				},
				"of a prefix": {
					&quoratev1.WatchEventsRequest{
						Tree: "cern", Node: "oper",
						Allocations: []*quoratev1.AllocationRef{{Id: "c"}},
					}, nil,
				},
			} {
				c.r.AfterIndex = begin
				got := d.watch(t, c.r, options...)
				if c.want == nil {
					heartbeatWithout(t, got)
					continue
				}
				t.Log(what)
				wantSaid(t, changes(t, got, len(c.want)), c.want...)
			}
		})
	}
}

func heartbeatWithout(
	t *testing.T, stream *connect.ServerStreamForClient[quoratev1.WatchEventsResponse],
) *quoratev1.WatchEventsResponse {
	t.Helper()
	if !stream.Receive() || stream.Msg().GetChange().GetAllocation() != nil || stream.Msg().GetIndex() == 0 {
		t.Fatalf("got %v, %v", stream.Msg(), stream.Err())
	}
	return stream.Msg()
}

// TestAWatchBeginsNow: a watch without a position begins at the present, and its first message has that position.
func TestAWatchBeginsNow(t *testing.T) {
	t.Parallel()
	d := oneNode(t)
	history(t, d)
	stream := d.watch(t, &quoratev1.WatchEventsRequest{})
	begin := heartbeatWithout(t, stream)
	if begin.GetIndex() != d.node.index || begin.GetNumber() != 0 {
		t.Errorf("it begins at %v, the log is at %d", begin, d.node.index)
	}
	d.node.apply(quota.Release{ID: "c"})
	wantSaid(t, changes(t, stream, 1), "c ended: RELEASED")
	again := d.watch(t, &quoratev1.WatchEventsRequest{
		AfterIndex:  begin.GetIndex(),
		AfterNumber: begin.GetNumber(),
	})
	wantSaid(t, changes(t, again, 1), "c ended: RELEASED")
}

// TestAnyNodeWatches: a follower serves streams itself and needs no leader.
func TestAnyNodeWatches(t *testing.T) {
	follower, leader := twoNodes(t)
	begin := history(t, leader)
	leader.node.lead("")
	stream := follower.watch(t, &quoratev1.WatchEventsRequest{
		AfterIndex:  begin,
		Allocations: []*quoratev1.AllocationRef{{Id: "a"}},
	},
		connect.WithGRPC())
	wantSaid(t, changes(t, stream, 2), "a granted: HELD", "a ended: RELEASED")
}

func TestWatchesThatCannotBe(t *testing.T) {
	d := oneNode(t)
	history(t, d)
	d.node.forgotten = cluster.Position{Index: 3, Number: 1}
	for name, c := range map[string]struct {
		r      *quoratev1.WatchEventsRequest
		code   connect.Code
		reason string
	}{
		"too far back": {&quoratev1.WatchEventsRequest{AfterIndex: 2}, connect.CodeOutOfRange, "FORGOTTEN"},
		"a node of no tree": {
			&quoratev1.WatchEventsRequest{Node: "physics"},
			connect.CodeInvalidArgument, "INVALID",
		},
		"against the schema": {
			&quoratev1.WatchEventsRequest{Allocations: make([]*quoratev1.AllocationRef, 1001)},
			connect.CodeInvalidArgument, "INVALID",
		},
	} {
		for protocol, options := range protocols {
			stream := d.watch(t, c.r, options...)
			if stream.Receive() {
				t.Errorf("%s over %s: got %v", name, protocol, stream.Msg())
			}
			if err := stream.Err(); connect.CodeOf(err) != c.code || problemOf(t, err).GetReason() != c.reason {
				t.Errorf("%s over %s: %v", name, protocol, err)
			}
		}
	}
	if got := send(t, "GET", d.url+"/metrics", ""); !strings.Contains(got.body,
		`quorate_rpc_calls_total{outcome="out_of_range",procedure="/quorate.v1.EventService/WatchEvents"}`) {
		t.Error("the refused streams were not counted by their codes")
	}
}

func TestShutdownEndsWatches(t *testing.T) {
	d := oneNode(t)
	stream := d.watch(t, &quoratev1.WatchEventsRequest{})
	heartbeatWithout(t, stream)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := d.Shutdown(ctx); err != nil { // it waits for calls, and for a watch without an end it would in vain
		t.Error(err)
	}
}

// receiver is a watcher that receives under control of the test.
func receiver(d *fakeNode, receive func(*quoratev1.WatchEventsResponse) error) *handlers.Watcher {
	return &handlers.Watcher{Node: d, Notifier: notify.New(d), Send: receive}
}

// TestASilentStreamIsAlive: an idle stream sends a heartbeat with its position every few seconds.
func TestASilentStreamIsAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := &fakeNode{fakeCluster: newFakeCluster(), id: "n1"}
		node.apply(quota.Release{ID: "nobody"})
		var at []time.Time
		var last *quoratev1.WatchEventsResponse
		w := receiver(node, func(m *quoratev1.WatchEventsResponse) error {
			at, last = append(at, time.Now()), m
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), 31*time.Second)
		defer cancel()
		began := time.Now()
		time.AfterFunc(12*time.Second, func() { node.apply(quota.Release{ID: "nobody"}) })
		if err := w.StreamChanges(ctx, cluster.LatestPosition()); err != nil {
			t.Fatal(err)
		}
		if len(at) != 7 || !at[0].Equal(began) || at[6].Sub(began) != 30*time.Second || last.GetIndex() != 2 ||
			last.GetChange().GetKind() != 0 {
			t.Errorf("heartbeats at %v, the last %v", at, last)
		}
	})
}

// TestASlowCallerIsCutOffWhereItCanGoOn: a slow watcher delays no other, and is cut off with its position while the
// feed still has it.
func TestASlowCallerIsCutOffWhereItCanGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := &fakeNode{fakeCluster: newFakeCluster(), id: "n1"}
		burst := func(n int) {
			node.mu.Lock()
			defer node.mu.Unlock()
			node.index++
			for i := range n {
				node.news = append(node.news, cluster.WatchEvent{
					Position: cluster.Position{Index: node.index, Number: uint32(i + 1)},
					Fact:     ledger.Fact{Kind: ledger.FactGranted, Allocation: &ledger.Allocation{}},
				})
			}
		}
		burst(handlers.WatchLag + 1000)
		received := 0
		w := receiver(node, func(*quoratev1.WatchEventsResponse) error {
			if received++; received == 100 {
				burst(2000) // the watcher was slow meanwhile
			}
			return nil
		})
		err := w.StreamChanges(t.Context(), cluster.Position{})
		var failed *connect.Error
		if !errors.As(err, &failed) || failed.Code() != connect.CodeResourceExhausted ||
			problemOf(t, err).GetReason() != "TOO_SLOW" {
			t.Fatalf("got %v", err)
		}
		if want := fmt.Sprintf("after index 1 and number %d,", received); !strings.Contains(failed.Message(), want) {
			t.Errorf("%q does not say %q", failed.Message(), want)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		received = 1000
		if err := w.StreamChanges(ctx, cluster.Position{}); err != nil {
			t.Errorf("a watcher that begins far back and keeps up: %v", err)
		}
	})
}

func TestAllChangesHaveAWord(t *testing.T) {
	seen := map[quoratev1.AllocationChangeKind]bool{
		quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_UNSPECIFIED: true,
	}
	for _, change := range handlers.AllocationChanges {
		seen[change] = true
	}
	if len(seen) != len(quoratev1.AllocationChangeKind_name) {
		t.Errorf("%d changes of %d", len(seen), len(quoratev1.AllocationChangeKind_name))
	}
}
