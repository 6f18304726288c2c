package cluster

import (
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
