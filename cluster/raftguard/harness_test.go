package raftguard_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster/raftguard"
	"github.com/quorate/quorate/cluster/simnet"
)

// history is an FSM that remembers which command it applied at which index: two replicas that differ here have
// diverged.
type history struct {
	mu      sync.Mutex
	applied map[uint64]string
}

func newHistory() *history { return &history{applied: map[uint64]string{}} }

func (h *history) Apply(entry *raft.Log) any {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.applied[entry.Index] = string(entry.Data)
	return nil
}

func (h *history) commands() map[uint64]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.applied)
}

func (h *history) hasCommand(command string) bool {
	for _, applied := range h.commands() {
		if applied == command {
			return true
		}
	}
	return false
}

func (h *history) Snapshot() (raft.FSMSnapshot, error) { return historySnapshot(h.commands()), nil }

func (h *history) Restore(state io.ReadCloser) error {
	applied := map[uint64]string{}
	if err := errors.Join(json.NewDecoder(state).Decode(&applied), state.Close()); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.applied = applied
	return nil
}

type historySnapshot map[uint64]string

func (i historySnapshot) Persist(sink raft.SnapshotSink) error {
	if err := json.NewEncoder(sink).Encode(i); err != nil {
		return err
	}
	return sink.Close()
}

func (historySnapshot) Release() {}

// node is one raft server with everything that survives a restart.
type node struct {
	id        raft.ServerID
	config    *raft.Config
	disk      *simnet.Disk
	raft      *raft.Raft
	fsm       *history
	transport *raftguard.Transport
}

// cluster is three raft nodes a, b and c in virtual time. All but a have raft's default timeouts; a is the leader.
type cluster struct {
	t       *testing.T
	net     *simnet.Network
	a, b, c *node
	// transport has the options of every guard; wrap builds what is between raft and its stores.
	transport []raftguard.TransportOption
	wrap      func(*node) (raft.LogStore, raft.SnapshotStore)
}

// longLease is the leader lease of node a. It simulates a leader that was paused or that hears its followers late: for
// a while it does not know that it was deposed. raft's safety must not depend on how long this takes.
const longLease = time.Minute

func newCluster(t *testing.T, seed uint64, change ...func(*cluster)) *cluster {
	t.Helper()
	c := &cluster{t: t, net: simnet.New(seed)}
	c.wrap = func(n *node) (raft.LogStore, raft.SnapshotStore) { return n.disk, n.disk.Snapshots }
	for _, apply := range change {
		apply(c)
	}
	c.a, c.b, c.c = c.newNode("a"), c.newNode("b"), c.newNode("c")
	c.a.config.HeartbeatTimeout = longLease
	c.a.config.ElectionTimeout = longLease
	c.a.config.LeaderLeaseTimeout = longLease
	var servers raft.Configuration
	for _, n := range c.allNodes() {
		c.startNode(n)
		servers.Servers = append(servers.Servers, raft.Server{ID: n.id, Address: raft.ServerAddress(n.id)})
	}
	c.mustSucceed(c.b.raft.BootstrapCluster(servers).Error())
	c.eventually("b or c leads", func() bool { return c.leaderOf(c.b, c.c) != nil })
	c.mustSucceed(c.leaderOf(c.b, c.c).raft.LeadershipTransferToServer("a", "a").Error())
	c.eventually("a leads", func() bool { return c.a.raft.State() == raft.Leader })
	c.mustWrite(c.a, "before")
	return c
}

func (c *cluster) newNode(id raft.ServerID) *node {
	config := raft.DefaultConfig()
	config.LocalID, config.Logger = id, hclog.NewNullLogger()
	config.TrailingLogs, config.SnapshotThreshold = 4, 1<<20 // snapshots are taken by hand only
	return &node{id: id, config: config, disk: simnet.NewDisk(2)}
}

func (c *cluster) startNode(n *node) {
	c.t.Helper()
	n.fsm = newHistory()
	n.transport = raftguard.NewTransport(c.net.Transport(n.id), c.transport...)
	logs, snapshots := c.wrap(n)
	var err error
	n.raft, err = raft.NewRaft(n.config, n.fsm, logs, n.disk, snapshots, n.transport)
	c.mustSucceed(err)
}

func (c *cluster) crashNode(n *node) {
	c.t.Helper()
	c.mustSucceed(n.raft.Shutdown().Error())
}

func (c *cluster) close() {
	for _, n := range c.allNodes() {
		c.crashNode(n)
	}
	c.net.Close()
}

func (c *cluster) allNodes() []*node { return []*node{c.a, c.b, c.c} }

// leaderOf returns the first of nodes that leads and has committed something in its term, or nil.
func (c *cluster) leaderOf(nodes ...*node) *node {
	for _, n := range nodes {
		if n.raft.State() == raft.Leader && n.raft.Barrier(time.Second).Error() == nil {
			return n
		}
	}
	return nil
}

func (c *cluster) mustWrite(n *node, command string) {
	c.t.Helper()
	if err := n.raft.Apply([]byte(command), time.Second).Error(); err != nil {
		c.t.Fatalf("write %q at %s: %v", command, n.id, err)
	}
}

// eventually waits up to one virtual minute.
func (c *cluster) eventually(what string, holds func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if holds() {
			return
		}
	}
	c.t.Fatalf("not within a minute: %s", what)
}

// hasDiverged reports, once all nodes have had time to catch up, whether two of them applied different commands at one
// index, or one applied nothing there.
func (c *cluster) hasDiverged() bool {
	return !maps.Equal(c.a.fsm.commands(), c.b.fsm.commands()) || !maps.Equal(c.b.fsm.commands(), c.c.fsm.commands())
}

func (c *cluster) mustSucceed(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) String() string {
	return fmt.Sprintf("a %v, b %v, c %v", c.a.fsm.commands(), c.b.fsm.commands(), c.c.fsm.commands())
}
