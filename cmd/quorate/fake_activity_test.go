package main

import (
	"context"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	quoratev1beta1 "github.com/quorate/quorate/client/gen/quorate/v1beta1"
)

// GetActivity returns 13 steps; only the last three are not empty. Of several nodes it has recorded the first. Like a
// node of an earlier version, it knows no amounts of the tree old, and one node at a time.
func (f *fake) GetActivity(
	_ context.Context, r *quoratev1beta1.GetActivityRequest,
) (*quoratev1beta1.GetActivityResponse, error) {
	f.keepRequest(r)
	if r.GetTree() == "nowhere" {
		return nil, connectError(connect.CodeNotFound,
			"this server has seen nothing happen to %s since its start", r.GetTree())
	}
	answer := &quoratev1beta1.GetActivityResponse{
		Read: readInfo(&quoratev1.ReadOptions{Consistency: quoratev1.Consistency_CONSISTENCY_STALE}),
	}
	for i := range 13 {
		answer.Steps = append(
			answer.Steps, &quoratev1beta1.ActivityStep{
				BeginsAt: timestamppb.New(someDay.AsTime().Add(time.Duration(i) * 5 * time.Minute)),
			})
	}
	busy := answer.GetSteps()[10:]
	for _, step := range busy {
		step.Held = 2
	}
	busy[0].Granted, busy[0].Waiting = 2, 1
	busy[1].Granted, busy[1].Released, busy[1].LongestWaitMs = 1, 1, 192_500
	busy[2].Lost, busy[2].Held = 1, 1
	if r.GetResource() == "" && r.GetTree() != "old" {
		for i, step := range answer.GetSteps() {
			step.Amounts = map[string]*quoratev1beta1.ActivityAmount{
				"cores": {
					Unit: quoratev1.Unit_UNIT_COUNT, Used: int64(i), Waiting: step.GetWaiting(), Limit: amountLimit(20),
				},
				"ram": {
					Unit: quoratev1.Unit_UNIT_BYTES, Used: int64(13-i) << 30,
					Limit: &quoratev1.Limit{Value: &quoratev1.Limit_Unlimited{Unlimited: true}},
				},
			}
		}
	}
	if len(r.GetNodes()) > 0 && r.GetTree() != "old" {
		for _, node := range r.GetNodes() {
			answer.Series = append(answer.Series, &quoratev1beta1.ActivitySeries{Node: node, Steps: answer.GetSteps()})
			answer.Steps = nil
		}
	}
	if r.GetResource() != "" {
		busy[1].States = map[string]int64{"leased": 2, "free": 10}
		busy[2].States = map[string]int64{"leased": 1, "free": 10, "dirty": 1}
	}
	return answer, nil
}
