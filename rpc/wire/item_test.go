package wire

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
)

func TestRequestsForItemsAndLeases(t *testing.T) {
	r := &quoratev1.AllocateRequest{
		Id: "a", Mode: quoratev1.Mode_MODE_WAIT, Priority: 5, TtlMs: 1000,
		WaitMs: new(int64(2000)), KeepMs: 3000, PollMs: 4000,
		UserData: map[string]string{"b": "2", "a": "1"},
		Claims: []*quoratev1.Claim{{Tree: "t", Items: []*quoratev1.ItemPick{
			{Resource: "slice", State: "dirty", HeldState: "cleaning", Names: []string{"y", "x"}},
			{Resource: "lab"},
			{Resource: "bed", Count: 3},
		}}},
	}
	want := quota.Allocate{
		ID: "a", Mode: quota.Wait, Priority: 5, TTL: 1000, WaitFor: 2000, Keep: 3000,
		Data: []quota.Label{{Key: "a", Value: "1"}, {Key: "b", Value: "2"}},
		Claims: []quota.Claim{{Tree: "t", Standing: quota.Standing{Priority: 5}, Picks: []quota.Pick{
			{Resource: "bed", Count: 3},
			{Resource: "lab", Count: 1},
			{Resource: "slice", State: "dirty", HeldState: "cleaning", Names: []string{"x", "y"}, Count: 2},
		}}},
	}
	if diff := cmp.Diff(want, ToAllocate(r, quota.DefaultNamespace)); diff != "" {
		t.Error(diff)
	}
	r.Mode = quoratev1.Mode_MODE_REJECT
	if got := ToAllocate(r, quota.DefaultNamespace); got.Priority != 5 || got.Claims[0].Priority != 5 {
		t.Errorf("who does not wait is decided with the priority of who waits: %+v", got)
	}
}

func TestRenewalsSayEverything(t *testing.T) {
	item := &quoratev1.ItemName{Tree: "t", Resource: "slice", Name: "x"}
	got := ToRenew(&quoratev1.RenewRequest{
		Id: "a", Fence: 3, TtlMs: 1000, UserData: map[string]string{"k": ""},
		Items: []*quoratev1.ItemUpdate{{Item: item, State: "busy", UserData: map[string]string{"l": "v"}}},
	}, quota.DefaultNamespace)
	want := quota.Renew{
		ID: "a", Fence: 3, TTL: 1000, Data: []quota.Label{{Key: "k"}},
		Items: []quota.ItemUpdate{
			{
				Item: quota.ItemName{Tree: "t", Resource: "slice", Name: "x"}, State: "busy",
				Data: []quota.Label{{Key: "l", Value: "v"}},
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTreesSayWhichItemsThereAre(t *testing.T) {
	spec := quota.TreeSpec{
		Name:         "t",
		TreeSettings: quota.TreeSettings{Leases: quota.LeaseSettings{Default: 1, Max: 2, Grace: 3}, Overtake: 4},
		Resources: []quota.Resource{
			{Name: "lab", Unit: quota.Items, Items: &quota.ItemSpec{
				Names: []string{"x", "y"}, State: "new",
				Released: "dirty", Expired: "lost", TTL: 5, Queueing: quota.BestEffort,
			}},
			{
				Name: "slice", Unit: quota.Items,
				Items: &quota.ItemSpec{
					Min: 1, Max: 2, Lifespan: 3, Retired: "old", Removed: "gone",
					Turns: []quota.Turn{{From: "a", To: "b", After: 4}, {From: "c", To: "d", After: 5}},
				},
			},
		},
		Nodes: []quota.NodeSpec{{Policy: "open", Queueing: quota.Strict}, {Path: "a", Queueing: quota.BestEffort}},
	}
	wire := FromTreeSpec(spec)
	wire.Resources[0].Items.Names = []string{"y", "x"}
	turns := wire.GetResources()[1].GetItems().GetTurns()
	turns[0], turns[1] = turns[1], turns[0]
	got, err := toTreeSpec(wire, "trees[0]", FieldPaths{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(spec, got); diff != "" {
		t.Error(diff)
	}
	if short := FromTreeSummary(
		quota.TreeSummary{Resources: spec.Resources}); short.GetResources()[0].GetItems() != nil ||
		short.GetResources()[0].GetUnit() != quoratev1.Unit_UNIT_ITEMS {
		t.Errorf("a summary is %v", short)
	}
}

func TestItemsSayEverything(t *testing.T) {
	got := FromItem(quota.ItemInfo{
		ItemName: quota.ItemName{Tree: "t", Resource: "lab", Name: "x"}, State: "busy", Owner: "ann",
		Allocation: "a", Fence: 3,
		Data: []quota.Label{{Key: "k", Value: "v"}}, Updated: 10, UpdatedWall: 1000, Expires: 20,
		ExpiresWall: 2000, Leaving: true, HeldUntil: 30,
	})
	want := &quoratev1.Item{
		Name: &quoratev1.ItemName{Tree: "t", Resource: "lab", Name: "x"}, State: "busy", Owner: "ann",
		Allocation: ref("a"), Fence: 3,
		UserData: map[string]string{"k": "v"}, UpdatedLedgerMs: 10, UpdatedAt: FromWall(1000), ExpiresLedgerMs: 20,
		ExpiresAt: FromWall(2000), Leaving: true, HeldUntilLedgerMs: 30,
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	if stays := FromItem(quota.ItemInfo{}); stays.GetExpiresAt() != nil {
		t.Errorf("what stays goes at %v", stays.GetExpiresAt())
	}
	count := FromItemCount(quota.ItemCount{
		Tree: "t", Resource: "lab", States: []quota.NamedCount{{Name: "free", Count: 2}},
		Owners: []quota.NamedCount{{Count: 2}}, Waiting: 3,
	})
	wantCount := &quoratev1.ItemCount{
		Tree: "t", Resource: "lab", States: map[string]int64{"free": 2}, Owners: map[string]int64{"": 2}, Waiting: 3,
	}
	if diff := cmp.Diff(wantCount, count, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

func TestLeasesAndWaitingRequestsSayEverything(t *testing.T) {
	got := FromAllocation(quota.AllocationInfo{
		ID: "a", State: quota.Waiting, TTL: 5, ExpiresAt: 6, RevokedBy: "b",
		Data: []quota.Label{{Key: "k", Value: "v"}}, Priority: -7,
		Waiting: &quota.WaitingInfo{Since: 1, SinceWall: 1000, Until: 2, KeepUntil: 3, Position: 4, Line: "cpu at t"},
		Claims: []quota.ClaimInfo{{
			Tree: "t", Picks: []quota.Pick{
				{Resource: "lab", Count: 1, State: "free", Names: []string{"x"}, HeldState: "busy"},
			},
			Items: []quota.HeldItem{
				{
					Resource: "lab", Name: "x", State: "busy", Data: []quota.Label{{Key: "l", Value: "w"}},
					UpdatedWall: 2000,
				},
			},
		}},
	})
	want := &quoratev1.Allocation{
		Namespace: "default", Id: "a", State: quoratev1.AllocationState_ALLOCATION_STATE_WAITING, TtlMs: 5,
		ExpiresLedgerMs: 6, RevokedBy: ref("b"),
		UserData: map[string]string{"k": "v"}, Priority: -7,
		Waiting: &quoratev1.Waiting{
			ArrivedLedgerMs: 1, ArrivedAt: FromWall(1000), UntilLedgerMs: 2, KeepUntilLedgerMs: 3,
			Position: 4, Line: "cpu at t",
		},
		Claims: []*quoratev1.HeldClaim{{
			Tree: "t", Picks: []*quoratev1.ItemPick{
				{Resource: "lab", Count: 1, State: "free", Names: []string{"x"}, HeldState: "busy"},
			},
			Items: []*quoratev1.HeldItem{
				{
					Resource: "lab", Name: "x", State: "busy", UserData: map[string]string{"l": "w"},
					UpdatedAt: FromWall(2000),
				},
			},
		}},
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}
