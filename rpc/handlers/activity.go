package handlers

import (
	"context"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/quorate/quorate/activity"
	"github.com/quorate/quorate/cluster"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
	"github.com/quorate/quorate/gen/quorate/v1/quoratev1connect"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/rpc/wire"
)

// ActivityLog is the memory of recent activity; [activity.Recorder] implements it.
type ActivityLog interface {
	// Series is what is remembered of a node or resource, not before a log index is applied here.
	Series(ctx context.Context, key activity.Key, minIndex uint64) ([]activity.Step, cluster.ReadInfo, error)
}

// NewActivity is the service that shows what a log remembers on a node, for [Config].
func NewActivity(node Node, log ActivityLog) quoratev1connect.ActivityServiceHandler {
	return activityService{Service: Service{ID: node.Status().ID, Node: node}, log: log}
}

type activityService struct {
	Service
	log ActivityLog
}

// GetActivity shows the last 24 hours of a node or of an itemized resource, as this server has seen them.
func (s activityService) GetActivity(
	ctx context.Context, r *quoratev1.GetActivityRequest,
) (*quoratev1.GetActivityResponse, error) {
	switch {
	case r.GetResource() != "" && r.GetNode() != "":
		return nil, wire.ToError(
			wire.InvalidField(
				"node", "a resource is one of the whole tree; leave node %q out, or the resource", r.GetNode()))
	case r.GetRead().GetConsistency() == quoratev1.Consistency_CONSISTENCY_LINEARIZABLE:
		return nil, wire.ToError(
			wire.InvalidField("read.consistency",
				"every server remembers by itself what went on; ask for stale, or for nothing"))
	}
	key := activity.Key{Tree: r.GetTree(), Node: r.GetNode(), Resource: r.GetResource()}
	if err := s.maySee(ctx, r); err != nil {
		return nil, err
	}
	steps, read, err := s.log.Series(ctx, key, r.GetRead().GetMinIndex())
	if err != nil {
		return nil, wire.ToError(err)
	}
	answer := &quoratev1.GetActivityResponse{
		Steps: make([]*quoratev1.ActivityStep, len(steps)),
		Read:  s.fromReadInfo(read),
	}
	for i, step := range steps {
		answer.Steps[i] = fromActivityStep(step)
	}
	return answer, nil
}

// maySee refuses callers that may not read the usage of what is asked for.
func (s activityService) maySee(ctx context.Context, r *quoratev1.GetActivityRequest) error {
	_, err := s.readState(ctx, &quoratev1.ReadOptions{Consistency: quoratev1.Consistency_CONSISTENCY_STALE},
		func(v ledger.Reader) error { return refusalOrNil(v.MayAct(r.GetTree(), r.GetNode())) })
	return err
}

func fromActivityStep(s activity.Step) *quoratev1.ActivityStep {
	return &quoratev1.ActivityStep{
		From: timestamppb.New(s.From), Held: int64(s.Held), Waiting: int64(s.Waiting),
		Granted: int64(s.Granted), Released: int64(s.Released), Lost: int64(s.Lost),
		LongestWaitMs: int64(s.LongestWait),
		States:        wire.FromCounts(s.States),
	}
}
