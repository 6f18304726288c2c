package workload

import (
	"context"

	"github.com/quorate/quorate/chaos/history"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// warnPercents and warnMargin are the thresholds of all nodes of the tree.
var warnPercents, warnMargin = []int64{50, 90}, int64(20)

func warnTrees() []treeSpec { return []treeSpec{newTreeSpec("warn", "", 20, "x", 10, "y", 10)} }

// startWarn uses the first client to set thresholds and to watch them. All clients allocate.
func startWarn(c *caller) func(context.Context) {
	nodes := []string{"x", "y"}
	h := &holder{caller: c, maxHeld: 4, nodes: map[string][]string{"warn": nodes}}
	w := &watcher{
		caller: c, kind: history.Crossing, tree: "warn",
		topics: []quoratev1.WatchTopic{quoratev1.WatchTopic_WATCH_TOPIC_THRESHOLDS},
	}
	claims := func() []history.Claim {
		return []history.Claim{claimAt("warn", nodes[c.random.IntN(2)], 1+c.random.Int64N(7))}
	}
	isSet, id := false, c.newID()
	return func(ctx context.Context) {
		switch {
		case c.number > 0 || c.config.Clients == 1 && c.oneIn(2):
			h.nextStep(ctx, claims, "warn")
		case !isSet:
			isSet = isDecided(c.callSetThresholds(ctx, id))
		default:
			w.watchOnce(ctx)
		}
	}
}

func (c *caller) callSetThresholds(ctx context.Context, id string) history.Op {
	s := c.randomServer()
	o := c.beginOp(history.Configure, s)
	spec := warnTrees()[0]
	o.ID, o.Limits, o.Percents, o.Margin = id, spec.limits, warnPercents, warnMargin
	tree := spec.toProto()
	tree.Thresholds = &quoratev1.LimitThresholds{MarginPercent: int32(warnMargin)}
	for _, percent := range warnPercents {
		tree.Thresholds.Percents = append(tree.Thresholds.Percents, int32(percent))
	}
	var answer *quoratev1.ApplyTreesResponse
	err := c.withTimeout(ctx, func(ctx context.Context) (err error) {
		answer, err = s.trees.ApplyTrees(ctx, &quoratev1.ApplyTreesRequest{
			RequestId: id, Actor: "chaos", Reason: c.workload, Trees: []*quoratev1.Tree{tree},
		})
		return err
	})
	setConfiguration(o, answer)
	return c.endOp(o, err)
}

// setCrossing records nothing if the message is a heartbeat.
func setCrossing(o *history.Op, x *quoratev1.ThresholdCrossing) {
	if x == nil {
		return
	}
	if o.Change = history.Crossed; x.GetCleared() {
		o.Change = history.Cleared
	}
	o.Percents = []int64{int64(x.GetPercent())}
	o.Usage = []history.Usage{{
		Tree: x.GetTree(), Node: x.GetNode(), Resource: x.GetResource(), Used: x.GetUsed(), Limit: fromLimit(x.GetLimit()),
	}}
}
