package fsm

import (
	"testing"

	"github.com/quorate/quorate/quota"
)

// alternativesSample is a request with alternatives, for a golden file.
var alternativesSample = quota.Allocate{ID: "any", Mode: quota.Wait, AnyOf: [][]quota.Claim{
	{
		{Tree: "t", Node: "a", Amounts: quota.Vector{{Resource: "cpu", Amount: 4}}},
		{Tree: "u", Node: "x", Picks: []quota.Pick{{Resource: "boards", Count: 1}}},
	},
	{{
		Tree: "t", Node: "b", Amounts: quota.Vector{{Resource: "cpu", Amount: 2}},
		Ranges: []quota.AmountRange{{Resource: "cpu", Most: 6, Step: 2}},
	}},
}}

// addAlternatives lets requests with alternatives be held, wait and be denied in the tree of changedFSM.
func addAlternatives(t testing.TB, f *FSM) {
	t.Helper()
	ask := func(id string, mode quota.Mode, amounts ...quota.Amount) quota.Command {
		r := quota.Allocate{ID: id, Mode: mode}
		for _, amount := range amounts {
			r.AnyOf = append(r.AnyOf, []quota.Claim{{
				Tree: "elastic", Node: "b", Amounts: quota.Vector{{Resource: "cpu", Amount: amount}},
			}})
		}
		return r
	}
	applyData(f, f.applied+1, joined(t, partOf(t, systemCaller, ask("corp/eva ci/any", quota.Hold, 10, 1),
		ask("corp/eva ci/any-waits", quota.Wait, 99, 8, 7), ask("corp/eva ci/any-denied", quota.Hold, 8, 7),
		ask("corp/eva ci/any-over", quota.Hold, 9, 1), quota.Release{ID: "corp/eva ci/any-over"})))
	if a, refused := f.ledger.Reader().Allocation("corp/eva ci/any"); refused != nil || a.Alternative != 2 {
		t.Fatalf("the request with alternatives is %+v, %v", a, refused)
	}
	if a, refused := f.ledger.Reader().Allocation("corp/eva ci/any-waits"); refused != nil ||
		len(a.Waiting.Alternatives) != 2 {
		t.Fatalf("the waiting request with alternatives is %+v, %v", a, refused)
	}
}
