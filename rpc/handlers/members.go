package handlers

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/rpc/relay"
	"github.com/quorate/quorate/rpc/wire"
)

// successorPatience is how long the answer to a transfer waits to say who leads now.
const successorPatience = 3 * time.Second

// ListMembers shows all nodes as the leader finds them.
func (s ClusterService) ListMembers(
	ctx context.Context, r *adminv1.ListMembersRequest,
) (*adminv1.ListMembersResponse, error) {
	page, err := wire.OpenPage(r, wire.DefaultShortPage)
	if err != nil {
		return nil, wire.ToError(err)
	}
	if !s.Access.ShowsCluster(ctx, access.ClusterRead) {
		status := s.publicStatus(s.Node.Status())
		return &adminv1.ListMembersResponse{ServedBy: status.GetServedBy(), LeaderId: status.GetLeaderId()}, nil
	}
	list, err := s.Node.Health(ctx)
	if err == nil {
		return s.cutMembers(page, s.fromHealth(ctx, list)), nil
	}
	if own := s.Node.Status(); own.Removed {
		// others know more
		return nil, wire.NodeError(&cluster.Error{Reason: cluster.NoLeader, NotApplied: true, Text: own.Problem})
	}
	leader, known := s.Node.Leader()
	if !known || leader.ID == s.ID {
		return s.cutMembers(page, s.membersWithoutLeader(ctx, wire.NoLeaderText)), nil
	}
	answer, err := s.Peers.ListMembers(ctx, leader, r)
	if err != nil {
		problem := fmt.Sprintf("%s cannot ask the leader %s: %v", s.ID, leader.ID, err)
		return s.cutMembers(page, s.membersWithoutLeader(ctx, problem)), nil
	}
	return answer, nil
}

// cutMembers leaves only the members of a page in an answer that has all of them, and adds their digests.
func (s ClusterService) cutMembers(page wire.Page, answer *adminv1.ListMembersResponse) *adminv1.ListMembersResponse {
	slices.SortFunc(answer.GetMembers(), func(a, b *adminv1.Member) int {
		return strings.Compare(a.GetId(), b.GetId())
	})
	answer.Members, answer.NextPageToken = wire.CutPage(page, slices.Values(answer.GetMembers()),
		(*adminv1.Member).GetId)
	s.setDigests(answer.GetMembers())
	return answer
}

// membersWithoutLeader returns this node's own view of the members, for when it knows no leader.
func (s ClusterService) membersWithoutLeader(ctx context.Context, problem string) *adminv1.ListMembersResponse {
	answer := &adminv1.ListMembersResponse{ServedBy: s.ID, Problem: problem}
	for _, m := range s.Node.Members() {
		shown := fromMember(m)
		if shown.Seat = s.seatWithoutLeader(m); m.Voter {
			answer.Voters++
		}
		answer.Members = append(answer.Members, shown)
	}
	s.askMembers(ctx, answer.GetMembers())
	for _, m := range answer.GetMembers() {
		m.Problem = cmp.Or(m.GetProblem(), "no leader looks after it")
	}
	return answer
}

// seatWithoutLeader is what this node knows itself: who votes, and its own seat.
func (s ClusterService) seatWithoutLeader(m cluster.Member) adminv1.Seat {
	own := s.Node.Status()
	switch {
	case m.Voter:
		return adminv1.Seat_SEAT_VOTER
	case m.ID != s.ID:
		return adminv1.Seat_SEAT_UNKNOWN
	case own.Instance != "":
		return adminv1.Seat_SEAT_WAITING
	case own.Removed:
		return adminv1.Seat_SEAT_NONE
	}
	return adminv1.Seat_SEAT_NON_VOTER
}

func fromMember(m cluster.Member) *adminv1.Member {
	return &adminv1.Member{
		Id: m.ID, RaftAddress: m.RaftAddr, HttpAddress: m.HTTPAddr, Version: m.Version, FeatureLevel: m.FeatureLevel,
		Role: adminv1.Role_ROLE_UNKNOWN, Seat: adminv1.Seat_SEAT_UNKNOWN,
		Alive: m.Alive,
	}
}

// seatNames maps the roles.
var seatNames = map[cluster.Role]adminv1.Seat{
	cluster.RoleVoter: adminv1.Seat_SEAT_VOTER, cluster.RoleNonVoter: adminv1.Seat_SEAT_NON_VOTER,
	cluster.RoleWaiting: adminv1.Seat_SEAT_WAITING, cluster.RoleNone: adminv1.Seat_SEAT_NONE,
}

func (s ClusterService) fromHealth(ctx context.Context, list []cluster.NodeHealth) *adminv1.ListMembersResponse {
	answer := &adminv1.ListMembersResponse{ServedBy: s.ID, LeaderId: s.ID}
	for _, h := range list {
		answer.Members = append(answer.Members, fromHealthCheck(h))
	}
	s.askMembers(ctx, answer.GetMembers())
	for _, m := range answer.GetMembers() {
		if m.GetSeat() != adminv1.Seat_SEAT_VOTER {
			continue
		}
		answer.Voters++
		if m.GetHealthy() {
			answer.HealthyVoters++
		}
	}
	needed := answer.GetVoters()/2 + 1
	if answer.GetHealthyVoters() > needed {
		answer.FailureTolerance = answer.GetHealthyVoters() - needed
	}
	if missing := answer.GetVoters() - answer.GetHealthyVoters(); missing > 0 {
		answer.Problem = fmt.Sprintf("%d of %d voters are not healthy; the cluster survives the loss of %d more",
			missing, answer.GetVoters(),
			answer.GetFailureTolerance())
	}
	return answer
}

func fromHealthCheck(h cluster.NodeHealth) *adminv1.Member {
	shown := fromMember(h.Member)
	shown.Seat, shown.Healthy, shown.Problem = seatNames[h.Role], h.Healthy,
		cmp.Or(h.Problem, h.ClockProblem, h.ZonesProblem)
	if h.Role == cluster.RoleNone && h.Answered {
		shown.Healthy, shown.Problem = false,
			h.ID+" is not a member but has data: it was removed, or belongs to another cluster"
	}
	if !h.HealthySince.IsZero() && shown.GetHealthy() {
		shown.StableSinceAt = timestamppb.New(h.HealthySince)
	}
	if !h.Answered {
		return shown
	}
	shown.Role, shown.TrailingLogs = roleOf(h.Status.State), h.Trailing
	shown.Version, shown.FeatureLevel = h.Status.Version, h.Status.FeatureLevel
	shown.LastContactMs = new(h.Status.LastContact.Milliseconds())
	shown.ClockOffsetMs = new(h.ClockOffset.Milliseconds())
	return shown
}

// JoinMember dials a gossip address, or takes in a node that waits.
func (s ClusterService) JoinMember(
	ctx context.Context, r *adminv1.JoinMemberRequest,
) (*adminv1.JoinMemberResponse, error) {
	join := func() (bool, error) { return s.Node.AddNode(ctx, r.GetId()) }
	if address := r.GetGossipAddress(); address != "" {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return nil, wire.ToError(
				wire.InvalidField("gossip_address", "%q is not an address: give host:port of a node's gossip", address))
		}
		join = func() (bool, error) { return s.Node.Join(ctx, address) }
	}
	changed, err := join()
	return answerOrError(&adminv1.JoinMemberResponse{Write: s.fromMemberChange(changed)}, err)
}

// fromMemberChange says where the log has a change of the members. The log index is that of this node, which has just
// carried it out as the leader.
func (s ClusterService) fromMemberChange(changed bool) *quoratev1.WriteInfo {
	write := s.presentWrite(s.Node.Status().AppliedIndex)
	write.Repetition = !changed
	return write
}

// PromoteMember gives a vote.
func (s ClusterService) PromoteMember(
	ctx context.Context, r *adminv1.PromoteMemberRequest,
) (*adminv1.PromoteMemberResponse, error) {
	changed, err := s.Node.Promote(ctx, r.GetId(), r.GetForce())
	return answerOrError(&adminv1.PromoteMemberResponse{Write: s.fromMemberChange(changed)}, err)
}

// DemoteMember takes a vote.
func (s ClusterService) DemoteMember(
	ctx context.Context, r *adminv1.DemoteMemberRequest,
) (*adminv1.DemoteMemberResponse, error) {
	changed, err := s.Node.Demote(ctx, r.GetId(), r.GetForce())
	return answerOrError(&adminv1.DemoteMemberResponse{Write: s.fromMemberChange(changed)}, err)
}

// RemoveMember removes a member.
func (s ClusterService) RemoveMember(
	ctx context.Context, r *adminv1.RemoveMemberRequest,
) (*adminv1.RemoveMemberResponse, error) {
	changed, err := s.Node.Remove(ctx, r.GetId(), r.GetForce())
	return answerOrError(&adminv1.RemoveMemberResponse{Write: s.fromMemberChange(changed)}, err)
}

// TransferLeader transfers the leadership and returns the new leader.
func (s ClusterService) TransferLeader(
	ctx context.Context, r *adminv1.TransferLeaderRequest,
) (*adminv1.TransferLeaderResponse, error) {
	changed, err := s.Node.TransferLeader(ctx, r.GetId())
	if err != nil {
		return nil, wire.ToError(err)
	}
	return &adminv1.TransferLeaderResponse{
		Write: s.fromMemberChange(changed), LeaderId: s.waitSuccessor(ctx, changed),
	}, nil
}

func (s ClusterService) waitSuccessor(ctx context.Context, changed bool) string {
	if !changed {
		return s.ID
	}
	ctx, cancel := context.WithTimeout(ctx, successorPatience)
	defer cancel()
	for {
		leader, err := s.Node.WaitLeader(ctx)
		if err == nil && leader.ID != s.ID {
			return leader.ID
		}
		if !relay.SleepContext(ctx, relay.RelayPause) {
			return ""
		}
	}
}

func answerOrError[Message any](answer *Message, err error) (*Message, error) {
	if err != nil {
		return nil, wire.ToError(err)
	}
	return answer, nil
}
