package fsm

import (
	"testing"

	"github.com/quorate/quorate/quota"
)

// tenthGoldens are an entry that raises the level to 10, and a snapshot behind it with a request that waits aside,
// because its limit was lowered, and an allocation with the digest of its last change. The tenth format changes no
// entry.
func tenthGoldens(t testing.TB) map[string][]byte {
	t.Helper()
	raise := joined(t, RaiseLevel(tenthFormat))
	f := ninthFSM(t)
	applyData(f, f.applied+1, raise)
	addAside(t, f)
	return map[string][]byte{"entry-v10-raise-level.bin": raise, "snapshot-v10.bin": snapshotOf(t, f)}
}

// addAside leaves a waiting request that is larger than the whole limit.
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
		request("ci/holds", quota.Hold), request("ci/aside", quota.Wait),
		quota.SetLimits{Tree: "lowered", Limits: limit(5)},
		quota.Resize{ID: "ci/holds", Generation: 1, Claims: []quota.ClaimChange{
			{Tree: "lowered", Amounts: quota.Vector{{Resource: "cpu", Amount: 7}}},
		}},
	)))
	for w := range f.ledger.Snapshot().Waiting() {
		if w.Allocation.Request.ID == "ci/aside" && w.Line.IsAside {
			return
		}
	}
	t.Fatal("ci/aside does not wait aside")
}
