package handlers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cluster"
	peerv1 "github.com/quorate/quorate/gen/quorate/peer/v1"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/rpc/relay"
	"github.com/quorate/quorate/rpc/wire"
)

// standingPatience is how long the other members may take to say how they stand.
const standingPatience = time.Second

// ClusterService shows the cluster and changes its membership.
type ClusterService struct {
	Service

	ClusterName string
	Peers       relay.Peers
	// Upkeep is that of this node; nil if it is not known.
	Upkeep func() Upkeep
}

// GetStatus returns this node's view of the cluster, with the answers of the other members that arrive within a second.
func (s ClusterService) GetStatus(
	ctx context.Context, r *quoratev1.GetStatusRequest,
) (*quoratev1.GetStatusResponse, error) {
	own := s.Node.Status()
	if !s.Access.ShowsCluster(ctx, access.ClusterRead) {
		return s.publicStatus(own), nil
	}
	answer := &quoratev1.GetStatusResponse{
		ServedBy: own.ID, Term: own.Term, CommitIndex: own.CommitIndex, AppliedIndex: own.AppliedIndex,
		ClusterName: s.ClusterName, Members: s.listMembers(ctx, own, r.GetLocal()), Problem: s.currentProblem(own),
	}
	answer.CivilTimeMs = int64(s.Node.CivilTime())
	if leader, known := s.Node.Leader(); known {
		answer.LeaderId = leader.ID
	}
	_, err := s.Node.Read(ctx, cluster.ReadOptions{Stale: true}, func(v ledger.Reader) {
		counts := v.Counts()
		answer.LedgerTimeMs, answer.Revision, answer.HeldAllocations = int64(v.Now()), v.Revision(), int64(counts.Held)
		answer.LedgerBytes, answer.LedgerBytesLimit = counts.Sizes.Live(), counts.MostLiveBytes
		answer.TombstoneMs = int64(v.TombstoneSpan())
	})
	if err != nil && answer.GetProblem() == "" {
		answer.Problem = err.Error()
	}
	return answer, nil
}

// hiddenProblem stands for the problem of a node where the caller may not see its cause.
const hiddenProblem = "this node does not serve reads and writes now; callers with cluster.read see why"

// publicStatus is what every caller may see: whether the node serves, who leads, and the name of the cluster.
func (s ClusterService) publicStatus(own cluster.NodeStatus) *quoratev1.GetStatusResponse {
	answer := &quoratev1.GetStatusResponse{ServedBy: own.ID, ClusterName: s.ClusterName}
	if leader, known := s.Node.Leader(); known {
		answer.LeaderId = leader.ID
	}
	if s.currentProblem(own) != "" {
		answer.Problem = hiddenProblem
	}
	return answer
}

func (s ClusterService) currentProblem(own cluster.NodeStatus) string {
	if own.Problem != "" {
		return own.Problem
	}
	if _, known := s.Node.Leader(); !known {
		return wire.NoLeaderText
	}
	if err := s.Node.Ready(); err != nil {
		return err.Error()
	}
	return ""
}

func (s ClusterService) listMembers(ctx context.Context, own cluster.NodeStatus, local bool) []*quoratev1.Member {
	ctx, cancel := context.WithTimeout(ctx, standingPatience)
	defer cancel()
	var list []*quoratev1.Member
	var asked sync.WaitGroup
	for _, m := range s.Node.Members() {
		if local && m.ID != own.ID {
			continue
		}
		shown := &quoratev1.Member{
			Id: m.ID, Voter: m.Voter, RaftAddress: m.RaftAddr, HttpAddress: m.HTTPAddr, Version: m.Version,
			FeatureLevel: m.FeatureLevel, Role: quoratev1.Role_ROLE_UNKNOWN,
		}
		list = append(list, shown)
		asked.Go(func() { s.askMember(ctx, m, own, shown) })
	}
	asked.Wait()
	compareZones(list)
	return list
}

// compareZones adds a problem to members that have another table of time zones than the leader.
func compareZones(list []*quoratev1.Member) {
	leads := func(m *quoratev1.Member) bool { return m.GetRole() == quoratev1.Role_ROLE_LEADER }
	i := slices.IndexFunc(list, leads)
	if i < 0 {
		return
	}
	for _, m := range list {
		m.Problem = cmp.Or(m.GetProblem(),
			cluster.DescribeZones(m.GetId(), m.GetTimeZones(), list[i].GetId(), list[i].GetTimeZones()))
	}
}

func (s ClusterService) askMember(
	ctx context.Context, m cluster.Member, own cluster.NodeStatus, shown *quoratev1.Member,
) {
	if m.ID == own.ID {
		standing, _ := PeerService{Node: s.Node, Upkeep: s.Upkeep}.GetStanding(ctx, nil)
		fillMember(shown, standing)
		return
	}
	standing, err := s.Peers.GetStanding(ctx, m)
	switch {
	case err != nil:
		shown.Problem = fmt.Sprintf("%s does not answer at %q: %v", m.ID, s.Peers.AddressOf(m), err)
	case standing.GetId() != m.ID:
		shown.Problem = fmt.Sprintf("%s answers at %q, which is the address of %s", standing.GetId(),
			s.Peers.AddressOf(m), m.ID)
	default:
		fillMember(shown, standing)
	}
}

// roles maps raft's states.
var roles = map[string]quoratev1.Role{
	"Follower": quoratev1.Role_ROLE_FOLLOWER, "Candidate": quoratev1.Role_ROLE_CANDIDATE,
	"Leader": quoratev1.Role_ROLE_LEADER,
}

func roleOf(state string) quoratev1.Role {
	if role, known := roles[state]; known {
		return role
	}
	return quoratev1.Role_ROLE_UNKNOWN
}

func fillMember(shown *quoratev1.Member, standing *peerv1.GetStandingResponse) {
	shown.Reachable, shown.Role, shown.Problem = true, roleOf(standing.GetState()),
		cmp.Or(standing.GetProblem(), standing.GetWarning())
	shown.AppliedIndex, shown.LastIndex = standing.GetAppliedIndex(), standing.GetLastIndex()
	shown.Version, shown.FeatureLevel = standing.GetVersion(), standing.GetFeatureLevel()
	shown.LogStore, shown.TimeZones = standing.GetLogStore(), standing.GetTimeZones()
	fillUpkeep(shown, standing)
}
