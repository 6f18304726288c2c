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

// joiner is the join state of a node: what a node without state waits for, and what the leader told any node about its
// place in the configuration.
type joiner struct {
	// gate is nil on a node that started with state.
	gate *raftguard.JoinGate
	// lost describes the state that the node had and lost; empty if it never had state. Set before the node starts.
	lost              string
	instance          string
	promoteWhenStable atomic.Bool
	admittedAt        atomic.Uint64 // see Notice.Index
	removed           atomic.Bool
	noticeLock        sync.Mutex
}

// promotionKey is the key in the stable store under which a node remembers that it is to become a voter.
var promotionKey = []byte("quorate-candidate")

// admissionKey is the key in the stable store of Notice.Index, which counts while promotionKey is set.
var admissionKey = []byte("quorate-candidate-index")

// Notice informs a node of its role in the configuration. Only the leader sends notices.
type Notice struct {
	// Leader is the id of the leader. From is the id in the sender's certificate; empty in plain text.
	Leader, From string
	// Instance is the instance of a node without state that this notice addresses: after that instance had started, the
	// configuration contained the node as a non-voter, so votes of an earlier instance no longer count. Empty if the node
	// is not a member.
	Instance string
	// PromoteWhenStable is true if the node is to become a voter once it is stable.
	PromoteWhenStable bool
	// Index is at or above the entry of the log that made the node a non-voter; 0 if the leader's version does not tell.
	Index uint64
}

// guardTransport puts a node without state behind a JoinGate: until the node is admitted, or agrees with others to form
// a new cluster, it receives no raft messages (docs/adr/0038).
func (n *Node) guardTransport(hasState bool) raft.Transport {
	if hasState {
		// raft reads the same store when it starts and fails if the store is damaged.
		wanted, err := n.stable.GetUint64(promotionKey)
		n.joiner.promoteWhenStable.Store(err == nil && wanted == 1)
		if index, err := n.stable.GetUint64(admissionKey); err == nil {
			n.joiner.admittedAt.Store(index)
		}
		return n.parts.Transport
	}
	n.joiner.instance = rand.Text()
	n.joiner.gate = raftguard.NewJoinGate(n.parts.Transport)
	return n.joiner.gate
}

// waitingInstance returns the instance of a node that must still be admitted; empty for any other node.
func (j *joiner) waitingInstance() string {
	if j.gate == nil || j.gate.IsOpen() {
		return ""
	}
	return j.instance
}

// waitMessage says what a node that waits for its admission needs.
func (j *joiner) waitMessage(id string) string {
	if j.lost == "" {
		return fmt.Sprintf("node %s has no data and waits until the leader of a cluster adds it", id)
	}
	return fmt.Sprintf("node %s has lost data (%s): it neither votes nor confirms anything, and waits until the leader "+
		"of its cluster has demoted it and admits it again; if no majority of the others is left, see \"A "+
		"data folder that "+
		"lost a part\" in docs/operations.md", id, j.lost)
}

func (j *joiner) close() error {
	if j.gate == nil {
		return nil
	}
	return j.gate.Close()
}

// openForBootstrap admits raft messages: this node is about to announce the cluster it helps to form.
func (n *Node) openForBootstrap() {
	if n.joiner.gate != nil {
		n.joiner.gate.Open()
	}
}

// Notify applies a notice of the leader. It is idempotent; a notice for an earlier instance of this node has no effect.
func (n *Node) Notify(notice Notice) error {
	j := &n.joiner
	j.noticeLock.Lock()
	defer j.noticeLock.Unlock()
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
	if j.waitingInstance() != notice.Instance {
		return nil
	}
	if notice.PromoteWhenStable {
		err := n.stable.SetUint64(admissionKey, notice.Index)
		if err == nil {
			err = n.stable.SetUint64(promotionKey, 1)
		}
		if err != nil {
			return newError(Halted, true, err, "node %s cannot write to its disk", n.config.ID)
		}
		j.admittedAt.Store(notice.Index)
		j.promoteWhenStable.Store(true)
	}
	n.log.Info("admitted by the leader", "leader", notice.Leader, "to-become-voter", notice.PromoteWhenStable)
	j.gate.Open()
	n.changes.notifyAll()
	return nil
}

// markRemoved records that this node was removed. A node that knows a leader belongs to another cluster and ignores the
// notice.
func (n *Node) markRemoved(notice Notice) {
	if _, known := n.Leader(); known || n.joiner.waitingInstance() != "" || n.joiner.removed.Swap(true) {
		return
	}
	n.log.Warn("this node is no longer a member of the cluster", "reason", n.removedError(), "leader", notice.Leader)
}

func (n *Node) removedError() *Error {
	return newError(NoLeader, true, nil, "node %s was removed from the cluster; stop it; to add it again as a new "+
		"member, empty its data folder and start it", n.config.ID)
}

// watchPromotion clears the mark of promotionKey once the node is a voter, so that a node that is demoted later is not
// promoted again.
func (n *Node) watchPromotion() {
	for sleepContext(n.ctx, leaderRetry) {
		if !n.joiner.promoteWhenStable.Load() || n.Ready() != nil || !n.isPromoted() {
			continue
		}
		if err := n.stable.SetUint64(promotionKey, 0); err != nil {
			return // the fail-stop store stops the node
		}
		n.joiner.promoteWhenStable.Store(false)
		n.log.Info("this node is a voter", "since", time.Since(n.started).Round(time.Second))
	}
}

// isPromoted reports whether a node that was admitted is a voter. A snapshot or older entries may still name it as the
// voter that it was before it lost its data: they say nothing before the entry of its demotion is applied as well. The
// ledger may be up to date without that entry, which does not concern it.
func (n *Node) isPromoted() bool {
	return n.raft.AppliedIndex() >= n.joiner.admittedAt.Load() && n.isVoter(n.config.ID)
}

// isVoter reports whether the configuration contains a voter with that id.
func (n *Node) isVoter(id string) bool {
	for _, voter := range n.voterIDs() {
		if string(voter) == id {
			return true
		}
	}
	return false
}
