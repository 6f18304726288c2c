package cluster

import (
	"time"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// CivilTime is civil time as of now, 0 while the members have not agreed on it. The ledger has civil time as of its
// last entry, which may be old. A leader adds what its clock has measured since. Another node adds to the last answer
// of the leader the age of that answer; without a current one it knows no more than its ledger.
func (n *Node) CivilTime() quota.CivilTime {
	applied, offset := n.appliedCivilTime()
	if l := n.leadership.Load(); l != nil || applied == 0 {
		return l.civilTime(applied, offset)
	}
	a := n.answers.findAnswer(n.leaderID())
	if !a.isCurrent() || a.CivilTime == 0 {
		return applied
	}
	return max(applied, a.CivilTime+quota.CivilTime(time.Since(a.answeredAt).Milliseconds()))
}

// appliedCivilTime is civil time as of the last entry, with its offset; 0 if there is none, and after a halt.
func (n *Node) appliedCivilTime() (applied quota.CivilTime, offset quota.Span) {
	if _, err := n.ledger.View(func(v ledger.View) { applied, offset = v.CivilTime(), v.CivilOffset() }); err != nil {
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

// leaderCivilTime is what a leader tells other nodes; 0 on another node.
func (n *Node) leaderCivilTime() quota.CivilTime {
	l := n.leadership.Load()
	if l == nil {
		return 0
	}
	return l.civilTime(n.appliedCivilTime())
}
