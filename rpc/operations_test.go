package rpc

import (
	"strings"
	"testing"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
)

// TestUpkeep: any node answers reads of levels and digests; changes are relayed to the leader.
func TestUpkeep(t *testing.T) {
	c := newFakeCluster()
	first := openServer(t, c, "n1")
	openServer(t, c, "n2")
	c.lead("n2")
	client := quoratev1connect.NewClusterServiceClient(overHTTP2, first.url)
	raised, err := client.RaiseLevel(t.Context(), &quoratev1.RaiseLevelRequest{})
	if err != nil || raised.GetLevel() != 4 {
		t.Errorf("raised to %v, %v", raised, err)
	}
	_, err = client.Checkpoint(t.Context(), &quoratev1.CheckpointRequest{})
	if connect.CodeOf(err) != connect.CodeFailedPrecondition ||
		!strings.Contains(err.Error(), "needs feature level 4") {
		t.Errorf("a checkpoint before its time is answered %v", err)
	}
	c.lead("")
	level, err := client.GetLevel(t.Context(), &quoratev1.GetLevelRequest{})
	if err != nil || level.GetLevel() != 3 || level.GetPossible() != 4 {
		t.Errorf("without a leader the level is %v, %v", level, err)
	}
	digests, err := client.GetDigests(t.Context(), &quoratev1.GetDigestsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []quoratev1.Finding{
		quoratev1.Finding_FINDING_AGREES, quoratev1.Finding_FINDING_DIFFERS, quoratev1.Finding_FINDING_PENDING,
	} {
		if got := digests.GetMembers()[i].GetFinding(); got != want {
			t.Errorf("member %d: %v, want %v", i+1, got, want)
		}
	}
}
