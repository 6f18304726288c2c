package rpc

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	dto "github.com/prometheus/client_model/go"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/rpc/procedures"
	"github.com/quorate/quorate/rpc/relay"
	"github.com/quorate/quorate/rpc/wire"
)

// twoNodes starts a cluster of two nodes; the second is the leader.
func twoNodes(t *testing.T) (follower, leader *testServer) {
	t.Helper()
	c := newFakeCluster()
	follower, leader = openServer(t, c, "n1"), openServer(t, c, "n2")
	c.lead("n2")
	leader.applyCERN(t)
	return follower, leader
}

// streamingNodes are two nodes with an open stream for calls from the follower to the leader.
func streamingNodes(t *testing.T) (follower, leader *testServer) {
	t.Helper()
	_, servers := wired(t, "n1", "n2")
	follower, leader = servers["n1"], servers["n2"]
	eventually(t, "a stream is open", func() bool {
		_, err := follower.allocations().Allocate(t.Context(), request("not an id", "cern:physics", 1))
		return connect.CodeOf(err) == connect.CodeInvalidArgument && streamedCalls(t, follower) > 0
	})
	return follower, leader
}

// streamedCalls is how many calls a follower has relayed over streams.
func streamedCalls(t *testing.T, follower *testServer) int {
	t.Helper()
	count := &dto.Metric{}
	if err := follower.metrics.Streamed.Write(count); err != nil {
		t.Fatal(err)
	}
	return int(count.GetCounter().GetValue())
}

type startNodes func(*testing.T) (follower, leader *testServer)

// inBothWays runs a test with calls that are relayed each on its own, and over a stream.
func inBothWays(t *testing.T, test func(*testing.T, startNodes)) {
	t.Helper()
	t.Run("alone", func(t *testing.T) { test(t, twoNodes) })
	t.Run("streamed", func(t *testing.T) { test(t, streamingNodes) })
}

func TestFollowerRelaysWritesInEveryProtocol(t *testing.T) {
	t.Parallel()
	inBothWays(t, testRelaysInEveryProtocol)
}

func testRelaysInEveryProtocol(t *testing.T, nodes startNodes) {
	t.Helper()
	for name, options := range protocols {
		t.Run(name, func(t *testing.T) {
			follower, leader := nodes(t)
			client := follower.allocations(options...)
			granted, err := client.Allocate(t.Context(), request("a", "cern:physics", 20))
			if err != nil || granted.GetAllocation().GetFence() != 1 {
				t.Fatalf("granted %v, %v", granted, err)
			}
			_, err = client.Allocate(t.Context(), request("b", "cern:physics", 1))
			decision, ok := detailOf[*quoratev1.Decision](err)
			if connect.CodeOf(err) != connect.CodeResourceExhausted || !ok ||
				decision.GetViolations()[0].GetNode() != "physics" {
				t.Errorf("denied %v", err)
			}
			bad := request("c d", "cern", 1)
			if _, err = client.Allocate(t.Context(), bad); connect.CodeOf(err) != connect.CodeInvalidArgument ||
				problemOf(t, err).GetField() != "id" {
				t.Errorf("invalid %v", err)
			}
			for _, asked := range []*testServer{follower, leader} {
				read, err := asked.allocations(options...).GetAllocation(t.Context(),
					&quoratev1.GetAllocationRequest{Id: "a"})
				if err != nil || read.GetRead().GetServedBy() != asked.id {
					t.Errorf("a read on %s: %v, %v", asked.id, read, err)
				}
			}
		})
	}
}

func TestCurlIsRelayed(t *testing.T) {
	follower, _ := twoNodes(t)
	body := `{"id":"a","claims":[{"tree":"cern","node":"physics","amounts":{"cores":"21"}}]}`
	if got := send(t, "POST", follower.url+allocatePath, body); got.status != 429 ||
		!strings.Contains(got.body, `"missing":"1"`) {
		t.Errorf("got %v", got)
	}
	if got := send(t, "GET", follower.url+"/metrics", ""); !strings.Contains(got.body, "quorate_rpc_relayed_total 1") {
		t.Errorf("the relay was not counted")
	}
}

func TestNoNodeRelaysTwice(t *testing.T) {
	follower, leader := twoNodes(t)
	for name, options := range map[string][]connect.ClientOption{
		"connect": nil, "grpc": {connect.WithGRPC()},
		"grpc-web": {connect.WithGRPCWeb()},
	} {
		marked := connect.WithInterceptors(connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
			return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
				r.Header().Set(wire.RelayedByHeader, "n9")
				return next(ctx, r)
			}
		}))
		_, err := follower.allocations(append(options, marked)...).Allocate(t.Context(), request("a", "cern", 1))
		if p := problemOf(t, err); connect.CodeOf(err) != connect.CodeUnavailable || p.GetReason() != "NOT_LEADER" ||
			!p.GetNotApplied() {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if leader.node.index != 1 {
		t.Error("the call went on to the leader")
	}
}

func TestCallWaitsForALeader(t *testing.T) {
	follower, leader := twoNodes(t)
	leader.node.lead("")
	answered := make(chan error, 1)
	go func() {
		_, err := follower.allocations().Allocate(t.Context(), request("a", "cern", 1))
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Fatalf("answered without a leader: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	leader.node.lead("n2")
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

func TestWaitingNodeBecomesTheLeader(t *testing.T) {
	follower, leader := twoNodes(t)
	leader.node.lead("")
	answered := make(chan error, 1)
	go func() {
		_, err := follower.allocations().Allocate(t.Context(), request("a", "cern", 1))
		answered <- err
	}()
	leader.node.lead("n1")
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

func TestNoLeaderIsUnavailableWithinTheCallersDeadline(t *testing.T) {
	follower, leader := twoNodes(t)
	leader.node.lead("")
	for name, options := range map[string][]connect.ClientOption{
		"connect": nil, "grpc": {connect.WithGRPC()},
		"grpc-web": {connect.WithGRPCWeb()},
	} {
		for kind, call := range map[string]func(context.Context) error{
			"write": func(ctx context.Context) error {
				_, err := follower.allocations(options...).Allocate(ctx, request("a", "cern", 1))
				return err
			},
			"read": func(ctx context.Context) error {
				_, err := follower.allocations(options...).GetAllocation(ctx, &quoratev1.GetAllocationRequest{Id: "a"})
				return err
			},
		} {
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				err := answerBefore(t, 2*time.Second, call)
				if connect.CodeOf(err) != connect.CodeUnavailable || !strings.Contains(err.Error(), "no leader") {
					t.Fatalf("got %v", err)
				}
				if p := problemOf(t, err); p.GetReason() != "NO_LEADER" || !p.GetNotApplied() {
					t.Errorf("got %v", p)
				}
			})
		}
	}
}

func TestDeadLeaderIsGivenUpForTheNextOne(t *testing.T) {
	c := newFakeCluster()
	follower, next := openServer(t, c, "n1"), openServer(t, c, "n3")
	c.members = append(c.members, cluster.Member{ID: "n2", HTTPAddr: closedPort(t)})
	c.lead("n3")
	next.applyCERN(t)
	c.lead("n2") // stopped, but still considered the leader
	answered := make(chan error, 1)
	go func() {
		_, err := follower.allocations(connect.WithGRPC()).Allocate(t.Context(), request("a", "cern", 1))
		answered <- err
	}()
	time.Sleep(3 * relay.RelayPause)
	c.lead("n3")
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

// answerBefore returns the error of a call that a node answers shortly before the deadline. A busy machine may be late,
// but not ten times in a row.
func answerBefore(t *testing.T, deadline time.Duration, call func(context.Context) error) (err error) {
	t.Helper()
	for range 10 {
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		err = call(ctx)
		late := ctx.Err() != nil
		cancel()
		if !late {
			return err
		}
	}
	return err
}

func TestLeaderThatCannotBeReached(t *testing.T) {
	t.Parallel()
	c := newFakeCluster()
	follower := openServer(t, c, "n1")
	c.members = append(c.members, cluster.Member{ID: "n2", HTTPAddr: closedPort(t)}, cluster.Member{ID: "n3"})
	for id, says := range map[string]string{"n2": "refused", "n3": "not known yet"} {
		c.lead(id)
		err := answerBefore(t, 2*time.Second, func(ctx context.Context) error {
			_, err := follower.allocations().Allocate(ctx, request("a", "cern", 1))
			return err
		})
		if p := problemOf(t, err); connect.CodeOf(err) != connect.CodeUnavailable || !p.GetNotApplied() ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("leader %s: got %v", id, err)
		}
	}
}

func closedPort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// TestLeaderDiesMidCall: the connection breaks after the request was sent, so its outcome is unknown.
func TestLeaderDiesMidCall(t *testing.T) {
	for name, die := range map[string]http.HandlerFunc{
		"before it answers": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"in the middle of its answer": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/proto")
			w.WriteHeader(http.StatusOK)
			_, _ = io.WriteString(w, "half")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
	} {
		for protocol, options := range map[string][]connect.ClientOption{"connect": nil, "grpc": {connect.WithGRPC()}} {
			t.Run(name+" "+protocol, func(t *testing.T) {
				c := newFakeCluster()
				follower := openServer(t, c, "n1")
				c.members = append(c.members, cluster.Member{ID: "n2", HTTPAddr: serveHTTP2(t, die)})
				c.lead("n2")
				_, err := follower.allocations(options...).Allocate(t.Context(), request("a", "cern", 1))
				p := problemOf(t, err)
				if connect.CodeOf(err) != connect.CodeUnavailable || p.GetNotApplied() ||
					p.GetReason() != "LEADERSHIP_LOST" {
					t.Fatalf("got %v, %v", err, p)
				}
				if !strings.Contains(err.Error(), "repeat it under the same id") {
					t.Errorf("got %v", err)
				}
			})
		}
	}
}

// serveHTTP2 starts an HTTP/2 server with a handler of the test.
func serveHTTP2(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: handler, Protocols: protocols, ReadHeaderTimeout: time.Second}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { _ = server.Close() })
	return listener.Addr().String()
}

// TestDeposedLeaderIsAskedOnce: the node that gossip names as leader was deposed and refuses the call before executing
// it.
func TestDeposedLeaderIsAskedOnce(t *testing.T) { inBothWays(t, testDeposedLeaderIsAskedOnce) }

func testDeposedLeaderIsAskedOnce(t *testing.T, nodes startNodes) {
	t.Helper()
	for name, options := range map[string][]connect.ClientOption{"connect": nil, "grpc": {connect.WithGRPC()}} {
		t.Run(name, func(t *testing.T) {
			follower, leader := nodes(t)
			refused := 0
			leader.node.proposing = func(context.Context) error {
				if refused++; refused < 3 {
					return &cluster.Error{Reason: cluster.NotLeader, NotApplied: true, Text: "n2 was deposed"}
				}
				return nil
			}
			if _, err := follower.allocations(options...).Allocate(t.Context(), request("a", "cern", 1)); err != nil {
				t.Error(err)
			}
			if leader.node.index != 2 || refused != 3 {
				t.Errorf("carried out %d times after %d attempts", leader.node.index-1, refused)
			}
		})
	}
}

// TestTheRelayingNodeComesToLead: the leadership moves to the node that relays the call, which then executes the whole
// request itself.
func TestTheRelayingNodeComesToLead(t *testing.T) { inBothWays(t, testTheRelayingNodeComesToLead) }

func testTheRelayingNodeComesToLead(t *testing.T, nodes startNodes) {
	t.Helper()
	for name, options := range map[string][]connect.ClientOption{"connect": nil, "grpc": {connect.WithGRPC()}} {
		t.Run(name, func(t *testing.T) {
			follower, leader := nodes(t)
			leader.node.proposing = func(context.Context) error {
				leader.node.lead("n1")
				return &cluster.Error{Reason: cluster.NotLeader, NotApplied: true, Text: "n2 was deposed"}
			}
			if _, err := follower.allocations(options...).Allocate(t.Context(), request("a", "cern", 1)); err != nil {
				t.Error(err)
			}
			if leader.node.index != 2 {
				t.Errorf("carried out %d times", leader.node.index-1)
			}
		})
	}
}

func TestLostLeadershipIsTheCallersToRepeat(t *testing.T) {
	t.Parallel()
	inBothWays(t, testLostLeadershipIsTheCallersToRepeat)
}

func testLostLeadershipIsTheCallersToRepeat(t *testing.T, nodes startNodes) {
	t.Helper()
	follower, leader := nodes(t)
	attempts := 0
	leader.node.proposing = func(context.Context) error {
		attempts++
		return &cluster.Error{Reason: cluster.LeadershipLost, Text: "n2 lost the leadership"}
	}
	_, err := follower.allocations().Allocate(t.Context(), request("a", "cern", 1))
	if connect.CodeOf(err) != connect.CodeUnavailable || problemOf(t, err).GetNotApplied() || attempts != 1 {
		t.Errorf("after %d attempts: %v", attempts, err)
	}
}

func TestPeersAskTheLeaderForAnIndex(t *testing.T) {
	follower, leader := twoNodes(t)
	member, _ := follower.node.Leader()
	index, at, err := follower.RemoteReadIndex(t.Context(), member)
	if err != nil || index != leader.node.index || at != leader.node.LedgerTime() {
		t.Errorf("got %d, %d, %v", index, at, err)
	}
	own, _ := leader.node.find("n1")
	var failed *cluster.Error
	if _, _, err = leader.RemoteReadIndex(t.Context(), own); !errors.As(err, &failed) ||
		failed.Reason != cluster.NotLeader {
		t.Errorf("a follower confirmed: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err = follower.RemoteReadIndex(ctx, member); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestProceduresAreLearnt(t *testing.T) {
	known, err := procedures.New()
	if err != nil {
		t.Fatal(err)
	}
	for path, changes := range map[string]bool{
		"/quorate.v1.AllocationService/Allocate": true, "/quorate.v1.AllocationService/BatchAllocate": true,
		"/quorate.v1.AllocationService/Release": true,
		"/quorate.v1.AllocationService/Resize":  true, "/quorate.v1.AllocationService/Transfer": true,
		"/quorate.v1.AllocationService/Split":        true,
		"/quorate.v1.AllocationService/BatchRelease": true,
		"/quorate.v1.TreeService/ApplyTrees":         true, "/quorate.v1.TreeService/SetLimits": true,
		"/quorate.v1.TreeService/DeleteTree":         true,
		"/quorate.v1.TreeService/MoveNode":           true,
		"/quorate.admin.v1.CordonService/CordonNode": true, "/quorate.admin.v1.CordonService/UncordonNode": true,
		"/quorate.admin.v1.CordonService/ListCordons":          false,
		"/quorate.admin.v1.ConfigurationService/ParseManifest": false,
		"/quorate.admin.v1.ConfigurationService/RollBack":      true,
		"/quorate.v1.AllocationService/Confirm":                true, "/quorate.v1.AllocationService/Cancel": true,
		"/quorate.v1.AllocationService/Explain": false,
		"/quorate.v1.AllocationService/Renew":   true, "/quorate.v1.AllocationService/BatchRenew": true,
		"/quorate.v1.AllocationService/ListWaiting": false,
		"/quorate.v1.EventService/WatchEvents":      false, "/quorate.v1.ItemService/UpdateItems": true,
		"/quorate.v1.ItemService/ResetItems": true,
		"/quorate.v1.ItemService/ListItems":  false, "/quorate.v1.ItemService/CountItems": false,
		"/quorate.v1beta1.ActivityService/GetActivity": false, "/quorate.v1.ChangeService/WatchChanges": false,
		"/quorate.v1.EventService/ListEvents": false, "/quorate.admin.v1.ConfigurationService/GetConfiguration": false,
		"/quorate.v1.TreeService/ListPrincipals": false,
		"/quorate.v1.TreeService/GetUsage":       false, "/quorate.v1.AllocationService/GetAllocation": false,
		"/quorate.admin.v1.ClusterService/GetStatus": false,
		"/quorate.admin.v1.ClusterService/GetLevel":  false, "/quorate.admin.v1.ClusterService/RaiseLevel": true,
		"/quorate.admin.v1.ClusterService/Checkpoint":   true,
		"/quorate.admin.v1.DebugService/GetDiagnostics": false,
		"/quorate.admin.v1.ClusterService/JoinMember":   true, "/quorate.admin.v1.ClusterService/RemoveMember": true,
		"/quorate.admin.v1.ClusterService/ListMembers": false,
		"/quorate.peer.v1.PeerService/ReadIndex":       false, "/quorate.peer.v1.PeerService/Notify": false,
		"/quorate.admin.v1.AccessService/CreateToken": true, "/quorate.v1.IdentityService/CanI": false,
		"/nothing": false,
		// the node finds the new leader by itself
		"/quorate.admin.v1.SnapshotService/Save": false, "/quorate.admin.v1.SnapshotService/Restore": false,
	} {
		if known[path].ChangesState != changes {
			t.Errorf("%s changes: %v", path, !changes)
		}
	}
	for path, streams := range map[string]bool{
		"/quorate.v1.EventService/WatchEvents": true, "/quorate.v1.AllocationService/Allocate": false,
		"/quorate.v1.ChangeService/WatchChanges":       true,
		"/quorate.v1.AllocationService/AllocateStream": true,
		"/quorate.admin.v1.SnapshotService/Save":       true, "/quorate.admin.v1.SnapshotService/Restore": true,
	} {
		if known[path].Streams != streams {
			t.Errorf("%s streams: %v", path, !streams)
		}
	}
	if len(known) < 60 { // what counts is that all files are read
		t.Errorf("there are %d procedures: %s", len(known), slices.Sorted(maps.Keys(known)))
	}
}
