package rpc

import (
	"fmt"
	"testing"
	"time"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

func resizeTo(id string, generation uint64, n int64) *quoratev1.ResizeRequest {
	return &quoratev1.ResizeRequest{Id: id, Generation: generation, Claims: []*quoratev1.ClaimChange{
		{Tree: "cern", Node: "physics", Amounts: map[string]int64{"cores": n}},
	}}
}

// TestChangesOfWhatIsHeld: a resize, a transfer and a split over every protocol, with their errors.
func TestChangesOfWhatIsHeld(t *testing.T) {
	for name, options := range protocols {
		t.Run(name, func(t *testing.T) {
			client := oneNode(t).allocations(options...)
			granted, err := client.Allocate(t.Context(), request("a", "cern:physics", 5))
			if err != nil {
				t.Fatal(err)
			}
			dry := resizeTo("a", 0, 2)
			dry.DryRun = true
			if tried, err := client.Resize(t.Context(), dry); err != nil || heldCores(tried.GetAllocation()) != 5 ||
				len(tried.GetDecision().GetPlacements()) != 1 {
				t.Errorf("a dry run: %v, %v", tried, err)
			}
			resized, err := client.Resize(t.Context(), resizeTo("a", 3, 4))
			if err != nil || heldCores(resized.GetAllocation()) != 4 ||
				resized.GetAllocation().GetFence() != granted.GetAllocation().GetFence() ||
				resized.GetAllocation().GetGeneration() != 3 || resized.GetWrite().GetIndex() <= granted.GetWrite().GetIndex() {
				t.Fatalf("resized: %v, %v", resized, err)
			}
			if again, err := client.Resize(t.Context(), resizeTo("a", 3, 4)); err != nil || !again.GetWrite().GetRepetition() {
				t.Errorf("repeated: %v, %v", again, err)
			}
			if _, err := client.Resize(t.Context(), resizeTo("a", 2, 1)); connect.CodeOf(err) != connect.CodeAborted ||
				problemOf(t, err).GetReason() != "GENERATION_MISMATCH" {
				t.Errorf("an earlier generation: %v", err)
			}
			if _, err := client.Resize(t.Context(), resizeTo("a", 0, 1_000_000)); connect.CodeOf(err) !=
				connect.CodeResourceExhausted {
				t.Errorf("beyond the limit: %v", err)
			}
			split, err := client.Split(t.Context(), &quoratev1.SplitRequest{Id: "a", Parts: []*quoratev1.SplitPart{
				{Id: "b", Claims: []*quoratev1.SplitClaim{
					{Tree: "cern", Node: "physics", NewNode: "physics", Amounts: map[string]int64{"cores": 1}},
				}},
			}})
			if err != nil || len(split.GetParts()) != 1 || heldCores(split.GetParts()[0]) != 1 ||
				split.GetParts()[0].GetSplitFrom().GetId() != "a" || heldCores(split.GetAllocation()) != 3 {
				t.Errorf("split: %v, %v", split, err)
			}
			moved, err := client.Transfer(t.Context(), &quoratev1.TransferRequest{
				Id: "b", Moves: []*quoratev1.ClaimMove{{Tree: "cern", Node: "physics"}},
			})
			if err != nil || moved.GetAllocation().GetClaims()[0].GetNode() != "" {
				t.Errorf("transferred: %v, %v", moved, err)
			}
			for what, call := range map[string]error{
				"no claims":         second(client.Resize(t.Context(), &quoratev1.ResizeRequest{Id: "a"})),
				"no moves":          second(client.Transfer(t.Context(), &quoratev1.TransferRequest{Id: "a"})),
				"no parts":          second(client.Split(t.Context(), &quoratev1.SplitRequest{Id: "a"})),
				"less than nothing": second(client.Resize(t.Context(), resizeTo("a", 0, -1))),
			} {
				if connect.CodeOf(call) != connect.CodeInvalidArgument {
					t.Errorf("%s: %v", what, call)
				}
			}
		})
	}
}

func heldCores(a *quoratev1.Allocation) int64 { return a.GetClaims()[0].GetAmounts()["cores"] }

func second[T any](_ T, err error) error { return err }

// TestResizesThatWait: a resize waits in the queue while its allocation holds, a call waits for it, and its end without
// being carried out is an error.
func TestResizesThatWait(t *testing.T) {
	client := oneNode(t).allocations()
	for _, id := range []string{"grows", "fills"} {
		if _, err := client.Allocate(t.Context(), request(id, "cern:physics", 8)); err != nil {
			t.Fatal(err)
		}
	}
	waits := resizeTo("grows", 1, 16)
	waits.WaitMs = time.Hour.Milliseconds()
	first, err := client.Resize(t.Context(), waits)
	if err != nil || first.GetDecision().GetOutcome() != quoratev1.Outcome_OUTCOME_WAITING ||
		heldCores(first.GetAllocation()) != 8 || first.GetAllocation().GetResize().GetGeneration() != 1 ||
		first.GetAllocation().GetResize().GetWaiting().GetPosition() != 1 {
		t.Fatalf("waiting: %v, %v", first, err)
	}
	queue, err := client.ListWaiting(t.Context(), &quoratev1.ListWaitingRequest{})
	if err != nil || len(queue.GetRequests()) != 1 || queue.GetRequests()[0].GetAllocation().GetResize() == nil {
		t.Errorf("the queue: %v, %v", queue, err)
	}
	done := make(chan error, 1)
	go func() {
		waits.PollMs = time.Minute.Milliseconds()
		answer, err := client.Resize(t.Context(), waits)
		if err == nil && (answer.GetDecision().GetOutcome() != quoratev1.Outcome_OUTCOME_GRANTED ||
			heldCores(answer.GetAllocation()) != 16) {
			err = fmt.Errorf("the answer to a call that waits: %v", answer)
		}
		done <- err
	}()
	if _, err := client.Release(t.Context(), &quoratev1.ReleaseRequest{Id: "fills"}); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := client.Allocate(t.Context(), request("again", "cern:physics", 2)); err != nil {
		t.Fatal(err)
	}
	more := resizeTo("grows", 2, 20)
	more.WaitMs = time.Hour.Milliseconds()
	if _, err := client.Resize(t.Context(), more); err != nil {
		t.Fatal(err)
	}
	go func() {
		more.PollMs = time.Minute.Milliseconds()
		_, err := client.Resize(t.Context(), more)
		done <- err
	}()
	if _, err := client.Resize(t.Context(), resizeTo("grows", 0, 16)); err != nil {
		t.Fatal(err)
	}
	if err := <-done; connect.CodeOf(err) != connect.CodeAborted ||
		problemOf(t, err).GetReason() != "GENERATION_MISMATCH" {
		t.Errorf("a resize that was withdrawn while a call waited: %v", err)
	}
}
