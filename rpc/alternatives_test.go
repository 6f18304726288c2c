package rpc

import (
	"testing"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// TestAlternatives: a request with alternatives gets the first that fits over every protocol, waits for all of them,
// and every answer says which it is.
func TestAlternatives(t *testing.T) {
	for name, options := range protocols {
		t.Run(name, func(t *testing.T) {
			client := oneNode(t).allocations(options...)
			anyOf := func(id string, mode quoratev1.Mode, amounts ...int64) *quoratev1.AllocateRequest {
				r := &quoratev1.AllocateRequest{Id: id, Mode: mode}
				for _, amount := range amounts {
					r.AnyOf = append(r.AnyOf, &quoratev1.Alternative{Claims: []*quoratev1.Claim{{
						Tree: "cern", Node: "physics", Amounts: map[string]int64{"cores": amount},
					}}})
				}
				return r
			}
			explained, err := client.Explain(t.Context(), explainRequest(anyOf("explained", 0, 1000, 1)))
			if err != nil || explained.GetDecision().GetAlternative() != 2 {
				t.Fatalf("explained: %v, %v", explained, err)
			}
			granted, err := client.Allocate(t.Context(), anyOf("a", 0, 1000, 2))
			if err != nil || granted.GetAllocation().GetAlternative() != 2 || heldCores(granted.GetAllocation()) != 2 {
				t.Fatalf("granted: %v, %v", granted, err)
			}
			if again, err := client.Allocate(t.Context(), anyOf("a", 0, 1000, 2)); err != nil ||
				!again.GetWrite().GetRepetition() ||
				again.GetDecision().GetAlternative() != 2 {
				t.Errorf("repeated: %v, %v", again, err)
			}
			for what, r := range map[string]*quoratev1.AllocateRequest{
				"other alternatives": anyOf("a", 0, 1000, 3), "in another order": anyOf("a", 0, 2, 1000),
				"the given one alone": {Id: "a", Claims: anyOf("a", 0, 2).GetAnyOf()[0].GetClaims()},
			} {
				if _, err := client.Allocate(t.Context(), r); connect.CodeOf(err) != connect.CodeAlreadyExists {
					t.Errorf("%s under the same id: %v", what, err)
				}
			}
			const most = 20 // the limit of the node
			waits, err := client.Allocate(t.Context(), anyOf("b", quoratev1.Mode_MODE_WAIT, most+1, most, most-1))
			if err != nil || waits.GetDecision().GetOutcome() != quoratev1.Outcome_OUTCOME_WAITING {
				t.Fatalf("waiting: %v, %v", waits, err)
			}
			places := waits.GetAllocation().GetWaiting().GetAlternatives()
			if len(places) != 2 || places[0].GetAlternative() != 2 || places[1].GetAlternative() != 3 {
				t.Errorf("the alternatives in the queue are %v", places)
			}
			if v := waits.GetDecision().GetViolations(); len(v) == 0 || v[0].GetAlternative() != 1 {
				t.Errorf("what is in the way is %v", v)
			}
			if _, err := client.Resize(t.Context(), resizeTo("a", 0, 1)); err != nil {
				t.Fatal(err)
			}
			got, err := client.GetAllocation(t.Context(), &quoratev1.GetAllocationRequest{Id: "b"})
			if err != nil || got.GetAllocation().GetAlternative() != 3 {
				t.Errorf("granted from the queue: %v, %v", got, err)
			}
			both := anyOf("c", 0, 1)
			both.Claims = both.GetAnyOf()[0].GetClaims()
			for what, r := range map[string]*quoratev1.AllocateRequest{
				"claims and alternatives": both, "none of both": {Id: "c"}, "no claims": {
					Id: "c", AnyOf: []*quoratev1.Alternative{{}},
				},
				"forced": anyOf("c", quoratev1.Mode_MODE_FORCE, 1), "nine": anyOf("c", 0, 1, 2, 3, 4, 5, 6, 7, 8, 9),
			} {
				if _, err := client.Allocate(t.Context(), r); connect.CodeOf(err) != connect.CodeInvalidArgument {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
}
