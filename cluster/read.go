package cluster

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster/internal/peers"
	"github.com/quorate/quorate/fsm"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// ReadOptions say how fresh a read must be. The zero value requests a linearizable read.
type ReadOptions struct {
	// Stale reads the state of this node at once.
	Stale bool
	// MinIndex waits until at least this index is applied on this node, for reading one's own write from another node.
	MinIndex uint64
	// Plan, of a Sandbox, is for dry runs of configuration changes. It lends a copy of the state if copying blocks writers
	// for a shorter time.
	Plan bool
	// WhatIf, of a Sandbox, is for one what-if, see [ledger.Sandbox.WhatIf].
	WhatIf bool
	// Admit, if not nil, is called when the state is fresh enough, before it is lent. It may block. Its error ends the
	// read.
	Admit func() error
}

// ReadInfo says how fresh a read was.
type ReadInfo struct {
	// Index is the last entry in the state that was read. Used as MinIndex of a later read on any node, it prevents that
	// read from seeing an earlier state.
	Index uint64
	// Now is ledger time as this node knows it (Node.LedgerTime), at least that of the last entry. It is not later than
	// the next instant at which the state changes by itself, so no remaining time is negative.
	Now   quota.Instant
	Stale bool
	// Age, of a stale read, is the time since this node last heard from a leader, or since it started if it has not heard
	// from one. It is 0 on the leader, which may have been deposed for at most the leader lease.
	Age time.Duration
}

// RemoteReadIndex asks the leader for its ReadIndex, and then for its LedgerTime; 0 if it does not tell it.
type RemoteReadIndex func(ctx context.Context, leader Member) (uint64, quota.Instant, error)

// reader brings the state of a node up to date for reads: it confirms an index with the leader and waits until that is
// applied here.
type reader struct {
	self     string
	timeouts timeoutScale
	service  *service
	raft     *raft.Raft
	logs     raft.LogStore
	ledger   *fsm.FSM
	roster   *peers.Roster
	leader   *leaderFinder
	times    *timeSource
	// remote asks the leader for an index; followers shares its answers among reads.
	remote    atomic.Pointer[RemoteReadIndex]
	followers *readBatcher
	// reachability tracks which leaders confirm reads.
	reachability *peers.Reachability
	lastCommand  *lastCommandIndex
}

// SetRemoteReadIndex sets the function that asks a remote leader. Without it a follower cannot serve linearizable
// reads.
func (n *Node) SetRemoteReadIndex(ask RemoteReadIndex) { n.reads.remote.Store(&ask) }

// Read lends the state to fn, which must not keep the view. By default the read is linearizable: it sees everything
// that was acknowledged before Read was called. It waits for a leader for up to three election timeouts. Errors are
// *Error; if there is one, the caller must discard what fn read. An error of Admit is returned unchanged.
func (n *Node) Read(ctx context.Context, o ReadOptions, fn func(ledger.Reader)) (ReadInfo, error) {
	return readState(ctx, n.reads, o, n.ledger.View, func(v ledger.Reader) { fn(v.At(wallNow())) })
}

// Sandbox is Read for an fn that answers questions by changing the state and restoring it. Raft and all other readers
// are blocked meanwhile.
func (n *Node) Sandbox(ctx context.Context, o ReadOptions, fn func(ledger.Sandbox)) (ReadInfo, error) {
	access := n.ledger.Sandbox
	switch {
	case o.WhatIf:
		access = n.ledger.WhatIfSandbox
	case o.Plan:
		access = n.ledger.PlanSandbox
	}
	return readState(ctx, n.reads, o, access, func(s ledger.Sandbox) { fn(s.At(wallNow())) })
}

// wallNow is the wall time in milliseconds since 1970. Rights that end with it end for readers too when nothing is
// written.
func wallNow() int64 { return time.Now().UnixMilli() }

func readState[V interface {
	Now() quota.Instant
	AsOf(at quota.Instant) V
}](
	ctx context.Context, r *reader, o ReadOptions, access func(func(V)) (uint64, error), fn func(V),
) (ReadInfo, error) {
	if err := r.service.check(); err != nil {
		return ReadInfo{}, err
	}
	index, err := r.awaitFresh(ctx, o)
	if err != nil {
		return ReadInfo{}, err
	}
	if o.Admit != nil {
		if err := o.Admit(); err != nil {
			return ReadInfo{}, err
		}
	}
	info := ReadInfo{Stale: o.Stale}
	if o.Stale {
		info.Age = r.leader.contactAge()
	}
	present := r.times.ledgerTime()
	info.Index, err = access(func(v V) {
		v = v.AsOf(present)
		info.Now = v.Now()
		fn(v)
	})
	if err != nil {
		return ReadInfo{}, newError(Halted, true, err, "node %s has stopped serving", r.self)
	}
	if info.Index < index && r.raft.AppliedIndex() < index {
		// raft has meanwhile replaced the state by a snapshot.
		return ReadInfo{}, newError(NoLeader, true, nil, "node %s is catching up; try again", r.self)
	}
	return info, nil
}

// awaitFresh returns the applied index.
func (r *reader) awaitFresh(ctx context.Context, o ReadOptions) (uint64, error) {
	index := o.MinIndex
	if !o.Stale {
		confirmed, err := r.confirmedIndex(ctx)
		if err != nil {
			return 0, err
		}
		index = max(index, confirmed)
	}
	return index, r.awaitApplied(ctx, index)
}

// confirmedIndex returns an index for a linearizable read, from this node or from the leader. Because reads change
// nothing, it retries while the leadership changes.
func (r *reader) confirmedIndex(ctx context.Context) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeouts.leaderWait())
	defer cancel()
	for {
		if _, err := r.leader.wait(ctx); err != nil {
			return 0, err
		}
		index, err := r.confirmOnce(ctx)
		if err == nil || ctx.Err() != nil || r.service.check() != nil {
			return index, err
		}
		if !sleepContext(ctx, readRetry) {
			return 0, err
		}
	}
}

// leaderProbeInterval is how often a follower without reads sends a query to its leader.
const leaderProbeInterval = 2 * time.Second

// readRetry is the pause before a read is retried after a leader did not confirm it.
const readRetry = 50 * time.Millisecond

func (r *reader) confirmOnce(ctx context.Context) (uint64, error) {
	if r.leader.leads() {
		l, err := r.leader.established()
		if err != nil {
			return 0, err
		}
		return l.reads.waitConfirmed(ctx)
	}
	return r.followers.waitConfirmed(ctx)
}

// requestReadIndex asks the leader once on behalf of all reads of a batch.
func (r *reader) requestReadIndex() (uint64, error) {
	ask := r.remote.Load()
	leader, known := r.leader.find()
	if !known || ask == nil {
		return 0, newError(NoLeader, true, nil, "node %s knows no leader that it could ask for a read", r.self)
	}
	ctx, cancel := context.WithTimeout(r.service.ctx, r.timeouts.scale(stepTimeout))
	defer cancel()
	index, at, err := (*ask)(ctx, leader)
	if r.service.ctx.Err() == nil && r.roster.Contains(leader.ID) {
		r.reachability.Record(leader.ID, err)
	}
	if err != nil {
		e := newError(NoLeader, true, err, "leader %s did not confirm the read", leader.ID)
		e.Leader = leader.ID
		return 0, e
	}
	r.times.record(leader.ID, at)
	return index, nil
}

// awaitApplied waits until the ledger contains everything up to index. The ledger counts only the entries that reach
// it. An index of another kind of entry, which only a caller can have provided, is resolved from the log as soon as
// raft has passed it.
func (r *reader) awaitApplied(ctx context.Context, index uint64) error {
	const checkInterval = 20 * time.Millisecond
	for r.ledger.Applied() < index {
		target := index
		if r.raft.AppliedIndex() >= index {
			below, err := r.lastCommand.atOrBelow(index, r.logs, r.ledger.Applied)
			if err != nil {
				return err
			}
			target = below
		}
		short, cancel := context.WithTimeout(ctx, checkInterval)
		err := r.ledger.WaitApplied(short, target)
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return newError(Deadline, true, ctx.Err(), "node %s has applied entry %d, not yet %d",
				r.self, r.ledger.Applied(), index)
		}
		if err := r.service.check(); err != nil {
			return err
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			return newError(Halted, true, err, "node %s has stopped serving", r.self)
		}
	}
	return nil
}

// probeLeader queries the leader while there are no reads, so that a follower that cannot serve reads detects it before
// its callers do.
func (r *reader) probeLeader() {
	for sleepContext(r.service.ctx, r.timeouts.scale(leaderProbeInterval)) {
		r.reachability.Retain(r.roster.ServerIDs())
		leader, known := r.leader.find()
		if !known || leader.ID == r.self || r.remote.Load() == nil ||
			r.reachability.AnsweredSince(leader.ID, r.timeouts.scale(leaderProbeInterval)) {
			continue
		}
		_, _ = r.requestReadIndex() // requestReadIndex records the result
	}
}

// checkLeaderReachable returns an error if this node follows a leader that has answered none of its queries for some
// time.
func (r *reader) checkLeaderReachable(leader Member) error {
	since, err := r.reachability.UnreachableFor(leader.ID)
	if leader.ID == r.self || since < r.timeouts.scale(peers.UnreachableAfter) {
		return nil
	}
	return newError(NoLeader, true, err, "node %s cannot confirm reads with leader %s for %v: %v",
		r.self, leader.ID,
		since.Round(time.Second), err)
}

// The feed of watch events of the state machine; see package fsm.
type (
	// Position is a position in the feed, the same on all nodes.
	Position = fsm.Position
	// WatchEvent is one watch event with its position.
	WatchEvent = fsm.WatchEvent
	// FeedPage is a range of the feed.
	FeedPage = fsm.FeedPage
)

// FeedSize is the number of watch events that a node keeps.
const FeedSize = fsm.FeedSize

// PositionAfter returns the position after all watch events of the entry at index: where to continue after a read at
// that index.
func PositionAfter(index uint64) Position { return fsm.After(index) }

// LatestPosition is the position after everything that a node has applied when it is asked.
func LatestPosition() Position { return fsm.Latest() }

// ReadFeed returns at most limit (at least one) watch events after a position, from what this node has applied. The
// page says where and when to continue. It works on every node. The error is Forgotten if the events after the position
// are no longer kept; Next is then the first position that is.
func (n *Node) ReadFeed(after Position, limit int) (FeedPage, error) {
	if err := n.service.check(); err != nil {
		return FeedPage{}, err
	}
	page, err := n.ledger.ReadFeed(after, limit)
	if err != nil {
		return page, newError(Forgotten, true, err, "node %s cannot continue from entry %d; read the state and "+
			"continue from its index", n.config.ID, after.Index)
	}
	return page, nil
}

// WaitApplied waits until an entry at or after an index has changed the state of this node. It fails when ctx ends or
// the node stops serving.
func (n *Node) WaitApplied(ctx context.Context, index uint64) error {
	return n.ledger.WaitApplied(ctx, index)
}

// AuditRecords returns at most limit audit records of the ledger with numbers above a number, oldest first, the newest
// record, and a channel that is closed when there are others. It works on every node, from what this node has applied;
// records beyond the bounds of [audit.Ring] are forgotten.
func (n *Node) AuditRecords(after uint64, limit int) ([]audit.Entry, audit.Head, <-chan struct{}) {
	return n.ledger.AuditRecords(after, limit)
}

// AuditIntent is the record of a change before it is proposed; false if the command changes neither the configuration
// nor access.
func AuditIntent(caller *access.Caller, c quota.Command) (audit.Record, bool) {
	return fsm.AuditIntent(caller, c)
}

// AuditGrantIntent is the record of a request for quota before it is proposed; false for other commands.
func AuditGrantIntent(caller *access.Caller, c quota.Command) (audit.Record, bool) {
	return fsm.AuditGrantIntent(caller, c)
}

// AuditHold is the record of what has happened to an allocation, see package fsm.
func AuditHold(e WatchEvent) audit.Record { return fsm.AuditHold(e) }

// AuditActor is a caller as audit records show it.
func AuditActor(caller *access.Caller) audit.Actor { return fsm.ActorOf(caller) }
