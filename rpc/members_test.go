package rpc

import (
	"context"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
	"github.com/quorate/quorate/rpc/relay"
)

func (s *threeNodes) cluster(id string) adminv1connect.ClusterServiceClient {
	return adminv1connect.NewClusterServiceClient(overHTTP2, s.url(id))
}

func repeatCall[Answer any](ctx context.Context, call func() (Answer, error)) (Answer, error) {
	for {
		answer, err := call()
		if code := connect.CodeOf(err); err == nil || code != connect.CodeUnavailable &&
			code != connect.CodeDeadlineExceeded ||
			!relay.SleepContext(ctx, relay.RelayPause) {
			return answer, err
		}
	}
}

// TestMembersOverTheAPI: calls about members may go to any node, the leader executes them, and refusals give the
// reason.
func TestMembersOverTheAPI(t *testing.T) {
	s := startThreeNodes(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	asked := s.cluster(s.follower())
	for healthy := uint32(0); healthy != 3; {
		answer, err := asked.ListMembers(ctx, &adminv1.ListMembersRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if healthy = answer.GetHealthyVoters(); healthy == 3 &&
			(answer.GetLeaderId() != answer.GetServedBy() || answer.GetFailureTolerance() != 1) {
			t.Errorf("got %v", answer)
		}
		if !relay.SleepContext(ctx, relay.RelayPause) {
			t.Fatalf("still %v", answer)
		}
	}
	for name, refused := range map[string]struct {
		call func() error
		code connect.Code
		says string
	}{
		"too few": {func() error {
			_, err := repeatCall(ctx, func() (*adminv1.RemoveMemberResponse, error) {
				return asked.RemoveMember(ctx, &adminv1.RemoveMemberRequest{Id: "n1"})
			})
			return err
		}, connect.CodeFailedPrecondition, "min-quorum is 3"},
		"unknown member": {func() error {
			_, err := repeatCall(ctx, func() (*adminv1.PromoteMemberResponse, error) {
				return asked.PromoteMember(ctx, &adminv1.PromoteMemberRequest{Id: "n9"})
			})
			return err
		}, connect.CodeNotFound, `no member "n9"`},
		"nowhere": {func() error {
			_, err := asked.JoinMember(
				ctx, &adminv1.JoinMemberRequest{
					Whom: &adminv1.JoinMemberRequest_GossipAddress{GossipAddress: "here"},
				})
			return err
		}, connect.CodeInvalidArgument, "host:port"},
		"neither": {func() error {
			_, err := asked.JoinMember(ctx, &adminv1.JoinMemberRequest{})
			return err
		}, connect.CodeInvalidArgument, "whom"},
	} {
		if err := refused.call(); connect.CodeOf(err) != refused.code || !strings.Contains(err.Error(), refused.says) {
			t.Errorf("%s: got %v, want %v saying %q", name, err, refused.code, refused.says)
		}
	}
	s.removeTheLeader(ctx, t)
}

// removeTheLeader sends the removal to the leader, which transfers its leadership; the new leader executes it.
func (s *threeNodes) removeTheLeader(ctx context.Context, t *testing.T) {
	t.Helper()
	leader := s.Leader().Status().ID
	removed, err := repeatCall(ctx, func() (*adminv1.RemoveMemberResponse, error) {
		return s.cluster(leader).RemoveMember(ctx, &adminv1.RemoveMemberRequest{Id: leader, Force: true})
	})
	if err != nil || removed.GetWrite().GetRepetition() {
		t.Fatalf("removing the leader: %v, %v", removed, err)
	}
	for _, id := range []string{"n1", "n2", "n3"} {
		if id == leader {
			continue
		}
		again, err := repeatCall(ctx, func() (*adminv1.RemoveMemberResponse, error) {
			return s.cluster(id).RemoveMember(ctx, &adminv1.RemoveMemberRequest{Id: leader, Force: true})
		})
		if err != nil || !again.GetWrite().GetRepetition() {
			t.Errorf("removing it again through %s: %v, %v", id, again, err)
		}
	}
	s.kill(leader)
}
