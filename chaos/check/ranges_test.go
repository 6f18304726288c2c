package check_test

import (
	"testing"

	"github.com/quorate/quorate/chaos/history"
)

// rangeOf is a claim at a node of an amount and up to three steps of two.
func rangeOf(node string, least int64) []history.Claim {
	claims := claimOf(node, least)
	claims[0].Step, claims[0].Steps = 2, 3
	return claims
}

// grantRange grants the range of one to seven units as some steps.
func (s *script) grantRange(from, to int64, id, node string, steps int64, index, fence uint64) *script {
	return s.addOp(from, to, history.Op{
		Kind: history.Allocate, ID: id, Claims: rangeOf(node, 1), Index: index, Fence: fence, State: history.Held,
		Granted: claimOf(node, 1+2*steps),
	})
}

func (s *script) askRange(from, to int64, id, node string) *script {
	return s.unanswered(from, to, history.Allocate, id, node, 1).asRange()
}

func (s *script) asRange() *script {
	o := &s.ops[len(s.ops)-1]
	o.Claims = rangeOf(o.Claims[0].Node, 1)
	return s
}

// TestValidRangesPass: no check reports a number of steps that a correct cluster may grant.
func TestValidRangesPass(t *testing.T) {
	tests := map[string]*script{
		"all steps":         treeScript().setLimitOf("a", 7).grantRange(4, 5, "x", "a", 3, 3, 1).readUsageWith(6, 7, 3, 7, 7),
		"as many as fit":    treeScript().grantRange(2, 3, "x", "a", 2, 2, 1).readUsage(4, 5, 2, 5, 5, 0),
		"the least":         treeScript().grant(2, 3, "y", "a", 4, 2, 1).grantRange(4, 5, "x", "a", 0, 3, 2),
		"by the root limit": treeScript().grant(2, 3, "y", "b", 6, 2, 1).grantRange(4, 5, "x", "a", 1, 3, 2),
		"denied for its least": treeScript().grant(2, 3, "y", "a", 6, 2, 1).
			deny(4, 5, "x", "a", 1, violationAt("a", 6, 6, 1)).asRange().setIndex(3),
		"at a node without a limit": treeScript().setLimitOf("a", history.Unlimited).grantRange(2, 3, "x", "a", 3, 2, 1),
		"a waiting request shows its least": treeScript().waitFor(2, 3, "x", 0, 2).asRange().got(claimOf("a", 1)).
			grantWaiting(4, 5, "x", 0, 3, 1).asRange().got(claimOf("a", 5)),
		"released, and granted again": treeScript().grantRange(2, 3, "x", "a", 2, 2, 1).release(4, 5, "x", 3, 1).
			readUsage(6, 7, 3, 0, 0, 0).grant(8, 9, "y", "a", 6, 4, 2),
		"seen in the final states only": treeScript().askRange(2, 3, "x", "a").
			deny(4, 5, "y", "a", 2, violationAt("a", 6, 5, 2)).
			addFinal(9, usageOf(5, 5, 0), heldRecord("x", "a", 5, 1)),
		"never seen, and granted": treeScript().askRange(2, 3, "x", "a").readUsage(4, 5, 3, 5, 5, 0).
			unanswered(6, 7, history.Release, "x", "", 0).readUsage(8, 9, 5, 0, 0, 0),
		"never seen, and never arrived": treeScript().askRange(2, 3, "x", "a").grant(4, 5, "y", "a", 6, 3, 1).
			unanswered(6, 7, history.Release, "x", "", 0),
		"never seen, and what it got depends on what was released": treeScript().grant(2, 3, "y", "a", 4, 2, 1).
			askRange(4, 9, "x", "a").release(5, 6, "y", 3, 1).readUsage(7, 8, 4, 5, 5, 0).
			unanswered(10, 11, history.Release, "x", "", 0),
	}
	for name, s := range tests {
		t.Run(name, func(t *testing.T) { s.wantBroken(t, "", "") })
	}
}

// TestWrongRangesAreFound: the checks find too many steps and too few.
func TestWrongRangesAreFound(t *testing.T) {
	tests := map[string]struct {
		script         *script
		promise, words string
	}{
		"more than fits": {
			treeScript().grantRange(2, 3, "x", "a", 3, 2, 1), "P1", "7 units are held at t:a, above the limit of 6",
		},
		"less than fits": {treeScript().grantRange(2, 3, "x", "a", 1, 2, 1), "linearizable", "no order"},
		"less than fits, and never seen": {
			treeScript().askRange(2, 3, "x", "a").readUsage(4, 5, 3, 3, 3, 0).
				unanswered(6, 7, history.Release, "x", "", 0), "linearizable", "no order",
		},
		"an amount between two steps": {
			treeScript().grantRange(2, 3, "x", "a", 0, 2, 1).got(claimOf("a", 4)), "P6", "differs from the amount requested",
		},
		"another amount later": {
			treeScript().grantRange(2, 3, "x", "a", 2, 2, 1).readChanged(4, 5, 0, 3, claimOf("a", 3)), "P6",
			"differs from the amount requested",
		},
		"others have no room": {
			treeScript().grantRange(2, 3, "x", "a", 2, 2, 1).grant(4, 5, "y", "a", 2, 3, 2).
				readChanged(6, 7, 0, 4, claimOf("a", 5)), "P1", "7 units are held at t:a",
		},
		"denied although its least fits": {
			treeScript().deny(2, 3, "x", "a", 1, violationAt("a", 6, 6, 1)).asRange(), "linearizable", "no order",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test.script.wantBroken(t, test.promise, test.words) })
	}
}

func (s *script) got(claims []history.Claim) *script {
	s.ops[len(s.ops)-1].Granted = claims
	return s
}
