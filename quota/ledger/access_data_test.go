package ledger_test

import (
	"testing"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// TestUserDataIsForItsOwner: the owner gets the data of a lease in answers to its commands, everyone else by asking for
// that id, with the right to read data, and no one in a list. Operators end a lease without seeing its data.
func TestUserDataIsForItsOwner(t *testing.T) {
	tree := cernTree()
	tree[0].Nodes[3].Bindings = []access.Binding{bind("holder", "hans"), bind("operator", "olga")}
	g := newGuarded(t, tree, "anna", "peter", "hans", "carl", "olga")
	c := claimCores("lease", "atlas/physics/higgs", 1)
	c.TTL, c.Data = 60_000, []quota.Label{{Key: "password", Value: "secret"}}
	queued := claimCores("queued", "atlas/physics/higgs", 10)
	queued.Mode, queued.WaitFor, queued.TTL, queued.Data = quota.Wait, 60_000, 60_000, c.Data
	checkData := func(what string, want bool, info quota.AllocationInfo) {
		t.Helper()
		if (len(info.Data) > 0) != want {
			t.Errorf("%s has the data %v", what, info.Data)
		}
	}
	checkData("the grant", true, g.must("hans", c).Allocation.Info())
	if out := g.apply("hans", queued); out.Refused != nil {
		t.Fatal(out.Refused)
	}
	checkData("a renewal", true, g.must("hans", quota.Renew{ID: "lease"}).Allocation.Info())
	checkData("a renewal by an operator", false, g.must("olga", quota.Renew{ID: "lease"}).Allocation.Info())
	for _, name := range []string{"hans", "olga", "anna", "root"} {
		reader, err := g.ledger.Reader().ReaderOf(callerOf(name))
		if err != nil {
			t.Fatal(err)
		}
		info, unknown := reader.Allocation(sharedID("lease"))
		if name == "anna" {
			checkData("what anna sees", false, info) // a node-admin sees holders, and not their data
		} else if checkData("what "+name+" reads", true, info); unknown != nil {
			t.Error(name, unknown)
		}
		page, unknown := reader.Allocations(quota.AllocationFilter{}, 0, 10)
		if unknown != nil || len(page.Allocations) != 1 {
			t.Fatalf("%s lists %v, %v", name, page, unknown)
		}
		checkData("the list of "+name, false, page.Allocations[0])
		waitingHasNoData(t, g.ledger, name)
	}
	checkData("the renewed lease", true, g.must("hans", quota.Renew{ID: "lease"}).Allocation.Info())
	checkData("a release by an operator", false, g.must("olga", quota.Release{ID: "lease"}).Allocation.Info())
}

func waitingHasNoData(t *testing.T, l *ledger.Ledger, name string) {
	t.Helper()
	sandbox, err := l.Sandbox().ReaderOf(callerOf(name))
	if err != nil {
		t.Fatal(err)
	}
	waiting, err := sandbox.Waiting(quota.QueueFilter{}, nil, 10)
	if err != nil || len(waiting.Requests) != 1 || len(waiting.Requests[0].Allocation.Data) > 0 {
		t.Errorf("%s sees the queue %+v, %v", name, waiting, err)
	}
	if _, info, _, err := sandbox.ExplainID(sharedID("queued")); err != nil || len(info.Data) > 0 {
		t.Errorf("%s is explained %+v, %v", name, info, err)
	}
}
