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

// newcomer is what a node that started without state must wait for, and what any node was told about its place.
type newcomer struct {
	// threshold is nil on a node that started with state.
	threshold *raftguard.Threshold
	// lost says what the node had and has no more; empty if it never had state. Set before the node starts.
	lost      string
	instance  string
	candidate atomic.Bool
	removed   atomic.Bool
	telling   sync.Mutex
}

// candidacyKey is where a node remembers, in its stable store, that it is to become a voter.
var candidacyKey = []byte("quorate-candidate")

// Notice is what the leader tells a node about its place in the cluster.
type Notice struct {
	// Leader is who says so, and From is the node whose certificate it came with; empty in plain text.
	Leader, From string
	// Instance is who is meant, if it is a node without state: after this instance had started, the configuration had it
	// as a non-voter, so whatever an earlier one promised counts no more. Empty if the node is no member.
	Instance string
	// Candidate is true if the node is to become a voter once it is stable.
	Candidate bool
}

// stand puts a node without state behind a threshold: until it is admitted, or agrees with others to form a new cluster, no
// message of raft reaches it (docs/adr/0038).
func (n *Node) stand(hasState bool) raft.Transport {
	if hasState {
		// raft reads the same store at its start and fails if it is damaged.
		wanted, err := n.stable.GetUint64(candidacyKey)
		n.newcomer.candidate.Store(err == nil && wanted == 1)
		return n.parts.Transport
	}
	n.newcomer.instance = rand.Text()
	n.newcomer.threshold = raftguard.NewThreshold(n.parts.Transport)
	return n.newcomer.threshold
}

// waiting is the instance of a node that must still be admitted, empty for any other.
func (c *newcomer) waiting() string {
	if c.threshold == nil || c.threshold.Opened() {
		return ""
	}
	return c.instance
}

// plea says what a node that waits for its admission needs.
func (c *newcomer) plea(id string) string {
	if c.lost == "" {
		return fmt.Sprintf("node %s has no data and waits until the leader of a cluster takes it in", id)
	}
	return fmt.Sprintf("node %s has lost data (%s): it neither votes nor confirms anything, and waits until the leader of its cluster "+
		"has taken its vote and takes it in again; if no majority of the others is left, see \"A data folder that lost a part\" in "+
		"docs/operations.md", id, c.lost)
}

func (c *newcomer) close() error {
	if c.threshold == nil {
		return nil
	}
	return c.threshold.Close()
}

// found lets messages in because this node is about to announce the new cluster that it belongs to.
func (n *Node) found() {
	if n.newcomer.threshold != nil {
		n.newcomer.threshold.Open()
	}
}

// Notify takes in what the leader says about this node's place. It is idempotent; a notice for an earlier instance of this
// node does nothing.
func (n *Node) Notify(notice Notice) error {
	c := &n.newcomer
	c.telling.Lock()
	defer c.telling.Unlock()
	if err := n.serving(); err != nil {
		return err
	}
	if err := n.believes(notice); err != nil {
		return err
	}
	if notice.Instance == "" {
		n.dismiss(notice)
		return nil
	}
	if c.waiting() != notice.Instance {
		return nil
	}
	if notice.Candidate {
		if err := n.stable.SetUint64(candidacyKey, 1); err != nil {
			return failure(Halted, true, err, "node %s cannot write to its disk", n.config.ID)
		}
		c.candidate.Store(true)
	}
	n.log.Info("taken in by the leader", "leader", notice.Leader, "to-become-voter", notice.Candidate)
	c.threshold.Open()
	n.changed.wake()
	return nil
}

// dismiss notes that this node is no member. A node that has a leader belongs to another cluster and knows better.
func (n *Node) dismiss(notice Notice) {
	if _, known := n.Leader(); known || n.newcomer.waiting() != "" || n.newcomer.removed.Swap(true) {
		return
	}
	n.log.Warn("this node is no member of the cluster any more", "reason", n.dismissed(), "leader", notice.Leader)
}

func (n *Node) dismissed() *Error {
	return failure(NoLeader, true, nil, "node %s was removed from the cluster; stop it, or let it come back as a new member: "+
		"stop it, empty its data folder and start it again", n.config.ID)
}

// watchCandidacy ends the wish to become a voter when it is fulfilled, so that a node that is demoted later stays so.
func (n *Node) watchCandidacy() {
	for after(n.ctx, leaderRetry) {
		if !n.newcomer.candidate.Load() || n.Ready() != nil || !n.votes(n.config.ID) {
			continue
		}
		if err := n.stable.SetUint64(candidacyKey, 0); err != nil {
			return // the latch stops the node
		}
		n.newcomer.candidate.Store(false)
		n.log.Info("this node is a voter", "since", time.Since(n.started).Round(time.Second))
	}
}

// votes tells whether the configuration has a voter of that id.
func (n *Node) votes(id string) bool {
	for _, voter := range n.voters() {
		if string(voter) == id {
			return true
		}
	}
	return false
}
