package cluster

import (
	"context"
	"io"
	"time"

	"github.com/quorate/quorate/fsm"
	"github.com/quorate/quorate/fsm/backup"
)

// Saved says what a backup holds.
type Saved struct {
	backup.Manifest
	backup.Sum
}

// Save writes a backup of the state to out, without holding up writers. By default it holds everything that was
// acknowledged before the call; a stale one is what this node has. What was written is no backup if there is an error;
// it is an *Error unless out or ctx failed.
func (n *Node) Save(ctx context.Context, o ReadOptions, out io.Writer) (Saved, error) {
	state, err := n.freeze(ctx, o)
	if err != nil {
		return Saved{}, err
	}
	m := backup.Manifest{
		Cluster: n.config.ClusterName, Node: n.config.ID, Version: n.config.Version,
		Term: n.raft.CurrentTerm(), TakenMs: time.Now().UnixMilli(), Stale: o.Stale, Info: state.Info(),
	}
	sum, err := backup.Write(alive{ctx, out}, m, state)
	return Saved{m, sum}, err
}

func (n *Node) freeze(ctx context.Context, o ReadOptions) (fsm.Frozen, error) {
	if err := n.serving(); err != nil {
		return fsm.Frozen{}, err
	}
	index := o.MinIndex
	if !o.Stale {
		confirmed, err := n.confirmedIndex(ctx)
		if err != nil {
			return fsm.Frozen{}, err
		}
		index = max(index, confirmed)
	}
	if err := n.awaitApplied(ctx, index); err != nil {
		return fsm.Frozen{}, err
	}
	state, err := n.ledger.Freeze()
	if err != nil {
		return fsm.Frozen{}, failure(Halted, true, err, "node %s has stopped serving", n.config.ID)
	}
	return state, nil
}

// alive writes for as long as a context lasts.
type alive struct {
	ctx context.Context //nolint:containedctx // it is the life of the writer
	out io.Writer
}

// Write fails when the context has ended.
func (a alive) Write(data []byte) (int, error) {
	if err := a.ctx.Err(); err != nil {
		return 0, err
	}
	return a.out.Write(data)
}
