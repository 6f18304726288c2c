package handlers

import (
	"cmp"
	"context"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/cluster"
	peerv1 "github.com/quorate/quorate/gen/quorate/peer/v1"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/rpc/relay"
	"github.com/quorate/quorate/rpc/wire"
)

// ClusterService shows the cluster and changes its membership.
type ClusterService struct {
	Service

	ClusterName string
	Peers       relay.Peers
	// Upkeep is that of this node; nil if it is not known.
	Upkeep func() Upkeep
}

// GetStatus returns this node's view of the cluster.
func (s ClusterService) GetStatus(
	ctx context.Context, _ *adminv1.GetStatusRequest,
) (*adminv1.GetStatusResponse, error) {
	own := s.Node.Status()
	if !s.Access.ShowsCluster(ctx, access.ClusterRead) {
		return s.publicStatus(own), nil
	}
	answer := &adminv1.GetStatusResponse{
		ServedBy: own.ID, Term: own.Term, CommitIndex: own.CommitIndex, AppliedIndex: own.AppliedIndex,
		ClusterName: s.ClusterName, Member: s.ownMember(own), Problem: s.currentProblem(own),
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
func (s ClusterService) publicStatus(own cluster.NodeStatus) *adminv1.GetStatusResponse {
	answer := &adminv1.GetStatusResponse{ServedBy: own.ID, ClusterName: s.ClusterName}
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

// ownMember shows this node.
func (s ClusterService) ownMember(own cluster.NodeStatus) *adminv1.Member {
	for _, m := range s.Node.Members() {
		if m.ID != own.ID {
			continue
		}
		shown := fromMember(m)
		shown.Seat = s.seatWithoutLeader(m)
		fillMember(shown, s.ownStanding())
		return shown
	}
	return nil
}

func (s ClusterService) ownStanding() *peerv1.GetStandingResponse {
	return PeerService{Node: s.Node, Upkeep: s.Upkeep}.standing()
}

// roles maps raft's states.
var roles = map[string]adminv1.Role{
	"Follower": adminv1.Role_ROLE_FOLLOWER, "Candidate": adminv1.Role_ROLE_CANDIDATE,
	"Leader": adminv1.Role_ROLE_LEADER,
}

func roleOf(state string) adminv1.Role {
	if role, known := roles[state]; known {
		return role
	}
	return adminv1.Role_ROLE_UNKNOWN
}

func fillMember(shown *adminv1.Member, standing *peerv1.GetStandingResponse) {
	shown.Reachable, shown.Role = true, roleOf(standing.GetState())
	shown.Problem = cmp.Or(standing.GetProblem(), shown.GetProblem(), standing.GetWarning())
	shown.AppliedIndex, shown.LastIndex = standing.GetAppliedIndex(), standing.GetLastIndex()
	shown.Version, shown.FeatureLevel = standing.GetVersion(), standing.GetFeatureLevel()
	shown.LogStore, shown.TimeZones = standing.GetLogStore(), standing.GetTimeZones()
	fillUpkeep(shown, standing)
}
