package fsm

import (
	"testing"

	"github.com/quorate/quorate/quota"
)

// rangeSample is a request with ranges, for a golden file.
var rangeSample = quota.Allocate{ID: "ranged", Mode: quota.Wait, Claims: []quota.Claim{{
	Tree: "t", Node: "a", Amounts: quota.Vector{{Resource: "cpu", Amount: 4}, {Resource: "mem", Amount: 16}},
	Ranges: []quota.AmountRange{{Resource: "cpu", Most: 16, Step: 4}, {Resource: "mem", Most: 64, Step: 16}},
}}}

func addRanges(t testing.TB, f *FSM) {
	t.Helper()
	ask := func(id string, mode quota.Mode, least, most quota.Amount) quota.Command {
		return quota.Allocate{ID: id, Mode: mode, Claims: []quota.Claim{{
			Tree: "elastic", Node: "b", Amounts: quota.Vector{{Resource: "cpu", Amount: least}},
			Ranges: []quota.AmountRange{{Resource: "cpu", Most: most, Step: 2}},
		}}}
	}
	limit := quota.SetLimits{
		Tree: "elastic", Node: "b",
		Limits: []quota.ResourceLimit{{Resource: "cpu", Limit: quota.AtMost(10)}},
	}
	applyData(f, f.applied+1, joined(t, partOf(t, systemCaller, limit, ask("corp/eva ci/ranged", quota.Hold, 1, 21),
		ask("corp/eva ci/waiting", quota.Wait, 5, 9), ask("corp/eva ci/denied", quota.Hold, 5, 9))))
	if a, refused := f.ledger.Reader().Allocation("corp/eva ci/ranged"); refused != nil ||
		a.Claims[0].Amounts[0].Amount != 5 {
		t.Fatalf("the request with a range is %+v, %v", a, refused)
	}
}
