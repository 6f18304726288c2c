package ledger_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// TestTooLargeForACohortSinceLevelFive: below level 5 the request waits, as on members that do not know the level.
func TestTooLargeForACohortSinceLevelFive(t *testing.T) {
	for level, waits := range map[uint32]bool{4: true, quota.LevelFive: false} {
		l := ledger.New(quota.DefaultBounds())
		l.SetLevel(level)
		five := []quota.ResourceLimit{{Resource: "gpu", Limit: quota.AtMost(5)}}
		spec := quota.TreeSpec{
			Name: "k", Resources: []quota.Resource{{Name: "gpu", Unit: quota.Count}},
			Nodes: []quota.NodeSpec{
				{Policy: "cohort"},
				{Path: "a", Limits: five, Borrow: []quota.ResourceLimit{{Resource: "gpu", Limit: quota.AtMost(2)}}},
				{Path: "b", Limits: five},
			},
		}
		if out := l.Apply(quota.Stamp{}, quota.ApplyTrees{Trees: []quota.TreeSpec{spec}}); out.Refused != nil {
			t.Fatal(out.Refused)
		}
		claims := []quota.Claim{{Tree: "k", Node: "a", Amounts: quota.Vector{{Resource: "gpu", Amount: 8}}}}
		out := l.Apply(quota.Stamp{}, quota.Allocate{ID: "big", Mode: quota.Wait, Claims: claims})
		if out.Refused != nil || out.Decision.Waiting != waits || out.Decision.NeverFits() == waits {
			t.Errorf("at level %d: %v, %+v", level, out.Refused, out.Decision)
		}
	}
}

// TestPolicyTextsHaveUnitsSinceLevelTen: below level 10 amounts in texts are base units, as on members that do not know
// the level, because the ledger keeps some of the texts.
func TestPolicyTextsHaveUnitsSinceLevelTen(t *testing.T) {
	for level, want := range map[uint32]string{
		quota.LevelTen - 1: "add up to 3221225472, more than its limit of 2147483648",
		quota.LevelTen:     "add up to 3Gi, more than its limit of 2Gi",
	} {
		l := ledger.New(quota.DefaultBounds())
		l.SetLevel(level)
		memory := func(amount quota.Amount) []quota.ResourceLimit {
			return []quota.ResourceLimit{{Resource: "memory", Limit: quota.AtMost(amount)}}
		}
		spec := quota.TreeSpec{
			Name: "s", Resources: []quota.Resource{{Name: "memory", Unit: quota.Bytes}},
			Nodes: []quota.NodeSpec{{Policy: "strict", Limits: memory(2 << 30)}, {Path: "a", Limits: memory(3 << 30)}},
		}
		out := l.Apply(quota.Stamp{}, quota.ApplyTrees{Trees: []quota.TreeSpec{spec}})
		if out.Refused == nil || !strings.Contains(out.Refused.Text, want) {
			t.Errorf("at level %d the refusal is %v, want %q in it", level, out.Refused, want)
		}
	}
}

// TestUncollectedGrantsEndSinceLevelTen: a grant from the queue without a TTL that its caller does not come for ends
// after the keep span. Below level 10 it is held until it is released, as on members that do not know the level.
func TestUncollectedGrantsEndSinceLevelTen(t *testing.T) {
	for level, want := range map[uint32]quota.State{
		quota.LevelNine: quota.Held, quota.LevelTen: quota.Expired,
	} {
		l := ledger.New(quota.DefaultBounds())
		l.SetLevel(level)
		spec := quota.TreeSpec{
			Name: "t", Resources: []quota.Resource{{Name: "slot", Unit: quota.Count}},
			Nodes: []quota.NodeSpec{{
				Policy: "open", Limits: []quota.ResourceLimit{{Resource: "slot", Limit: quota.AtMost(1)}},
			}},
		}
		claims := []quota.Claim{{Tree: "t", Amounts: quota.Vector{{Resource: "slot", Amount: 1}}}}
		for at, c := range []quota.Command{
			quota.ApplyTrees{Trees: []quota.TreeSpec{spec}},
			quota.Allocate{ID: "first", Claims: claims},
			quota.Allocate{ID: "job", Mode: quota.Wait, Keep: 3000, Claims: claims},
			quota.Release{ID: "first"},
			quota.Expire{Most: 10}, // too early
		} {
			if out := l.Apply(quota.Stamp{At: quota.Instant(at)}, c); out.Refused != nil {
				t.Fatal(out.Refused)
			}
		}
		if info, err := l.View().Allocation("job"); err != nil || info.State != quota.Held {
			t.Fatalf("at level %d it is not granted: %+v, %v", level, info, err)
		}
		l.Apply(quota.Stamp{At: 3003}, quota.Expire{Most: 10})
		if info, err := l.View().Allocation("job"); err != nil || info.State != want {
			t.Errorf("at level %d: %v, %v; want %v", level, info.State, err, want)
		}
	}
}
