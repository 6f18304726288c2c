package rpc

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/quorate/quorate/cluster"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
	"github.com/quorate/quorate/gen/quorate/v1/quoratev1connect"
)

// successorPatience is how long the answer to a transfer waits to say who leads now.
const successorPatience = 3 * time.Second

// ListMembers shows all nodes as the leader finds them.
func (s clusterService) ListMembers(ctx context.Context, r *quoratev1.ListMembersRequest) (*quoratev1.ListMembersResponse, error) {
	list, err := s.node.Health(ctx)
	if err == nil {
		return s.fromHealth(list), nil
	}
	if own := s.node.Status(); own.Removed {
		return nil, nodeError(&cluster.Error{Reason: cluster.NoLeader, NotApplied: true, Text: own.Problem}) // others know more
	}
	leader, known := s.node.Leader()
	if !known || leader.ID == s.id {
		return s.membersWithoutLeader(noLeaderText), nil
	}
	answer, err := s.peers.listMembers(ctx, leader, r)
	if err != nil {
		return s.membersWithoutLeader(fmt.Sprintf("%s cannot ask the leader %s: %v", s.id, leader.ID, err)), nil
	}
	return answer, nil
}

// listMembers asks the leader, unless the one who asks was asked itself.
func (p peers) listMembers(ctx context.Context, leader cluster.Member, r *quoratev1.ListMembersRequest) (*quoratev1.ListMembersResponse, error) {
	call, _ := connect.CallInfoForHandlerContext(ctx)
	if call != nil && call.RequestHeader().Get(relayedByHeader) != "" || p.urlOf(leader) == "" {
		return nil, errNotLeader
	}
	client := quoratev1connect.NewClusterServiceClient(&http.Client{Transport: p.transport}, p.urlOf(leader), connect.WithReadMaxBytes(MaxBody))
	ctx, info := connect.NewClientContext(ctx)
	info.RequestHeader().Set(relayedByHeader, p.self)
	return client.ListMembers(ctx, r)
}

// membersWithoutLeader is what this node knows while it cannot ask a leader.
func (s clusterService) membersWithoutLeader(problem string) *quoratev1.ListMembersResponse {
	answer := &quoratev1.ListMembersResponse{ServedBy: s.id, Problem: problem}
	for _, m := range s.node.Members() {
		wire := fromMember(m)
		wire.Problem = "no leader looks after it"
		if m.Voter {
			wire.Seat = quoratev1.Seat_SEAT_VOTER
			answer.Voters++
		}
		answer.Members = append(answer.Members, wire)
	}
	return answer
}

func fromMember(m cluster.Member) *quoratev1.MemberHealth {
	return &quoratev1.MemberHealth{
		Id: m.ID, RaftAddress: m.RaftAddr, HttpAddress: m.HTTPAddr, Version: m.Version, FeatureLevel: m.FeatureLevel,
	}
}

// seatNames is the one table from seats.
var seatNames = map[cluster.Role]quoratev1.Seat{
	cluster.RoleVoter: quoratev1.Seat_SEAT_VOTER, cluster.RoleNonVoter: quoratev1.Seat_SEAT_NON_VOTER,
	cluster.RoleWaiting: quoratev1.Seat_SEAT_WAITING, cluster.RoleNone: quoratev1.Seat_SEAT_NONE,
}

func (s clusterService) fromHealth(list []cluster.NodeHealth) *quoratev1.ListMembersResponse {
	answer := &quoratev1.ListMembersResponse{ServedBy: s.id, LeaderId: s.id}
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
		answer.Problem = fmt.Sprintf("%d of %d voters are not healthy; the cluster survives the loss of %d more", missing, answer.GetVoters(),
			answer.GetFailureTolerance())
	}
	return answer
}

func fromMemberHealth(h cluster.NodeHealth) *quoratev1.MemberHealth {
	wire := fromMember(h.Member)
	wire.Seat, wire.Healthy, wire.Problem = seatNames[h.Role], h.Healthy, h.Problem
	if h.Role == cluster.RoleNone && h.Answered {
		wire.Healthy, wire.Problem = false, h.ID+" is no member and has data: it was removed, or belongs to another cluster"
	}
	if !h.HealthySince.IsZero() && wire.GetHealthy() {
		wire.StableSince = timestamppb.New(h.HealthySince)
	}
	if !h.Answered {
		return wire
	}
	wire.Role, wire.TrailingLogs = roles[h.Status.State], h.Trailing
	wire.Version, wire.FeatureLevel = h.Status.Version, h.Status.FeatureLevel
	wire.LastContact, wire.ClockOffset = durationpb.New(h.Status.LastContact), durationpb.New(h.ClockOffset)
	return wire
}

// JoinMember dials a gossip address, or takes in a node that waits.
func (s clusterService) JoinMember(ctx context.Context, r *quoratev1.JoinMemberRequest) (*quoratev1.JoinMemberResponse, error) {
	join := func() (bool, error) { return s.node.AddNode(ctx, r.GetId()) }
	if address := r.GetGossipAddress(); address != "" {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return nil, toError(invalidField("gossip_address", "%q is no address: allowed is host:port of a node's gossip", address))
		}
		join = func() (bool, error) { return s.node.Join(ctx, address) }
	}
	changed, err := join()
	return answerOrError(&quoratev1.JoinMemberResponse{Changed: changed}, err)
}

// PromoteMember gives a vote.
func (s clusterService) PromoteMember(ctx context.Context, r *quoratev1.PromoteMemberRequest) (*quoratev1.PromoteMemberResponse, error) {
	changed, err := s.node.Promote(ctx, r.GetId(), r.GetForce())
	return answerOrError(&quoratev1.PromoteMemberResponse{Changed: changed}, err)
}

// DemoteMember takes a vote.
func (s clusterService) DemoteMember(ctx context.Context, r *quoratev1.DemoteMemberRequest) (*quoratev1.DemoteMemberResponse, error) {
	changed, err := s.node.Demote(ctx, r.GetId(), r.GetForce())
	return answerOrError(&quoratev1.DemoteMemberResponse{Changed: changed}, err)
}

// RemoveMember removes a member.
func (s clusterService) RemoveMember(ctx context.Context, r *quoratev1.RemoveMemberRequest) (*quoratev1.RemoveMemberResponse, error) {
	changed, err := s.node.Remove(ctx, r.GetId(), r.GetForce())
	return answerOrError(&quoratev1.RemoveMemberResponse{Changed: changed}, err)
}

// TransferLeader hands the leadership over and says who has it then.
func (s clusterService) TransferLeader(ctx context.Context, r *quoratev1.TransferLeaderRequest) (*quoratev1.TransferLeaderResponse, error) {
	changed, err := s.node.TransferLeader(ctx, r.GetId())
	if err != nil {
		return nil, toError(err)
	}
	return &quoratev1.TransferLeaderResponse{Changed: changed, LeaderId: s.waitSuccessor(ctx, changed)}, nil
}

func (s clusterService) waitSuccessor(ctx context.Context, changed bool) string {
	if !changed {
		return s.id
	}
	ctx, cancel := context.WithTimeout(ctx, successorPatience)
	defer cancel()
	for {
		leader, err := s.node.WaitLeader(ctx)
		if err == nil && leader.ID != s.id {
			return leader.ID
		}
		if !sleepContext(ctx, relayPause) {
			return ""
		}
	}
}

func answerOrError[Message any](answer *Message, err error) (*Message, error) {
	if err != nil {
		return nil, toError(err)
	}
	return answer, nil
}
