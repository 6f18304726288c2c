package check_test

import (
	"testing"

	"github.com/quorate/quorate/chaos/history"
)

// TestViolationsAreFound: every check finds the violations that it is there for.
func TestViolationsAreFound(t *testing.T) {
	tests := map[string]struct {
		script         *script
		promise, words string
	}{
		"over the limit of a node": {treeScript().grant(2, 3, "x", "a", 4, 2, 1).grant(4, 5, "y", "a", 4, 3, 2).
			regrant(6, 7, "x", "a", 4, 4, 1), "P1", "8 units are held at t:a"},
		"over the limit of a tree, by an unanswered grant": {
			treeScript().grant(2, 3, "x", "a", 5, 2, 1).unanswered(4, 5, history.Allocate, "y", "b", 6).
				addFinal(9, usageOf(11, 5, 6), heldRecord("x", "a", 5, 1), heldRecord("y", "b", 6, 2)),
			"P1", "t:",
		},
		"a limit that is lower": {
			treeScript().addOp(2, 3, history.Op{
				Kind: history.Configure, ID: "c", Index: 2,
				Limits: []history.Limit{limitOf("a", 2)},
			}).grant(4, 5, "x", "a", 3, 3, 1),
			"P1", "above the limit of 2",
		},
		"a read above the limit": {treeScript().readUsage(2, 3, 2, 11, 6, 5), "P1", "uses 11 of 10"},
		"one id, two grants": {
			treeScript().grant(2, 3, "x", "a", 1, 2, 1).grant(4, 5, "x", "a", 1, 3, 2), "P2",
			"under fence 1 and under 2",
		},
		"one fence, two ids": {
			treeScript().grant(2, 3, "x", "a", 1, 2, 1).grant(4, 5, "y", "a", 1, 3, 1), "P2",
			"fence 1 was given",
		},
		"granted anew": {
			treeScript().grant(2, 3, "x", "a", 1, 2, 1).grant(4, 5, "x", "a", 1, 3, 1), "P2",
			"as if it was new",
		},
		"held after its end": {treeScript().grant(2, 3, "x", "a", 1, 2, 1).release(4, 5, "x", 3, 1).
			regrant(6, 7, "x", "a", 1, 4, 1), "P2", "had ended at index 3"},
		"a retry that is taken for another": {
			treeScript().grant(2, 3, "x", "a", 1, 2, 1).addOp(4, 5,
				history.Op{
					Kind: history.Allocate, ID: "x", Claims: claimOf("a", 1), Outcome: history.Refused,
					Reason: "ID_TAKEN",
				}),
			"P2", "refused as taken",
		},
		"a retry that is denied": {
			treeScript().grant(2, 3, "x", "a", 6, 2, 1).deny(4, 5, "x", "a", 6, violationAt("a", 6, 6, 6)).
				regrant(6, 7, "x", "a", 6, 4, 1), "P2", "denied when it was repeated",
		},
		"charged twice": {treeScript().grant(2, 3, "x", "a", 2, 2, 1).
			addFinal(9, usageOf(4, 4, 0), heldRecord("x", "a", 2, 1)), "P2", "adds up to 2"},
		"a declared end that comes early": {treeScript().declared(2, 3, 2, 2000).
			addChange(6, "ENDED", "x", history.Expired, 4, 1, 1, 1999), "P4", "but was to last until 2000"},
		"a declared end that moves": {
			treeScript().declared(2, 3, 2, 2000).declared(4, 5, 3, 3000).markRepeated(), "P4",
			"at index 3 it ends at 3000",
		},
		"held behind its declared end": {
			treeScript().declared(2, 3, 2, 2000).
				declared(4, 5, 3, 2000).markRepeated().atLedger(5000).
				declared(6, 7, 4, 2000).markRepeated().atLedger(7001), "P4", "is held at 7001",
		},
		"lost from the final state": {treeScript().grant(2, 3, "x", "a", 2, 2, 1).
			addFinal(9, usageOf(0, 0, 0)), "P3", "is not held on n1"},
		"a lost release": {treeScript().grant(2, 3, "x", "a", 2, 2, 1).release(4, 5, "x", 3, 1).
			addFinal(9, usageOf(2, 2, 0), heldRecord("x", "a", 2, 1)), "P3", "had ended at index 3"},
		"a log that was cut": {treeScript().grant(2, 3, "x", "a", 2, 7, 1).
			addFinal(6, usageOf(2, 2, 0), heldRecord("x", "a", 2, 1)), "P3", "ends at index 6"},
		"a read that does not know it": {treeScript().grant(2, 3, "x", "a", 2, 2, 1).
			addOp(4, 5, history.Op{
				Kind: history.ReadAllocation, ID: "x", Outcome: history.Refused,
				Reason: "NOT_FOUND",
			}), "P3", "does not know it"},
		"a list without it": {treeScript().grant(2, 3, "x", "a", 2, 2, 1).
			regrant(4, 5, "x", "a", 2, 9, 1).addOp(6, 7,
			history.Op{
				Kind: history.ListHeld, Index: 5, Stale: true, MarkedStale: true, ServedBy: "n1",
				Claims: []history.Claim{{Tree: "t"}},
			}), "P3", "is not in the list"},
		"a watch that missed it": {treeScript().addChange(1, history.WatchBegins, "", "", 1, 0, 0, 0).
			grant(2, 3, "x", "a", 2, 2, 1).addChange(4, "GRANTED", "y", history.Held, 3, 1, 2, 0).
			addChange(5, "GRANTED", "z", history.Held, 4, 1, 3, 0), "P3", "missed it"},
		"expired early by ledger time": {treeScript().lease(2, 3, "x", "a", 1, 2, 1, 5000, 9000).
			addChange(4, "ENDED", "x", history.Expired, 3, 1, 1, 8999), "P4", "was to last until 9000"},
		"expired early by the holder's clock": {
			treeScript().lease(2, 3, "x", "a", 1, 2, 1, 5000, 9000).
				addOp(6, 7, history.Op{Kind: history.Renew, ID: "x", Outcome: history.Refused, Reason: "ENDED"}), "P4",
			"as its holder counts",
		},
		"expired early after a renewal": {
			treeScript().lease(2, 3, "x", "a", 1, 2, 1, 2000, 3000).
				addOp(4, 5, history.Op{
					Kind: history.Renew, ID: "x", Index: 3, Fence: 1, State: history.Held,
					Expires: 5000,
				}).addChange(6, "ENDED", "x", history.Expired, 4, 1, 1, 4000), "P4",
			"was to last until 5000",
		},
		"a fence that went back in the log": {treeScript().grant(2, 9, "x", "a", 1, 2, 9).
			grant(2, 9, "y", "a", 1, 3, 8), "P5", "had fence"},
		"a fence that went back in time": {treeScript().unanswered(1, 2, history.Allocate, "x", "a", 1).
			regrant(2, 3, "x", "a", 1, 3, 9).unanswered(4, 5, history.Allocate, "y", "a", 1).
			regrant(6, 7, "y", "a", 1, 5, 8), "P5", "before the request"},
		"half of a request": {treeScript().
			addOp(2, 3, history.Op{
				Kind: history.Allocate, ID: "x", Claims: append(claimOf("a", 1), claimOf("b", 1)...),
				Index: 2, Fence: 1, State: history.Held, Granted: claimOf("a", 1),
			}), "P6", "number of claims held"},
		"less than was asked for": {treeScript().
			addOp(2, 3, history.Op{
				Kind: history.Allocate, ID: "x", Claims: claimOf("a", 2), Index: 2, Fence: 1,
				State: history.Held, Granted: claimOf("a", 1),
			}), "P6", "the amount held"},
		"half of a configuration": {treeScript().
			addOp(2, 3, history.Op{
				Kind: history.Configure, ID: "c", Index: 2,
				Limits: []history.Limit{limitOf("a", 1), limitOf("b", 1)},
			}).
			addOp(4, 5, history.Op{
				Kind: history.ReadLimits, Index: 2, ServedBy: "n1",
				Limits: []history.Limit{limitOf("a", 1), limitOf("b", 6)},
			}), "P6", "no change set together"},
		"a stale read that should not be one": {treeScript().grant(2, 3, "x", "a", 2, 5, 1).
			readUsage(4, 5, 4, 0, 0, 0), "P7", "index 5 had been answered"},
		"a write in the past": {treeScript().grant(2, 3, "x", "a", 2, 5, 1).
			grant(4, 5, "y", "a", 2, 4, 2), "P7", "index 5 had been answered"},
		"a denial in the past": {treeScript().grant(2, 3, "x", "a", 6, 5, 1).
			deny(4, 5, "y", "a", 6, violationAt("a", 6, 6, 6)).setIndex(4), "P7", "was denied at index 4"},
		"a stale read that hides it": {treeScript().
			addOp(2, 3, history.Op{
				Kind: history.ReadUsage, Stale: true, Index: 1, ServedBy: "n1",
				Claims: []history.Claim{{Tree: "t"}},
			}), "P7", "not marked as stale"},
		"a read behind what it insisted on": {treeScript().
			addOp(2, 3, history.Op{
				Kind: history.ReadUsage, Stale: true, MarkedStale: true, MinIndex: 4, Index: 3,
				ServedBy: "n1", Claims: []history.Claim{{Tree: "t"}},
			}), "P7", "minimum index was 4"},
		"a watch that goes back": {treeScript().addChange(1, history.WatchBegins, "", "", 1, 0, 0, 0).
			addChange(2, "GRANTED", "x", history.Held, 5, 2, 1, 0).
			addChange(3, "GRANTED", "y", history.Held, 5, 1, 2, 0), "P7", "5.1 after 5.2"},
		"overtaken": {
			queueScript().waitFor(2, 3, "first", 0, 2).waitFor(4, 5, "second", 0, 3).
				grantWaiting(6, 7, "second", 0, 9, 1).grantWaiting(8, 9, "first", 0, 11, 2),
			"P8", "second (priority 0)",
		},
		"lower priority first": {queueScript().waitFor(2, 3, "high", 2, 2).waitFor(2, 3, "low", 1, 2).
			grantWaiting(6, 7, "low", 1, 9, 1).grantWaiting(8, 9, "high", 2, 11, 2), "P8", "low (priority 1)"},
		"two nodes, two states": {treeScript().grant(2, 3, "x", "a", 2, 2, 1).
			addFinal(9, usageOf(2, 2, 0), heldRecord("x", "a", 2, 1)).
			addFinal(9, usageOf(2, 2, 0), heldRecord("x", "a", 2, 7)), "P9", "held allocations"},
		"two nodes, two digests": {
			treeScript().addFinal(9, usageOf(0, 0, 0)).addDigests("aa", "ab"),
			"P9", "n2 has digest ab at index 10, and n1 has aa",
		},
		"one index, two answers": {
			treeScript().readUsage(2, 3, 4, 0, 0, 0).readUsage(2, 3, 4, 1, 1, 0),
			"P9", "differ",
		},
		"a denial without a reason": {treeScript().deny(2, 3, "x", "a", 9), "P10", "no limit is named"},
		"a denial that does not add up": {treeScript().
			deny(2, 3, "x", "a", 9, history.Violation{
				Tree: "t", Node: "a", Resource: "units", Limit: 6, Used: 0,
				Requested: 9, Missing: 1,
			}), "P10", "does not add up"},
		"a denial that names one limit of two": {
			treeScript().grant(2, 3, "x", "a", 6, 2, 1).
				deny(4, 5, "y", "a", 5, violationAt("a", 6, 6, 5)).readUsage(6, 7, 3, 6, 6, 0), "P10",
			"reasons of all denials",
		},
		"denied by an advisory limit": {
			treeScript().setLimit(2, 3, 2, history.Unlimited).advises(4).
				deny(4, 5, "x", "a", 5, violationAt("a", 4, 0, 5)), "P10", "the limit never was that",
		},
		"a denial of what fits": {
			treeScript().deny(2, 3, "x", "a", 6, violationAt("a", 6, 1, 6)),
			"linearizable", "no order",
		},
		"a read of what is not there": {treeScript().grant(2, 3, "x", "a", 2, 2, 1).
			readUsage(4, 5, 2, 3, 3, 0), "linearizable", "no order"},
		"a stale read of what never was": {treeScript().grant(2, 3, "x", "a", 2, 2, 1).release(4, 5, "x", 3, 1).
			readUsage(6, 7, 2, 0, 0, 0).markStale(), "linearizable", "no order"},
		"a waiting request that fits": {
			treeScript().addFinal(9, usageOf(0, 0, 0)).addWaiting("x", 1), "live",
			"first in its queue and fits",
		},
		"an item with two holders": {
			itemScript().addOp(2, 3, grantCar("x", "ant", 2, 1)).
				addOp(4, 5, grantCar("y", "ant", 3, 2)).addOp(6, 7,
				history.Op{Kind: history.Release, ID: "x", Index: 4, Fence: 1, State: history.Released}), "P2",
			"held i:car/ant",
		},
		"an item that is given too early": {itemScript().addOp(2, 3, grantCar("x", "ant", 2, 1)).
			addOp(4, 5, grantCar("y", "ant", 3, 2)), "linearizable", "i:car/ant"},
		"a Boskos resource with two owners": {itemScript().boskosCall(2, 3, history.BoskosAcquire, "ann", "v1").
			boskosCall(4, 5, history.BoskosAcquire, "bob", "v1"), "P2", "boskos:van/v1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test.script.wantBroken(t, test.promise, test.words) })
	}
}

func queueScript() *script { return treeScript() }

func (s *script) waitFor(from, to int64, id string, priority int64, index uint64) *script {
	return s.addOp(from, to, history.Op{
		Kind: history.Allocate, Mode: history.Wait, ID: id, Claims: claimOf("a", 1), Priority: priority, Index: index,
		State: history.Waiting,
	})
}

func (s *script) grantWaiting(from, to int64, id string, priority int64, index, fence uint64) *script {
	return s.addOp(from, to, history.Op{
		Kind: history.Allocate, Mode: history.Wait, ID: id, Claims: claimOf("a", 1), Priority: priority, Index: index,
		Fence: fence, State: history.Held,
		Granted: claimOf("a", 1), Repeated: true,
	})
}

func (s *script) addWaiting(id string, place int64) *script {
	last := &s.finals.States[len(s.finals.States)-1]
	last.Waiting = append(last.Waiting, history.Record{
		ID: id, State: history.Waiting, Claims: claimOf("a", 1),
		Place: place,
	})
	return s
}

func itemScript() *script {
	return new(script).addOp(0, 1, history.Op{
		Kind: history.Configure, ID: "setup", Index: 1,
		Limits: []history.Limit{{Tree: "i", Resource: "units", Amount: -1}},
	})
}

func grantCar(id, name string, index, fence uint64) history.Op {
	return history.Op{
		Kind: history.Allocate, ID: id, Claims: []history.Claim{{Tree: "i", Pick: "car"}}, Index: index, Fence: fence,
		State:   history.Held,
		Granted: []history.Claim{{Tree: "i", Items: []string{"car/" + name}}},
	}
}

func (s *script) boskosCall(from, to int64, kind history.Kind, owner, name string) *script {
	return s.addOp(from, to, history.Op{
		Kind: kind, ID: owner, TTL: 4000,
		Claims: []history.Claim{{Tree: "boskos", Items: []string{"van/" + name}}},
	})
}
