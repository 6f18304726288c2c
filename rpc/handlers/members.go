package handlers

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

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
	ctx context.Context, r *quoratev1.ListMembersRequest,
) (*quoratev1.ListMembersResponse, error) {
	if !s.Access.ShowsCluster(ctx, access.ClusterRead) {
		status := s.publicStatus(s.Node.Status())
		return &quoratev1.ListMembersResponse{ServedBy: status.GetServedBy(), LeaderId: status.GetLeaderId()}, nil
	}
	list, err := s.Node.Health(ctx)
	if err == nil {
		return s.fromHealth(list), nil
	}
	if own := s.Node.Status(); own.Removed {
		// others know more
		return nil, wire.NodeError(&cluster.Error{Reason: cluster.NoLeader, NotApplied: true, Text: own.Problem})
	}
	leader, known := s.Node.Leader()
	if !known || leader.ID == s.ID {
		return s.membersWithoutLeader(wire.NoLeaderText), nil
	}
	answer, err := s.Peers.ListMembers(ctx, leader, r)
	if err != nil {
		return s.membersWithoutLeader(fmt.Sprintf("%s cannot ask the leader %s: %v", s.ID, leader.ID, err)), nil
	}
	return answer, nil
}

// membersWithoutLeader returns this node's own view of the members, for when it knows no leader.
func (s ClusterService) membersWithoutLeader(problem string) *quoratev1.ListMembersResponse {
	answer := &quoratev1.ListMembersResponse{ServedBy: s.ID, Problem: problem}
	for _, m := range s.Node.Members() {
		shown := fromMember(m)
		shown.Problem = "no leader looks after it"
		if m.Voter {
			shown.Seat = quoratev1.Seat_SEAT_VOTER
			answer.Voters++
		}
		answer.Members = append(answer.Members, shown)
	}
	return answer
}

func fromMember(m cluster.Member) *quoratev1.MemberHealth {
	return &quoratev1.MemberHealth{
		Id: m.ID, RaftAddress: m.RaftAddr, HttpAddress: m.HTTPAddr, Version: m.Version, FeatureLevel: m.FeatureLevel,
		Role: quoratev1.Role_ROLE_UNKNOWN, Seat: quoratev1.Seat_SEAT_UNKNOWN,
		Alive: m.Alive,
	}
}

// seatNames maps the roles.
var seatNames = map[cluster.Role]quoratev1.Seat{
	cluster.RoleVoter: quoratev1.Seat_SEAT_VOTER, cluster.RoleNonVoter: quoratev1.Seat_SEAT_NON_VOTER,
	cluster.RoleWaiting: quoratev1.Seat_SEAT_WAITING, cluster.RoleNone: quoratev1.Seat_SEAT_NONE,
}

func (s ClusterService) fromHealth(list []cluster.NodeHealth) *quoratev1.ListMembersResponse {
	answer := &quoratev1.ListMembersResponse{ServedBy: s.ID, LeaderId: s.ID}
	for _, h := range list {
		answer.Members = append(answer.Members, fromMemberHealth(h))
		if h.Role != cluster.RoleVoter {
			continue
		}
		answer.Voters++
		if h.Healthy {
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

func fromMemberHealth(h cluster.NodeHealth) *quoratev1.MemberHealth {
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
	ctx context.Context, r *quoratev1.JoinMemberRequest,
) (*quoratev1.JoinMemberResponse, error) {
	join := func() (bool, error) { return s.Node.AddNode(ctx, r.GetId()) }
	if address := r.GetGossipAddress(); address != "" {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return nil, wire.ToError(
				wire.InvalidField("gossip_address", "%q is not an address: give host:port of a node's gossip", address))
		}
		join = func() (bool, error) { return s.Node.Join(ctx, address) }
	}
	changed, err := join()
	return answerOrError(&quoratev1.JoinMemberResponse{Write: s.fromMemberChange(changed)}, err)
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
	ctx context.Context, r *quoratev1.PromoteMemberRequest,
) (*quoratev1.PromoteMemberResponse, error) {
	changed, err := s.Node.Promote(ctx, r.GetId(), r.GetForce())
	return answerOrError(&quoratev1.PromoteMemberResponse{Write: s.fromMemberChange(changed)}, err)
}

// DemoteMember takes a vote.
func (s ClusterService) DemoteMember(
	ctx context.Context, r *quoratev1.DemoteMemberRequest,
) (*quoratev1.DemoteMemberResponse, error) {
	changed, err := s.Node.Demote(ctx, r.GetId(), r.GetForce())
	return answerOrError(&quoratev1.DemoteMemberResponse{Write: s.fromMemberChange(changed)}, err)
}

// RemoveMember removes a member.
func (s ClusterService) RemoveMember(
	ctx context.Context, r *quoratev1.RemoveMemberRequest,
) (*quoratev1.RemoveMemberResponse, error) {
	changed, err := s.Node.Remove(ctx, r.GetId(), r.GetForce())
	return answerOrError(&quoratev1.RemoveMemberResponse{Write: s.fromMemberChange(changed)}, err)
}

// TransferLeader transfers the leadership and returns the new leader.
func (s ClusterService) TransferLeader(
	ctx context.Context, r *quoratev1.TransferLeaderRequest,
) (*quoratev1.TransferLeaderResponse, error) {
	changed, err := s.Node.TransferLeader(ctx, r.GetId())
	if err != nil {
		return nil, wire.ToError(err)
	}
	return &quoratev1.TransferLeaderResponse{
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
