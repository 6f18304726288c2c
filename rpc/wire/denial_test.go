package wire

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/quota"
)

// TestDenialsAreBounded: what a denied request costs to answer does not grow with the number of limits that it
// violates.
func TestDenialsAreBounded(t *testing.T) {
	denied := func(n int) *quota.Decision {
		d := &quota.Decision{}
		for i := range n {
			d.Violations = append(d.Violations, quota.Violation{
				Tree: "cern", Node: "atlas", Resource: fmt.Sprintf("r%d", i), Limit: 1, Used: 1, Requested: 1,
			})
		}
		return d
	}
	few, many := denied(3), denied(100_000)
	if got := len(DenialFailure(many, 1).GetDecision().GetViolations()); got != maxDecisionViolations {
		t.Errorf("%d violations are listed", got)
	}
	costs := map[string]func(){
		"an error":   func() { _ = DenialError(*many, 1) },
		"an element": func() { _ = DenialFailure(many, 1) },
	}
	for name, answer := range costs {
		if allocations := testing.AllocsPerRun(3, answer); allocations > 4_000 {
			t.Errorf("%s: %.0f allocations", name, allocations)
		}
	}
	for _, d := range []*quota.Decision{few, many} {
		if got, want := DenialFailure(d, 7), ToFailure(DenialError(*d, 7)); !proto.Equal(got, want) {
			t.Errorf("an element of a batch is %v, and the error %v", got, want)
		}
	}
}
