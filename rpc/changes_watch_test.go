package rpc

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
	quoratev1beta1 "github.com/quorate/quorate/client/gen/quorate/v1beta1"
	"github.com/quorate/quorate/client/gen/quorate/v1beta1/quoratev1beta1connect"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/rpc/handlers"
)

// changeStream is a stream of WatchChanges over HTTP.
type changeStream struct {
	*connect.ServerStreamForClient[quoratev1.WatchChangesResponse]
}

func (d *testServer) watchChanges(t *testing.T, caller as, r *quoratev1.WatchChangesRequest) changeStream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	stream, err := quoratev1connect.NewChangeServiceClient(caller, d.url).WatchChanges(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stream.Close() })
	return changeStream{stream}
}

func (s changeStream) next(t *testing.T, heartbeats bool) *quoratev1.WatchChangesResponse {
	t.Helper()
	for s.Receive() {
		if m := s.Msg(); heartbeats || !m.GetHeartbeat() {
			return m
		}
	}
	t.Fatalf("the stream has ended: %v", s.Err())
	return nil
}

// wantTrees compares what a message says about trees.
func wantTrees(t *testing.T, m *quoratev1.WatchChangesResponse, want ...*quoratev1.TreeChanges) {
	t.Helper()
	if diff := cmp.Diff(want, m.GetTrees(), protocmp.Transform()); diff != "" {
		t.Errorf("the message at index %d differs (-want +got):\n%s", m.GetIndex(), diff)
	}
}

func TestWatchChanges(t *testing.T) {
	t.Parallel()
	d := oneNode(t)
	stream := d.watchChanges(t, "", &quoratev1.WatchChangesRequest{})
	begin := stream.next(t, true)
	if !begin.GetHeartbeat() || begin.GetIndex() != d.node.index || begin.GetServedBy() != "n1" ||
		!begin.GetLeaderKnown() || begin.GetAgeMs() != 7 || begin.GetRevision() != 1 || begin.GetLedgerTimeMs() == 0 {
		t.Errorf("it begins with %v", begin)
	}
	d.hold(t, "a")
	if _, err := d.allocations().Allocate(t.Context(), waitingRequest("b", 0)); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for queue := false; !queue; {
		for _, c := range stream.next(t, false).GetTrees() {
			for _, path := range c.GetNodes() {
				seen[path] = true
			}
			queue = queue || c.GetQueue()
		}
	}
	if !seen[""] || !seen["physics"] || seen["operations"] {
		t.Errorf("named are %v", seen)
	}
	d.node.apply(quota.SetLimits{Tree: "cern", Node: "operations", Limits: []quota.ResourceLimit{
		{Resource: "cores", Limit: quota.AtMost(70)},
	}})
	m := stream.next(t, false)
	wantTrees(t, m, &quoratev1.TreeChanges{Tree: "cern", Nodes: []string{"", "operations"}})
	if !m.GetConfiguration() || m.GetRevision() != 2 || m.GetEverything() || m.GetMembers() {
		t.Errorf("a change of the configuration is %v", m)
	}
}

// TestChangesOnAnotherNode continues on a follower that knows no leader, and then from a position that it forgets.
func TestChangesOnAnotherNode(t *testing.T) {
	follower, leader := twoNodes(t)
	begin := leader.node.index
	leader.hold(t, "a")
	leader.node.lead("")
	m := follower.watchChanges(t, "", &quoratev1.WatchChangesRequest{AfterIndex: begin}).next(t, true)
	wantTrees(t, m, &quoratev1.TreeChanges{Tree: "cern", Nodes: []string{"", "physics"}})
	if m.GetLeaderKnown() || m.GetServedBy() != follower.node.id || !m.GetMembers() {
		t.Errorf("without a leader, and after another node, it says %v", m)
	}
	elsewhere := &quoratev1.WatchChangesRequest{AfterIndex: begin, Trees: []string{"elsewhere"}}
	if m := follower.watchChanges(t, "", elsewhere).next(t, true); len(m.GetTrees()) > 0 {
		t.Errorf("of another tree it says %v", m)
	}
	leader.node.mu.Lock()
	leader.node.ledger.BeginChanges(leader.node.index)
	leader.node.mu.Unlock()
	m = follower.watchChanges(t, "", &quoratev1.WatchChangesRequest{AfterIndex: begin}).next(t, true)
	if !m.GetEverything() || m.GetHeartbeat() || m.GetIndex() != leader.node.index || len(m.GetTrees()) > 0 {
		t.Errorf("after a position that is forgotten it says %v", m)
	}
}

func TestChangesThatCannotBeWatched(t *testing.T) {
	d := oneNode(t)
	for name, trees := range map[string][]string{
		"too many trees": make([]string, 65), "no name": {""}, "twice": {"a", "a"},
	} {
		stream := d.watchChanges(t, "", &quoratev1.WatchChangesRequest{Trees: trees})
		if stream.Receive() || connect.CodeOf(stream.Err()) != connect.CodeInvalidArgument {
			t.Errorf("%s: %v %v", name, stream.Msg(), stream.Err())
		}
	}
}

type followed struct {
	at       []time.Duration
	messages []*quoratev1.WatchChangesResponse
}

// followChanges runs a stream of a node for a while of virtual time, with a caller that needs some time for a message.
func followChanges(t *testing.T, node *fakeNode, after uint64, lasts, each time.Duration) *followed {
	t.Helper()
	f, began := &followed{}, time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	defer cancel()
	stream := &handlers.ChangeFollower{
		Service: handlers.Service{ID: node.id, Node: node},
		Send: func(m *quoratev1.WatchChangesResponse) error {
			f.at, f.messages = append(f.at, time.Since(began)), append(f.messages, m)
			time.Sleep(each)
			return nil
		},
	}
	if err := stream.Follow(ctx, quota.ChangesQuery{After: after}); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *followed) nodes() []string {
	named := map[string]bool{}
	for _, m := range f.messages {
		for _, c := range m.GetTrees() {
			for _, path := range c.GetNodes() {
				named[path] = true
			}
		}
	}
	return slices.Sorted(func(yield func(string) bool) {
		for path := range named {
			if !yield(path) {
				return
			}
		}
	})
}

// busyNode has a tree with some nodes, and grants at them one after the other, 5,000 in a second, after a second.
func busyNode(nodes int) (node *fakeNode, paths []string) {
	node = &fakeNode{fakeCluster: newFakeCluster(), id: "n1"}
	spec := quota.TreeSpec{
		Name: "t", Resources: []quota.Resource{{Name: "cores", Unit: quota.Count}}, Nodes: []quota.NodeSpec{{}},
	}
	paths = append(paths, "")
	for i := range nodes {
		paths = append(paths, fmt.Sprintf("n%02d", i))
		spec.Nodes = append(spec.Nodes, quota.NodeSpec{Path: paths[i+1]})
	}
	node.apply(quota.ApplyTrees{Trees: []quota.TreeSpec{spec}})
	go func() {
		time.Sleep(time.Second)
		for i := range 5_000 {
			node.apply(quota.Allocate{ID: fmt.Sprint(i), Claims: []quota.Claim{{
				Tree: "t", Node: paths[1+i%nodes], Amounts: quota.Vector{{Resource: "cores", Amount: 1}},
			}}})
			time.Sleep(200 * time.Microsecond)
		}
	}()
	return node, paths
}

// TestChangesUnderLoad: however much is granted, there are four messages a second, and they name every node.
func TestChangesUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node, paths := busyNode(50)
		f := followChanges(t, node, 0, 3*time.Second, 0)
		if !slices.Equal(f.nodes(), paths) {
			t.Errorf("named are %q", f.nodes())
		}
		if n := len(f.messages); n < 5 || n > 6 {
			t.Errorf("%d messages at %v", n, f.at)
		}
		if first := f.at[1] - time.Second; first < 0 || first > 50*time.Millisecond {
			t.Errorf("the first change is sent %v after it", first)
		}
		for i := 2; i < len(f.at); i++ {
			if f.at[i]-f.at[i-1] < 250*time.Millisecond {
				t.Errorf("two messages at %v and %v", f.at[i-1], f.at[i])
			}
		}
		if last := f.messages[len(f.messages)-1]; last.GetIndex() != node.index {
			t.Errorf("the last message is at %d, the log at %d", last.GetIndex(), node.index)
		}
	})
}

// TestChangesForASlowCaller: what happens while a message is received is in the next one.
func TestChangesForASlowCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node, paths := busyNode(50)
		f := followChanges(t, node, 0, 3*time.Second, 1200*time.Millisecond)
		if !slices.Equal(f.nodes(), paths) || len(f.messages) > 3 {
			t.Errorf("%d messages name %q", len(f.messages), f.nodes())
		}
	})
}

// TestManyChanges: beyond the bound, nodes are not named.
func TestManyChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node, _ := busyNode(quota.MaxChangedNodes)
		f := followChanges(t, node, 0, 3*time.Second, 500*time.Millisecond)
		if c := f.messages[len(f.messages)-1].GetTrees(); len(c) != 1 || !c[0].GetMany() || len(c[0].GetNodes()) > 0 {
			t.Errorf("%d messages, the last says %v", len(f.messages), c)
		}
	})
}

// TestSilentChanges: a stream of a quiet node has heartbeats, and says when the leader or the members have changed.
func TestSilentChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := &fakeNode{fakeCluster: newFakeCluster(), id: "n1"}
		go func() {
			time.Sleep(12 * time.Second)
			node.mu.Lock()
			node.members = []cluster.Member{{ID: "n1", Voter: true}}
			node.mu.Unlock()
			node.lead("n1")
		}()
		f := followChanges(t, node, 0, 20*time.Second, 0)
		var texts []string
		for i, m := range f.messages {
			if i > 0 && f.at[i]-f.at[i-1] > 5*time.Second {
				t.Errorf("silence from %v to %v", f.at[i-1], f.at[i])
			}
			if m.GetHeartbeat() != !m.GetMembers() {
				t.Errorf("it says %v", m)
			}
			texts = append(texts, fmt.Sprintf("%v leader %t members %t", f.at[i].Round(time.Second), m.GetLeaderKnown(),
				m.GetMembers()))
		}
		if want := []string{
			"0s leader false members false", "4s leader false members false", "8s leader false members false",
			"12s leader true members true", "16s leader true members false",
		}; !slices.Equal(texts, want) {
			t.Errorf("got %q, want %q", texts, want)
		}
	})
}

// TestChangesAfterAPositionAhead: a position that the node does not reach is given up.
func TestChangesAfterAPositionAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := &fakeNode{fakeCluster: newFakeCluster(), id: "n1"}
		node.apply(quota.Release{ID: "nothing"})
		f := followChanges(t, node, 1000, 14*time.Second, 0)
		i := slices.IndexFunc(f.messages, (*quoratev1.WatchChangesResponse).GetEverything)
		if i < 1 || f.at[i] < 10*time.Second || f.messages[i].GetIndex() != 1 {
			t.Errorf("at %v there are %v", f.at, f.messages)
		}
	})
}

// TestChangesShowWhatTheCallerSees has a caller who may read usage at one of two nodes.
func TestChangesShowWhatTheCallerSees(t *testing.T) {
	t.Parallel()
	d := oneNode(t)
	d.node.bookWith(t, access.Guarded)
	spec, refused := d.node.ledger.Reader().Tree("cern")
	if refused != nil {
		t.Fatal(refused)
	}
	i := slices.IndexFunc(spec.Nodes, func(n quota.NodeSpec) bool { return n.Path == "physics" })
	spec.Nodes[i].Bindings = []access.Binding{
		{Role: "viewer", To: []access.Subject{{Kind: access.AccountSubject, Name: "plain"}}},
	}
	d.node.apply(quota.ApplyTrees{Trees: []quota.TreeSpec{spec}})
	begin := d.node.index
	for i, node := range []string{"physics/higgs", "operations"} {
		d.node.apply(quota.Allocate{ID: fmt.Sprint(i), Claims: []quota.Claim{
			{Tree: "cern", Node: node, Amounts: quota.Vector{{Resource: "cores", Amount: 1}}},
		}})
	}
	d.node.members = append(d.node.members, cluster.Member{ID: "n2"})
	for token, want := range map[access.TokenID]struct {
		nodes   []string
		members bool
	}{
		adminToken: {[]string{"", "operations", "physics", "physics/higgs"}, true},
		plainToken: {[]string{"", "physics", "physics/higgs"}, false}, operatorToken: {nil, true},
	} {
		m := d.watchChanges(t, byToken(token), &quoratev1.WatchChangesRequest{AfterIndex: begin}).next(t, true)
		if len(want.nodes) == 0 {
			wantTrees(t, m)
		} else {
			wantTrees(t, m, &quoratev1.TreeChanges{Tree: "cern", Nodes: want.nodes})
		}
		if m.GetMembers() != want.members {
			t.Errorf("%v is told that members have changed: %v", token, m.GetMembers())
		}
	}
}

// TestChangesTellOfLimitRequests: those who see a request for limits are told of it, and others are not.
func TestChangesTellOfLimitRequests(t *testing.T) {
	t.Parallel()
	d := oneNode(t)
	d.node.bookWith(t, access.Guarded)
	begin := d.node.index
	requests := quoratev1beta1connect.NewLimitRequestServiceClient(admin, d.url)
	_, err := requests.RequestLimits(t.Context(), &quoratev1beta1.RequestLimitsRequest{
		Tree: "cern", Node: "physics", Reason: "a campaign",
		Limits: map[string]*quoratev1.Limit{"cores": {Value: &quoratev1.Limit_Amount{Amount: 90}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for caller, want := range map[as]bool{admin: true, byToken(plainToken): false} {
		m := d.watchChanges(t, caller, &quoratev1.WatchChangesRequest{AfterIndex: begin}).next(t, true)
		if m.GetLimitRequests() != want || m.GetHeartbeat() == want || m.GetConfiguration() || len(m.GetTrees()) > 0 {
			t.Errorf("%s is told %v", caller, m)
		}
	}
}

// TestChangesEndWithTheCredential: a stream ends when its token is revoked.
func TestChangesEndWithTheCredential(t *testing.T) {
	d := accessNode(t, access.Guarded)
	stream := d.watchChanges(t, byToken(plainToken), &quoratev1.WatchChangesRequest{})
	stream.next(t, true)
	d.node.changeBook(t, access.RevokeToken{ID: plainToken})
	for stream.Receive() {
		if m := stream.Msg(); len(m.GetTrees()) > 0 {
			t.Errorf("it is told %v", m)
		}
	}
	if connect.CodeOf(stream.Err()) != connect.CodeUnauthenticated {
		t.Errorf("the stream ends with %v", stream.Err())
	}
}
