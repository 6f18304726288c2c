package handlers

import (
	"context"
	"errors"

	"connectrpc.com/connect"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/rpc/wire"
)

// ClusterOperations is what a node offers for the operation of the cluster: feature levels, and checkpoints that
// compare states.
type ClusterOperations interface {
	// Level returns the feature level of the cluster in this node's view.
	Level() cluster.FeatureLevel
	// CheckLevel returns an error that names the members that are behind if the cluster is below a level.
	CheckLevel(level uint32) error
	// RaiseLevel raises the level to the newest that all members understand, and returns it. Only the leader can.
	RaiseLevel(ctx context.Context) (uint32, error)
	// Checkpoint makes all members compute the digest of their states, and returns the index of the checkpoint. Only the
	// leader can.
	Checkpoint(ctx context.Context) (uint64, error)
	// Comparison is what was heard of the members' last checkpoints, by id.
	Comparison() []cluster.MemberComparison
}

// GetLevel shows the feature level.
func (s ClusterService) GetLevel(context.Context, *adminv1.GetLevelRequest) (*adminv1.GetLevelResponse, error) {
	level := s.Node.Level()
	return &adminv1.GetLevelResponse{Level: level.Current, Possible: level.Possible}, nil
}

// upkeepError returns failed_precondition instead of unavailable if a member is too old: the caller should get the
// error now and not retry until the member is upgraded.
func upkeepError(err error) error {
	var failed *cluster.Error
	if errors.As(err, &failed) && failed.Reason == cluster.NotUpgraded {
		return wire.NewProblem(connect.CodeFailedPrecondition, failed.Error(),
			&quoratev1.Problem{Reason: failed.Reason.String(), NotApplied: true})
	}
	return wire.ToError(err)
}

// presentWrite says where the log has what this node has just done.
func (s ClusterService) presentWrite(index uint64) *quoratev1.WriteInfo {
	return &quoratev1.WriteInfo{Index: index, LedgerTimeMs: int64(s.Node.LedgerTime())}
}

// RaiseLevel raises the feature level.
func (s ClusterService) RaiseLevel(
	ctx context.Context, _ *adminv1.RaiseLevelRequest,
) (*adminv1.RaiseLevelResponse, error) {
	level, err := s.Node.RaiseLevel(ctx)
	if err != nil {
		return nil, upkeepError(err)
	}
	return &adminv1.RaiseLevelResponse{Level: level, Write: s.presentWrite(s.Node.Status().AppliedIndex)}, nil
}

// Checkpoint has the members sum up their states.
func (s ClusterService) Checkpoint(
	ctx context.Context, _ *adminv1.CheckpointRequest,
) (*adminv1.CheckpointResponse, error) {
	index, err := s.Node.Checkpoint(ctx)
	if err != nil {
		return nil, upkeepError(err)
	}
	return &adminv1.CheckpointResponse{Write: s.presentWrite(index)}, nil
}

// wireFindings maps the findings of comparisons.
var wireFindings = map[cluster.Finding]adminv1.Finding{
	cluster.Agrees: adminv1.Finding_FINDING_AGREES, cluster.Differs: adminv1.Finding_FINDING_DIFFERS,
	cluster.Disputed: adminv1.Finding_FINDING_DISPUTED, "": adminv1.Finding_FINDING_PENDING,
}

// setDigests adds what this node has received of the last checkpoints of the members.
func (s ClusterService) setDigests(members []*adminv1.Member) {
	compared := map[string]cluster.MemberComparison{}
	for _, m := range s.Node.Comparison() {
		compared[m.ID] = m
	}
	for _, m := range members {
		c := compared[m.GetId()]
		m.CheckpointIndex, m.Digest, m.Finding = c.Index, c.Digest, wireFindings[c.Finding]
	}
}
