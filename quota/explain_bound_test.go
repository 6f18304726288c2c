package quota_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quorate/quorate/quota"
)

func manyViolations(n int) []quota.Violation {
	list := make([]quota.Violation, n)
	for i := range list {
		list[i] = quota.Violation{
			Tree: "cern", Node: "atlas/physics", Resource: fmt.Sprintf("r%d", i), Limit: 10, Used: 10, Requested: 1,
		}
	}
	return list
}

// TestExplanationsAreBounded: an explanation names what it has room for and counts the rest, and its cost does not grow
// with the number of violations.
func TestExplanationsAreBounded(t *testing.T) {
	d := quota.Decision{Violations: manyViolations(100_000), Preempted: make([]quota.Preempted, 3)}
	text := d.Explain()
	if len(text) > quota.MaxErrorText+quota.MaxErrorText/4 ||
		!strings.HasPrefix(text, "denied: cern:atlas/physics holds 10") {
		t.Errorf("%d bytes: %.100s", len(text), text)
	}
	named := strings.Count(text, " missing")
	want := fmt.Sprintf("; and %d more; leases that must be revoked first", 100_000-named)
	if !strings.Contains(text, want) {
		t.Errorf("%d violations are named, and it ends %q, want %q", named, text[len(text)-200:], want)
	}
	if allocations := testing.AllocsPerRun(3, func() { _ = d.Explain() }); allocations > 1_000 {
		t.Errorf("%.0f allocations", allocations)
	}
	few := quota.Decision{Violations: manyViolations(3)}
	if text := few.Explain(); strings.Contains(text, "more") || strings.Count(text, " missing") != 3 {
		t.Errorf("a short one is %q", text)
	}
}
