package cluster

import (
	"context"
	"errors"

	"github.com/hashicorp/raft"
)

// Parts are the components that a node is built from. The node itself wraps them in the guards of package raftguard, so
// that a test node is guarded exactly like a real one.
type Parts struct {
	// Logs and Stable may be the same store. All entries must have been stored by a Node.
	Logs   raft.LogStore
	Stable raft.StableStore
	// LogStore is the kind of Logs, for display.
	LogStore string
	// Snapshots must have been verified: a node trusts the newest.
	Snapshots raft.SnapshotStore
	// Transport is closed with the node.
	Transport raft.Transport
	// Discovery finds the peers. It must not have been started.
	Discovery Discovery
	// FreeSpace returns the number of bytes available for the data folder. Nil if unknown.
	FreeSpace func() (int64, error)
	// Wall returns the wall clock of the node in milliseconds since 1970, from which the cluster agrees on civil time. Nil
	// for that of the machine.
	Wall func() int64
	// Lost describes what the node's stores have lost; empty if nothing is known to be lost. Otherwise the stores must be
	// empty, because the remains of the old ones must not be used (docs/adr/0051). The node then takes part in nothing,
	// and forms no new cluster, until a leader has demoted it.
	Lost string
	// Stopped records in the stores that the node has stopped in an orderly way. It is called before Close, but not if the
	// node failed, because then nothing may be written to the stores any more. Nil if there is nothing to record.
	Stopped func() error
	// Close releases the stores after everything else has ended. Nil if there is nothing to release.
	Close func() error
}

func (p Parts) validate() error {
	if p.Logs == nil || p.Stable == nil || p.Snapshots == nil || p.Transport == nil || p.Discovery == nil {
		return errors.New("a node needs Logs, Stable, Snapshots, Transport and Discovery; one of its parts is missing")
	}
	return nil
}

func (p Parts) recordStop() error {
	if p.Stopped == nil {
		return nil
	}
	return p.Stopped()
}

func (p Parts) close() error {
	if p.Close == nil {
		return nil
	}
	return p.Close()
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
