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
			{Name: "lab", Base: "strict", Unset: "zero", Sum: "off"},
			{
				Name: "pool", Base: "open", Unset: "zero", Sum: "within-limit-less-own", ChildLimit: "within-parent",
				UnknownNodes: "refuse", ClaimsAt: "leaves", Borrowing: "soft", Preemption: "lower-priority",
				Setters: "parent",
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

// sixthGoldens are entries with definitions of policies, and a snapshot with some, after one was changed and one
// removed.
func sixthGoldens(t testing.TB) map[string][]byte {
	t.Helper()
	files := map[string][]byte{
		"entry-v6-raise-level.bin": joined(t, RaiseLevel(sixthFormat)),
		"snapshot-v6.bin":          snapshotOf(t, sixthFSM(t)),
	}
	for name, c := range map[string]quota.Command{"define-policies": definePolicies, "remove-policies": removedPolicy} {
		data, err := EncodeEntry(quota.Stamp{At: 5, Wall: 1_800_000_000_000}, []quota.Command{c})
		if err != nil {
			t.Fatal(err)
		}
		files["entry-v6-"+name+".bin"] = data
	}
	return files
}

func sixthFSM(t testing.TB) *FSM {
	t.Helper()
	f := fifthFSM(t)
	applyData(f, f.applied+1, joined(t, RaiseLevel(sixthFormat)))
	for _, c := range []quota.Command{definePolicies, removedPolicy, redefinedPolicy} {
		applyOne(t, f, c)
	}
	return f
}

// applyOne applies a change of configuration, which must succeed.
func applyOne(t testing.TB, f *FSM, c quota.Command) {
	t.Helper()
	outcomes, ok := applyData(f, f.applied+1, mustEncode(t, c)).(Outcomes)
	if !ok || outcomes[0].Refused != nil {
		t.Fatalf("%T: %+v", c, outcomes)
	}
}

// TestWithoutPoliciesNothingIsWrittenOtherwise: at level 6 a state without definitions has the bytes of before, but for
// the formats in the header. A configuration that once had some is the same again after they are removed.
func TestWithoutPoliciesNothingIsWrittenOtherwise(t *testing.T) {
	f, g := fifthFSM(t), fifthFSM(t)
	for _, machine := range []*FSM{f, g} {
		applyData(machine, machine.applied+1, joined(t, RaiseLevel(sixthFormat)))
	}
	fifth := snapshotOf(t, restored(t, readGolden(t, "snapshot-v5.bin")))
	if !bytes.Equal(fifth, readGolden(t, "snapshot-v5.bin")) {
		t.Error("a snapshot of format 5 would be written otherwise")
	}
	applyOne(t, g, quota.ApplyTrees{Policies: definePolicies.Policies})
	applyOne(t, g, quota.ApplyTrees{RemovePolicies: []string{"lab", "pool", "unused"}})
	if len(g.ledger.Snapshot().Policies()) != 0 {
		t.Fatal("the definitions are not removed")
	}
	if !bytes.Equal(recordsOf(t, f.newSnapshot()), recordsOf(t, g.newSnapshot())) {
		t.Error("trees, items and allocations differ after definitions came and went")
	}
}

// recordsOf are the bytes of all records but the header and the history.
func recordsOf(t *testing.T, s *snapshot) []byte {
	t.Helper()
	var out bytes.Buffer
	w := &recordWriter{out: &out, digest: sha256.New()}
	for i, part := range s.recordLists() {
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
	f := sixthFSM(t)
	g := restored(t, snapshotOf(t, f))
	for _, c := range []quota.Command{
		quota.ApplyTrees{Policies: []quota.PolicySpec{{Name: "lab", Base: "strict", Setters: "ancestors"}}},
		quota.SetLimits{
			Tree: "cern", Node: "pool",
			Limits: []quota.ResourceLimit{{Resource: "cores", Limit: quota.AtMost(11)}},
		},
		quota.RollBack{Revision: f.ledger.View().Revision() - 1},
		quota.RollBack{Revision: f.ledger.View().Revision() - 3},
	} {
		for _, machine := range []*FSM{f, g} {
			applyData(machine, machine.applied+1, mustEncode(t, c))
		}
		if !bytes.Equal(snapshotOf(t, f), snapshotOf(t, g)) || f.chain != g.chain {
			t.Fatalf("after %T a restored member has another state", c)
		}
	}
	if len(f.ledger.View().Policies()) != 0 {
		t.Errorf("before the first definition there were %+v", f.ledger.View().Policies())
	}
}

// TestDefinitionsNeedTheSixthFormat: commands with definitions do, and all others keep their format.
func TestDefinitionsNeedTheSixthFormat(t *testing.T) {
	for _, c := range []quota.Command{definePolicies, removedPolicy, redefinedPolicy} {
		if formatOf(c) != sixthFormat {
			t.Errorf("%+v is of format %d", c, formatOf(c))
		}
	}
	tree := quota.ApplyTrees{Trees: definePolicies.Trees}
	if formatOf(tree) != secondFormat {
		t.Errorf("a tree that names a defined policy is of format %d", formatOf(tree))
	}
}
