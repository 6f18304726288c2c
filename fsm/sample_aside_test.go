package fsm

import (
	"testing"

	"github.com/quorate/quorate/quota"
)

func fullFSM(t testing.TB) *FSM {
	t.Helper()
	f := timedFSM(t)
	addAside(t, f)
	return f
}

// addAside leaves a waiting request that is larger than the whole limit, because that was lowered, and an allocation
// with the digest of its last change.
func addAside(t testing.TB, f *FSM) {
	t.Helper()
	limit := func(n quota.Amount) []quota.ResourceLimit {
		return []quota.ResourceLimit{{Resource: "cpu", Limit: quota.AtMost(n)}}
	}
	request := func(id string, mode quota.Mode) quota.Allocate {
		return quota.Allocate{ID: id, Mode: mode, Claims: []quota.Claim{
			{Tree: "lowered", Amounts: quota.Vector{{Resource: "cpu", Amount: 8}}},
		}}
	}
	applyData(f, f.applied+1, joined(t, partOf(t, systemCaller,
		quota.ApplyTrees{Trees: []quota.TreeSpec{{
			Name: "lowered", Resources: []quota.Resource{{Name: "cpu", Unit: quota.Count}},
			Nodes: []quota.NodeSpec{{Policy: "open", Limits: limit(10)}},
		}}},
		request("corp/eva ci/holds", quota.Hold), request("corp/eva ci/aside", quota.Wait),
		quota.SetLimits{Tree: "lowered", Limits: limit(5)},
		quota.Resize{ID: "corp/eva ci/holds", Generation: 1, Claims: []quota.ClaimChange{
			{Tree: "lowered", Amounts: quota.Vector{{Resource: "cpu", Amount: 7}}},
		}},
	)))
	for w := range f.ledger.Snapshot().Waiting() {
		if w.Allocation.Request.ID == "corp/eva ci/aside" && w.Line.IsAside {
			return
		}
	}
	t.Fatal("corp/eva ci/aside does not wait aside")
}
