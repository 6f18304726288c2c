package cluster

import (
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster/raftguard"
)

// joiner is what a node that started without state must wait for, and what any node was told about its place.
type joiner struct {
	// gate is nil on a node that started with state.
	gate *raftguard.JoinGate
	// lost says what the node had and has no more; empty if it never had state. Set before the node starts.
	lost              string
	instance          string
	promoteWhenStable atomic.Bool
	removed           atomic.Bool
	noticeLock        sync.Mutex
}

// promotionKey is where a node remembers, in its stable store, that it is to become a voter.
var promotionKey = []byte("quorate-candidate")

// Notice is what the leader tells a node about its place in the cluster.
type Notice struct {
	// Leader is who says so, and From is the node whose certificate it came with; empty in plain text.
	Leader, From string
	// Instance is who is meant, if it is a node without state: after this instance had started, the configuration had it
	// as a non-voter, so whatever an earlier one promised counts no more. Empty if the node is no member.
	Instance string
	// PromoteWhenStable is true if the node is to become a voter once it is stable.
	PromoteWhenStable bool
}

// guardTransport puts a node without state behind a threshold: until it is admitted, or agrees with others to form a new cluster, no
// message of raft reaches it (docs/adr/0038).
func (n *Node) guardTransport(hasState bool) raft.Transport {
	if hasState {
		// raft reads the same store at its start and fails if it is damaged.
		wanted, err := n.stable.GetUint64(promotionKey)
		n.joiner.promoteWhenStable.Store(err == nil && wanted == 1)
		return n.parts.Transport
	}
	n.joiner.instance = rand.Text()
	n.joiner.gate = raftguard.NewJoinGate(n.parts.Transport)
	return n.joiner.gate
}

// waitingInstance is the instance of a node that must still be admitted, empty for any other.
func (c *joiner) waitingInstance() string {
	if c.gate == nil || c.gate.IsOpen() {
		return ""
	}
	return c.instance
}

// waitMessage says what a node that waits for its admission needs.
func (c *joiner) waitMessage(id string) string {
	if c.lost == "" {
		return fmt.Sprintf("node %s has no data and waits until the leader of a cluster takes it in", id)
	}
	return fmt.Sprintf("node %s has lost data (%s): it neither votes nor confirms anything, and waits until the leader of its cluster "+
		"has taken its vote and takes it in again; if no majority of the others is left, see \"A data folder that lost a part\" in "+
		"docs/operations.md", id, c.lost)
}

func (c *joiner) close() error {
	if c.gate == nil {
		return nil
	}
	return c.gate.Close()
}

// openForBootstrap lets messages in because this node is about to announce the new cluster that it belongs to.
func (n *Node) openForBootstrap() {
	if n.joiner.gate != nil {
		n.joiner.gate.Open()
	}
}

// Notify takes in what the leader says about this node's place. It is idempotent; a notice for an earlier instance of this
// node does nothing.
func (n *Node) Notify(notice Notice) error {
	c := &n.joiner
	c.noticeLock.Lock()
	defer c.noticeLock.Unlock()
	if err := n.checkServing(); err != nil {
		return err
	}
	if err := n.checkNotice(notice); err != nil {
		return err
	}
	if notice.Instance == "" {
		n.markRemoved(notice)
		return nil
	}
	if c.waitingInstance() != notice.Instance {
		return nil
	}
	if notice.PromoteWhenStable {
		if err := n.stable.SetUint64(promotionKey, 1); err != nil {
			return newError(Halted, true, err, "node %s cannot write to its disk", n.config.ID)
		}
		c.promoteWhenStable.Store(true)
	}
	n.log.Info("taken in by the leader", "leader", notice.Leader, "to-become-voter", notice.PromoteWhenStable)
	c.gate.Open()
	n.changes.notifyAll()
	return nil
}

// markRemoved notes that this node is no member. A node that has a leader belongs to another cluster and knows better.
func (n *Node) markRemoved(notice Notice) {
	if _, known := n.Leader(); known || n.joiner.waitingInstance() != "" || n.joiner.removed.Swap(true) {
		return
	}
	n.log.Warn("this node is no member of the cluster any more", "reason", n.removedError(), "leader", notice.Leader)
}

func (n *Node) removedError() *Error {
	return newError(NoLeader, true, nil, "node %s was removed from the cluster; stop it, or let it come back as a new member: "+
		"stop it, empty its data folder and start it again", n.config.ID)
}

// watchPromotion ends the wish to become a voter when it is fulfilled, so that a node that is demoted later stays so.
func (n *Node) watchPromotion() {
	for sleepContext(n.ctx, leaderRetry) {
		if !n.joiner.promoteWhenStable.Load() || n.Ready() != nil || !n.isVoter(n.config.ID) {
			continue
		}
		if err := n.stable.SetUint64(promotionKey, 0); err != nil {
			return // the latch stops the node
		}
		n.joiner.promoteWhenStable.Store(false)
		n.log.Info("this node is a voter", "since", time.Since(n.started).Round(time.Second))
	}
}

// isVoter tells whether the configuration has a voter of that id.
func (n *Node) isVoter(id string) bool {
	for _, voter := range n.voterIDs() {
		if string(voter) == id {
			return true
		}
	}
	return false
}
