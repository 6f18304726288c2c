package rpc

import (
	"context"
	"strings"
	"testing"
	"time"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/rpc/relay"
)

// TestWrongClocksOverTheAPI: every node shows civil time, and names a member whose clock is far from it. That member
// stays healthy.
func TestWrongClocksOverTheAPI(t *testing.T) {
	s := startThreeNodes(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	wrong := s.follower()
	if _, err := repeatCall(ctx, func() (*adminv1.RaiseLevelResponse, error) {
		return s.cluster(wrong).RaiseLevel(ctx, &adminv1.RaiseLevelRequest{})
	}); err != nil {
		t.Fatal(err)
	}
	s.SetClock(wrong, time.Hour)
	for {
		status, err := s.cluster(wrong).GetStatus(ctx, &adminv1.GetStatusRequest{})
		if err != nil {
			t.Fatal(err)
		}
		list, err := s.cluster(wrong).ListMembers(ctx, &adminv1.ListMembersRequest{})
		if err != nil {
			t.Fatal(err)
		}
		named := 0
		for _, m := range list.GetMembers() {
			if m.GetId() == wrong && m.GetHealthy() && strings.Contains(m.GetProblem(), "1h0m0s ahead of civil time") {
				named++
			}
		}
		age := time.Since(time.UnixMilli(status.GetCivilTimeMs()))
		if named == 1 && age > -2*time.Second && age < time.Minute {
			return
		}
		if !relay.SleepContext(ctx, relay.RelayPause) {
			t.Fatalf("civil time is %v old, and the members are %v", age, list)
		}
	}
}
