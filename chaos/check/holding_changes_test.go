package check_test

import (
	"testing"

	"github.com/quorate/quorate/chaos/history"
)

// TestValidChangesPass: no check reports a change of what is held that a correct cluster may make.
func TestValidChangesPass(t *testing.T) {
	x := func(amount int64) *script { return treeScript().grant(2, 3, "x", "a", amount, 2, 1) }
	tests := map[string]*script{
		"raised, and lowered": x(2).resize(4, 5, 1, 3, 6).readUsage(6, 7, 3, 6, 6, 0).resize(8, 9, 2, 4, 1).
			grant(10, 11, "y", "a", 5, 5, 2).readUsage(12, 13, 5, 6, 6, 0).release(14, 15, "x", 6, 1).
			readUsage(16, 17, 6, 5, 5, 0).addFinal(9, usageOf(5, 5, 0), heldRecord("y", "a", 5, 2)),
		"a resize whose answer was lost and that freed what was granted": x(6).resize(4, 5, 1, 0, 2).
			grant(6, 7, "y", "a", 4, 4, 2).
			addFinal(9, usageOf(6, 6, 0), changedRecord(1, claimOf("a", 2)), heldRecord("y", "a", 4, 2)),
		"a resize that was never made": x(6).resize(4, 5, 1, 0, 2).
			deny(6, 7, "y", "a", 4, violationAt("a", 6, 6, 4)).setIndex(4).
			addFinal(9, usageOf(6, 6, 0), changedRecord(0, claimOf("a", 6))),
		"a resize after one that was not decided": x(6).resize(4, 5, 1, 0, 2).resize(6, 7, 2, 5, 3).
			readUsage(8, 9, 5, 3, 3, 0),
		"a repeated resize": x(6).resize(4, 5, 1, 0, 2).resize(6, 7, 1, 5, 2).markRepeated().
			readUsage(8, 9, 5, 2, 2, 0),
		"an early change that arrives late": x(6).resize(4, 9, 1, 0, 2).resize(6, 7, 2, 5, 3).
			refuseChange(8, 9, 1, 0, claimOf("a", 2), "GENERATION_MISMATCH").readChanged(10, 11, 2, 6, claimOf("a", 3)),
		"an attempt that arrives after a denial": x(4).grant(4, 5, "y", "a", 2, 3, 2).resize(6, 20, 1, 0, 5).
			denyResize(7, 8, 1, 4, 5, violationAt("a", 6, 6, 1)).release(9, 10, "y", 5, 2).
			readUsage(20, 21, 9, 5, 5, 0),
		"a resize is denied by the difference": x(4).grant(4, 5, "y", "a", 2, 3, 2).
			denyResize(6, 7, 1, 4, 5, violationAt("a", 6, 6, 1)).readUsage(8, 9, 4, 6, 6, 0),
		"lowered above a limit that was lowered": x(6).setLimit(4, 5, 3, 2).resize(6, 7, 1, 4, 4),
		"changed and granted in one entry":       x(6).resize(4, 7, 1, 4, 2).grant(4, 7, "y", "a", 4, 4, 2),
		"granted, released and raised in one entry": x(2).grant(4, 7, "y", "a", 4, 4, 2).release(4, 7, "y", 4, 2).
			resize(4, 7, 1, 4, 6).readChanged(8, 9, 1, 5, claimOf("a", 6)),
		"a resize that never arrives and does not fit": x(4).resize(4, 5, 1, 0, 6).grant(6, 7, "y", "a", 2, 3, 2).
			addFinal(9, usageOf(6, 6, 0), changedRecord(0, claimOf("a", 4)), heldRecord("y", "a", 2, 2)),
		"released after a resize that was not decided": x(6).resize(4, 5, 1, 0, 2).release(6, 7, "x", 5, 1).
			readUsage(8, 9, 5, 0, 0, 0),
		"neither the request nor its resize was answered": treeScript().unanswered(2, 3, history.Allocate, "x", "a", 1).
			resize(4, 5, 1, 0, 5).deny(6, 7, "y", "a", 2, violationAt("a", 6, 5, 2)).
			unanswered(8, 9, history.Release, "x", "", 0),
		"moved below a limit that both places share": x(4).grant(4, 5, "y", "b", 2, 3, 2).grant(6, 7, "z", "", 4, 4, 3).
			transfer(8, 9, 1, 5, 4).readUsage(10, 11, 5, 10, 0, 6).addFinal(9, usageOf(10, 0, 6),
			changedRecord(1, claimOf("b", 4)), heldRecord("y", "b", 2, 2), heldRecord("z", "", 4, 3)),
		"a transfer whose answer was lost": x(4).transfer(4, 5, 1, 0, 4).grant(6, 7, "y", "a", 6, 5, 2).
			readUsage(8, 9, 6, 10, 6, 4),
		"a transfer is denied": x(4).grant(4, 5, "y", "b", 3, 3, 2).setIndex(3).addOp(6, 7, history.Op{
			Kind: history.Transfer, ID: "x", Claims: claimOf("b", 4), Generation: 1, Index: 4, Outcome: history.Refused,
			Reason: history.Denied, Violations: []history.Violation{violationAt("b", 6, 3, 4)},
		}).readUsage(8, 9, 4, 7, 4, 3),
		"split at one node, which is full and above its limit": x(6).setLimit(4, 5, 3, 1).split(6, 7, 1, 4, 4, "a", 2).
			release(8, 9, "p", 5, 7).readUsageWith(10, 11, 5, 4, 1),
		"split to another node, and both ended": x(6).split(4, 5, 1, 3, 4, "b", 2).readUsage(6, 7, 3, 6, 4, 2).
			release(8, 9, "p", 4, 7).readUsage(10, 11, 4, 4, 4, 0).release(12, 13, "x", 5, 1).
			readUsage(14, 15, 5, 0, 0, 0).addFinal(9, usageOf(0, 0, 0)),
		"a repeated split": x(6).split(4, 5, 1, 0, 4, "b", 2).split(6, 7, 1, 5, 4, "b", 2).markRepeated().
			readUsage(8, 9, 5, 6, 4, 2),
		"a split that shows in its part only": x(6).split(4, 5, 1, 0, 4, "b", 2).
			addChange(6, "GRANTED", "p", history.Held, 4, 1, 7, 0).grant(8, 9, "y", "a", 2, 5, 8).
			readUsage(10, 11, 5, 8, 6, 2),
		"a split that was never made": x(6).split(4, 5, 1, 0, 4, "b", 2).grant(6, 7, "y", "b", 6, 4, 2).
			unanswered(8, 9, history.Release, "p", "", 0).readUsage(10, 11, 5, 12, 6, 6).
			setLimitOf("", 20).addFinal(9, nil, changedRecord(0, claimOf("a", 6)), heldRecord("y", "b", 6, 2)),
		"a split and the release of its part, both lost, and done": x(6).split(4, 5, 1, 0, 4, "b", 2).
			unanswered(6, 7, history.Release, "p", "", 0).readUsage(8, 9, 5, 4, 4, 0),
		"a denied split": x(6).grant(4, 5, "y", "b", 4, 3, 2).
			denySplit(6, 7, 1, 4, 3, "b", 3, violationAt("b", 6, 4, 3)).readUsage(8, 9, 4, 10, 6, 4),
		"a part has ended when its split arrives again": x(6).split(4, 5, 1, 3, 4, "b", 2).release(6, 7, "p", 4, 7).
			refuseChange(8, 9, 1, 0, claimOf("a", 4), "ENDED").asSplit().readChanged(10, 11, 1, 5, claimOf("a", 4)).
			readUsage(12, 13, 5, 4, 4, 0),
		"a read of the past": x(2).resize(4, 5, 1, 3, 6).readUsage(6, 7, 2, 2, 2, 0).markStale(),
	}
	for name, s := range tests {
		t.Run(name, func(t *testing.T) { s.wantBroken(t, "", "") })
	}
}

// TestWrongChangesAreFound: the checks find what a change of what is held must not do.
func TestWrongChangesAreFound(t *testing.T) {
	x := func(amount int64) *script { return treeScript().grant(2, 3, "x", "a", amount, 2, 1) }
	tests := map[string]struct {
		script         *script
		promise, words string
	}{
		"raised over the limit": {x(4).grant(4, 5, "y", "a", 2, 3, 2).resize(6, 7, 1, 4, 5).
			regrant(8, 9, "y", "a", 2, 5, 2), "P1", "with change 1 of x (index 4 to 4) 7 units are held at t:a"},
		"no order has a raise over the limit": {
			x(4).grant(4, 5, "y", "a", 2, 3, 2).resize(6, 7, 1, 4, 5), "linearizable",
			"no order",
		},
		"granted over the limit with what a resize holds": {x(2).resize(4, 5, 1, 3, 5).
			grant(6, 7, "y", "a", 2, 4, 2).readChanged(8, 9, 1, 5, claimOf("a", 5)), "P1", "7 units are held at t:a"},
		"raised over the limit with what another resize holds": {treeScript().grant(1, 2, "y", "a", 2, 2, 1).
			addOp(2, 3, history.Op{
				Kind: history.Resize, ID: "y", Claims: claimOf("a", 4), Generation: 1, Index: 3, Records: []history.Record{
					{ID: "y", State: history.Held, Fence: 1, Claims: claimOf("a", 4), Generation: 1},
				},
			}).grant(4, 5, "z", "a", 1, 4, 2).addOp(6, 7, history.Op{
			Kind: history.Resize, ID: "z", Claims: claimOf("a", 3), Generation: 1, Index: 5, Records: []history.Record{
				{ID: "z", State: history.Held, Fence: 2, Claims: claimOf("a", 3), Generation: 1},
			},
		}).release(8, 9, "y", 6, 1), "P1", "with change 1 of z (index 5 to 5) 7 units are held at t:a"},
		"changed without a call": {x(4).readChanged(4, 5, 0, 3, claimOf("a", 2)), "P6", "the amount held at t:a differs"},
		"a denied resize gave up what it had": {
			x(4).grant(4, 5, "y", "", 6, 3, 2).
				denyResize(6, 7, 1, 4, 5, violationAt("", 10, 10, 1)).readChanged(8, 9, 0, 5, claimOf("a", 1)), "P6",
			"x at index 5, generation 0: the amount held",
		},
		"to something else than was asked for": {
			x(2).resize(4, 5, 1, 3, 4).readChanged(6, 7, 1, 4, claimOf("a", 3)),
			"P6", "x at index 4, generation 1: the amount held",
		},
		"a change is lost": {
			x(2).resize(4, 5, 1, 3, 4).readChanged(6, 7, 0, 4, claimOf("a", 2)), "P6",
			"has generation 0, but no change",
		},
		"an early change undoes a later one": {x(2).resize(4, 9, 1, 0, 3).resize(5, 6, 2, 3, 4).
			readChanged(9, 10, 1, 5, claimOf("a", 3)), "P6", "has generation 1, but no change"},
		"a refused change is made": {x(2).refuseChange(4, 5, 1, 0, claimOf("a", 3), "ENDED").
			readChanged(6, 7, 1, 4, claimOf("a", 3)), "P6", "has generation 1, but no change"},
		"a change that shows before it is asked for": {x(2).grant(4, 5, "y", "b", 1, 7, 2).resize(6, 7, 1, 0, 3).
			readChanged(8, 9, 1, 7, claimOf("a", 3)), "P6", "x at index 7 has generation 1"},
		"a denied change that shows before its denial": {
			x(4).grant(4, 5, "y", "a", 2, 3, 2).resize(6, 20, 1, 0, 5).
				denyResize(7, 8, 1, 6, 5, violationAt("a", 6, 6, 1)).readChanged(9, 10, 1, 5, claimOf("a", 5)), "P6",
			"x at index 5 has generation 1",
		},
		"the last change is refused as outdated": {
			x(2).refuseChange(4, 5, 1, 0, claimOf("a", 3), "GENERATION_MISMATCH"), "P6", "GENERATION_MISMATCH",
		},
		"the only fence is refused": {
			x(2).refuseChange(4, 5, 1, 0, claimOf("a", 3), "FENCE_MISMATCH"), "P6", "FENCE_MISMATCH",
		},
		"moved over the limit": {x(4).grant(4, 5, "y", "b", 4, 3, 2).transfer(6, 7, 1, 4, 4).
			regrant(8, 9, "y", "b", 4, 5, 2), "P1", "with change 1 of x (index 4 to 4) 8 units are held at t:b"},
		"moved, and still counted at its old place": {
			x(4).transfer(4, 5, 1, 3, 4).readUsage(6, 7, 3, 8, 4, 4),
			"linearizable", "no order",
		},
		"a split of more than there is, over the limit": {x(4).grant(4, 5, "y", "a", 2, 3, 2).split(6, 7, 1, 4, 4, "a", 2).
			regrant(8, 9, "y", "a", 2, 5, 2), "P1", "with change 1 of x (index 4 to 4) 8 units are held at t:a"},
		"a part over the limit of its node": {x(6).grant(4, 5, "y", "b", 5, 3, 2).split(6, 7, 1, 4, 4, "b", 2).
			regrant(8, 9, "y", "b", 5, 5, 2), "P1", "7 units are held at t:b"},
		"over the limit with a part": {x(6).split(4, 5, 1, 3, 4, "b", 2).grant(6, 7, "y", "b", 5, 4, 8).
			readPart(8, 9, 5, 2), "P1", "7 units are held at t:b"},
		"a part with less than was split": {
			x(6).split(4, 5, 1, 3, 4, "b", 2).readPart(6, 7, 4, 1), "P6",
			"p at index 4, generation 0: the amount held",
		},
		"split without giving up what the part has": {x(6).split(4, 5, 1, 3, 4, "b", 2).
			readUsage(6, 7, 3, 8, 6, 2), "linearizable", "no order"},
		"a split part is lost": {
			x(6).split(4, 5, 1, 3, 4, "b", 2).
				addFinal(9, usageOf(4, 4, 0), changedRecord(1, claimOf("a", 4))), "P3",
			"p was granted with fence 7 and is not held",
		},
		"a repeated split is taken for another": {x(6).split(4, 5, 1, 0, 4, "b", 2).
			refuseChange(6, 7, 1, 0, claimOf("a", 4), "ID_TAKEN").asSplit(), "P6", "ID_TAKEN"},
		"a part without the change of what it was split from": {
			x(6).split(4, 5, 1, 0, 4, "b", 2).
				addChange(6, "GRANTED", "p", history.Held, 4, 1, 7, 0).readChanged(8, 9, 0, 5, claimOf("a", 6)), "P6",
			"x at index 5 has generation 0",
		},
		"a part has the fence of another": {
			x(6).grant(4, 5, "y", "b", 1, 3, 7).split(6, 7, 1, 4, 4, "b", 2), "P2",
			"fence 7 was given",
		},
		"a part has a fence below that of an earlier grant": {x(6).grant(4, 7, "y", "b", 1, 3, 9).
			split(4, 7, 1, 4, 4, "b", 2), "P5", "but p already had fence 7 at index 4"},
		"the end of a part that was never made frees nothing": {
			x(6).grant(4, 5, "y", "b", 2, 3, 2).
				split(6, 7, 1, 0, 4, "b", 2).unanswered(8, 9, history.Release, "p", "", 0).readUsage(10, 11, 4, 6, 6, 0),
			"linearizable", "no order",
		},
		"a denied split that fits": {
			x(6).denySplit(4, 5, 1, 3, 3, "b", 3, violationAt("b", 6, 4, 3)), "linearizable",
			"no order",
		},
		"another fence after a resize": {x(2).addOp(4, 5, history.Op{
			Kind: history.Resize, ID: "x", Claims: claimOf("a", 3), Generation: 1, Index: 3, Records: []history.Record{
				{ID: "x", State: history.Held, Fence: 9, Claims: claimOf("a", 3), Generation: 1},
			},
		}), "P2", "under fence 1 and under 9"},
		"a change in the past": {
			x(2).grant(4, 5, "y", "b", 1, 7, 2).resize(6, 7, 1, 6, 3), "P7",
			"resize of x took effect at index 6",
		},
		"a denial of the whole amount": {x(4).grant(4, 5, "y", "a", 2, 3, 2).
			denyResize(6, 7, 1, 4, 5, violationAt("a", 6, 6, 5)), "P10", "something else was requested"},
		"a denial of a change that only lowers": {
			x(4).denyResize(4, 5, 1, 3, 2, violationAt("a", 6, 4, -2)),
			"P10", "does not add up",
		},
		"a denial of a change that fits": {
			x(4).denyResize(4, 5, 1, 3, 6, violationAt("a", 6, 5, 2)), "linearizable",
			"no order",
		},
		"usage after a denied resize": {x(4).grant(4, 5, "y", "", 6, 3, 2).
			denyResize(6, 7, 1, 4, 5, violationAt("", 10, 10, 1)).readUsage(8, 9, 4, 7, 1, 0), "linearizable", "no order"},
		"usage without a change": {
			x(2).resize(4, 5, 1, 3, 4).readUsage(6, 7, 3, 2, 2, 0), "linearizable", "no order",
		},
		"usage after the end of what was changed": {x(2).resize(4, 5, 1, 3, 4).release(6, 7, "x", 4, 1).
			readUsage(8, 9, 4, 2, 2, 0), "linearizable", "no order"},
		"a change after the end": {x(2).release(4, 5, "x", 3, 1).resize(6, 7, 1, 4, 4), "P2", "had ended at index 3"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test.script.wantBroken(t, test.promise, test.words) })
	}
}
