package cluster

import (
	"context"
	"errors"

	"github.com/hashicorp/raft"
)

// Parts is what a node is made of. The node wraps all of them in the guards of package raftguard itself, so that a test
// node is guarded exactly as a real one.
type Parts struct {
	// Logs and Stable may be the same store. Entries must only ever have been stored by a Node.
	Logs   raft.LogStore
	Stable raft.StableStore
	// Snapshots were verified already: a node trusts the newest.
	Snapshots raft.SnapshotStore
	// Transport is closed with the node.
	Transport raft.Transport
	// Discovery finds the peers; it has not been started yet.
	Discovery Discovery
	// FreeSpace tells the bytes that are left for the data folder. Nil if nobody can tell.
	FreeSpace func() (int64, error)
	// Lost says what the node's stores have lost since they were used, empty if nothing is known to be lost. They must be
	// empty then: what is left of the old ones is not to be used (docs/adr/0051). The node takes part in nothing, and forms no
	// new cluster, until a leader has taken its vote.
	Lost string
	// Close releases the stores, after everything else has ended. Nil if there is nothing to release.
	Close func() error
}

func (p Parts) validate() error {
	if p.Logs == nil || p.Stable == nil || p.Snapshots == nil || p.Transport == nil || p.Discovery == nil {
		return errors.New("a node needs Logs, Stable, Snapshots, Transport and Discovery; one of its parts is missing")
	}
	return nil
}

func (p Parts) close() error {
	if p.Close == nil {
		return nil
	}
	return p.Close()
}

// Peer is what a node says about itself to the others.
type Peer struct {
	ID, RaftAddr, HTTPAddr string
	Version                string
	// FeatureLevel is the newest format of log entries that the node understands.
	FeatureLevel uint32
	// Expect is the node's BootstrapExpect.
	Expect int
	// HasState is true once the node has raft state: then no new cluster may be formed around it.
	HasState bool
	// Intent is the digest of the first configuration that the node would form; empty until it sees all of its peers.
	Intent string
	// Alive is false for a peer that was heard of and does not answer.
	Alive bool
}

// Discovery tells nodes of each other. What it says is a hint, perhaps late, perhaps wrong: raft decides membership.
type Discovery interface {
	// Start makes self known and begins to look for peers, without waiting to find any. Called once.
	Start(self Peer) error
	// Update changes what peers learn about this node.
	Update(self Peer) error
	// KeepMembers says who the members are: their names always have a place, however many others somebody makes up.
	KeepMembers(ids []string)
	// Peers returns the others that are known now, each with Alive set or not.
	Peers() []Peer
	// Join dials a peer that this node may not know yet, and answers whether that is news: false if it is known and alive.
	Join(ctx context.Context, address string) (bool, error)
	// Changed has a value whenever Peers may answer otherwise than before.
	Changed() <-chan struct{}
	// Leave says goodbye, so that peers do not take the silence for a fault.
	Leave(ctx context.Context) error
	// Close ends everything that Start began. It may be called without Start, and more than once.
	Close() error
}
