package cluster

import (
	"context"
	"time"

	"github.com/quorate/quorate/quota"
)

const (
	// tickInterval is how long a leader writes nothing while something is timed. A leader that crashes loses what its
	// clock has measured since the last entry: everything that ends by itself ends later by that.
	tickInterval = time.Second
	// lastTickTimeout bounds the last tick of a leadership. A leader whose disk hangs hands over without one.
	lastTickTimeout = 500 * time.Millisecond
)

// leaderTime is the ledger time that a leader told this node, and when this node heard it.
type leaderTime struct {
	leader string
	at     quota.Instant
	heard  time.Time
}

// recordLeaderTime remembers the ledger time of an answer of the leader; 0 if that does not tell it.
func (n *Node) recordLeaderTime(leader string, at quota.Instant) {
	if at != 0 {
		n.leaderTime.Store(&leaderTime{leader: leader, at: at, heard: time.Now()})
	}
}

// LedgerTime is ledger time as of now; the ledger has only that of its last entry. A leader reads its clock. Another
// node adds to the time that the leader last told it what has passed until it last heard from that leader, so it knows
// at least the time of that answer and never more than the leader. Before the first answer of a leader it knows no more
// than its ledger.
func (n *Node) LedgerTime() quota.Instant {
	applied := n.ledger.Now()
	if l := n.leadership.Load(); l != nil {
		at, _ := l.clock.read()
		return max(applied, at)
	}
	told := n.leaderTime.Load()
	if told == nil || told.leader != n.leaderID() {
		return applied
	}
	since := max(0, n.raft.LastContact().Sub(told.heard))
	return max(applied, told.at+quota.Instant(since.Milliseconds()))
}

// leaderLedgerTime is what a leader tells other nodes; 0 on another node.
func (n *Node) leaderLedgerTime() quota.Instant {
	if n.leadership.Load() == nil {
		return 0
	}
	return n.LedgerTime()
}

// unrecordedTime is what the clock of the leadership has measured since the last entry.
func (l *leadership) unrecordedTime() time.Duration {
	at, _ := l.clock.read()
	return max(0, spanDuration(quota.Span(at-l.node.ledger.Now())))
}

// untilTick is how long the leader may still be silent while something is timed.
func (l *leadership) untilTick() time.Duration {
	return l.node.config.scaleTimeout(tickInterval) - l.unrecordedTime()
}

// proposeLastTick writes ledger time before this node hands the leadership over, so that the next leader continues from
// there. It works without: the next leader then continues from the last entry.
func (n *Node) proposeLastTick(ctx context.Context) {
	l := n.leadership.Load()
	if l == nil || n.fault() != nil {
		return
	}
	if _, timed, _ := n.ledger.NextDue(); !timed || l.unrecordedTime() == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, n.config.scaleTimeout(lastTickTimeout))
	defer cancel()
	if err := l.writeExpiry(ctx); err != nil {
		n.log.Warn("ledger time was not written before the leadership is handed over", "error", err)
	}
}
