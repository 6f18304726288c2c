package main

import (
	"context"
	"fmt"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// The cluster of the fake: n1 leads, n2 answers, n3 does not, n4 is new, n5 was removed.

func (f *fake) ListMembers(_ context.Context, r *adminv1.ListMembersRequest) (*adminv1.ListMembersResponse, error) {
	f.keepRequest(r)
	well := func(number int, seat adminv1.Seat, role adminv1.Role) *adminv1.Member {
		m := fakeMember(number, seat)
		m.Role, m.Healthy, m.StableSinceAt = role, true, someDay
		m.LastContactMs, m.ClockOffsetMs = new(int64(12)), new(int64(-3))
		m.Reachable, m.AppliedIndex, m.LastIndex, m.LogStore, m.TimeZones = true, 17, 17, "wal", "2026f"
		return m
	}
	leader, lost := well(1, adminv1.Seat_SEAT_VOTER, adminv1.Role_ROLE_LEADER),
		fakeMember(3, adminv1.Seat_SEAT_VOTER)
	leader.LastContactMs, leader.ClockOffsetMs = new(int64(0)), new(int64(0))
	lost.Problem, lost.Finding = "n3 does not answer", adminv1.Finding_FINDING_PENDING
	fresh := well(4, adminv1.Seat_SEAT_NON_VOTER, adminv1.Role_ROLE_FOLLOWER)
	fresh.TrailingLogs, fresh.StableSinceAt = 4, timestamppb.New(someDay.AsTime().Add(time.Minute))
	removed := fakeMember(5, adminv1.Seat_SEAT_NONE)
	removed.Problem = "n5 is not a member and has data"
	second := well(2, adminv1.Seat_SEAT_VOTER, adminv1.Role_ROLE_FOLLOWER)
	leader.CheckpointIndex, leader.Digest, leader.Finding = 17, "0123456789abcdef", adminv1.Finding_FINDING_AGREES
	second.CheckpointIndex, second.Digest, second.Finding = 17, "fedcba9876543210", adminv1.Finding_FINDING_DIFFERS
	fresh.Finding, removed.Finding = adminv1.Finding_FINDING_PENDING, adminv1.Finding_FINDING_PENDING
	return &adminv1.ListMembersResponse{
		ServedBy: "n1", LeaderId: "n1", Voters: 3, HealthyVoters: 2,
		Problem: "1 of 3 voters are not healthy; the cluster survives the loss of 0 more",
		Members: []*adminv1.Member{
			leader, second, lost, fresh, removed,
		},
	}, nil
}

func fakeMember(number int, seat adminv1.Seat) *adminv1.Member {
	return &adminv1.Member{
		Id: fmt.Sprint("n", number), Seat: seat, Version: "v0.1.0", FeatureLevel: 1, Alive: number < 3,
		HttpAddress: fmt.Sprintf("10.0.0.%d:7101", number), RaftAddress: fmt.Sprintf("10.0.0.%d:7201", number),
	}
}

func (f *fake) JoinMember(_ context.Context, r *adminv1.JoinMemberRequest) (*adminv1.JoinMemberResponse, error) {
	f.keepRequest(r)
	return &adminv1.JoinMemberResponse{Write: writeInfo(r.GetGossipAddress() == "10.0.0.4:7301")}, nil
}

func (f *fake) PromoteMember(_ context.Context,
	r *adminv1.PromoteMemberRequest,
) (*adminv1.PromoteMemberResponse, error) {
	f.keepRequest(r)
	return &adminv1.PromoteMemberResponse{Write: writeInfo(r.GetId() == "n4")}, nil
}

func (f *fake) DemoteMember(_ context.Context,
	r *adminv1.DemoteMemberRequest,
) (*adminv1.DemoteMemberResponse, error) {
	f.keepRequest(r)
	return &adminv1.DemoteMemberResponse{}, f.checkRemovable(r.GetId(), r.GetForce())
}

func (f *fake) RemoveMember(_ context.Context,
	r *adminv1.RemoveMemberRequest,
) (*adminv1.RemoveMemberResponse, error) {
	f.keepRequest(r)
	hasSeat := r.GetId() != "n9" && r.GetId() != "n3" // n3 was removed by an earlier attempt, whose answer was lost
	return &adminv1.RemoveMemberResponse{Write: writeInfo(hasSeat)}, f.checkRemovable(r.GetId(), r.GetForce())
}

func (f *fake) checkRemovable(id string, force bool) error {
	if id == "n1" && !force {
		return connectError(connect.CodeFailedPrecondition,
			"without n1 there would be 2 voters (n2, n3), and min-quorum is 3; add a member first, or repeat "+
				"it with --force")
	}
	return nil
}

func (f *fake) TransferLeader(_ context.Context,
	r *adminv1.TransferLeaderRequest,
) (*adminv1.TransferLeaderResponse, error) {
	f.keepRequest(r)
	if r.GetId() == "n1" {
		return &adminv1.TransferLeaderResponse{LeaderId: "n1"}, nil
	}
	return &adminv1.TransferLeaderResponse{Write: writeInfo(true), LeaderId: "n2"}, nil
}

func writeInfo(changed bool) *quoratev1.WriteInfo {
	return &quoratev1.WriteInfo{Index: 18, LedgerTimeMs: fakeNow, Repetition: !changed}
}
