package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"
)

// Snapshot writes the ledger as it is now into the snapshot store and shortens the log, as happens by itself from time
// to time. It does nothing if there is nothing new since the last one.
func (n *Node) Snapshot(ctx context.Context) error {
	if err := n.serving(); err != nil {
		return err
	}
	err := await(ctx, n.raft.Snapshot())
	if err == nil || errors.Is(err, raft.ErrNothingNewToSnapshot) {
		return nil
	}
	return fmt.Errorf("take a snapshot on node %s: %w", n.config.ID, err)
}

// Digest is over everything that was applied up to index. Nodes at the same index must have the same (P9).
func (n *Node) Digest() (index uint64, digest [32]byte) { return n.ledger.Chain() }
