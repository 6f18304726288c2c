package fsm

import (
	"bytes"
	"crypto/sha256"
	"testing"

	"github.com/quorate/quorate/quota"
)

// definePolicies is a command with definitions, and removedPolicy one that removes a definition.
var (
	definePolicies = quota.ApplyTrees{
		Meta: quota.ChangeMeta{Actor: "eva"},
		Policies: []quota.PolicySpec{
			{Name: "lab", Base: "strict", Unset: "zero", Sum: "unchecked"},
			{
				Name: "pool", Base: "open", Unset: "zero", Sum: "within-limit-less-own", ChildLimit: "within-parent",
				UnknownNodes: "refuse", ClaimNodes: "leaves", Borrowing: "soft", Preemption: "lower-priority",
			},
			{Name: "unused", Base: "cohort"},
		},
		Trees: []quota.TreeSpec{{
			Name: "cern", Resources: []quota.Resource{{Name: "cores", Unit: quota.Count}},
			Nodes: []quota.NodeSpec{
				{Policy: "lab", Limits: []quota.ResourceLimit{{Resource: "cores", Limit: quota.AtMost(10)}}},
				{Path: "pool", Policy: "pool"},
			},
		}},
	}
	removedPolicy   = quota.ApplyTrees{RemovePolicies: []string{"unused"}}
	redefinedPolicy = quota.ApplyTrees{Policies: []quota.PolicySpec{{Name: "lab", Base: "strict"}}}
)

func policiesFSM(t testing.TB) *FSM {
	t.Helper()
	f := reservedFSM(t)
	for _, c := range []quota.Command{definePolicies, removedPolicy, redefinedPolicy} {
		applyOne(t, f, c)
	}
	return f
}

func applyOne(t testing.TB, f *FSM, c quota.Command) {
	t.Helper()
	outcomes, ok := applyData(f, f.applied+1, mustEncode(t, c)).(Outcomes)
	if !ok || outcomes[0].Refused != nil {
		t.Fatalf("%T: %+v", c, outcomes)
	}
}

// TestRemovedPoliciesLeaveNothing: a configuration that once had definitions is the same again after they are removed.
func TestRemovedPoliciesLeaveNothing(t *testing.T) {
	f, g := reservedFSM(t), reservedFSM(t)
	applyOne(t, g, quota.ApplyTrees{Policies: definePolicies.Policies})
	applyOne(t, g, quota.ApplyTrees{RemovePolicies: []string{"lab", "pool", "unused"}})
	if len(g.ledger.Snapshot().Policies()) != 0 {
		t.Fatal("the definitions are not removed")
	}
	if !bytes.Equal(recordsOf(t, f.newSnapshot()), recordsOf(t, g.newSnapshot())) {
		t.Error("trees, items and allocations differ after definitions came and went")
	}
}

// recordsOf are the bytes of all records but the header, the history and the audit records.
func recordsOf(t *testing.T, s *snapshot) []byte {
	t.Helper()
	var out bytes.Buffer
	w := &recordWriter{out: &out, digest: sha256.New()}
	lists := s.recordLists()
	for i, part := range lists[:len(lists)-1] {
		if i == 3 { // the history
			continue
		}
		if err := part(w); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

// TestPoliciesSurviveARestore: a member that was restored decides, redefines and rolls back like one that was not.
func TestPoliciesSurviveARestore(t *testing.T) {
	f := policiesFSM(t)
	g := restored(t, snapshotOf(t, f))
	for _, c := range []quota.Command{
		quota.ApplyTrees{Policies: []quota.PolicySpec{{Name: "lab", Base: "strict", Sum: "unchecked"}}},
		quota.SetLimits{
			Tree: "cern", Node: "pool",
			Limits: []quota.ResourceLimit{{Resource: "cores", Limit: quota.AtMost(11)}},
		},
		quota.RollBack{Revision: f.ledger.Reader().Revision() - 1},
		quota.RollBack{Revision: f.ledger.Reader().Revision() - 3},
	} {
		for _, machine := range []*FSM{f, g} {
			applyData(machine, machine.applied+1, mustEncode(t, c))
		}
		if !bytes.Equal(snapshotOf(t, f), snapshotOf(t, g)) || f.chain != g.chain {
			t.Fatalf("after %T a restored member has another state", c)
		}
	}
	if len(f.ledger.Reader().Policies()) != 0 {
		t.Errorf("before the first definition there were %+v", f.ledger.Reader().Policies())
	}
}
