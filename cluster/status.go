package cluster

import (
	"time"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/quota"
)

// NodeStatus is the status of one node as reported by itself.
type NodeStatus struct {
	ID string
	// State is the raft state: "Follower", "Candidate", "Leader" or "Shutdown".
	State string
	// Leader is the id of the leader that this node knows; empty if it knows none.
	Leader string
	Term   uint64
	// AppliedIndex is applied to the ledger, CommitIndex is known to be stored on a majority, LastIndex is stored on this
	// node.
	AppliedIndex, CommitIndex, LastIndex uint64
	// LastContact is the time since a leader was last heard, or since the start if there was none; 0 on a leader.
	LastContact time.Duration
	Version     string
	// FeatureLevel is the newest format of log entries that the node understands.
	FeatureLevel uint32
	// Wall is the node's wall clock in milliseconds since 1970.
	Wall int64
	// CivilTime is civil time as of now, from a leader; 0 from another node.
	CivilTime quota.CivilTime
	// LedgerTime is ledger time as of now, from a leader; 0 from another node.
	LedgerTime quota.Instant
	// Instance identifies a node that has no state and was not admitted yet; empty otherwise. It changes with each start.
	Instance string
	// PromoteWhenStable is true for a node that the leader should promote to voter once it is stable.
	PromoteWhenStable bool
	// Removed is true once the node was notified that it is no longer a member.
	Removed bool
	// Problem says why the node is not ready; empty if it is.
	Problem string
	// Disk is the state of the node's disk.
	Disk DiskStatus
	// Warning says what is wrong with the disk of a node that still serves; empty if nothing is.
	Warning string
	// Checkpoints are the node's newest checkpoints, newest first, at most checkpointsKept.
	Checkpoints []Checkpoint
	// ClusterLevel is the feature level of the cluster according to the node's log and snapshot.
	ClusterLevel uint32
	// RaftAddr and HTTPAddr are the node's advertised addresses. They and all fields below are empty from versions below
	// feature level 5.
	RaftAddr, HTTPAddr string
	// ClusterName is the name of the cluster that the node belongs to, or is configured to join.
	ClusterName string
	// Expect is the node's BootstrapExpect; for Intent see Peer.Intent.
	Expect int
	Intent string
	// LogStore is the kind of the node's log store: LogStoreWAL or LogStoreBolt.
	LogStore string
	// TimeZones is the version of the node's table of time zones.
	TimeZones string
}

// Status returns the status of this node. It works in every state, also after a fault.
func (n *Node) Status() NodeStatus {
	s := NodeStatus{
		ID: n.config.ID, State: n.stateName(), Leader: n.leaderID(), Term: n.raft.CurrentTerm(),
		AppliedIndex: n.ledger.Applied(), CommitIndex: n.raft.CommitIndex(), LastIndex: n.raft.LastIndex(),
		LastContact: n.leaderContactAge(), Version: n.config.Version, FeatureLevel: n.config.Formats.Newest(),
		Wall: n.wall(), CivilTime: n.leaderCivilTime(), LedgerTime: n.leaderLedgerTime(),
		Instance:          n.joiner.waitingInstance(),
		PromoteWhenStable: n.joiner.promoteWhenStable.Load(),
		Removed:           n.joiner.removed.Load(),

		Checkpoints: n.checkpoints.newestFirst(n.config.ID), ClusterLevel: n.ledger.Format(),
		RaftAddr: n.config.RaftAdvertise, HTTPAddr: n.config.HTTPAdvertise, ClusterName: n.config.ClusterName,
		Expect: n.config.BootstrapExpect, Intent: n.directory.ownPeer().Intent,
		LogStore: n.parts.LogStore, TimeZones: n.zones.Version(),
	}
	if err := n.Ready(); err != nil {
		s.Problem = err.Error()
	}
	s.Disk = n.DiskStatus()
	s.Warning = n.diskWarning(s.Disk)
	return s
}

// stateName is the raft state, except that a node that stopped to act as leader does not count as one: raft itself
// notices the new leader only when its write returns.
func (n *Node) stateName() string {
	if state := n.raft.State(); state != raft.Leader || !n.isDiskStalled() {
		return state.String()
	}
	return raft.Follower.String()
}

func (n *Node) wall() int64 {
	if n.parts.Wall == nil {
		return wallNow()
	}
	return n.parts.Wall()
}

// Ready returns nil while the node serves, has heard from its leader recently, has caught up since the leader last
// changed, and can ask the leader to confirm reads. Otherwise it returns an *Error that says what is missing.
func (n *Node) Ready() error {
	if err := n.checkServing(); err != nil {
		return err
	}
	if n.isDiskStalled() {
		return newError(NoLeader, true, nil, "node %s cannot follow or lead: a write to its log has not returned for %v",
			n.config.ID, n.diskLatency.Pending().Round(time.Second))
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
		return newError(NoLeader, true, nil, "node %s knows no leader; a majority of the voters must be up and reach "+
			"each other",
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

// watchReadiness catches up once after every change of the leader, in the same way as a linearizable read.
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
