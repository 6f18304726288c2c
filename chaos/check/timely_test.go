package check_test

import (
	"testing"

	"github.com/quorate/quorate/chaos/check"
	"github.com/quorate/quorate/chaos/history"
)

// wallAt is the true time at a time of a script, in milliseconds since 1970.
func wallAt(halfSeconds int64) int64 { return 1_000_000_000_000 + halfSeconds*500 }

// windowOf is the limit of a that the tests schedule, as an answer shows it.
func windowOf(amount, from, until int64, inForce bool) history.ScheduledLimit {
	return history.ScheduledLimit{
		Limit: limitOf("a", amount), ID: "w", From: wallAt(from), Until: wallAt(until), InForce: inForce,
	}
}

// schedule sets the limit of a in a window.
func (s *script) schedule(from, to int64, w history.ScheduledLimit) *script {
	return s.addOp(from, to, history.Op{Kind: history.Schedule, ID: w.ID, Scheduled: []history.ScheduledLimit{w}})
}

func (s *script) losesAnswer() *script {
	s.ops[len(s.ops)-1].Outcome = history.Unknown
	return s
}

func (s *script) refused() *script {
	s.ops[len(s.ops)-1].Outcome = history.Refused
	return s
}

// readSchedule tells civil time as of the call.
func (s *script) readSchedule(from, to int64, index uint64, list ...history.ScheduledLimit) *script {
	return s.addOp(from, to, history.Op{
		Kind: history.ReadSchedule, Index: index, ServedBy: "n1", Scheduled: list, Civil: wallAt(from), Wall: wallAt(to),
		Ledger: wallAt(from) - wallAt(0),
	})
}

// civilOff changes civil time in the last answer, by half seconds; behind, because ledger time is.
func (s *script) civilOff(halfSeconds int64) *script {
	o := &s.ops[len(s.ops)-1]
	o.Civil += wallAt(halfSeconds) - wallAt(0)
	o.Ledger += min(0, wallAt(halfSeconds)-wallAt(0))
	return s
}

// standStill lets civil time in the last answer be as it was some half seconds before, while ledger time went on.
func (s *script) standStill(behind int64) *script {
	s.ops[len(s.ops)-1].Civil -= wallAt(behind) - wallAt(0)
	return s
}

// scheduledAt are two final states of one index with what is scheduled.
func (s *script) scheduledAt(index uint64, civil, wall int64, first, second []history.ScheduledLimit) *script {
	for _, list := range [][]history.ScheduledLimit{first, second} {
		s.addFinal(index, nil)
		last := &s.finals.States[len(s.finals.States)-1]
		last.Scheduled, last.Civil, last.Wall = list, wallAt(civil), wallAt(wall)
		last.Ledger = wallAt(civil) - wallAt(0)
	}
	return s
}

// TestTimelyHistoriesPass: no check reports what scheduled limits may do.
func TestTimelyHistoriesPass(t *testing.T) {
	w := func(amount int64, inForce bool) history.ScheduledLimit { return windowOf(amount, 8, 16, inForce) }
	tests := map[string]*script{
		"raised for a while": treeScript().schedule(2, 3, w(9, false)).readSchedule(4, 5, 3, w(9, false)).
			deny(6, 7, "x", "a", 7, violationAt("a", 6, 0, 7)).setIndex(4).readSchedule(8, 9, 5, w(9, true)).
			grant(10, 11, "y", "a", 8, 6, 1).readSchedule(18, 19, 7).readUsageWith(20, 21, 7, 8, 6).
			deny(22, 23, "z", "a", 1, violationAt("a", 6, 8, 1)).setIndex(8),
		"lowered for a while": treeScript().schedule(2, 3, w(2, false)).grant(8, 9, "x", "a", 2, 3, 1).
			readSchedule(10, 11, 4, w(2, true)).deny(12, 13, "y", "a", 2, violationAt("a", 2, 2, 2)).
			readSchedule(18, 19, 6).grant(20, 21, "z", "a", 4, 7, 2),
		"no answer shows it": treeScript().schedule(2, 3, w(9, false)).grant(10, 11, "x", "a", 8, 3, 1),
		"no leader saw it": treeScript().schedule(2, 3, w(9, false)).readSchedule(20, 21, 3).
			readUsageWith(22, 23, 4, 0, 6),
		"its call was lost, and it is in force": treeScript().schedule(2, 3, w(9, false)).losesAnswer().
			readSchedule(9, 10, 3, w(9, true)).grant(10, 11, "x", "a", 8, 4, 1),
		"its call was lost, and it is in force unseen": treeScript().schedule(2, 3, w(9, false)).losesAnswer().
			grant(10, 11, "x", "a", 8, 3, 1),
		"its call never arrived": treeScript().schedule(2, 3, w(9, false)).losesAnswer().
			readSchedule(10, 11, 3).deny(12, 13, "x", "a", 7, violationAt("a", 6, 0, 7)).setIndex(4),
		"read before it was scheduled": treeScript().schedule(2, 9, w(9, false)).readSchedule(4, 5, 2).
			readSchedule(10, 11, 3, w(9, true)),
		"a read of the past": treeScript().schedule(2, 3, w(9, false)).readSchedule(4, 5, 2).markStale(),
		"a clock that is a second wrong": treeScript().schedule(2, 3, w(9, false)).
			readSchedule(5, 6, 3, w(9, true)).civilOff(3).readSchedule(6, 7, 2, w(9, false)).civilOff(-2).markStale().
			readUsageWith(7, 8, 3, 0, 9).grant(8, 9, "x", "a", 8, 4, 1),
		"civil time stands still until the clocks have caught up": treeScript().readSchedule(2, 3, 2).civilOff(4).
			readSchedule(6, 7, 3).readSchedule(8, 9, 4).standStill(2),
		"a read that failed": treeScript().schedule(2, 3, w(9, false)).addOp(4, 5, history.Op{
			Kind: history.ReadSchedule, Outcome: history.Failed, Wall: wallAt(5),
		}),
		"begun late after an outage": treeScript().schedule(2, 3, w(9, false)).readSchedule(14, 15, 3, w(9, false)).
			civilOff(-10).readSchedule(15, 16, 4, w(9, true)).civilOff(-6).
			readSchedule(18, 19, 5, w(9, true)).civilOff(-4).readSchedule(20, 21, 6),
		"the same on all members": treeScript().schedule(2, 3, w(9, false)).
			scheduledAt(9, 10, 11, []history.ScheduledLimit{w(9, true)}, []history.ScheduledLimit{w(9, true)}),
	}
	for name, s := range tests {
		t.Run(name, func(t *testing.T) { s.wantBroken(t, "", "") })
	}
}

// TestUntimelyHistoriesAreFound: the checks find limits that begin or end at the wrong time.
func TestUntimelyHistoriesAreFound(t *testing.T) {
	w := func(amount int64, inForce bool) history.ScheduledLimit { return windowOf(amount, 20, 40, inForce) }
	scheduled := func(amount int64) *script { return treeScript().schedule(2, 3, w(amount, false)) }
	tests := map[string]struct {
		script         *script
		promise, words string
	}{
		"civil time is ahead": {scheduled(9).readSchedule(4, 5, 3).civilOff(6), "P11", "2.5s ahead of the clocks"},
		"civil time goes back": {
			scheduled(9).readSchedule(4, 5, 3, w(9, false)).readSchedule(6, 7, 4, w(9, false)).civilOff(-3), "P11",
			"civil time is 2001-09-09 01:46:41.500 at index 4 (n1), but was 2001-09-09 01:46:42.000",
		},
		"civil time stands still": {
			scheduled(9).readSchedule(4, 5, 3, w(9, false)).readSchedule(13, 14, 4, w(9, false)).standStill(10), "P11",
			"it stood still for 5s",
		},
		"in force before its begin": {scheduled(9).readSchedule(10, 11, 3, w(9, true)), "P11", "and begins at"},
		"ended before its end": {
			scheduled(9).readSchedule(22, 23, 3, w(9, true)).readSchedule(30, 31, 4).markStale(), "P11", "and ends at",
		},
		"ended before its end, and never seen": {scheduled(9).readSchedule(30, 31, 3), "P11", "and ends at"},
		"ahead in the final states":            {scheduled(9).scheduledAt(9, 30, 10, nil, nil), "P11", "10s ahead"},
		"used before it can have begun": {
			scheduled(9).readSchedule(4, 5, 2, w(9, false)).grant(6, 7, "x", "a", 8, 3, 1).
				readSchedule(10, 11, 4, w(9, false)), "P1", "above the limit of 6",
		},
		"used before it can have begun by the clock": {
			scheduled(9).readSchedule(4, 5, 2, w(9, false)).grant(6, 7, "x", "a", 8, 3, 1).
				readSchedule(8, 9, 2, w(9, false)).civilOff(-4).markStale(), "P1", "above the limit of 6",
		},
		"used before it began in the log": {
			scheduled(9).readSchedule(4, 5, 2, w(9, false)).grant(18, 19, "x", "a", 8, 3, 1).
				readSchedule(20, 21, 4, w(9, false)).civilOff(-4).readSchedule(22, 23, 5, w(9, true)), "P1",
			"above the limit of 6",
		},
		"used although it was refused": {
			scheduled(9).refused().grant(22, 23, "x", "a", 8, 3, 1), "P1", "above the limit of 6",
		},
		"used after its end": {
			scheduled(9).readSchedule(22, 23, 3, w(9, true)).readSchedule(42, 43, 4).grant(44, 45, "x", "a", 8, 5, 1),
			"P1", "above the limit of 6",
		},
		"not obeyed": {
			treeScript().schedule(2, 3, windowOf(2, 20, 28, false)).readSchedule(22, 23, 3, windowOf(2, 20, 28, true)).
				grant(24, 25, "x", "a", 3, 4, 1).readSchedule(26, 27, 5, windowOf(2, 20, 28, true)), "P1",
			"above the limit of 2",
		},
		"the limit in force is not shown": {
			scheduled(2).readSchedule(22, 23, 3, w(2, true)).readUsageWith(24, 25, 4, 0, 6).
				readSchedule(26, 27, 5, w(2, true)), "linearizable", "no order",
		},
		"two members have two calendars": {
			scheduled(9).scheduledAt(9, 10, 11, []history.ScheduledLimit{w(9, false)}, nil), "P9", "scheduled limits",
		},
		"two answers at one index": {
			scheduled(9).readSchedule(22, 23, 3, w(9, true)).readSchedule(22, 23, 3, w(9, false)), "P9", "differ",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test.script.wantBroken(t, test.promise, test.words) })
	}
}

// TestLatenessIsNotHealthy: a cluster is not healthy while something that is due has not happened.
func TestLatenessIsNotHealthy(t *testing.T) {
	state := func(civil int64, list ...history.ScheduledLimit) check.Finals {
		return check.Finals{States: []check.State{{Civil: wallAt(civil), Wall: wallAt(100), Scheduled: list}}}
	}
	for name, test := range map[string]struct {
		finals check.Finals
		late   bool
	}{
		"no civil time":        {check.Finals{States: []check.State{{Wall: wallAt(100)}}}, false},
		"civil time is right":  {state(99, windowOf(9, 98, 102, true), windowOf(9, 102, 104, false)), false},
		"civil time is behind": {state(88), true},
		"should have begun":    {state(99, windowOf(9, 99, 102, false)), true},
		"should have ended":    {state(99, windowOf(9, 90, 99, true)), true},
	} {
		if err := test.finals.CheckLateness(); (err != nil) != test.late {
			t.Errorf("%s: %v", name, err)
		}
	}
}
