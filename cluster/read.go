package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// ReadOptions say how fresh a read must be. The zero value asks for a linearizable read.
type ReadOptions struct {
	// Stale reads at once from what this node has.
	Stale bool
	// MinIndex waits until at least this index is applied here, for reading one's own write on another node.
	MinIndex uint64
	// Exclusive lends the state to nobody else meanwhile, as a dry run needs, which may change it and take that back. Raft
	// waits meanwhile.
	Exclusive bool
	// Plan is Exclusive for dry runs of changes of the configuration. It lends a copy of the state if that keeps writers waiting
	// for less time.
	Plan bool
	// Admit, if not nil, is called when the state is as fresh as it must be, before it is lent. It may wait. Its error ends the read.
	Admit func() error
}

// ReadInfo says how fresh a read was.
type ReadInfo struct {
	// Index is the last entry in the state that was read. As MinIndex of a later read on any node it never leads back in
	// time.
	Index uint64
	// Now is the ledger's time.
	Now   quota.Instant
	Stale bool
	// Age, of a stale read, is the time since this node last heard from a leader, or since it started if it has heard
	// from none. It is 0 on the leader itself, which may have been deposed for at most the leader lease.
	Age time.Duration
}

// RemoteReadIndex asks the leader for its ReadIndex.
type RemoteReadIndex func(ctx context.Context, leader Member) (uint64, error)

// SetRemoteReadIndex tells this node how to ask a leader elsewhere. Until then it serves no linearizable read while it
// follows.
func (n *Node) SetRemoteReadIndex(ask RemoteReadIndex) { n.remote.Store(&ask) }

// Read lends the state to fn, which must not keep the view. By default the read is linearizable: it sees everything
// that was acknowledged before Read was called. It waits for a leader up to three election timeouts. Errors are *Error;
// whatever fn saw then must be thrown away. An error of Admit is returned as it is.
func (n *Node) Read(ctx context.Context, o ReadOptions, fn func(ledger.View)) (ReadInfo, error) {
	if err := n.serving(); err != nil {
		return ReadInfo{}, err
	}
	index := o.MinIndex
	if !o.Stale {
		confirmed, err := n.confirmedIndex(ctx)
		if err != nil {
			return ReadInfo{}, err
		}
		index = max(index, confirmed)
	}
	if err := n.awaitApplied(ctx, index); err != nil {
		return ReadInfo{}, err
	}
	if o.Admit != nil {
		if err := o.Admit(); err != nil {
			return ReadInfo{}, err
		}
	}
	info := ReadInfo{Stale: o.Stale}
	if o.Stale {
		info.Age = n.age()
	}
	var err error
	lend := n.ledger.View
	switch {
	case o.Plan:
		lend = n.ledger.Plan
	case o.Exclusive:
		lend = n.ledger.Try
	}
	info.Index, err = lend(func(v ledger.View) {
		info.Now = v.Now()
		fn(v)
	})
	if err != nil {
		return ReadInfo{}, failure(Halted, true, err, "node %s has stopped serving", n.config.ID)
	}
	if info.Index < index && n.raft.AppliedIndex() < index {
		// raft has replaced the state by a snapshot since it was waited for.
		return ReadInfo{}, failure(NoLeader, true, nil, "node %s is catching up; try again", n.config.ID)
	}
	return info, nil
}

func (n *Node) age() time.Duration {
	if n.IsLeader() {
		return 0
	}
	contact := n.raft.LastContact()
	if contact.Before(n.started) {
		contact = n.started
	}
	return time.Since(contact)
}

// confirmedIndex gets an index for a linearizable read, here or from the leader. Reads change nothing, so it tries
// again while leaders come and go.
func (n *Node) confirmedIndex(ctx context.Context) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, n.config.patience())
	defer cancel()
	for {
		if _, err := n.WaitLeader(ctx); err != nil {
			return 0, err
		}
		index, err := n.tryConfirm(ctx)
		if err == nil || ctx.Err() != nil || n.serving() != nil {
			return index, err
		}
		if !after(ctx, readRetry) {
			return 0, err
		}
	}
}

// readRetry is the pause before a read asks again after a leader did not confirm.
const readRetry = 50 * time.Millisecond

func (n *Node) tryConfirm(ctx context.Context) (uint64, error) {
	if n.IsLeader() {
		return n.ReadIndex(ctx)
	}
	return n.asks.join(ctx)
}

// askLeader is one question to the leader on behalf of all reads that wait here.
func (n *Node) askLeader() (uint64, error) {
	ask := n.remote.Load()
	leader, known := n.Leader()
	if !known || ask == nil {
		return 0, failure(NoLeader, true, nil, "node %s knows no leader that it could ask for a read", n.config.ID)
	}
	ctx, cancel := context.WithTimeout(n.ctx, n.config.scaled(stepTimeout))
	defer cancel()
	index, err := (*ask)(ctx, leader)
	n.noteAnswer(n.confirms, leader.ID, err)
	if err != nil {
		e := failure(NoLeader, true, err, "leader %s did not confirm the read", leader.ID)
		e.Leader = leader.ID
		return 0, e
	}
	return index, nil
}

// awaitApplied waits until everything up to index is in the ledger, at most until ctx ends. The ledger counts only
// entries that reach it, so an index of another kind of entry, which only a caller can have named, is looked up in the
// log as soon as raft is past it.
func (n *Node) awaitApplied(ctx context.Context, index uint64) error {
	const look = 20 * time.Millisecond
	for n.ledger.Applied() < index {
		target := index
		if n.raft.AppliedIndex() >= index {
			below, err := n.horizon.below(index, n.logs, n.ledger.Applied)
			if err != nil {
				return err
			}
			target = below
		}
		short, cancel := context.WithTimeout(ctx, look)
		err := n.ledger.WaitApplied(short, target)
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return failure(Deadline, true, ctx.Err(), "node %s has applied entry %d, not yet %d",
				n.config.ID, n.ledger.Applied(), index)
		}
		if err := n.serving(); err != nil {
			return err
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			return failure(Halted, true, err, "node %s has stopped serving", n.config.ID)
		}
	}
	return nil
}
