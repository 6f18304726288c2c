package clustertest

import (
	"time"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/simnet"
)

// nearby is a delay as in one building, a little different on every way. Without any, nothing would ever be under way
// when a fault strikes.
func nearby(from, to raft.ServerID) time.Duration {
	return time.Millisecond + time.Duration(3*from[1]+5*to[1])*time.Microsecond
}

// reach returns a node if another one can send it requests.
func (c *Cluster) reach(from, to string) *cluster.Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cutOff[from] || c.cutOff[to] {
		return nil
	}
	return c.nodes[to]
}

// Crash ends one node without a word to the others: it is cut off first, so that nothing of its shutdown is heard.
func (c *Cluster) Crash(id string) {
	c.t.Helper()
	c.Isolate(id)
	c.Stop(id)
	c.reconnect(id)
}

// Isolate cuts nodes off from all others and from each other.
func (c *Cluster) Isolate(ids ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		c.cutOff[id] = true
		c.net.Isolate(raft.ServerID(address(id)))
		c.board.silence(id, true)
	}
}

// CutRaft cuts what raft of two nodes sends each other; they still reach each other otherwise.
func (c *Cluster) CutRaft(a, b string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.net.Cut(raft.ServerID(address(a)), raft.ServerID(address(b)))
}

// Heal undoes every Isolate and CutRaft.
func (c *Cluster) Heal() {
	for _, id := range c.ids {
		c.reconnect(id)
	}
}

func (c *Cluster) reconnect(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.cutOff, id)
	c.board.silence(id, false)
	c.net.Heal()
	for other := range c.cutOff {
		c.net.Isolate(raft.ServerID(address(other)))
	}
}

// PretendLevel makes a node answer others that it understands entries up to a format only.
func (c *Cluster) PretendLevel(id string, level uint32) {
	c.Pretend(id, func(s *cluster.Standing) { s.FeatureLevel = level })
}

// Pretend changes what a node answers others about itself, from now on; nil ends it.
func (c *Cluster) Pretend(id string, change func(*cluster.Standing)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pretends[id] = change
}

// Forge makes gossip say something in the name of a node, also of one that does not exist, until the end of the test.
func (c *Cluster) Forge(p cluster.Peer) { c.board.forge(p) }

// Network is the raft network, for faults that Cluster has no verb for.
func (c *Cluster) Network() *simnet.Network { return c.net }
