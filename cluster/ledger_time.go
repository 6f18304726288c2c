package cluster

import (
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster/internal/peers"
	"github.com/quorate/quorate/fsm"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// timeSource knows ledger time and civil time as of now, on the leader and on the other nodes.
type timeSource struct {
	ledger    *fsm.FSM
	raft      *raft.Raft
	leader    *leaderFinder
	answers   *peers.Answers
	announced atomic.Pointer[leaderTime]
}

// leaderTime remembers when this node heard it.
type leaderTime struct {
	leader string
	at     quota.Instant
	heard  time.Time
}

// record takes 0 for an answer that does not tell ledger time.
func (t *timeSource) record(leader string, at quota.Instant) {
	if at != 0 {
		t.announced.Store(&leaderTime{leader: leader, at: at, heard: time.Now()})
	}
}

// LedgerTime is ledger time as of now; the ledger has only that of its last entry. A leader reads its clock. Another
// node adds to the time that the leader last told it what has passed until it last heard from that leader, so it knows
// at least the time of that answer and never more than the leader. Before the first answer of a leader it knows no more
// than its ledger.
func (n *Node) LedgerTime() quota.Instant { return n.times.ledgerTime() }

func (t *timeSource) ledgerTime() quota.Instant {
	applied := t.ledger.Now()
	if l := t.leader.own.Load(); l != nil {
		at, _ := l.clock.read()
		return max(applied, at)
	}
	announced := t.announced.Load()
	if announced == nil || announced.leader != t.leader.id() {
		return applied
	}
	since := max(0, t.raft.LastContact().Sub(announced.heard))
	return max(applied, announced.at+quota.Instant(since.Milliseconds()))
}

// leaderLedgerTime is 0 on a node that does not lead.
func (t *timeSource) leaderLedgerTime() quota.Instant {
	if t.leader.own.Load() == nil {
		return 0
	}
	return t.ledgerTime()
}

// CivilTime is civil time as of now, 0 while the members have not agreed on it. The ledger has civil time as of its
// last entry, which may be old. A leader adds what its clock has measured since. Another node adds to the last answer
// of the leader the age of that answer; without a current one it knows no more than its ledger.
func (n *Node) CivilTime() quota.CivilTime { return n.times.civilTime() }

func (t *timeSource) civilTime() quota.CivilTime {
	applied, offset := t.appliedCivilTime()
	if l := t.leader.own.Load(); l != nil || applied == 0 {
		return l.civilTime(applied, offset)
	}
	a := t.answers.Find(t.leader.id())
	if !a.IsCurrent() || a.CivilTime == 0 {
		return applied
	}
	return max(applied, a.CivilTime+quota.CivilTime(time.Since(a.AnsweredAt).Milliseconds()))
}

// appliedCivilTime is civil time as of the last entry, with its offset; 0 if there is none, and after a halt.
func (t *timeSource) appliedCivilTime() (applied quota.CivilTime, offset quota.Span) {
	if _, err := t.ledger.View(func(v ledger.Reader) { applied, offset = v.CivilTime(), v.CivilOffset() }); err != nil {
		return 0, 0
	}
	return applied, offset
}

// civilTime is civil time by the clock of the leadership, 0 if there is none.
func (l *leadership) civilTime(applied quota.CivilTime, offset quota.Span) quota.CivilTime {
	if applied == 0 {
		return 0
	}
	at, _ := l.clock.read()
	return max(applied, quota.CivilTime(at)+quota.CivilTime(offset))
}

// leaderCivilTime is 0 on a node that does not lead.
func (t *timeSource) leaderCivilTime() quota.CivilTime {
	l := t.leader.own.Load()
	if l == nil {
		return 0
	}
	return l.civilTime(t.appliedCivilTime())
}

// civilOffset is 0 if there is none, and after a halt.
func (t *timeSource) civilOffset() (offset quota.Span) {
	if _, err := t.ledger.View(func(v ledger.Reader) { offset = v.CivilOffset() }); err != nil {
		return 0
	}
	return offset
}
