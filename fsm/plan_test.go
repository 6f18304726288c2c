package fsm

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

func wideTree(nodes int) quota.ApplyTrees {
	tree := benchTree()
	spec := &tree.Trees[0]
	for i := range nodes {
		spec.Nodes = append(spec.Nodes, quota.NodeSpec{
			Path:   fmt.Sprintf("team-%05d", i),
			Limits: []quota.ResourceLimit{{Resource: "cpu", Limit: quota.AtMost(quota.Amount(i))}},
		})
	}
	return tree
}

// TestPlansDoNotStopWriters: entries are applied while a change of a large tree is planned. The plan reflects the state
// at its start.
func TestPlansDoNotStopWriters(t *testing.T) {
	f := New(Options{})
	applyData(f, 1, mustEncode(t, wideTree(2000)))
	applyData(f, 2, mustEncode(t, benchAllocate(1)))
	c := quota.SetLimits{
		Tree: "t", Node: "org",
		Limits: []quota.ResourceLimit{{Resource: "cpu", Limit: quota.AtMost(0)}},
	}
	var want ledger.Outcome
	if _, err := f.Sandbox(func(v ledger.Sandbox) { want = v.DryRun(c) }); err != nil ||
		len(want.Configuration.Over) != 1 {
		t.Fatalf("%+v, %v", want, err)
	}

	index, err := f.PlanSandbox(func(v ledger.Sandbox) {
		applied := make(chan struct{})
		go func() {
			defer close(applied)
			for i := range uint64(10) {
				applyData(f, 3+i, mustEncode(t, benchAllocate(int(2+i))))
			}
		}()
		select {
		case <-applied:
		case <-time.After(time.Minute):
			t.Error("writers wait for the plan")
		}
		if got := v.DryRun(c); !reflect.DeepEqual(got.Configuration, want.Configuration) {
			t.Errorf("the plan is\n%+v\nwant that of before\n%+v", got.Configuration, want.Configuration)
		}
	})
	if err != nil || index != 2 || f.Applied() != 12 {
		t.Errorf("index %d of %d, %v", index, f.Applied(), err)
	}
}

// TestPlansBesideWriters is for the race detector: the copy for a plan shares records with the ledger, which changes
// meanwhile.
func TestPlansBesideWriters(t *testing.T) {
	f := New(Options{})
	applyData(f, 1, mustEncode(t, wideTree(600)))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range uint64(200) {
			waits := benchAllocate(int(i))
			waits.ID, waits.Mode = "waits-"+waits.ID, quota.Wait
			commands := []quota.Command{
				benchAllocate(int(i)),
				waits,
				quota.Release{ID: benchAllocate(int(i) - 5).ID},
				quota.SetLimits{
					Tree: "t", Node: "org",
					Limits: []quota.ResourceLimit{{Resource: "cpu", Limit: quota.AtMost(quota.Amount(i))}},
				},
			}
			if i%20 == 0 {
				commands = append(commands, wideTree(600-int(i)))
			}
			applyData(f, 2+i, mustEncode(t, commands...))
		}
	}()
	plans := 0
	for ; plans < 3 || f.Applied() < 201; plans++ {
		if _, err := f.WhatIfSandbox(func(v ledger.Sandbox) {
			if out := v.WhatIf(ledger.Origin{Index: 1}, wideTree(500)); out.Refused != nil {
				t.Errorf("plan %d: %v", plans, out.Refused)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	<-done
}

// TestPlansOfSmallTrees: plans of small trees need no copy.
func TestPlansOfSmallTrees(t *testing.T) {
	f := New(Options{})
	applyData(f, 1, mustEncode(t, benchTree()))
	index, err := f.PlanSandbox(func(v ledger.Sandbox) {
		if v != f.ledger.Sandbox() {
			t.Error("a plan of a small tree makes a copy")
		}
	})
	if index != 1 || err != nil {
		t.Errorf("%d, %v", index, err)
	}
	applyData(f, 2, []byte("broken"))
	if _, err := f.PlanSandbox(
		func(ledger.Sandbox) { t.Error("the state of one that has halted is lent") }); err == nil {
		t.Error("a plan of one that has halted succeeds")
	}
}

// TestWhatIfsCopyIfARequestWaits: what-ifs need a copy while a request waits, whatever the size of the trees, and leave
// the state as it is.
func TestWhatIfsCopyIfARequestWaits(t *testing.T) {
	f := New(Options{})
	applyData(f, 1, mustEncode(t, benchTree()))
	for _, want := range []string{"", "waits"} {
		wait := want != ""
		if wait {
			big := benchAllocate(1)
			big.ID, big.Mode, big.Claims[0].Amounts[0].Amount = want, quota.Wait, 1_000_000
			none := quota.SetLimits{
				Tree: "t", Node: "org", Limits: []quota.ResourceLimit{{Resource: "cpu", Limit: quota.AtMost(1_000_000)}},
			}
			applyData(f, 2, mustEncode(t, none, benchAllocate(2), big))
		}
		before := f.ledger.Reader().Counts()
		if _, err := f.WhatIfSandbox(func(v ledger.Sandbox) {
			if isCopy := v != f.ledger.Sandbox(); isCopy != wait {
				t.Errorf("%q: a copy is made: %t", want, isCopy)
			}
			more := quota.SetLimits{
				Tree: "t", Node: "org", Limits: []quota.ResourceLimit{{Resource: "cpu", Limit: quota.AtMost(9_000_000)}},
			}
			out := v.WhatIf(ledger.Origin{Index: 1}, more)
			if list := out.Configuration.Effects.Queue.Granted.List; wait && (len(list) != 1 || list[0].ID != want) {
				t.Errorf("%+v would be granted", list)
			}
		}); err != nil {
			t.Fatal(err)
		}
		if after := f.ledger.Reader().Counts(); after != before {
			t.Errorf("%q: %+v has become %+v", want, before, after)
		}
	}
}
