package check_test

import (
	"testing"

	"github.com/quorate/quorate/chaos/history"
)

// askAny asks for an amount at a or, if that is full, at b.
func (s *script) askAny(amount int64) *script {
	o := &s.ops[len(s.ops)-1]
	o.AnyOf = [][]history.Claim{claimOf("a", amount), claimOf("b", amount)}
	o.Claims = o.AnyOf[0]
	return s
}

// grantAny grants an amount at a or b, as the alternative of that number.
func (s *script) grantAny(from, to int64, id string, amount int64, number int, index, fence uint64) *script {
	s.grant(from, to, id, []string{"a", "b"}[number-1], amount, index, fence).askAny(amount)
	s.ops[len(s.ops)-1].Alternative = number
	return s
}

// denyAny takes the reason of a first, and those of b after it.
func (s *script) denyAny(from, to int64, id string, amount int64, why ...history.Violation) *script {
	for i := range why {
		why[i].Alternative = 1 + min(i, 1)
	}
	return s.deny(from, to, id, "a", amount, why...).askAny(amount)
}

func (s *script) asWaiting() *script {
	s.ops[len(s.ops)-1].Mode = history.Wait
	return s
}

func (s *script) askAt(node string) *script {
	s.ops[len(s.ops)-1].Claims = claimOf(node, 1)
	return s
}

func (s *script) waitAny(from, to int64, id string, index uint64) *script {
	return s.waitFor(from, to, id, 0, index).askAny(1)
}

// TestValidAlternativesPass: no check reports the grant or the denial of alternatives by a correct cluster.
func TestValidAlternativesPass(t *testing.T) {
	full := func() *script { return treeScript().grant(2, 3, "y", "a", 5, 2, 1) }
	tests := map[string]*script{
		"the first":                 treeScript().grantAny(2, 3, "x", 3, 1, 2, 1).readUsage(4, 5, 2, 3, 3, 0),
		"the second, as a is full":  full().grantAny(4, 5, "x", 3, 2, 3, 2).readUsage(6, 7, 3, 8, 5, 3),
		"released, and asked again": full().grantAny(4, 5, "x", 5, 2, 3, 2).release(6, 7, "x", 4, 2).readUsage(8, 9, 4, 5, 5, 0),
		"denied for each": full().grant(4, 5, "z", "b", 4, 3, 2).
			denyAny(6, 7, "x", 3, violationAt("a", 6, 5, 3), violationAt("b", 6, 4, 3), violationAt("", 10, 9, 3)).setIndex(4).
			withReason(violationAt("", 10, 9, 3), 1),
		"no answer, and the usage shows which": full().unanswered(4, 5, history.Allocate, "x", "a", 0).askAny(3).
			readUsage(6, 7, 4, 8, 5, 3).unanswered(8, 9, history.Release, "x", "", 0),
		"no answer, and never arrived": full().unanswered(4, 5, history.Allocate, "x", "a", 0).askAny(3).
			grant(6, 7, "z", "b", 5, 3, 2).unanswered(8, 9, history.Release, "x", "", 0),
		"released, and no answer shows which": treeScript().grant(2, 3, "y", "b", 6, 2, 1).
			unanswered(4, 5, history.Allocate, "x", "a", 0).askAny(3).release(6, 7, "x", 4, 2).
			regrant(8, 9, "y", "b", 6, 5, 1),
		"waits, and gets the second": full().waitAny(4, 5, "x", 3).grantAny(6, 7, "x", 1, 2, 9, 2).asWaiting().markRepeated(),
		"the one behind it is granted later": queueScript().waitAny(2, 3, "first", 2).waitFor(4, 5, "second", 0, 3).
			grantAny(6, 7, "first", 1, 2, 9, 1).asWaiting().markRepeated().grantWaiting(8, 9, "second", 0, 11, 2),
		"it passes one that waits for what it was not granted": queueScript().waitFor(2, 3, "first", 0, 2).
			waitAny(4, 5, "second", 3).grantAny(6, 7, "second", 1, 2, 9, 1).asWaiting().markRepeated().
			grantWaiting(8, 9, "first", 0, 11, 2),
	}
	for name, s := range tests {
		t.Run(name, func(t *testing.T) { s.wantBroken(t, "", "") })
	}
}

func (s *script) withReason(x history.Violation, alternative int) *script {
	x.Alternative = alternative
	o := &s.ops[len(s.ops)-1]
	o.Violations = append(o.Violations, x)
	return s
}

// TestWrongAlternativesAreFound: the checks find a grant of the wrong alternative, of several, and a wrong denial.
func TestWrongAlternativesAreFound(t *testing.T) {
	tests := map[string]struct {
		script         *script
		promise, words string
	}{
		"the second, although the first fits": {treeScript().grantAny(2, 3, "x", 3, 2, 2, 1), "linearizable", "no order"},
		"the second, which does not fit": {
			treeScript().grant(2, 3, "y", "b", 5, 2, 1).grantAny(4, 5, "x", 3, 2, 3, 2).regrant(6, 7, "y", "b", 5, 4, 1), "P1",
			"8 units are held at t:b",
		},
		"denied, although the second fits": {
			treeScript().grant(2, 3, "y", "a", 5, 2, 1).denyAny(4, 5, "x", 3, violationAt("a", 6, 5, 3)).setIndex(3),
			"linearizable", "no order",
		},
		"denied with the reasons of one only": {
			treeScript().setLimitOf("", 20).grant(2, 3, "y", "a", 5, 2, 1).grant(4, 5, "z", "b", 5, 3, 2).
				denyAny(6, 7, "x", 3, violationAt("a", 6, 5, 3)).setIndex(4), "P10", "not with the reasons",
		},
		"a reason for what the other asks for": {
			treeScript().denyAny(2, 3, "x", 3, violationAt("b", 6, 5, 3)), "P10", "something else was requested",
		},
		"both": {
			treeScript().grantAny(2, 3, "x", 3, 1, 2, 1).got(append(claimOf("a", 3), claimOf("b", 3)...)), "P6",
			"number of claims",
		},
		"first one, then the other": {
			treeScript().grantAny(2, 3, "x", 3, 1, 2, 1).readChanged(4, 5, 0, 3, claimOf("b", 3)), "P6",
			"nothing is held at t:a",
		},
		"another number": {
			treeScript().grantAny(2, 3, "x", 3, 2, 2, 1).got(claimOf("a", 3)), "P6", "shows alternative 2, but was granted 1",
		},
		"granted again through the other": {
			treeScript().waitAny(2, 3, "x", 2).grantAny(4, 5, "x", 1, 1, 3, 1).asWaiting().markRepeated().
				grantAny(6, 7, "x", 1, 2, 4, 2).asWaiting().markRepeated(), "P2", "under fence 1 and under 2",
		},
		"overtaken at one of them": {
			queueScript().waitAny(2, 3, "first", 2).waitFor(4, 5, "second", 0, 3).askAt("b").
				grantWaiting(6, 7, "second", 0, 9, 1).askAt("b").got(claimOf("b", 1)).
				grantAny(8, 9, "first", 1, 1, 11, 2).asWaiting().markRepeated(), "P8", "first (priority 0, fence 2) had waited",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test.script.wantBroken(t, test.promise, test.words) })
	}
}
