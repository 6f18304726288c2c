package check_test

import (
	"testing"

	"github.com/quorate/quorate/chaos/history"
)

func (s *script) readsAt(from, to, ledger int64) *script {
	return s.addOp(from, to, history.Op{
		Kind: history.ReadUsage, Index: 1, ServedBy: "n1", Claims: []history.Claim{{Tree: "t"}}, Usage: usageOf(0, 0, 0),
		Ledger: 1000 + ledger*500,
	})
}

// readsEvery reads five times in each half second, with a ledger time that is behind by some half seconds.
func (s *script) readsEvery(from, to, behind int64) *script {
	for at := 5 * from; at < 5*to; at++ {
		s.readsAt(0, 0, 0)
		o := &s.ops[len(s.ops)-1]
		o.Call, o.Return, o.Ledger = at*second/10, at*second/10, o.Ledger+(at-5*behind)*100
	}
	return s
}

// TestPunctualHistoriesPass: leaders that take no longer than allowed are not a violation.
func TestPunctualHistoriesPass(t *testing.T) {
	tests := map[string]*script{
		"nothing happens":             treeScript().readsEvery(2, 60, 0),
		"no leader for five seconds":  treeScript().readsEvery(2, 10, 0).readsEvery(20, 40, 10),
		"a leader dies before a tick": treeScript().readsEvery(2, 10, 0).readsEvery(14, 40, 7),
		"ledger time runs ahead":      treeScript().readsEvery(2, 10, 0).readsEvery(10, 20, -5),
		"a stale read":                treeScript().readsEvery(2, 10, 0).readsAt(20, 20, 0).markStale(),
		"a call spans the silence":    treeScript().readsEvery(2, 10, 0).readsAt(10, 20, 10).readsEvery(21, 40, 11),
		"a call that may have failed": treeScript().readsEvery(2, 10, 0).
			unanswered(12, 13, history.Allocate, "x", "a", 1).readsEvery(20, 40, 10),
	}
	for name, s := range tests {
		t.Run(name, func(t *testing.T) { s.wantBroken(t, "", "") })
	}
}

// TestLateHistoriesAreFound: time that a change of leader loses is found, however many changes share it.
func TestLateHistoriesAreFound(t *testing.T) {
	tests := map[string]*script{
		"a quiet minute is lost":   treeScript().readsEvery(2, 120, 0).readsEvery(124, 140, 120),
		"half of each ten seconds": treeScript().readsEvery(2, 20, 0).readsEvery(22, 40, 10).readsEvery(42, 60, 20),
		"time stands still":        treeScript().readsEvery(2, 10, 0).readsEvery(10, 30, 9),
	}
	for name, s := range tests {
		t.Run(name, func(t *testing.T) { s.wantBroken(t, "P12", "has fallen behind the callers'") })
	}
}
