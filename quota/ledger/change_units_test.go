package ledger_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

// TestChangesHaveUnits: history, audit records and webhooks tell people of amounts with the unit of their resource.
func TestChangesHaveUnits(t *testing.T) {
	memory := func(n quota.Amount) quota.Vector { return quota.Vector{{Resource: "memory", Amount: n << 30}} }
	limit := func(n quota.Amount) []quota.ResourceLimit {
		return []quota.ResourceLimit{{Resource: "memory", Limit: quota.AtMost(n << 30)}}
	}
	trees := []quota.TreeSpec{{
		Name: "t", Resources: []quota.Resource{{Name: "memory", Unit: quota.Bytes}},
		Nodes: []quota.NodeSpec{
			{
				Policy: "open", Limits: limit(64),
				Bindings: access.CanonicalBindings([]access.Binding{bind("node-admin", "anna")}),
			},
			{Path: "a", Principals: []quota.PrincipalLimit{{Users: []string{"ada"}, Limits: memory(1)}}},
		},
	}}
	g := newGuarded(t, trees, "anna")
	wantChanges(t, g, "memory=1Gi", "limit memory: 64Gi", "principals: users ada: memory 1Gi")

	g.must("root", quota.SetLimits{Tree: "t", Node: "a", Limits: limit(2)})
	wantChanges(t, g, "", "limit memory: 2Gi")
	for _, c := range []quota.LimitAdjustment{
		{Resource: "memory", Kind: quota.AddToLimit, Amount: -1 << 30},
		{Resource: "memory", Kind: quota.AddToLimit, Amount: 1 << 30},
		{Resource: "memory", Kind: quota.CapLimit, Amount: 1 << 30},
	} {
		want := map[quota.AdjustmentKind]string{quota.AddToLimit: "memory=+1Gi", quota.CapLimit: "memory<=1Gi"}[c.Kind]
		if c.Amount < 0 {
			want = "memory=-1Gi"
		}
		if got := c.In(quota.Bytes); got != want {
			t.Errorf("an adjustment is %q, want %q", got, want)
		}
	}
	g.must("anna", quota.RequestLimits{Tree: "t", Node: "a", Limits: limit(3), Reason: "more"})
	wantChanges(t, g, "", "request 1: open: memory=3Gi for account/anna")
}

// TestAnotherUnitIsNotAnotherLimit: a limit that stays is not told as a change when its resource gets another unit, and
// one that reads the same in both units is.
func TestAnotherUnitIsNotAnotherLimit(t *testing.T) {
	tree := func(unit quota.Unit, root, below quota.Amount) []quota.TreeSpec {
		limit := func(n quota.Amount) []quota.ResourceLimit {
			return []quota.ResourceLimit{{Resource: "cores", Limit: quota.AtMost(n)}}
		}
		return []quota.TreeSpec{{
			Name: "t", Resources: []quota.Resource{{Name: "cores", Unit: unit}},
			Nodes: []quota.NodeSpec{{Policy: "open", Limits: limit(root)}, {Path: "a", Limits: limit(below)}},
		}}
	}
	g := newGuarded(t, tree(quota.Count, 4000, 1))
	g.ledger.TakeChanges()
	g.must("root", quota.ApplyTrees{Trees: tree(quota.Milli, 4000, 1000)})
	wantChanges(t, g, "t limit", "unit cores: milli", "t:a limit cores: 1 milli")
}

// wantChanges checks what the last command has changed.
func wantChanges(t *testing.T, g *guarded, absent string, want ...string) {
	t.Helper()
	var list []string
	for _, c := range g.ledger.TakeChanges() {
		list = append(list, quota.Place(c.Tree, c.Node)+" "+c.Field+": "+c.After)
	}
	text := strings.Join(list, "\n")
	for _, line := range want {
		if !strings.Contains(text, line) {
			t.Errorf("want %q in\n%s", line, text)
		}
	}
	if absent != "" && strings.Contains(text, absent) {
		t.Errorf("unexpected %q in\n%s", absent, text)
	}
}
