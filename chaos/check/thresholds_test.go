package check_test

import (
	"testing"

	"github.com/quorate/quorate/chaos/history"
)

// warnScript has thresholds of 50 and 90 percent, with a margin of 20, from index 2 on.
func warnScript() *script { return treeScript().setThresholds(2, 3, 2) }

func (s *script) setThresholds(from, to int64, index uint64) *script {
	return s.addOp(from, to, history.Op{
		Kind: history.Configure, ID: "warn", Index: index, Percents: []int64{50, 90}, Margin: 20,
		Limits: []history.Limit{limitOf("", 10), limitOf("a", 6), limitOf("b", 6)},
	})
}

// watchThresholds begins a watch; its later messages have the same session.
func (s *script) watchThresholds(at int64, index uint64, session int64) *script {
	return s.addOp(at, at, history.Op{
		Kind: history.Crossing, Change: history.WatchBegins, Index: index, Session: session,
	})
}

func (s *script) cross(at int64, index uint64, within uint32, session int64, what string, percent, used int64) *script {
	return s.addOp(at, at, history.Op{
		Kind: history.Crossing, Change: what, Index: index, Position: within, Session: session, Percents: []int64{percent},
		Usage: []history.Usage{{Tree: "t", Node: "a", Resource: "units", Used: used, Limit: 6}},
	})
}

func (s *script) atRoot() *script {
	u := &s.ops[len(s.ops)-1].Usage[0]
	u.Node, u.Limit = "", 10
	return s
}

func (s *script) beat(at int64, index uint64, session int64) *script {
	return s.addOp(at, at, history.Op{Kind: history.Crossing, Index: index, Session: session})
}

func (s *script) useOfA(at int64, index uint64, used int64) *script {
	return s.readUsageWith(at, at, index, used, 6)
}

// TestToldThresholdsPass: no check reports what watches of thresholds may tell.
func TestToldThresholdsPass(t *testing.T) {
	begun := func() *script { return warnScript().watchThresholds(4, 2, 1) }
	used := func(s *script) *script { return s.grant(5, 6, "x", "a", 6, 3, 1) }
	tests := map[string]*script{
		"crossed and cleared": used(begun()).cross(7, 3, 1, 1, history.Crossed, 50, 6).
			cross(7, 3, 2, 1, history.Crossed, 90, 6).useOfA(8, 3, 6).release(9, 10, "x", 4, 1).
			cross(11, 4, 1, 1, history.Cleared, 50, 0).cross(11, 4, 2, 1, history.Cleared, 90, 0).useOfA(12, 4, 0).
			beat(13, 5, 1),
		"cleared at the margin": used(begun()).cross(5, 3, 1, 1, history.Crossed, 50, 6).atRoot().
			cross(7, 4, 1, 1, history.Cleared, 50, 3).atRoot(),
		"within the margin": begun().grant(5, 6, "x", "a", 3, 3, 1).cross(7, 3, 1, 1, history.Crossed, 50, 3).
			resize(8, 9, 1, 4, 2).useOfA(10, 4, 2).beat(11, 5, 1),
		"read before it was told":       begun().beat(5, 3, 1).useOfA(5, 2, 0).grant(6, 7, "x", "a", 6, 4, 1).useOfA(8, 4, 6),
		"crossed before it was watched": used(warnScript()).watchThresholds(7, 3, 1).useOfA(8, 3, 6).beat(9, 4, 1),
		"crossed before thresholds were set": treeScript().watchThresholds(1, 1, 1).useOfA(1, 1, 0).
			grant(2, 3, "x", "a", 6, 3, 1).useOfA(4, 3, 6).setThresholds(5, 6, 5).beat(8, 9, 1),
		"two watches tell of it": used(begun()).watchThresholds(4, 2, 2).cross(7, 3, 1, 1, history.Crossed, 50, 6).
			cross(7, 3, 1, 2, history.Crossed, 50, 6),
	}
	for name, s := range tests {
		t.Run(name, func(t *testing.T) { s.wantBroken(t, "", "") })
	}
}

// TestWrongThresholdsAreFound: the check finds crossings that are lost, told twice or wrong.
func TestWrongThresholdsAreFound(t *testing.T) {
	begun := func() *script { return warnScript().watchThresholds(4, 2, 1) }
	tests := map[string]struct {
		script         *script
		promise, words string
	}{
		"told twice": {
			begun().cross(7, 3, 1, 1, history.Crossed, 50, 3).cross(8, 4, 1, 1, history.Crossed, 50, 3), "thresholds",
			"50% of t:a is CROSSED at index 4, and was so before",
		},
		"cleared twice": {
			begun().cross(7, 3, 1, 1, history.Cleared, 50, 0).cross(8, 4, 1, 1, history.Cleared, 50, 0), "thresholds",
			"CLEARED at index 4, and was so before",
		},
		"not reached": {begun().cross(7, 3, 1, 1, history.Crossed, 50, 2), "thresholds", "CROSSED at index 3, with 2 of 6"},
		"cleared within the margin": {
			begun().cross(7, 3, 1, 1, history.Cleared, 50, 2), "thresholds", "CLEARED at index 3, with 2 of 6",
		},
		"a crossing is lost": {
			begun().useOfA(5, 2, 0).grant(6, 7, "x", "a", 6, 3, 1).useOfA(8, 3, 6).beat(9, 4, 1), "thresholds",
			"uses 6 of 6 at index 3, which was not told for 50%",
		},
		"an end is lost": {
			begun().cross(5, 3, 1, 1, history.Crossed, 50, 3).useOfA(6, 4, 1).beat(7, 5, 1), "thresholds",
			"uses 1 of 6 at index 4, which was not told for 50%",
		},
		"two members tell otherwise": {
			begun().watchThresholds(4, 2, 2).cross(7, 3, 1, 1, history.Crossed, 50, 6).
				cross(7, 3, 1, 2, history.Crossed, 90, 6), "P9", "differ",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test.script.wantBroken(t, test.promise, test.words) })
	}
}
