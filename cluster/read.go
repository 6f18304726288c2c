package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/quorate/quorate/fsm"
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
func (n *Node) SetRemoteReadIndex(ask RemoteReadIndex) { n.remoteReadIndex.Store(&ask) }

// Read lends the state to fn, which must not keep the view. By default the read is linearizable: it sees everything
// that was acknowledged before Read was called. It waits for a leader up to three election timeouts. Errors are *Error;
// whatever fn saw then must be thrown away. An error of Admit is returned as it is.
func (n *Node) Read(ctx context.Context, o ReadOptions, fn func(ledger.View)) (ReadInfo, error) {
	if err := n.checkServing(); err != nil {
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
		info.Age = n.leaderContactAge()
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
		return ReadInfo{}, newError(Halted, true, err, "node %s has stopped serving", n.config.ID)
	}
	if info.Index < index && n.raft.AppliedIndex() < index {
		// raft has replaced the state by a snapshot since it was waited for.
		return ReadInfo{}, newError(NoLeader, true, nil, "node %s is catching up; try again", n.config.ID)
	}
	return info, nil
}

func (n *Node) leaderContactAge() time.Duration {
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
	ctx, cancel := context.WithTimeout(ctx, n.config.leaderWait())
	defer cancel()
	for {
		if _, err := n.WaitLeader(ctx); err != nil {
			return 0, err
		}
		index, err := n.confirmOnce(ctx)
		if err == nil || ctx.Err() != nil || n.checkServing() != nil {
			return index, err
		}
		if !sleepContext(ctx, readRetry) {
			return 0, err
		}
	}
}

// readRetry is the pause before a read asks again after a leader did not confirm.
const readRetry = 50 * time.Millisecond

func (n *Node) confirmOnce(ctx context.Context) (uint64, error) {
	if n.IsLeader() {
		return n.ReadIndex(ctx)
	}
	return n.followerReads.waitConfirmed(ctx)
}

// requestReadIndex is one question to the leader on behalf of all reads that wait here.
func (n *Node) requestReadIndex() (uint64, error) {
	ask := n.remoteReadIndex.Load()
	leader, known := n.Leader()
	if !known || ask == nil {
		return 0, newError(NoLeader, true, nil, "node %s knows no leader that it could ask for a read", n.config.ID)
	}
	ctx, cancel := context.WithTimeout(n.ctx, n.config.scaleTimeout(stepTimeout))
	defer cancel()
	index, err := (*ask)(ctx, leader)
	n.recordReachability(n.readReachability, leader.ID, err)
	if err != nil {
		e := newError(NoLeader, true, err, "leader %s did not confirm the read", leader.ID)
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
			below, err := n.lastCommand.atOrBelow(index, n.logs, n.ledger.Applied)
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
			return newError(Deadline, true, ctx.Err(), "node %s has applied entry %d, not yet %d",
				n.config.ID, n.ledger.Applied(), index)
		}
		if err := n.checkServing(); err != nil {
			return err
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			return newError(Halted, true, err, "node %s has stopped serving", n.config.ID)
		}
	}
	return nil
}

// What the feed of facts says, and where: see the state machine.
type (
	// Position is a place in the feed, the same on all nodes.
	Position = fsm.Position
	// Event is a fact with its place.
	Event = fsm.News
	// EventPage is what the feed has to say at one moment.
	EventPage = fsm.Bulletin
)

// EventFeedSize is how many facts a node remembers.
const EventFeedSize = fsm.FeedSize

// PositionAfter is the position behind everything that the entry of an index did: the one to read news from after a read.
func PositionAfter(index uint64) Position { return fsm.After(index) }

// LatestPosition is the position behind everything that a node has applied when it is asked.
func LatestPosition() Position { return fsm.Latest() }

// Events answers at most so many facts behind a position, at least one, from what this node has applied; the bulletin says
// where to go on and when. Any node can. The error says Forgotten if the position is too far back.
func (n *Node) Events(after Position, most int) (EventPage, error) {
	if err := n.checkServing(); err != nil {
		return EventPage{}, err
	}
	bulletin, err := n.ledger.News(after, most)
	if err != nil {
		return EventPage{}, newError(Forgotten, true, err, "node %s cannot go on from entry %d; look at the state and go on from the index "+
			"of that", n.config.ID, after.Index)
	}
	return bulletin, nil
}
