package cluster

import (
	"time"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/fsm"
)

// NodeStatus is how one node stands, as it sees itself.
type NodeStatus struct {
	ID string
	// State is raft's: "Follower", "Candidate", "Leader" or "Shutdown".
	State string
	// Leader is the id of the leader that this node knows; empty if it knows none.
	Leader string
	Term   uint64
	// AppliedIndex is in the ledger, CommitIndex is known to be on a majority, LastIndex is on this node's disk.
	AppliedIndex, CommitIndex, LastIndex uint64
	// LastContact is the time since a leader was last heard, since the start if none was; 0 on a leader.
	LastContact time.Duration
	Version     string
	// FeatureLevel is the newest format of log entries that the node understands.
	FeatureLevel uint32
	// Wall is what the node's wall clock says, in milliseconds since 1970.
	Wall int64
	// Instance names a node that has no state and was not admitted yet; empty otherwise. It is another one after each start.
	Instance string
	// PromoteWhenStable is true for a node that is to become a voter by itself once it is stable.
	PromoteWhenStable bool
	// Removed is true once the node has learnt that it is no member any more.
	Removed bool
	// Problem is empty if the node is ready, or a sentence: why not.
	Problem string
	// Warning is empty, or a sentence: what is wrong with its disk while it still serves.
	Warning string
	// Checkpoints are its newest ones, the newest first, at most checkpointsKept.
	Checkpoints []Checkpoint
	// ClusterLevel is the feature level of the cluster as its log or its snapshot says it.
	ClusterLevel uint32
	// RaftAddr and HTTPAddr are where it says that it is; empty, like all below, from versions below feature level 5.
	RaftAddr, HTTPAddr string
	// ClusterName is the cluster that it belongs to, or is to belong to.
	ClusterName string
	// Expect is its BootstrapExpect, and Intent what Peer.Intent is.
	Expect int
	Intent string
}

// Status describes this node. It works in every state, also after a fault.
func (n *Node) Status() NodeStatus {
	s := NodeStatus{
		ID: n.config.ID, State: n.raft.State().String(), Leader: n.leaderID(), Term: n.raft.CurrentTerm(),
		AppliedIndex: n.ledger.Applied(), CommitIndex: n.raft.CommitIndex(), LastIndex: n.raft.LastIndex(),
		LastContact: n.leaderContactAge(), Version: n.config.Version, FeatureLevel: fsm.EntryFormat,
		Wall: time.Now().UnixMilli(), Instance: n.joiner.waitingInstance(), PromoteWhenStable: n.joiner.promoteWhenStable.Load(),
		Removed: n.joiner.removed.Load(),

		Checkpoints: n.checkpoints.newestFirst(n.config.ID), ClusterLevel: n.ledger.Format(),
		RaftAddr: n.config.RaftAdvertise, HTTPAddr: n.config.HTTPAdvertise, ClusterName: n.config.ClusterName,
		Expect: n.config.BootstrapExpect, Intent: n.directory.ownPeer().Intent,
	}
	if err := n.Ready(); err != nil {
		s.Problem = err.Error()
	}
	s.Warning = n.diskWarning(n.DiskStatus())
	return s
}

// Ready is nil while the node serves, knows a leader that it heard of lately, has caught up with it since the leader last
// changed, and can ask it to confirm reads. Otherwise it is an *Error that says what is missing.
func (n *Node) Ready() error {
	if err := n.checkServing(); err != nil {
		return err
	}
	leader, known := n.Leader()
	if !known && n.joiner.removed.Load() {
		return n.removedError()
	}
	if !known && n.joiner.lost != "" && n.joiner.waitingInstance() != "" {
		return newError(NoLeader, true, nil, "%s", n.joiner.waitMessage(n.config.ID))
	}
	if waits := n.bootstrapWait.Load(); !known && waits != nil && *waits != "" {
		return newError(NoLeader, true, nil, "node %s belongs to no cluster yet: %s", n.config.ID, *waits)
	}
	if !known && n.joiner.waitingInstance() != "" {
		return newError(NoLeader, true, nil, "%s", n.joiner.waitMessage(n.config.ID))
	}
	if !known {
		return newError(NoLeader, true, nil, "node %s knows no leader; a majority of the voters must be up and reach each other",
			n.config.ID)
	}
	if silent := n.leaderContactAge(); silent > n.config.scaleTimeout(stepTimeout) {
		return newError(NoLeader, true, nil, "node %s has not heard from leader %s for %v", n.config.ID, leader.ID,
			silent.Round(time.Millisecond))
	}
	if n.raft.State() != raft.Leader && !n.caughtUp.Load() {
		return newError(NoLeader, true, nil, "node %s is catching up with leader %s", n.config.ID, leader.ID)
	}
	return n.checkLeaderReachable(leader)
}

// watchReadiness catches up once after every change of leader: it reads as a client would.
func (n *Node) watchReadiness() {
	following := ""
	for n.ctx.Err() == nil {
		changed := n.changes.nextChange()
		leader := n.leaderID()
		if leader != following {
			n.caughtUp.Store(false)
			following = leader
		}
		if leader != "" && !n.caughtUp.Load() {
			n.caughtUp.Store(n.tryCatchUp())
		}
		if leader != "" && !n.caughtUp.Load() {
			sleepContext(n.ctx, readRetry)
			continue
		}
		select {
		case <-changed:
		case <-n.ctx.Done():
		}
	}
}

func (n *Node) tryCatchUp() bool {
	index, err := n.confirmedIndex(n.ctx)
	return err == nil && n.awaitApplied(n.ctx, index) == nil
}
