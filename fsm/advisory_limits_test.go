package fsm

import (
	"testing"

	"github.com/quorate/quorate/quota"
)

func advisoryLimits(amount quota.Amount) []quota.ResourceLimit {
	return []quota.ResourceLimit{{Resource: "cores", Limit: quota.AdvisoryLimit(amount)}}
}

// advisoryTree has an advisory limit, and one as a default.
var advisoryTree = quota.ApplyTrees{Trees: []quota.TreeSpec{{
	Name: "advised", Resources: []quota.Resource{{Name: "cores", Unit: quota.Count}},
	Nodes: []quota.NodeSpec{{Policy: "open", Defaults: advisoryLimits(3)}, {Path: "a", Limits: advisoryLimits(0)}},
}}}

// TestAdvisoryLimitsAreRestored: a restored state has them, and a rollback brings them back.
func TestAdvisoryLimitsAreRestored(t *testing.T) {
	f := timedFSM(t)
	revision := f.ledger.Reader().Revision()
	real := quota.SetLimits{Tree: "advised", Node: "a", Limits: []quota.ResourceLimit{
		{Resource: "cores", Limit: quota.AtMost(1)},
	}}
	applyData(f, f.applied+1, joined(t, partOf(t, systemCaller, real)))
	back := joined(t, partOf(t, systemCaller, quota.RollBack{Revision: revision}))
	limitOf := func(f *FSM) quota.Limit {
		page, refused := f.ledger.Reader().Usage(quota.UsageQuery{Tree: "advised", Node: "a", Max: 1})
		if refused != nil {
			t.Fatal(refused)
		}
		return page.Nodes[0].Resources[0].Set
	}
	for name, g := range map[string]*FSM{"the state": f, "a restored state": restored(t, snapshotOf(t, f))} {
		if got := limitOf(g); got != quota.AtMost(1) {
			t.Errorf("%s has the limit %s, want 1", name, got)
		}
		applyData(g, g.applied+1, back)
		for _, after := range []*FSM{g, restored(t, snapshotOf(t, g))} {
			if got := limitOf(after); got != quota.AdvisoryLimit(0) {
				t.Errorf("%s has the limit %s after a rollback, want advisory:0", name, got)
			}
		}
	}
}
