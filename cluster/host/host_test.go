package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/cluster/host"
	"github.com/quorate/quorate/internal/servertest"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// patience is the timeout of operations, long enough for a busy machine.
const patience = time.Minute

func freeAddress(t *testing.T) string {
	t.Helper()
	return servertest.FreePorts(t, 1)[0]
}

type testCluster struct {
	t       *testing.T
	configs []cluster.Config
	mu      sync.Mutex // while nodes change
	nodes   []*cluster.Node
	log     logLines
}

type logLines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logLines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newTestCluster(t *testing.T, size int) *testCluster {
	t.Helper()
	s := &testCluster{t: t}
	var join []string
	for i := range size {
		c := cluster.Config{
			ID: fmt.Sprintf("n%d", i+1), ClusterName: "site", DataDir: filepath.Join(t.TempDir(), "data"),
			RaftAddr: freeAddress(t), GossipAddr: freeAddress(t), HTTPAdvertise: "127.0.0.1:1", BootstrapExpect: size,
			Logger: hclog.New(&hclog.LoggerOptions{Output: &s.log, Level: hclog.Info}), Version: "test",
		}
		join = append(join, c.GossipAddr)
		s.configs = append(s.configs, c)
	}
	for i := range s.configs {
		s.configs[i].Join = join
	}
	t.Cleanup(s.stopAll)
	return s
}

func (s *testCluster) startAll() {
	s.t.Helper()
	for _, c := range s.configs {
		n, err := host.Open(s.t.Context(), c)
		if err != nil {
			s.t.Fatal(err)
		}
		n.SetRemoteReadIndex(func(ctx context.Context, leader cluster.Member) (uint64, quota.Instant, error) {
			for _, peer := range s.running() {
				if peer.IsLeader() {
					index, err := peer.ReadIndex(ctx)
					return index, 0, err
				}
			}
			return 0, 0, errors.New("there is no leader")
		})
		s.mu.Lock()
		s.nodes = append(s.nodes, n)
		s.mu.Unlock()
		n.SetPeerClient(s)
	}
}

// running returns the nodes that have been started and not stopped; those started first already ask it while the others
// start.
func (s *testCluster) running() []*cluster.Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.nodes)
}

// Status returns the status of a node of the cluster.
func (s *testCluster) Status(_ context.Context, m cluster.Member) (cluster.NodeStatus, error) {
	for _, n := range s.running() {
		if standing := n.Status(); standing.ID == m.ID {
			return standing, nil
		}
	}
	return cluster.NodeStatus{}, errors.New(m.ID + " does not run")
}

// Notify does nothing: the members of the cluster do not change.
func (s *testCluster) Notify(context.Context, cluster.Member, cluster.Notice) error { return nil }

func (s *testCluster) stopAll() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, n := range s.running() {
		if err := n.Shutdown(ctx); err != nil {
			s.t.Error(err)
		}
	}
	s.mu.Lock()
	s.nodes = nil
	s.mu.Unlock()
	if s.t.Failed() {
		s.t.Log(s.log.String())
	}
}

func (s *testCluster) awaitReady() {
	s.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		var missing error
		for _, n := range s.nodes {
			missing = errors.Join(missing, n.Ready())
		}
		if missing == nil {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("not ready within %v: %v", patience, missing)
		}
	}
}

func (s *testCluster) mustWrite(command quota.Command) ledger.Outcome {
	s.t.Helper()
	for _, n := range s.nodes {
		if !n.IsLeader() {
			continue
		}
		outcome, err := clustertest.Propose(n, command)
		if err != nil {
			s.t.Fatal(err)
		}
		return outcome
	}
	s.t.Fatal("there is no leader")
	return ledger.Outcome{}
}

func (s *testCluster) mustRead() {
	s.t.Helper()
	for _, n := range s.nodes {
		if used, _, err := clustertest.ReadUsed(n, cluster.ReadOptions{}); err != nil || used != 3 {
			s.t.Errorf("%s reads %d, %v; want 3", n.Status().ID, used, err)
		}
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		wrong := s.incompleteMembers()
		if wrong == "" {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("after %v %s", patience, wrong)
		}
	}
}

// incompleteMembers names a member that a node does not know completely: the feature level of a member is only known
// after it was asked for it.
func (s *testCluster) incompleteMembers() string {
	for _, n := range s.nodes {
		members := n.Members()
		for _, m := range members {
			if !m.Voter || !m.Alive || m.HTTPAddr == "" || m.Version != "test" || m.FeatureLevel == 0 {
				return fmt.Sprintf("%s knows %+v", n.Status().ID, m)
			}
		}
		if len(members) != len(s.configs) {
			return fmt.Sprintf("%s knows %d members, want %d", n.Status().ID, len(members), len(s.configs))
		}
	}
	return ""
}

func TestNodesFormAClusterByGossipAndComeBackFromDisk(t *testing.T) {
	for _, size := range []int{1, 3, 5} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			s := newTestCluster(t, size)
			s.startAll()
			s.awaitReady()
			s.mustWrite(quota.ApplyTrees{Trees: []quota.TreeSpec{{
				Name: clustertest.Tree, Resources: []quota.Resource{{Name: clustertest.Resource, Unit: quota.Count}},
				Nodes: []quota.NodeSpec{{}},
			}}})
			first := s.mustWrite(clustertest.NewAllocate("a", 3))
			s.mustRead()
			s.stopAll()
			s.startAll()
			s.awaitReady()
			if again := s.mustWrite(clustertest.NewAllocate("a", 3)); !again.Repeated ||
				again.Allocation.Info().Fence != first.Allocation.Info().Fence {
				t.Errorf("after the restart the retry got %+v, want the first answer again", again)
			}
			s.mustRead()
		})
	}
}

func TestANodeThatReturnsUnderAnotherAddressIsFoundAgain(t *testing.T) {
	t.Parallel()
	s := newTestCluster(t, 3)
	s.startAll()
	s.awaitReady()
	s.stopAll()
	s.configs[1].RaftAddr = freeAddress(t)
	s.startAll()
	s.awaitReady()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if m := s.nodes[0].Members()[1]; m.RaftAddr == s.configs[1].RaftAddr {
			return
		} else if time.Now().After(deadline) {
			t.Fatalf("n1 still knows n2 as %+v", m)
		}
	}
}

// TestAMajorityThatReturnsUnderOtherAddressesElects: only a leader can correct the addresses in raft's configuration,
// so the nodes must find each other without it.
func TestAMajorityThatReturnsUnderOtherAddressesElects(t *testing.T) {
	t.Parallel()
	s := newTestCluster(t, 3)
	s.startAll()
	s.awaitReady()
	s.stopAll()
	var join []string
	for i := range s.configs {
		s.configs[i].RaftAddr, s.configs[i].GossipAddr = freeAddress(t), freeAddress(t)
		join = append(join, s.configs[i].GossipAddr)
	}
	for i := range s.configs {
		s.configs[i].Join = join
	}
	s.startAll()
	s.awaitReady()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		corrected := 0
		for i, m := range s.nodes[0].Members() {
			if m.RaftAddr == s.configs[i].RaftAddr {
				corrected++
			}
		}
		if corrected == len(s.configs) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the configuration still has old addresses: %+v", s.nodes[0].Members())
		}
	}
}

func TestARefusedStartSaysTheWayOutAndChangesNothing(t *testing.T) {
	t.Parallel()
	s := newTestCluster(t, 1)
	s.startAll()
	s.awaitReady()
	mine := s.configs[0]
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = busy.Close() })
	cases := []struct {
		name   string
		change func(*cluster.Config)
		refuse string
	}{
		{"a second server on the same folder", func(*cluster.Config) {}, "is in use by another server"},
		{"an id that changed", func(c *cluster.Config) { c.ID = "n2" }, `belongs to node "n1"`},
		{"another cluster", func(c *cluster.Config) { c.ClusterName = "other" }, `belongs to cluster "site"`},
		{"a raft port in use", func(c *cluster.Config) {
			c.DataDir, c.RaftAddr = t.TempDir(), busy.Addr().String()
		}, "another process may be using the port"},
		{"a gossip port in use", func(c *cluster.Config) {
			c.DataDir, c.RaftAddr, c.GossipAddr = t.TempDir(), freeAddress(t), busy.Addr().String()
			c.Join = nil
		}, "another process may be using the port"},
		{"no data folder", func(c *cluster.Config) { c.DataDir = "" }, "DataDir is empty"},
		{"a wrong number of nodes", func(c *cluster.Config) { c.BootstrapExpect = 2 }, "allowed are 1, 3, 5 or 7"},
	}
	for _, tc := range cases {
		c := mine
		tc.change(&c)
		n, err := host.Open(t.Context(), c)
		if err == nil || !strings.Contains(err.Error(), tc.refuse) {
			t.Errorf("%s: got %v, want an error with %q", tc.name, err, tc.refuse)
		}
		if n != nil {
			t.Errorf("%s: a node was opened", tc.name)
		}
	}
	s.awaitReady()
}

func TestDamageIsFoundAtTheStart(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, log, file string
		damage          func(data []byte) []byte
		refuse          string
	}{
		{"a truncated file", cluster.LogStoreBolt, "raft.db", truncateHalf, "damaged"},
		{"a flipped bit in an entry", cluster.LogStoreBolt, "raft.db", flipNeedle, "corrupt"},
		{"a truncated segment", cluster.LogStoreWAL, "wal/*.wal", cutNeedle, "damaged"},
		{"a flipped bit in the last segment", cluster.LogStoreWAL, "wal/*.wal", flipNeedle, "damaged"},
		{"a truncated list of segments", cluster.LogStoreWAL, "raft.db", truncateHalf, "damaged"},
		{"a truncated mark", cluster.LogStoreWAL, "wal/acknowledged", truncateHalf, "damaged"},
	}
	for _, tc := range cases {
		s := newTestCluster(t, 1)
		s.configs[0].LogStore = tc.log
		s.startAll()
		s.awaitReady()
		s.mustWrite(quota.Release{ID: "needle"})
		s.stopAll()
		damageFile(t, filepath.Join(s.configs[0].DataDir, tc.file), tc.damage)
		n, err := host.Open(t.Context(), s.configs[0])
		if err == nil || !strings.Contains(err.Error(), tc.refuse) {
			t.Errorf("%s of %s: got %v, want an error with %q", tc.name, tc.log, err, tc.refuse)
		}
		if n != nil {
			s.nodes = append(s.nodes, n)
		}
	}
}

func truncateHalf(data []byte) []byte { return data[:len(data)/2] }

func cutNeedle(data []byte) []byte { return data[:bytes.Index(data, []byte("needle"))] }

func flipNeedle(data []byte) []byte {
	for at := bytes.Index(data, []byte("needle")); at >= 0; at = bytes.Index(data, []byte("needle")) {
		data[at] ^= 1
	}
	return data
}

func damageFile(t *testing.T, pattern string, damage func([]byte) []byte) {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) != 1 {
		t.Fatalf("%s matches %v, %v", pattern, paths, err)
	}
	data, err := os.ReadFile(paths[0])
	if err == nil {
		err = os.WriteFile(paths[0], damage(data), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
