package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/fsm"
	"github.com/quorate/quorate/fsm/backup"
)

// BackupInfo describes a backup that was written.
type BackupInfo struct {
	backup.Manifest
	backup.Sum
}

// Save writes a backup of the state to out without blocking writers. By default the backup contains everything that was
// acknowledged before the call; with Stale it contains what this node has applied. If Save fails, the data written so
// far is not a valid backup. The error is an *Error unless out or ctx failed.
func (n *Node) Save(ctx context.Context, o ReadOptions, out io.Writer) (BackupInfo, error) {
	state, err := n.captureState(ctx, o)
	if err != nil {
		return BackupInfo{}, err
	}
	m := backup.Manifest{
		Cluster: n.config.ClusterName, Node: n.config.ID, Version: n.config.Version,
		Term: n.raft.CurrentTerm(), TakenMs: time.Now().UnixMilli(), Stale: o.Stale, Info: state.Info(),
	}
	sum, err := backup.Write(contextWriter{ctx, out}, m, state)
	return BackupInfo{m, sum}, err
}

func (n *Node) captureState(ctx context.Context, o ReadOptions) (fsm.StateSnapshot, error) {
	if err := n.service.check(); err != nil {
		return fsm.StateSnapshot{}, err
	}
	if _, err := n.reads.awaitFresh(ctx, o); err != nil {
		return fsm.StateSnapshot{}, err
	}
	state, err := n.ledger.TakeSnapshot()
	if err != nil {
		return fsm.StateSnapshot{}, newError(Halted, true, err, "node %s has stopped serving", n.config.ID)
	}
	return state, nil
}

type contextWriter struct {
	ctx context.Context //nolint:containedctx // it ends the writer
	out io.Writer
}

// Write fails when the context has ended.
func (a contextWriter) Write(data []byte) (int, error) {
	if err := a.ctx.Err(); err != nil {
		return 0, err
	}
	return a.out.Write(data)
}

// Snapshot writes the current ledger into the snapshot store and truncates the log; raft also does so periodically. It
// does nothing if no entry was applied since the last snapshot.
func (n *Node) Snapshot(ctx context.Context) error {
	if err := n.service.check(); err != nil {
		return err
	}
	err := awaitFuture(ctx, n.raft.Snapshot())
	if err == nil || errors.Is(err, raft.ErrNothingNewToSnapshot) {
		return nil
	}
	return fmt.Errorf("take a snapshot on node %s: %w", n.config.ID, err)
}

// Digest covers everything that was applied up to index. Nodes at the same index must have the same digest (P9).
func (n *Node) Digest() (index uint64, digest [32]byte) { return n.ledger.Chain() }
