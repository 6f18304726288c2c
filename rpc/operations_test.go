package rpc

import (
	"strings"
	"testing"

	"connectrpc.com/connect"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
)

// TestUpkeep: any node answers reads of levels and members; changes are relayed to the leader.
func TestUpkeep(t *testing.T) {
	c := newFakeCluster()
	first := openServer(t, c, "n1")
	openServer(t, c, "n2")
	c.lead("n2")
	client := adminv1connect.NewClusterServiceClient(overHTTP2, first.url)
	raised, err := client.RaiseLevel(t.Context(), &adminv1.RaiseLevelRequest{})
	if err != nil || raised.GetLevel() != 4 {
		t.Errorf("raised to %v, %v", raised, err)
	}
	_, err = client.Checkpoint(t.Context(), &adminv1.CheckpointRequest{})
	if connect.CodeOf(err) != connect.CodeFailedPrecondition ||
		!strings.Contains(err.Error(), "needs feature level 4") {
		t.Errorf("a checkpoint before its time is answered %v", err)
	}
	c.lead("")
	level, err := client.GetLevel(t.Context(), &adminv1.GetLevelRequest{})
	if err != nil || level.GetLevel() != 3 || level.GetPossible() != 4 {
		t.Errorf("without a leader the level is %v, %v", level, err)
	}
	list, err := client.ListMembers(t.Context(), &adminv1.ListMembersRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []adminv1.Finding{adminv1.Finding_FINDING_AGREES, adminv1.Finding_FINDING_DIFFERS} {
		if m := list.GetMembers()[i]; m.GetFinding() != want || m.GetCheckpointIndex() != 7 || m.GetDigest() == "" {
			t.Errorf("got %v, want %v at 7", m, want)
		}
	}
}
