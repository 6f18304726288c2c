package clustertest

import (
	"time"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/simnet"
	"github.com/quorate/quorate/fsm"
)

// localDelay is a delay as within one building, slightly different on every link. Without a delay no message would be
// in flight when a fault occurs.
func localDelay(from, to raft.ServerID) time.Duration {
	return time.Millisecond + time.Duration(3*from[1]+5*to[1])*time.Microsecond
}

// reachableNode is nil if either of them is cut off, or the second is down.
func (c *Cluster) reachableNode(from, to string) *cluster.Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cutOff[from] || c.cutOff[to] {
		return nil
	}
	return c.nodes[to]
}

// Crash ends one node without a message to the others: it is cut off first, so that its shutdown is not noticed.
func (c *Cluster) Crash(id string) {
	c.t.Helper()
	c.Isolate(id)
	c.Stop(id)
	c.reconnectNode(id)
}

// Isolate cuts nodes off from all others and from each other.
func (c *Cluster) Isolate(ids ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		c.cutOff[id] = true
		c.net.Isolate(raft.ServerID(raftAddress(id)))
		c.board.setSilent(id, true)
	}
}

// CutRaft cuts the raft messages between two nodes; they still reach each other otherwise.
func (c *Cluster) CutRaft(a, b string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.net.Cut(raft.ServerID(raftAddress(a)), raft.ServerID(raftAddress(b)))
}

// Heal undoes every Isolate and CutRaft.
func (c *Cluster) Heal() {
	for _, id := range c.ids {
		c.reconnectNode(id)
	}
}

func (c *Cluster) reconnectNode(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.cutOff, id)
	c.board.setSilent(id, false)
	c.net.Heal()
	for other := range c.cutOff {
		c.net.Isolate(raft.ServerID(raftAddress(other)))
	}
}

// SetVersion makes a node run a version with other formats from its next start on; nil for this version.
func (c *Cluster) SetVersion(id string, formats *fsm.Formats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.formats[id] = formats
}

// OverrideStatus changes what a node reports to others about itself, from now on; nil ends it.
func (c *Cluster) OverrideStatus(id string, change func(*cluster.NodeStatus)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.statusOverrides[id] = change
}

// SetClock makes the wall clock of a node wrong by some time, from now on.
func (c *Cluster) SetClock(id string, ahead time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clockErrors[id] = ahead
}

func (c *Cluster) clockError(id string) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clockErrors[id]
}

// ForgeGossip makes gossip report a peer, which may impersonate a member or not exist, until the end of the test.
func (c *Cluster) ForgeGossip(p cluster.Peer) { c.board.forgePeer(p) }

// Network returns the raft network, for faults that Cluster has no method for.
func (c *Cluster) Network() *simnet.Network { return c.net }
