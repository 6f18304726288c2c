package rpc

import (
	"context"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	quoratev1beta1 "github.com/quorate/quorate/client/gen/quorate/v1beta1"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/internal/activity"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/rpc/handlers"
)

// fakeLog is an activity log with one step of one series.
type fakeLog struct {
	key  activity.Key
	step activity.Step
	// asked is the latest query.
	asked activity.Query
}

func (l *fakeLog) Series(_ context.Context, q activity.Query) ([][]activity.Step, cluster.ReadInfo, error) {
	l.asked = q
	list := make([][]activity.Step, len(q.Keys))
	for i, key := range q.Keys {
		if key == l.key {
			list[i] = []activity.Step{l.step}
		}
	}
	return list, cluster.ReadInfo{Index: 7, Stale: true, Age: time.Second}, nil
}

func TestGetActivity(t *testing.T) {
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	log := &fakeLog{
		key: activity.Key{Tree: "cern", Resource: "gpu"},
		step: activity.Step{
			From: noon, Held: 1, Waiting: 2, Granted: 3, Released: 4, Lost: 5, LongestWait: 6,
			States: []quota.NamedCount{{Name: "free", Count: 7}},
		},
	}
	d := oneNode(t)
	service := handlers.NewActivity(d.node, log)
	got, err := service.GetActivity(t.Context(),
		&quoratev1beta1.GetActivityRequest{Tree: "cern", Resource: "gpu", Read: &quoratev1.ReadOptions{MinIndex: 5}})
	if err != nil {
		t.Fatal(err)
	}
	want := &quoratev1beta1.GetActivityResponse{
		Steps: []*quoratev1beta1.ActivityStep{{
			BeginsAt: timestamppb.New(noon), Held: 1, Waiting: 2, Granted: 3, Released: 4, Lost: 5, LongestWaitMs: 6,
			States: map[string]int64{"free": 7},
		}},
		Read: &quoratev1.ReadInfo{
			Index: 7, ServedBy: "n1",
			Consistency: quoratev1.Consistency_CONSISTENCY_STALE, AgeMs: 1000,
		},
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" || log.asked.MinIndex != 5 ||
		log.asked.LastSteps != activity.Steps {
		t.Errorf("asked for %+v; want (-), got (+):\n%s", log.asked, diff)
	}
	for name, c := range map[string]struct {
		request *quoratev1beta1.GetActivityRequest
		code    connect.Code
		field   string
	}{
		"nothing seen": {&quoratev1beta1.GetActivityRequest{Tree: "cern"}, connect.CodeNotFound, "node"},
		"resource of a node": {
			&quoratev1beta1.GetActivityRequest{Tree: "cern", Node: "physics", Resource: "gpu"},
			connect.CodeInvalidArgument, "node",
		},
		"nodes and a node": {
			&quoratev1beta1.GetActivityRequest{Tree: "cern", Node: "physics", Nodes: []string{"physics"}},
			connect.CodeInvalidArgument, "nodes",
		},
		"nodes and a resource": {
			&quoratev1beta1.GetActivityRequest{Tree: "cern", Resource: "gpu", Nodes: []string{"physics"}},
			connect.CodeInvalidArgument, "nodes",
		},
		"linearizable": {&quoratev1beta1.GetActivityRequest{Tree: "cern", Read: &quoratev1.ReadOptions{
			Consistency: quoratev1.Consistency_CONSISTENCY_LINEARIZABLE,
		}}, connect.CodeInvalidArgument, "read.consistency"},
	} {
		_, err := service.GetActivity(t.Context(), c.request)
		if connect.CodeOf(err) != c.code || problemOf(t, err).GetField() != c.field {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestActivityOfSeveralNodes: each has its series, with amounts, and one of which nothing is recorded has no steps.
func TestActivityOfSeveralNodes(t *testing.T) {
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	log := &fakeLog{
		key: activity.Key{Tree: "cern", Node: "physics"},
		step: activity.Step{From: noon, Amounts: []activity.Amount{
			{Resource: "cores", Unit: quota.Count, Used: 4, Waiting: 2, Limit: quota.AtMost(5)},
			{Resource: "ram", Unit: quota.Bytes, Used: 1, Limit: quota.NoLimit()},
		}},
	}
	got, err := handlers.NewActivity(oneNode(t).node, log).GetActivity(t.Context(),
		&quoratev1beta1.GetActivityRequest{Tree: "cern", Nodes: []string{"", "physics"}, LastSteps: 12})
	if err != nil {
		t.Fatal(err)
	}
	want := []*quoratev1beta1.ActivitySeries{{}, {Node: "physics", Steps: []*quoratev1beta1.ActivityStep{{
		BeginsAt: timestamppb.New(noon),
		Amounts: map[string]*quoratev1beta1.ActivityAmount{
			"cores": {
				Unit: quoratev1.Unit_UNIT_COUNT, Used: 4, Waiting: 2,
				Limit: &quoratev1.Limit{Value: &quoratev1.Limit_Amount{Amount: 5}},
			},
			"ram": {
				Unit: quoratev1.Unit_UNIT_BYTES, Used: 1,
				Limit: &quoratev1.Limit{Value: &quoratev1.Limit_Unlimited{Unlimited: true}},
			},
		},
	}}}}
	if diff := cmp.Diff(want, got.GetSeries(), protocmp.Transform()); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
	if len(got.GetSteps()) != 0 || log.asked.LastSteps != 12 || len(log.asked.Keys) != 2 {
		t.Errorf("asked for %+v, got %v", log.asked, got.GetSteps())
	}
}
