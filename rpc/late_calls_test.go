package rpc

import (
	"testing"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// TestLateCallsEndNothingElse: whatever ends or confirms an allocation is refused if the fence is that of another
// grant, alone, in a batch and in a stream, and the allocation stays.
func TestLateCallsEndNothingElse(t *testing.T) {
	d := oneNode(t)
	api := d.allocations()
	reserved := request("r", "cern", 1)
	reserved.Mode, reserved.ReserveMs = quoratev1.Mode_MODE_RESERVE, 60_000
	fences := map[string]uint64{}
	for _, r := range []*quoratev1.AllocateRequest{request("a", "cern", 1), reserved} {
		granted, err := api.Allocate(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		fences[r.GetId()] = granted.GetAllocation().GetFence()
	}
	const wrong = 99
	calls := map[string]func(fence uint64) error{
		"release": func(fence uint64) error {
			_, err := api.Release(t.Context(), &quoratev1.ReleaseRequest{Id: "a", Fence: fence})
			return err
		},
		"confirm": func(fence uint64) error {
			_, err := api.Confirm(t.Context(), &quoratev1.ConfirmRequest{Id: "r", Fence: fence})
			return err
		},
		"cancel": func(fence uint64) error {
			_, err := api.Cancel(t.Context(), &quoratev1.CancelRequest{Id: "r", Fence: fence})
			return err
		},
	}
	for name, call := range calls {
		if err := call(wrong); connect.CodeOf(err) != connect.CodeAborted ||
			problemOf(t, err).GetReason() != "FENCE_MISMATCH" || problemOf(t, err).GetField() != "fence" {
			t.Errorf("%s: %v", name, err)
		}
	}
	batch, err := api.BatchRelease(t.Context(), &quoratev1.BatchReleaseRequest{Requests: []*quoratev1.ReleaseRequest{
		{Id: "a", Fence: wrong}, {Id: "a", Fence: fences["a"]},
	}})
	if err != nil || batch.GetOutcomes()[0].GetFailure().GetProblem().GetReason() != "FENCE_MISMATCH" ||
		batch.GetOutcomes()[1].GetReleased().GetWrite().GetRepetition() {
		t.Errorf("the batch: %v, %v", batch, err)
	}
	if err := calls["cancel"](fences["r"]); err != nil {
		t.Errorf("cancel with its fence: %v", err)
	}
	if err := calls["release"](fences["a"]); err != nil {
		t.Errorf("release with its fence, again: %v", err)
	}
}
