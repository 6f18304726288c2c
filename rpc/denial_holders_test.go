package rpc

import (
	"testing"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
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
		})
	}
}
