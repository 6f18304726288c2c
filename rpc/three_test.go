package rpc

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/rpc/relay"
)

// threeNodes is a cluster of three real nodes with their servers, in one process and in real time.
type threeNodes struct {
	*clustertest.Cluster

	addresses map[string]string // callers read them while nodes restart again
	listeners map[string]net.Listener
	servers   map[string]*Server
}

func startThreeNodes(t *testing.T) *threeNodes {
	t.Helper()
	s := &threeNodes{
		addresses: map[string]string{}, listeners: map[string]net.Listener{}, servers: map[string]*Server{},
	}
	for _, id := range []string{"n1", "n2", "n3"} {
		s.listeners[id] = listenLow(t)
		s.addresses[id] = s.listeners[id].Addr().String()
	}
	s.Cluster = clustertest.Start(t, 3, clustertest.WithConfig(func(c *cluster.Config) {
		c.HTTPAdvertise = s.addresses[c.ID]
	}))
	for _, n := range s.Nodes() {
		s.serve(t, n)
	}
	if _, err := s.client("n1").ListAllocations(t.Context(), &quoratev1.ListAllocationsRequest{}); err != nil {
		t.Fatal(err)
	}
	trees := quoratev1connect.NewTreeServiceClient(overHTTP2, s.url("n1"))
	if _, err := trees.ApplyTrees(t.Context(),
		&quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{cern()}}); err != nil {
		t.Fatal(err)
	}
	return s
}

// listenLow uses a port below the range of outgoing connections, so that a restarted server finds its port free.
func listenLow(t *testing.T) net.Listener {
	t.Helper()
	for range 1000 {
		if listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 2_000+rand.IntN(1_000))); err == nil {
			return listener
		}
	}
	t.Fatal("no port from 2000 to 2999 is free")
	return nil
}

func (s *threeNodes) serve(t *testing.T, n *cluster.Node) {
	t.Helper()
	registry := prometheus.NewRegistry()
	server, err := New(Config{
		Node: n, ClusterName: "test", Logger: hclog.NewNullLogger(),
		Metrics: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), Registerer: registry,
		Backups: n, PeerSilence: longSilence,
	})
	if err != nil {
		t.Fatal(err)
	}
	id := n.Status().ID
	n.SetRemoteReadIndex(server.RemoteReadIndex)
	n.SetPeerClient(server)
	s.servers[id] = server
	go func() { _ = server.Serve(s.listeners[id]) }()
	t.Cleanup(func() { _ = server.http.Close(); server.transport.CloseIdleConnections() })
}

// kill stops a node and its server without a graceful shutdown.
func (s *threeNodes) kill(id string) {
	s.Crash(id)
	_ = s.servers[id].http.Close()
}

func (s *threeNodes) url(id string) string { return "http://" + s.addresses[id] }

func (s *threeNodes) client(id string) allocationCalls {
	return allocationCallsOf(overHTTP2, s.url(id))
}

// insist calls the nodes in turn until the request is decided, as clients do. A lease that was granted while there was
// no leader lasts as long as it should once its caller has asked again.
func (s *threeNodes) insist(
	ctx context.Context, from int, r *quoratev1.AllocateRequest,
) (*quoratev1.AllocateResponse, error) {
	for i := from; ; i++ {
		answer, err := s.client(fmt.Sprint("n", i%3+1)).Allocate(ctx, r)
		waits := err == nil && (answer.GetAllocation().GetState() == quoratev1.AllocationState_ALLOCATION_STATE_WAITING ||
			leftOf(answer) < r.GetTtlMs()/2)
		if !waits && connect.CodeOf(err) != connect.CodeUnavailable || !relay.SleepContext(ctx, relay.RelayPause) {
			return answer, err
		}
	}
}

func (s *threeNodes) follower() string { return s.Followers()[0].Status().ID }

// TestWaitingAndWatchingWhileLeadersDie: three requests wait at different nodes and the leader is killed twice. They
// are granted in order, once each, and a watcher that continues at another node sees the same changes.
func TestWaitingAndWatchingWhileLeadersDie(t *testing.T) {
	s := startThreeNodes(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	all := func(id string) *quoratev1.AllocateRequest {
		r := request(id, "cern:physics", 20)
		r.Mode, r.TtlMs, r.PollMs = quoratev1.Mode_MODE_WAIT, 600_000, 20_000
		return r
	}
	first, err := s.client(s.follower()).Allocate(ctx, all("w0"))
	if err != nil || first.GetAllocation().GetFence() == 0 {
		t.Fatalf("got %v, %v", first, err)
	}
	granted := make(chan *quoratev1.AllocateResponse, 3)
	for i := 1; i <= 3; i++ {
		go func() {
			answer, err := s.insist(ctx, i, all(fmt.Sprint("w", i)))
			if err != nil {
				t.Errorf("w%d: %v", i, err)
			}
			granted <- answer
		}()
		s.Eventually("the request waits", func() bool {
			page, err := s.client(s.follower()).ListWaiting(ctx, &quoratev1.ListWaitingRequest{})
			return err == nil && len(page.GetRequests()) == i
		})
	}
	watched := s.watch(t, ctx, first.GetWrite().GetIndex())
	dead := s.Leader().Status().ID
	s.kill(dead)
	s.release(ctx, t, "w0")
	wantNext(t, granted, "w1")
	s.restart(t, dead)
	s.release(ctx, t, "w1")
	wantNext(t, granted, "w2")
	s.kill(s.Leader().Status().ID)
	s.release(ctx, t, "w2")
	wantNext(t, granted, "w3")
	want := "w1 waiting, w2 waiting, w3 waiting, w0 ended, w1 granted, w1 ended, w2 granted, w2 ended, w3 granted"
	if got := <-watched; got != want {
		t.Errorf("the watch saw %s; want %s", got, want)
	}
}

func leftOf(answer *quoratev1.AllocateResponse) int64 {
	return answer.GetAllocation().GetExpiresLedgerMs() - answer.GetWrite().GetLedgerTimeMs()
}

func wantNext(t *testing.T, granted <-chan *quoratev1.AllocateResponse, id string) {
	t.Helper()
	answer := <-granted
	left := leftOf(answer)
	if answer.GetAllocation().GetId() != id || answer.GetDecision().GetOutcome() != quoratev1.Outcome_OUTCOME_GRANTED ||
		left < 500_000 {
		t.Errorf("the next to be granted is %v with %d ms, want %s", answer.GetAllocation(), left, id)
	}
}

func (s *threeNodes) release(ctx context.Context, t *testing.T, id string) {
	t.Helper()
	s.Eventually("a release", func() bool {
		n := s.Nodes()[0].Status().ID
		_, err := s.client(n).Release(ctx, &quoratev1.ReleaseRequest{Id: id})
		return err == nil
	})
}

func (s *threeNodes) restart(t *testing.T, id string) {
	t.Helper()
	listener, err := net.Listen("tcp", s.addresses[id])
	if err != nil {
		t.Fatal(err)
	}
	s.listeners[id] = listener
	s.serve(t, s.StartNode(id))
	s.AwaitConverged()
}

// watch follows all changes after an index, on any node that serves, until w3 is granted, and returns the changes.
//
//nolint:revive // t goes first here
func (s *threeNodes) watch(t *testing.T, ctx context.Context, after uint64) <-chan string {
	t.Helper()
	changes, begun := make(chan string, 1), make(chan struct{})
	begin := s.Leader().Status().ID // this is the node to kill
	go func() {
		r := &quoratev1.WatchEventsRequest{AfterIndex: after, Tree: "cern"}
		var words []string
		var tell sync.Once
		nodes := []string{begin, "n1", "n2", "n3"}
		for i := 0; ctx.Err() == nil && !slices.Contains(words, "w3 granted"); i++ {
			stream, err := s.client(nodes[i%len(nodes)]).WatchEvents(ctx, r)
			for err == nil && stream.Receive() {
				m := stream.Msg()
				r.AfterIndex, r.AfterNumber = m.GetIndex(), m.GetNumber()
				if m.GetChange().GetAllocation() != nil {
					words = append(words, m.GetChange().GetAllocation().GetId()+" "+
						strings.ToLower(strings.TrimPrefix(m.GetChange().GetKind().String(), "ALLOCATION_CHANGE_KIND_")))
				}
				if len(words) == 3 {
					tell.Do(func() { close(begun) })
				}
				if slices.Contains(words, "w3 granted") {
					_ = stream.Close()
					break
				}
			}
			relay.SleepContext(ctx, relay.RelayPause)
		}
		changes <- strings.Join(words, ", ")
	}()
	<-begun
	return changes
}
