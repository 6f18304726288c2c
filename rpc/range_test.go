package rpc

import (
	"testing"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// TestRanges: a request with a range gets as much as fits over every protocol, and its answers say what that is.
func TestRanges(t *testing.T) {
	for name, options := range protocols {
		t.Run(name, func(t *testing.T) {
			client := oneNode(t).allocations(options...)
			ranged := func(id string, mode quoratev1.Mode, least, most, step int64) *quoratev1.AllocateRequest {
				return &quoratev1.AllocateRequest{Id: id, Mode: mode, Claims: []*quoratev1.Claim{{
					Tree: "cern", Node: "physics",
					Ranges: []*quoratev1.AmountRange{{Resource: "cores", Least: least, Most: most, Step: step}},
				}}}
			}
			before, err := client.Explain(t.Context(), explainRequest(ranged("explained", 0, 1, 61, 1)))
			if err != nil {
				t.Fatal(err)
			}
			most := before.GetDecision().GetPlacements()[0].GetRangeAmounts()["cores"]
			if most < 3 || most >= 61 {
				t.Fatalf("%d of 1..61 would be granted", most)
			}
			granted, err := client.Allocate(t.Context(), ranged("a", 0, 1, 61, 1))
			if err != nil || heldCores(granted.GetAllocation()) != most {
				t.Fatalf("granted: %v, %v; want %d", granted, err, most)
			}
			if r := granted.GetAllocation().GetClaims()[0].GetRanges(); len(r) != 1 || r[0].GetLeast() != 1 ||
				r[0].GetMost() != 61 || r[0].GetStep() != 1 {
				t.Errorf("the range is %v", r)
			}
			if again, err := client.Allocate(t.Context(), ranged("a", 0, 1, 61, 1)); err != nil ||
				!again.GetWrite().GetRepetition() {
				t.Errorf("repeated: %v, %v", again, err)
			}
			if _, err := client.Allocate(t.Context(), ranged("a", 0, 1, 60, 1)); connect.CodeOf(err) !=
				connect.CodeAlreadyExists {
				t.Errorf("another range under the same id: %v", err)
			}
			waiting, err := client.Allocate(t.Context(), ranged("b", quoratev1.Mode_MODE_WAIT, 2, 4, 2))
			if err != nil || waiting.GetDecision().GetOutcome() != quoratev1.Outcome_OUTCOME_WAITING {
				t.Errorf("waiting: %v, %v", waiting, err)
			}
			if _, err := client.Resize(t.Context(), resizeTo("a", 0, most-3)); err != nil {
				t.Fatal(err)
			}
			if got, err := client.Allocate(t.Context(), ranged("b", quoratev1.Mode_MODE_WAIT, 2, 4, 2)); err != nil ||
				heldCores(got.GetAllocation()) != 2 {
				t.Errorf("granted from the queue: %v, %v", got, err)
			}
			both := ranged("c", 0, 1, 2, 1)
			both.Claims[0].Amounts = map[string]int64{"cores": 1}
			for what, r := range map[string]*quoratev1.AllocateRequest{
				"an amount and a range": both, "no step": ranged("c", 0, 1, 2, 0),
				"a forced range": ranged("c", quoratev1.Mode_MODE_FORCE, 1, 2, 1),
			} {
				if _, err := client.Allocate(t.Context(), r); connect.CodeOf(err) != connect.CodeInvalidArgument {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
}
