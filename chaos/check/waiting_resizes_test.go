package check_test

import (
	"testing"

	"github.com/quorate/quorate/chaos/history"
)

// resizeWaiting resizes x to amounts at a and b; the answer shows that it still holds an amount at a.
func (s *script) resizeWaiting(from, to int64, generation, index uint64, a, b, held int64) *script {
	claims := append(claimOf("a", a), claimOf("b", b)...)
	s.change(from, to, history.Resize, generation, index, claims).asWaiting()
	s.ops[len(s.ops)-1].Records = []history.Record{changedRecord(0, claimOf("a", held))}
	return s
}

func (s *script) resizeRefused(from, to int64, generation uint64, a, b int64, reason string) *script {
	return s.refuseChange(from, to, generation, 0, append(claimOf("a", a), claimOf("b", b)...), reason).asWaiting()
}

// TestValidWaitingResizesPass: no check reports what may happen while a resize waits. x holds 4 at a, and b is full.
func TestValidWaitingResizesPass(t *testing.T) {
	full := func() *script {
		return treeScript().grant(2, 3, "x", "a", 4, 2, 1).grant(4, 5, "y", "b", 6, 3, 2).resizeWaiting(6, 7, 1, 4, 2, 1, 4)
	}
	after := append(claimOf("a", 2), claimOf("b", 1)...)
	behind := history.Violation{Tree: "t", Node: "b", Resource: "units", Kind: "QUEUE", Requested: 1, Missing: 1}
	tests := map[string]*script{
		"waits, and is carried out": full().readUsage(8, 9, 5, 10, 4, 6).release(10, 11, "y", 6, 2).
			readChanged(12, 13, 1, 7, after).grant(14, 15, "z", "a", 4, 8, 3),
		"answered with the state of a later index": treeScript().grant(2, 3, "x", "a", 4, 2, 1).
			change(4, 9, history.Resize, 1, 9, after).asWaiting().readChanged(6, 7, 1, 5, after),
		"a request behind it is denied": treeScript().grant(2, 3, "x", "a", 4, 2, 1).grant(4, 5, "y", "b", 4, 3, 2).
			resizeWaiting(6, 7, 1, 4, 2, 3, 4).deny(8, 9, "z", "b", 1, behind).setIndex(5),
		"ends in vain": full().readChanged(8, 9, 0, 5, claimOf("a", 4)).resizeRefused(10, 11, 1, 2, 1, "GENERATION_MISMATCH").
			readChanged(12, 13, 0, 9, claimOf("a", 4)),
		"ends in vain while a call waits": full().resizeRefused(8, 9, 1, 2, 1, "ENDED").readChanged(10, 11, 0, 6, claimOf("a", 4)),
		"another takes over its place": full().resizeWaiting(8, 9, 2, 5, 1, 2, 4).release(10, 11, "y", 6, 2).
			readChanged(12, 13, 2, 7, append(claimOf("a", 1), claimOf("b", 2)...)),
		"listed with what it holds": full().addOp(8, 9, history.Op{
			Kind: history.ListWaiting, Index: 5, ServedBy: "n1", Claims: []history.Claim{{Tree: "t"}},
			Records: []history.Record{changedRecord(0, claimOf("a", 4)), heldRecord("z", "a", 4, 9)},
		}),
		"never seen": full().release(8, 9, "y", 5, 2).unanswered(10, 11, history.Release, "x", "", 0),
	}
	for name, s := range tests {
		t.Run(name, func(t *testing.T) { s.wantBroken(t, "", "") })
	}
}

// TestWrongWaitingResizesAreFound: the checks find what is given up or taken before its time.
func TestWrongWaitingResizesAreFound(t *testing.T) {
	full := func() *script {
		return treeScript().grant(2, 3, "x", "a", 4, 2, 1).grant(4, 5, "y", "b", 6, 3, 2)
	}
	tests := map[string]struct {
		script         *script
		promise, words string
	}{
		"what becomes less is given up before": {
			full().resizeWaiting(6, 7, 1, 4, 2, 1, 2), "P6", "the amount held at t:a differs",
		},
		"others get what it still holds": {
			full().resizeWaiting(6, 7, 1, 4, 2, 1, 4).grant(8, 9, "z", "a", 4, 5, 3).readChanged(10, 11, 0, 6, claimOf("a", 4)),
			"P1", "8 units are held at t:a",
		},
		"carried out although it does not fit": {
			full().resizeWaiting(6, 7, 1, 4, 2, 1, 4).readChanged(8, 9, 1, 5, append(claimOf("a", 2), claimOf("b", 1)...)).
				regrant(10, 11, "y", "b", 6, 6, 2), "P1", "7 units are held at t:b",
		},
		"old and new amounts are counted": {
			full().resizeWaiting(6, 7, 1, 4, 2, 1, 4).release(8, 9, "y", 5, 2).
				addFinal(9, usageOf(7, 6, 1), changedRecord(1, append(claimOf("a", 2), claimOf("b", 1)...))),
			"P2", "adds up to 2",
		},
		"a resize that ends does not end the allocation": {
			full().resizeWaiting(6, 7, 1, 4, 2, 1, 4).resizeRefused(8, 9, 1, 2, 1, "ENDED").
				addFinal(9, usageOf(6, 0, 6), heldRecord("y", "b", 6, 2)), "P3", "x was granted with fence 1 and is not held",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test.script.wantBroken(t, test.promise, test.words) })
	}
}
