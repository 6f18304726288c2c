package rpc

import (
	"cmp"
	"context"
	"fmt"

	"github.com/quorate/quorate/cluster"
)

// The fake is at a feature level that was never raised, and has no checkpoints.

func (n *fakeNode) Level() cluster.FeatureLevel {
	return cluster.FeatureLevel{Current: cmp.Or(n.level.Load(), 3), Possible: 4, Supported: cmp.Or(n.supported, 3)}
}

func (n *fakeNode) CheckLevel(level uint32) error {
	if n.Level().Current >= level {
		return nil
	}
	return &cluster.Error{
		Reason: cluster.NotUpgraded, NotApplied: true, Text: fmt.Sprintf("this needs feature level %d on all members", level),
	}
}

func (n *fakeNode) RaiseLevel(context.Context) (uint32, error) {
	if !n.IsLeader() {
		return 0, &cluster.Error{Reason: cluster.NotLeader, NotApplied: true, Text: n.id + " does not lead"}
	}
	return 4, nil
}

func (n *fakeNode) Checkpoint(context.Context) (uint64, error) {
	return 0, &cluster.Error{Reason: cluster.NotUpgraded, NotApplied: true, Text: "this needs feature level 4"}
}

func (n *fakeNode) Comparison() []cluster.MemberComparison {
	return []cluster.MemberComparison{
		{ID: "n1", Checkpoint: cluster.Checkpoint{Index: 7, Digest: "0123456789abcdef"}, Finding: cluster.Agrees},
		{ID: "n2", Checkpoint: cluster.Checkpoint{Index: 7, Digest: "fedcba9876543210"}, Finding: cluster.Differs},
		{ID: "n3"},
	}
}

func (n *fakeNode) Health(context.Context) ([]cluster.NodeHealth, error) {
	return nil, &cluster.Error{Reason: cluster.NotLeader, NotApplied: true, Text: n.id + " does not lead"}
}
