// Package clustertest runs real nodes in virtual time: the network and the disks are in memory, everything else is what
// ships. Use it inside a testing/synctest bubble.
//
//	synctest.Test(t, func(t *testing.T) {
//		c := clustertest.Start(t, 3)
//		c.Leader().Propose(...)
//		c.Isolate(c.Leader())
//		c.Heal()
//	})
package clustertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/simnet"
	"github.com/quorate/quorate/fsm"
	"github.com/quorate/quorate/quota"
)

// snapshotsKept is how many snapshots a test disk retains, the same as a real one.
const snapshotsKept = 3

// electionBound is the time within which a healthy majority must elect a leader.
const electionBound = 30 * time.Second

// Cluster is a set of nodes on one network. It stops at the end of the test.
type Cluster struct {
	t      testing.TB
	net    *simnet.Network
	board  *gossipBoard
	disks  map[string]*simnet.Disk
	change func(*cluster.Config)
	ids    []string
	expect int
	added  map[string]bool
	parts  func(id string) cluster.Parts

	mu     sync.Mutex
	nodes  map[string]*cluster.Node
	cutOff map[string]bool
	// statusOverrides change what nodes report to others about themselves.
	statusOverrides map[string]func(*cluster.NodeStatus)
	clockErrors     map[string]time.Duration
	// formats are those of nodes that run another version.
	formats map[string]*fsm.Formats
}

// Option changes a cluster before it starts.
type Option func(*Cluster)

// WithConfig changes the configuration of every node.
func WithConfig(change func(*cluster.Config)) Option { return func(c *Cluster) { c.change = change } }

// WithParts replaces the in-memory stores of the nodes. Transport and Discovery are filled in if they are nil.
func WithParts(parts func(id string) cluster.Parts) Option {
	return func(c *Cluster) { c.parts = parts }
}

// Start runs size nodes n1, n2, … and waits for a leader that all of them know.
func Start(t testing.TB, size int, options ...Option) *Cluster {
	t.Helper()
	c := New(t, size, options...)
	for _, id := range c.ids {
		c.StartNode(id)
	}
	c.Leader()
	c.AwaitConverged()
	return c
}

// New prepares size nodes and starts none.
func New(t testing.TB, size int, options ...Option) *Cluster {
	t.Helper()
	c := &Cluster{
		t: t, net: simnet.New(1), board: newGossipBoard(), disks: map[string]*simnet.Disk{},
		expect: size, added: map[string]bool{}, nodes: map[string]*cluster.Node{}, cutOff: map[string]bool{},
		change:          func(*cluster.Config) {},
		statusOverrides: map[string]func(*cluster.NodeStatus){}, clockErrors: map[string]time.Duration{},
		formats: map[string]*fsm.Formats{},
	}
	c.parts = c.inMemory
	for i := range size {
		id := fmt.Sprintf("n%d", i+1)
		c.ids = append(c.ids, id)
		c.disks[id] = simnet.NewDisk(snapshotsKept)
	}
	c.net.SetDelay(localDelay)
	for _, o := range options {
		o(c)
	}
	t.Cleanup(c.close)
	return c
}

func (c *Cluster) inMemory(id string) cluster.Parts {
	disk := c.disks[id]
	return cluster.Parts{Logs: disk, Stable: disk, Snapshots: disk.Snapshots}
}

func raftAddress(id string) string { return id + ":1" }

// StartNode starts one node on its disk.
func (c *Cluster) StartNode(id string) *cluster.Node {
	c.t.Helper()
	config := cluster.Config{
		ID: id, RaftAddr: raftAddress(id), HTTPAdvertise: id + ":2", BootstrapExpect: c.expect, ClusterName: "test",
		Version: "test", CommitNotice: 50 * time.Millisecond, // fewer messages in tests that last hours of virtual time
	}
	if c.added[id] {
		config.BootstrapExpect = 0
	}
	c.mu.Lock()
	config.Formats = c.formats[id]
	c.mu.Unlock()
	c.change(&config)
	parts := c.parts(id)
	if parts.Transport == nil {
		parts.Transport = c.net.Transport(raft.ServerID(raftAddress(id)))
	}
	if parts.Discovery == nil {
		parts.Discovery = c.board.newDiscovery()
	}
	parts.Wall = func() int64 { return time.Now().Add(c.clockError(id)).UnixMilli() }
	n, err := cluster.Open(c.t.Context(), config, parts)
	if err != nil {
		c.t.Fatalf("open %s: %v", id, err)
	}
	n.SetRemoteReadIndex(func(ctx context.Context, leader cluster.Member) (uint64, quota.Instant, error) {
		peer := c.reachableNode(id, leader.ID)
		if peer == nil {
			return 0, 0, errors.New("no route to " + leader.HTTPAddr)
		}
		index, err := peer.ReadIndex(ctx)
		return index, peer.LedgerTime(), err
	})
	n.SetPeerClient(testPeerClient{c, id})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[id] = n
	return n
}

// Node returns one running node.
func (c *Cluster) Node(id string) *cluster.Node {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[id]
	if n == nil {
		c.t.Fatalf("%s does not run", id)
	}
	return n
}

// StartMissing starts every node that does not run.
func (c *Cluster) StartMissing() {
	c.t.Helper()
	for _, id := range c.ids {
		if !slices.ContainsFunc(c.Nodes(), func(n *cluster.Node) bool { return n.Status().ID == id }) {
			c.StartNode(id)
		}
	}
}

// Nodes returns the running nodes by id.
func (c *Cluster) Nodes() []*cluster.Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	var running []*cluster.Node
	for _, id := range c.ids {
		if n := c.nodes[id]; n != nil {
			running = append(running, n)
		}
	}
	return running
}

// Disk returns the disk of a node.
func (c *Cluster) Disk(id string) *simnet.Disk { return c.disks[id] }

// Stop shuts down one node in an orderly way.
func (c *Cluster) Stop(id string) {
	c.t.Helper()
	n := c.Node(id)
	c.mu.Lock()
	delete(c.nodes, id)
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := n.Shutdown(ctx); err != nil {
		c.t.Errorf("stop %s: %v", id, err)
	}
}

// Leader waits until exactly one reachable node has established itself as leader, and returns it.
func (c *Cluster) Leader() *cluster.Node {
	c.t.Helper()
	var found *cluster.Node
	c.Eventually("one leader", func() bool {
		found = nil
		for _, id := range c.ids {
			n := c.reachableNode(id, id)
			if n == nil || !n.IsLeader() {
				continue
			}
			if found != nil {
				return false
			}
			found = n
		}
		return found != nil
	})
	return found
}

// Followers returns the running nodes that do not lead.
func (c *Cluster) Followers() []*cluster.Node {
	c.t.Helper()
	leader := c.Leader()
	return slices.DeleteFunc(c.Nodes(), func(n *cluster.Node) bool { return n == leader })
}

// Eventually waits until a condition holds, for at most electionBound.
func (c *Cluster) Eventually(what string, holds func() bool) {
	c.t.Helper()
	c.EventuallyWithin(electionBound, what, holds)
}

// EventuallyWithin is Eventually with another bound.
func (c *Cluster) EventuallyWithin(bound time.Duration, what string, holds func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(bound); ; {
		if holds() {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("not within %v: %s; the members are %+v", bound, what, c.Health())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// AwaitConverged waits until all running nodes are ready and have applied the same entries.
func (c *Cluster) AwaitConverged() {
	c.t.Helper()
	c.Eventually("all nodes ready and at one index", func() bool {
		nodes := c.Nodes()
		last := nodes[0].Status().LastIndex
		for _, n := range nodes {
			s := n.Status()
			first, _ := nodes[0].Digest()
			if index, _ := n.Digest(); n.Ready() != nil || s.LastIndex != last || s.CommitIndex != last ||
				index != first {
				return false
			}
		}
		return true
	})
}

func (c *Cluster) close() {
	for _, n := range c.Nodes() {
		c.Stop(n.Status().ID)
	}
	c.net.Close()
}
