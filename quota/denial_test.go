package quota

import (
	"regexp"
	"slices"
	"testing"
)

func TestDenialReason(t *testing.T) {
	for _, c := range []struct {
		decision     Decision
		tree, reason string
	}{
		{Decision{Violations: []Violation{{Tree: "a", Kind: OfHold}, {Tree: "b"}}}, "a", "hold"},
		{Decision{Violations: []Violation{{Tree: "b"}}, Preempted: []Preempted{{Tree: "c"}}}, "b", "resource"},
		{Decision{Preempted: []Preempted{{Tree: "c"}}}, "c", ReasonRevocation},
		{Decision{}, "", ReasonOther},
	} {
		if tree, reason := c.decision.DenialReason(); tree != c.tree || reason != c.reason {
			t.Errorf("%+v: %q %q, want %q %q", c.decision, tree, reason, c.tree, c.reason)
		}
	}
	words := DenialReasons()
	for i, word := range words {
		if !regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`).MatchString(word) || slices.Contains(words[:i], word) {
			t.Errorf("%q is not a word of its own", word)
		}
	}
}
