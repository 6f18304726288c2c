package fsm

import (
	"testing"

	"github.com/quorate/quorate/quota"
)

// reservedFSM returns a state machine with a reservation that holds items and has preempted an allocation with an item
// and a dynamic node.
func reservedFSM(t testing.TB) *FSM {
	t.Helper()
	f := itemsFSM(t)
	four := []quota.ResourceLimit{
		{Resource: "cpu", Limit: quota.AtMost(4)},
		{Resource: "dev", Limit: quota.AtMost(4)},
		{Resource: "vm", Limit: quota.AtMost(4)},
	}
	one := []quota.ResourceLimit{{Resource: "cpu", Limit: quota.AtMost(1)}, {Resource: "dev", Limit: quota.AtMost(1)}}
	cpu := quota.Resource{Name: "cpu", Unit: quota.Count}
	trees := quota.ApplyTrees{Trees: []quota.TreeSpec{
		{
			Name: "soft", Nodes: []quota.NodeSpec{
				{Policy: "borrowing", Limits: four},
				{Path: "a", Limits: one},
				{Path: "b", Limits: four},
			},
			Resources: []quota.Resource{
				cpu,
				{Name: "dev", Unit: quota.Items, Items: &quota.ItemSpec{Names: []string{"d1", "d2"}}},
				{Name: "vm", Unit: quota.Items, Items: &quota.ItemSpec{Max: 2}},
			},
		},
		{Name: "projects", Resources: []quota.Resource{cpu}, Nodes: []quota.NodeSpec{{Policy: "project"}}},
	}}
	three := quota.Vector{{Resource: "cpu", Amount: 3}}
	victim := quota.Allocate{ID: "victim", Claims: []quota.Claim{
		{Tree: "soft", Node: "a", Amounts: three, Picks: []quota.Pick{{Resource: "dev", Count: 1}}},
		{Tree: "projects", Node: "made", Amounts: three},
	}}
	reserved := quota.Allocate{ID: "reserved", Mode: quota.Reserve, ReserveFor: 1_000_000, Claims: []quota.Claim{
		{
			Tree: "soft", Node: "b", Amounts: three,
			Picks: []quota.Pick{{Resource: "dev", Count: 2}, {Resource: "vm", Count: 1}},
		},
	}}
	for _, c := range []quota.Command{trees, victim, reserved} {
		data, err := EncodeEntry(quota.Stamp{At: 40_010, Wall: 1_800_000_040_010}, []quota.Command{c})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range applyData(f, f.applied+1, data).(Outcomes) {
			if o.Refused != nil || o.Decision != nil && !o.Decision.Granted {
				t.Fatalf("%T: %v %+v", c, o.Refused, o.Decision)
			}
		}
	}
	return f
}

// TestRestoredReservationsEndExactly: when a reservation ends, a member restored from a snapshot has the same state as
// one that applied all entries, and the state from before the reservation.
func TestRestoredReservationsEndExactly(t *testing.T) {
	f := reservedFSM(t)
	g := restored(t, snapshotOf(t, f))
	cancel := mustEncode(t, quota.Cancel{ID: "reserved"})
	applyData(f, f.applied+1, cancel)
	applyData(g, g.applied+1, cancel)
	if got, want := describeImage(t, g.ledger.Snapshot()), describeImage(t, f.ledger.Snapshot()); got != want {
		t.Errorf("a restored member has\n%s, one that was not restored\n%s", got, want)
	}
	a, refused := g.ledger.Reader().Allocation("victim")
	if refused != nil || a.Ended || a.Claims[1].Placed != "made" {
		t.Errorf("the victim is %+v, %v", a, refused)
	}
	page, refused := g.ledger.Reader().Items(quota.ItemFilter{Tree: "soft"}, nil, 10, false)
	if refused != nil || len(page.Items) != 2 || page.Items[0].Allocation != "victim" ||
		page.Items[1].Allocation != "" {
		t.Errorf("the items are %+v, %v", page.Items, refused)
	}
}
