// Package peers keeps what one node of a cluster knows about the others: raft's configuration, what each node reports
// about itself, and what gossip says ([Roster]), and which of them do not answer ([Reachability]).
package peers

import (
	"context"
	"time"

	"github.com/quorate/quorate/quota"
)

// Member is one node of the cluster as this node knows it.
type Member struct {
	ID string
	// RaftAddr is taken from raft's configuration if it contains the node, otherwise from the same sources as HTTPAddr.
	RaftAddr string
	// HTTPAddr and Version are what the node itself reported. Until it has answered, and for versions below feature level
	// 5, they come from gossip and are only good for display, because any gossip participant can forge them.
	HTTPAddr, Version string
	// FeatureLevel is what the node itself reported; 0 until it has answered.
	FeatureLevel uint32
	// Voter is true for a voter of raft's configuration.
	Voter bool
	// Alive is the state according to gossip; true for this node itself.
	Alive bool
}

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
	// Checkpoints are the node's newest checkpoints, newest first, at most 8.
	Checkpoints []Checkpoint
	// Quarantined is true once the node stopped because a majority holds another state, until its data was replaced; false
	// from versions without it.
	Quarantined bool
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

// DiskStatus is the state of a node's disk when it was last checked.
type DiskStatus struct {
	// Free is the number of bytes available for the data folder; -1 if unknown.
	Free int64
	// WriteMean is the mean duration of log writes, each of which ends with a sync, in the last half minute.
	WriteMean time.Duration
	// Pending is how long the write in progress has taken; 0 if there is none.
	Pending time.Duration
	// Low is true while less than the reserve is free, Slow while the mean is above the limit.
	Low, Slow bool
}

// Checkpoint is the digest, in hexadecimal, of the state of a node after the log entry at Index.
type Checkpoint struct {
	Index  uint64
	Digest string
}

// Peer is what a node announces about itself.
type Peer struct {
	ID, RaftAddr, HTTPAddr string
	Version                string
	// FeatureLevel is the newest format of log entries that the node understands.
	FeatureLevel uint32
	// Expect is the node's BootstrapExpect.
	Expect int
	// HasState is true once the node has raft state: then no new cluster may be formed with it.
	HasState bool
	// Intent is the digest of the initial configuration that the node would form; empty until it knows all of its peers.
	Intent string
	// Alive is false for a known peer that does not answer.
	Alive bool
}

// Discovery makes nodes known to each other. Its information is a hint that may be late or wrong: raft decides
// membership.
type Discovery interface {
	// Start announces self and starts to look for peers, without waiting to find any. It is called once.
	Start(self Peer) error
	// Update changes what this node announces.
	Update(self Peer) error
	// KeepMembers sets the ids of the members. Members are never evicted to make place for other nodes.
	KeepMembers(ids []string)
	// Peers returns the other known nodes, with Alive set accordingly.
	Peers() []Peer
	// Join contacts a peer that this node may not know yet, and reports whether the peer was not known to be alive.
	Join(ctx context.Context, address string) (bool, error)
	// Changed receives a value whenever the result of Peers may have changed.
	Changed() <-chan struct{}
	// Leave announces the shutdown, so that peers do not take the silence for a fault.
	Leave(ctx context.Context) error
	// Close stops everything that Start started. It may be called without Start, and more than once.
	Close() error
}
