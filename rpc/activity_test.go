package rpc

import (
	"context"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/quorate/quorate/activity"
	"github.com/quorate/quorate/cluster"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/rpc/handlers"
)

// fakeLog is an activity log with one step of one series.
type fakeLog struct {
	key  activity.Key
	step activity.Step
	// minIndex is the index of the latest request.
	minIndex uint64
}

func (l *fakeLog) Series(
	_ context.Context, key activity.Key, minIndex uint64,
) ([]activity.Step, cluster.ReadInfo, error) {
	l.minIndex = minIndex
	if key != l.key {
		return nil, cluster.ReadInfo{}, &quota.Error{Kind: quota.NotFound, Field: "node", Text: "nothing was seen"}
	}
	return []activity.Step{l.step}, cluster.ReadInfo{Index: 7, Stale: true, Age: time.Second}, nil
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
		&quoratev1.GetActivityRequest{Tree: "cern", Resource: "gpu", Read: &quoratev1.ReadOptions{MinIndex: 5}})
	if err != nil {
		t.Fatal(err)
	}
	want := &quoratev1.GetActivityResponse{
		Steps: []*quoratev1.ActivityStep{{
			From: timestamppb.New(noon), Held: 1, Waiting: 2, Granted: 3, Released: 4, Lost: 5, LongestWaitMs: 6,
			States: map[string]int64{"free": 7},
		}},
		Read: &quoratev1.ReadInfo{
			Index: 7, ServedBy: "n1",
			Consistency: quoratev1.Consistency_CONSISTENCY_STALE, AgeMs: 1000,
		},
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" || log.minIndex != 5 {
		t.Errorf("min index %d; want (-), got (+):\n%s", log.minIndex, diff)
	}
	for name, c := range map[string]struct {
		request *quoratev1.GetActivityRequest
		code    connect.Code
		field   string
	}{
		"nothing seen": {&quoratev1.GetActivityRequest{Tree: "cern"}, connect.CodeNotFound, "node"},
		"resource of a node": {
			&quoratev1.GetActivityRequest{Tree: "cern", Node: "physics", Resource: "gpu"},
			connect.CodeInvalidArgument, "node",
		},
		"linearizable": {&quoratev1.GetActivityRequest{Tree: "cern", Read: &quoratev1.ReadOptions{
			Consistency: quoratev1.Consistency_CONSISTENCY_LINEARIZABLE,
		}}, connect.CodeInvalidArgument, "read.consistency"},
	} {
		_, err := service.GetActivity(t.Context(), c.request)
		if connect.CodeOf(err) != c.code || problemOf(t, err).GetField() != c.field {
			t.Errorf("%s: %v", name, err)
		}
	}
}
