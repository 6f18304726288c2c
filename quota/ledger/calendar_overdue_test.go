package ledger_test

import (
	"testing"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// TestSchedulesBehindAnOverdueEnd: a limit that is scheduled to begin at once waits for an earlier end that is still to
// come in an Expire. If it began before it, a later change of limits would be judged as if both were in force.
func TestSchedulesBehindAnOverdueEnd(t *testing.T) {
	l := ledger.New(quota.DefaultBounds())
	apply := func(second int, c quota.Command) ledger.Outcome {
		t.Helper()
		out := l.Apply(quota.Stamp{At: quota.Instant(second * 1000)}, c)
		if err := l.Check(); err != nil {
			t.Fatalf("second %d: after %+v: %v", second, c, err)
		}
		return out
	}
	schedule := func(second int, node string, amount quota.Amount, from, until int) {
		t.Helper()
		out := apply(second, quota.ScheduleLimits{
			ID: "at-" + node, Tree: "t", Node: node,
			Adjustments: []quota.LimitAdjustment{{Resource: "cores", Kind: quota.AddToLimit, Amount: amount}},
			Windows:     []quota.CivilWindow{{From: civilSecond(from), Until: civilSecond(until)}},
		})
		if out.Refused != nil {
			t.Fatal(out.Refused)
		}
	}
	apply(1, quota.ApplyTrees{Trees: []quota.TreeSpec{{
		Name: "t", Resources: []quota.Resource{{Name: "cores", Unit: quota.Count}}, Nodes: []quota.NodeSpec{
			{Path: "", Policy: "strict", Limits: cores(12)}, {Path: "a", Limits: cores(11)},
		},
	}}})
	apply(1, quota.SetCivilOffset{Offset: modelOffset * 1000})
	schedule(1, "", 3, 1, 5)
	for apply(4, quota.Expire{Most: 9}).Expired > 0 {
		continue
	}
	schedule(8, "a", 1, 8, 20)
	if out := apply(8, quota.SetLimits{Tree: "t", Limits: cores(11)}); out.Refused == nil {
		t.Error("the root has 11 from now on, and its child 12")
	}
	for apply(8, quota.Expire{Most: 9}).Expired > 0 {
		continue
	}
}
