package handlers

import (
	"context"

	"google.golang.org/protobuf/types/known/timestamppb"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	quoratev1beta1 "github.com/quorate/quorate/client/gen/quorate/v1beta1"
	"github.com/quorate/quorate/client/gen/quorate/v1beta1/quoratev1beta1connect"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/internal/activity"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/rpc/wire"
)

// ActivityLog is the memory of recent activity; [activity.Recorder] implements it.
type ActivityLog interface {
	// Series is what is remembered of nodes and resources, not before a log index is applied here.
	Series(ctx context.Context, q activity.Query) ([][]activity.Step, cluster.ReadInfo, error)
}

// NewActivity is the service that shows what a log remembers on a node, for [Config].
func NewActivity(node Node, log ActivityLog) quoratev1beta1connect.ActivityServiceHandler {
	return activityService{Service: Service{ID: node.Status().ID, Node: node}, log: log}
}

type activityService struct {
	Service
	log ActivityLog
}

// GetActivity shows the last 24 hours of nodes or of an itemized resource, as this server has seen them.
func (s activityService) GetActivity(
	ctx context.Context, r *quoratev1beta1.GetActivityRequest,
) (*quoratev1beta1.GetActivityResponse, error) {
	if err := checkActivity(r); err != nil {
		return nil, wire.ToError(err)
	}
	keys := activityKeys(r)
	if err := s.maySee(ctx, keys); err != nil {
		return nil, err
	}
	query := activity.Query{Keys: keys, LastSteps: int(r.GetLastSteps()), MinIndex: r.GetRead().GetMinIndex()}
	if query.LastSteps == 0 {
		query.LastSteps = activity.Steps
	}
	list, read, err := s.log.Series(ctx, query)
	if err != nil {
		return nil, wire.ToError(err)
	}
	answer := &quoratev1beta1.GetActivityResponse{Read: s.fromReadInfo(read)}
	if len(r.GetNodes()) == 0 {
		if answer.Steps = fromActivitySteps(list[0]); len(answer.GetSteps()) == 0 {
			return nil, wire.ToError(activity.NotRecorded(keys[0]))
		}
		return answer, nil
	}
	for i, steps := range list {
		answer.Series = append(answer.Series,
			&quoratev1beta1.ActivitySeries{Node: keys[i].Node, Steps: fromActivitySteps(steps)})
	}
	return answer, nil
}

func checkActivity(r *quoratev1beta1.GetActivityRequest) error {
	switch {
	case r.GetResource() != "" && r.GetNode() != "":
		return wire.InvalidField(
			"node", "a resource is one of the whole tree; leave node %q out, or the resource", r.GetNode())
	case len(r.GetNodes()) > 0 && (r.GetNode() != "" || r.GetResource() != ""):
		return wire.InvalidField("nodes", "the request names nodes; leave node and resource out, or nodes")
	case r.GetRead().GetConsistency() == quoratev1.Consistency_CONSISTENCY_LINEARIZABLE:
		return wire.InvalidField("read.consistency",
			"every server remembers by itself what went on; ask for stale, or for nothing")
	}
	return nil
}

func activityKeys(r *quoratev1beta1.GetActivityRequest) []activity.Key {
	if len(r.GetNodes()) == 0 {
		return []activity.Key{{Tree: r.GetTree(), Node: r.GetNode(), Resource: r.GetResource()}}
	}
	var keys []activity.Key
	for _, node := range r.GetNodes() {
		keys = append(keys, activity.Key{Tree: r.GetTree(), Node: node})
	}
	return keys
}

func (s activityService) maySee(ctx context.Context, keys []activity.Key) error {
	_, err := s.readState(ctx, &quoratev1.ReadOptions{Consistency: quoratev1.Consistency_CONSISTENCY_STALE},
		func(v ledger.Reader) error {
			for _, key := range keys {
				if refused := v.MayAct(key.Tree, key.Node); refused != nil {
					return refused
				}
			}
			return nil
		})
	return err
}

func fromActivitySteps(steps []activity.Step) []*quoratev1beta1.ActivityStep {
	list := make([]*quoratev1beta1.ActivityStep, len(steps))
	for i, step := range steps {
		list[i] = fromActivityStep(step)
	}
	return list
}

func fromActivityStep(s activity.Step) *quoratev1beta1.ActivityStep {
	step := &quoratev1beta1.ActivityStep{
		BeginsAt: timestamppb.New(s.From), Held: int64(s.Held), Waiting: int64(s.Waiting),
		Granted: int64(s.Granted), Released: int64(s.Released), Lost: int64(s.Lost),
		LongestWaitMs: int64(s.LongestWait),
		States:        wire.FromCounts(s.States), Amounts: make(map[string]*quoratev1beta1.ActivityAmount, len(s.Amounts)),
	}
	for _, a := range s.Amounts {
		step.Amounts[a.Resource] = &quoratev1beta1.ActivityAmount{
			Unit: wire.FromUnit(a.Unit), Used: int64(a.Used), Waiting: int64(a.Waiting), Limit: wire.FromLimit(a.Limit),
		}
	}
	return step
}
