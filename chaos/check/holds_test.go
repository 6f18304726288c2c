package check_test

import (
	"testing"

	"github.com/quorate/quorate/chaos/history"
)

func (s *script) hold(from, to int64, index uint64, node string) *script {
	return s.setHold(from, to, index, node, 0)
}

func (s *script) resume(from, to int64, index uint64, node string) *script {
	return s.setHold(from, to, index, node, history.Unlimited)
}

func (s *script) setHold(from, to int64, index uint64, node string, amount int64) *script {
	l := limitOf(node, amount)
	l.Resource = history.OnHold
	return s.addOp(from, to, history.Op{
		Kind: history.Configure, ID: "hold-" + string(rune('a'+len(s.ops))), Index: index, Limits: []history.Limit{l},
	})
}

func holdAt(node string) history.Violation {
	return history.Violation{Tree: "t", Node: node, Kind: history.Cordon}
}

// TestValidHoldsPass: no check reports what may happen at a node on hold.
func TestValidHoldsPass(t *testing.T) {
	tests := map[string]*script{
		"denied until it is resumed": treeScript().hold(2, 3, 2, "a").deny(4, 5, "x", "a", 1, holdAt("a")).setIndex(3).
			resume(6, 7, 4, "a").grant(8, 9, "x", "a", 1, 5, 1),
		"elsewhere":       treeScript().hold(2, 3, 2, "a").grant(4, 5, "x", "b", 1, 3, 1),
		"at a node above": treeScript().hold(2, 3, 2, "a").grant(4, 5, "x", "", 1, 3, 1),
		"what is held goes on": treeScript().grant(2, 3, "x", "a", 2, 2, 1).hold(4, 5, 3, "a").
			resize(6, 7, 1, 4, 1).readUsage(8, 9, 4, 1, 1, 0).release(10, 11, "x", 5, 1),
		"denied by two holds and a limit": treeScript().hold(2, 3, 2, "a").hold(4, 5, 3, "").
			deny(6, 7, "x", "a", 7, holdAt("a"), holdAt(""), violationAt("a", 6, 0, 7)).setIndex(4),
		"a denied change names only holds": treeScript().grant(2, 3, "x", "a", 2, 2, 1).hold(4, 5, 3, "a").
			denyResize(6, 7, 1, 4, 7, holdAt("a")),
		"the hold was lost and may stand": treeScript().hold(2, 3, 0, "a").losesAnswer().grant(4, 5, "x", "a", 1, 3, 1).
			deny(6, 7, "y", "a", 1, holdAt("a")).setIndex(4),
		"moved into the node from elsewhere in it": treeScript().grant(2, 3, "x", "a", 2, 2, 1).hold(4, 5, 3, "").
			transfer(6, 7, 1, 4, 2),
	}
	for name, s := range tests {
		t.Run(name, func(t *testing.T) { s.wantBroken(t, "", "") })
	}
}

// TestLeakingHoldsAreFound: the checks find what a hold must not let through, and denials without a hold.
func TestLeakingHoldsAreFound(t *testing.T) {
	tests := map[string]struct {
		script         *script
		promise, words string
	}{
		"granted at a node on hold": {
			treeScript().hold(2, 3, 2, "a").grant(4, 5, "x", "a", 1, 3, 1), "P1", "which is on hold",
		},
		"granted below": {
			treeScript().hold(2, 3, 2, "").grant(4, 5, "x", "a", 1, 3, 1), "P1", "t: or below, which is on hold",
		},
		"granted below, in no order": {
			treeScript().hold(2, 3, 2, "").grant(4, 5, "x", "a", 1, 3, 1), "linearizable", "no order",
		},
		"raised": {
			treeScript().grant(2, 3, "x", "a", 2, 2, 1).hold(4, 5, 3, "a").resize(6, 7, 1, 4, 3), "P1", "which is on hold",
		},
		"moved into it": {
			treeScript().grant(2, 3, "x", "a", 2, 2, 1).hold(4, 5, 3, "b").transfer(6, 7, 1, 4, 2), "P1",
			"t:b or below, which is on hold",
		},
		"denied without a hold": {treeScript().deny(2, 3, "x", "a", 1, holdAt("a")), "P10", "never was on hold"},
		"denied after its end": {
			treeScript().hold(2, 3, 2, "a").resume(4, 5, 3, "a").deny(6, 7, "x", "a", 1, holdAt("a")).setIndex(4),
			"linearizable", "no order",
		},
		"a denial that does not name the hold": {
			treeScript().hold(2, 3, 2, "a").deny(4, 5, "x", "a", 7, violationAt("a", 6, 0, 7)).setIndex(3), "P10",
			"reasons of all denials",
		},
		"a denial that does not name the limit": {
			treeScript().hold(2, 3, 2, "a").deny(4, 5, "x", "a", 7, holdAt("a")).setIndex(3), "P10",
			"reasons of all denials",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test.script.wantBroken(t, test.promise, test.words) })
	}
}
