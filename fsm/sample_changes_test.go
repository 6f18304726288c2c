package fsm

import (
	"testing"

	"github.com/quorate/quorate/quota"
)

// retiringTree has items that pass through two states before they are removed.
var retiringTree = quota.ApplyTrees{Trees: []quota.TreeSpec{{
	Name: "t", Nodes: []quota.NodeSpec{{Policy: "open"}},
	Resources: []quota.Resource{{Name: "slice", Unit: quota.Items, Items: &quota.ItemSpec{
		Min: 1, Max: 3, Lifespan: 9000, Retired: "toBeDeleted", Removed: "tombstone",
	}}},
}}}

// requiringTree is a configuration that requires users.
var requiringTree = quota.ApplyTrees{Trees: []quota.TreeSpec{{
	Name: "required", Resources: []quota.Resource{{Name: "cores", Unit: quota.Count}},
	TreeSettings: quota.TreeSettings{RequirePrincipal: true},
	Nodes: []quota.NodeSpec{{Principals: []quota.PrincipalLimit{
		{Users: []string{"*"}, Limits: quota.Vector{{Resource: "cores", Amount: 3}}},
	}}},
}}}

func holdingChanges() map[string]quota.Command {
	cpu := func(amount quota.Amount) quota.Vector { return quota.Vector{{Resource: "cpu", Amount: amount}} }
	return map[string]quota.Command{
		"resize": quota.Resize{ID: "job", Fence: 3, Generation: 1, Claims: []quota.ClaimChange{
			{Tree: "t", Node: "a", Amounts: cpu(9)}, {Tree: "t", Node: "b", Amounts: cpu(1)},
		}},
		"transfer": quota.Transfer{
			ID: "job", Fence: 3, Generation: 2, Moves: []quota.ClaimMove{{Tree: "t", From: "b", To: "c"}},
		},
		"split": quota.Split{ID: "job", Fence: 3, Generation: 3, Parts: []quota.Part{
			{ID: "part", Claims: []quota.PartClaim{{Tree: "t", From: "a", To: "b", Amounts: cpu(4)}}},
		}},
	}
}

func changedFSM(t testing.TB) *FSM {
	t.Helper()
	f := accessFSM(t)
	cpu := func(amount quota.Amount) quota.Vector { return quota.Vector{{Resource: "cpu", Amount: amount}} }
	tree := quota.TreeSpec{
		Name: "elastic", Resources: []quota.Resource{{Name: "cpu", Unit: quota.Count}},
		Nodes: []quota.NodeSpec{{Policy: "open", Bindings: sampleBindings}, {Path: "a"}, {Path: "b"}},
	}
	hold := func(id string) quota.Command {
		return quota.Allocate{ID: id, Claims: []quota.Claim{{Tree: "elastic", Node: "a", Amounts: cpu(5)}}}
	}
	part := func(source, id string) quota.Command {
		return quota.Split{ID: source, Generation: 7, Parts: []quota.Part{
			{ID: id, Claims: []quota.PartClaim{{Tree: "elastic", From: "a", To: "b", Amounts: cpu(2)}}},
		}}
	}
	applyData(f, f.applied+1, joined(t, partOf(t, systemCaller, quota.ApplyTrees{Trees: []quota.TreeSpec{tree}})))
	applyData(f, f.applied+1, joined(t, partOf(t, evaCaller, hold("corp/eva ci/elastic"), hold("corp/eva ci/ended"),
		part("corp/eva ci/elastic", "corp/eva ci/part"), part("corp/eva ci/ended", "corp/eva ci/other"),
		quota.Release{ID: "corp/eva ci/ended"})))
	for _, id := range []string{"corp/eva ci/elastic", "corp/eva ci/part", "corp/eva ci/ended"} {
		if a, refused := f.ledger.Reader().Allocation(id); refused != nil || a.Generation != 7 && a.SplitFrom == "" {
			t.Fatalf("%s is %+v, %v", id, a, refused)
		}
	}
	return f
}

// TestRequiredUsersAreRestored: a restored state requires users too, and rolls back to a revision that did.
func TestRequiredUsersAreRestored(t *testing.T) {
	f := accessFSM(t)
	applyData(f, f.applied+1, joined(t, partOf(t, systemCaller, requiringTree)))
	revision := f.ledger.Reader().Revision()
	free := quota.ApplyTrees{Trees: []quota.TreeSpec{requiringTree.Trees[0]}}
	free.Trees[0].RequirePrincipal = false
	applyData(f, f.applied+1, joined(t, partOf(t, systemCaller, free)))
	requiresUser := func(f *FSM) bool {
		spec, refused := f.ledger.Reader().Tree("required")
		if refused != nil {
			t.Fatal(refused)
		}
		return spec.RequirePrincipal
	}
	back := joined(t, partOf(t, systemCaller, quota.RollBack{Revision: revision}))
	for name, g := range map[string]*FSM{"the state": f, "a restored state": restored(t, snapshotOf(t, f))} {
		if requiresUser(g) {
			t.Errorf("%s requires users after a change that took it back", name)
		}
		if applyData(g, g.applied+1, back); !requiresUser(g) || !requiresUser(restored(t, snapshotOf(t, g))) {
			t.Errorf("%s does not require users after a rollback", name)
		}
	}
}
