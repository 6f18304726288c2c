package rpc

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/quorate/quorate/cluster"
	peerv1 "github.com/quorate/quorate/gen/quorate/peer/v1"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
	"github.com/quorate/quorate/quota/ledger"
)

// standingPatience is how long the other members may take to say how they stand.
const standingPatience = time.Second

type clusterService struct {
	service

	clusterName string
	peers       peers
}

// GetStatus shows what this node knows, and what the others answer within a second.
func (s clusterService) GetStatus(ctx context.Context, r *quoratev1.GetStatusRequest) (*quoratev1.GetStatusResponse, error) {
	own := s.node.Status()
	answer := &quoratev1.GetStatusResponse{
		ServedBy: own.ID, Term: own.Term, CommitIndex: own.CommitIndex, AppliedIndex: own.AppliedIndex,
		ClusterName: s.clusterName, Members: s.listMembers(ctx, own, r.GetLocal()), Problem: s.currentProblem(own),
	}
	if leader, known := s.node.Leader(); known {
		answer.LeaderId = leader.ID
	}
	_, err := s.node.Read(ctx, cluster.ReadOptions{Stale: true}, func(v ledger.View) {
		counts := v.Counts()
		answer.LedgerTimeMs, answer.Revision, answer.HeldAllocations = int64(v.Now()), v.Revision(), int64(counts.Held)
		answer.LedgerBytes, answer.LedgerBytesLimit = counts.Sizes.Live(), counts.MostLiveBytes
		answer.TombstoneSpan = durationpb.New(time.Duration(v.TombstoneSpan()) * time.Millisecond)
	})
	if err != nil && answer.GetProblem() == "" {
		answer.Problem = err.Error()
	}
	return answer, nil
}

// currentProblem is the reason why this node cannot serve now, or empty.
func (s clusterService) currentProblem(own cluster.NodeStatus) string {
	if own.Problem != "" {
		return own.Problem
	}
	if _, known := s.node.Leader(); !known {
		return noLeaderText
	}
	if err := s.node.Ready(); err != nil {
		return err.Error()
	}
	return ""
}

// listMembers asks all members at once.
func (s clusterService) listMembers(ctx context.Context, own cluster.NodeStatus, local bool) []*quoratev1.Member {
	ctx, cancel := context.WithTimeout(ctx, standingPatience)
	defer cancel()
	var list []*quoratev1.Member
	var asked sync.WaitGroup
	for _, m := range s.node.Members() {
		if local && m.ID != own.ID {
			continue
		}
		wire := &quoratev1.Member{
			Id: m.ID, Voter: m.Voter, RaftAddress: m.RaftAddr, HttpAddress: m.HTTPAddr, Version: m.Version, FeatureLevel: m.FeatureLevel,
		}
		list = append(list, wire)
		asked.Go(func() { s.askMember(ctx, m, own, wire) })
	}
	asked.Wait()
	return list
}

// askMember fills in what only the member itself can tell.
func (s clusterService) askMember(ctx context.Context, m cluster.Member, own cluster.NodeStatus, wire *quoratev1.Member) {
	if m.ID == own.ID {
		standing, _ := peerService{s.node}.GetStanding(ctx, nil)
		fillMember(wire, standing)
		return
	}
	standing, err := s.peers.getStanding(ctx, m)
	switch {
	case err != nil:
		wire.Problem = fmt.Sprintf("%s does not answer at %q: %v", m.ID, s.peers.addressOf(m), err)
	case standing.GetId() != m.ID:
		wire.Problem = fmt.Sprintf("%s answers at %q, which is the address of %s", standing.GetId(), s.peers.addressOf(m), m.ID)
	default:
		fillMember(wire, standing)
	}
}

// roles is the one table from raft's states.
var roles = map[string]quoratev1.Role{
	"Follower": quoratev1.Role_ROLE_FOLLOWER, "Candidate": quoratev1.Role_ROLE_CANDIDATE, "Leader": quoratev1.Role_ROLE_LEADER,
}

func fillMember(wire *quoratev1.Member, standing *peerv1.GetStandingResponse) {
	wire.Reachable, wire.Role, wire.Problem = true, roles[standing.GetState()], cmp.Or(standing.GetProblem(), standing.GetWarning())
	wire.AppliedIndex, wire.LastIndex = standing.GetAppliedIndex(), standing.GetLastIndex()
	wire.Version, wire.FeatureLevel = standing.GetVersion(), standing.GetFeatureLevel()
}
