package rpc

import (
	"testing"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// TestDenialsNameHolders: over every protocol a denial says who holds what is missing, if the request asks for it.
func TestDenialsNameHolders(t *testing.T) {
	for name, options := range protocols {
		t.Run(name, func(t *testing.T) {
			api := oneNode(t).allocations(options...)
			request := func(id, user string, cores int64) *quoratev1.AllocateRequest {
				return &quoratev1.AllocateRequest{
					Id: id, Principal: &quoratev1.Principal{User: user},
					Claims: []*quoratev1.Claim{{Tree: "cern", Node: "physics", Amounts: map[string]int64{"cores": cores}}},
				}
			}
			for user, cores := range map[string]int64{"ann": 12, "eva": 5} {
				if _, err := api.Allocate(t.Context(), request("of-"+user, user, cores)); err != nil {
					t.Fatal(err)
				}
			}
			asks := request("more", "kim", 10)
			_, err := api.Allocate(t.Context(), asks)
			if d, denied := client.DecisionOf(err); !denied || len(d.GetHolders()) != 0 {
				t.Errorf("without name_holders the answer is %v, %v", d, err)
			}
			asks.NameHolders = true
			_, err = api.Allocate(t.Context(), asks)
			d, denied := client.DecisionOf(err)
			if !denied || len(d.GetHolders()) != len(d.GetViolations()) || len(d.GetHolders()) == 0 {
				t.Fatalf("the answer is %v, %v", d, err)
			}
			groups := d.GetHolders()[0].GetGroups()
			if len(groups) != 2 || groups[0].GetUser() != "ann" || groups[0].GetAmount() != 12 ||
				groups[1].GetUser() != "eva" || groups[1].GetNode() != "physics" {
				t.Errorf("the holders are %v", groups)
			}
			if list := d.GetHolders()[0].GetAllocations(); len(list) != 2 || list[0].GetId() != "of-ann" ||
				list[0].GetAmount() != 12 || list[0].GetBeganAt() == nil {
				t.Errorf("the allocations are %v", list)
			}
		})
	}
}

// TestTheQueueNamesBlockers: a list of waiting requests tells who holds what each lacks, and who is ahead of it, if it
// is asked to.
func TestTheQueueNamesBlockers(t *testing.T) {
	api := fullNode(t).allocations()
	for _, id := range []string{"first", "second"} {
		if _, err := api.Allocate(t.Context(), waitingRequest(id, 0)); err != nil {
			t.Fatal(err)
		}
	}
	query := &quoratev1.ListWaitingRequest{}
	list, err := api.ListWaiting(t.Context(), query)
	if err != nil || len(list.GetRequests()) != 2 || len(list.GetRequests()[1].GetDecision().GetHolders()) != 0 {
		t.Fatalf("without name_blockers the list is %v, %v", list, err)
	}
	query.NameBlockers = true
	if list, err = api.ListWaiting(t.Context(), query); err != nil || len(list.GetRequests()) != 2 {
		t.Fatal(list, err)
	}
	d := list.GetRequests()[1].GetDecision()
	if len(d.GetHolders()) == 0 {
		t.Fatalf("no holder is named in %v", d)
	}
	level := d.GetHolders()[0]
	if a := level.GetAllocations(); len(a) != 1 || a[0].GetId() != "holder" || a[0].GetAmount() != 20 {
		t.Errorf("the holders are %v", level)
	}
	if a := level.GetBlockers(); len(a) != 1 || a[0].GetId() != "first" || a[0].GetPosition() != 1 ||
		a[0].GetAmount() != 1 {
		t.Errorf("ahead are %v", level)
	}
	query.Owner = "account/nobody"
	if list, err = api.ListWaiting(t.Context(), query); err != nil || len(list.GetRequests()) != 0 {
		t.Errorf("nobody's requests are %v, %v", list, err)
	}
}
