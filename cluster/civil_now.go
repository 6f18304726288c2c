package cluster

import (
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// CivilTime is civil time as of now, 0 while the members have not agreed on it. The ledger has civil time as of its
// last entry; a leader adds what has passed since. Another node answers that of its last entry.
func (n *Node) CivilTime() quota.CivilTime {
	var applied quota.CivilTime
	var offset quota.Span
	_, err := n.ledger.View(func(v ledger.View) { applied, offset = v.CivilTime(), v.CivilOffset() })
	if err != nil || applied == 0 {
		return 0
	}
	if l := n.leadership.Load(); l != nil {
		at, _ := l.clock.read()
		applied = max(applied, quota.CivilTime(at)+quota.CivilTime(offset))
	}
	return applied
}
