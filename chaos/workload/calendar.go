package workload

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/quorate/quorate/chaos/history"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// windowGap is the least time between two windows of one node, in milliseconds: the limits that are scheduled there do
// not overlap, so that the one in force follows from the last of them that has begun or ended.
const windowGap = 1200

// calendarTrees returns a tree whose limits are changed for some seconds each, again and again.
func calendarTrees() []treeSpec { return []treeSpec{newTreeSpec("calendar", "", 24, "x", 9, "y", 9)} }

// startCalendar uses the first client to schedule limits. All clients allocate, and read what is scheduled.
func startCalendar(c *caller) func(context.Context) {
	nodes := []string{"x", "y"}
	h := &holder{caller: c, maxHeld: 5, nodes: map[string][]string{"calendar": nodes}}
	claims := func() []history.Claim {
		return []history.Claim{claimAt("calendar", nodes[c.random.IntN(2)], 1+c.random.Int64N(4))}
	}
	ends := map[string]int64{}
	return func(ctx context.Context) {
		switch node := nodes[c.random.IntN(2)]; {
		case c.oneIn(3):
			c.readSchedule(ctx, c.randomReadMode())
		case c.number == 0 && ends[node] < wallMillis()+2000:
			ends[node] = c.scheduleOne(ctx, node, ends[node])
		default:
			h.nextStep(ctx, claims, "calendar")
		}
	}
}

func wallMillis() int64 { return time.Now().UnixMilli() }

// scheduleOne uses a window behind the last one of the node. It returns when the node is free again.
func (c *caller) scheduleOne(ctx context.Context, node string, last int64) int64 {
	from := max(last+windowGap, wallMillis()+c.random.Int64N(1500))
	want := history.ScheduledLimit{
		Limit: history.Limit{
			Tree: "calendar", Node: node, Resource: countedResource, Amount: 1 + c.random.Int64N(20),
		},
		ID: c.newID(), From: from, Until: from + 1000 + c.random.Int64N(3000),
	}
	c.retryUntilDecided(ctx, func() history.Op { return c.callSchedule(ctx, want) })
	return want.Until
}

func (c *caller) callSchedule(ctx context.Context, want history.ScheduledLimit) history.Op {
	s := c.randomServer()
	o := c.beginOp(history.Schedule, s)
	o.ID, o.Scheduled = want.ID, []history.ScheduledLimit{want}
	err := c.withTimeout(ctx, func(ctx context.Context) error {
		answer, err := s.trees.ScheduleLimits(ctx, &quoratev1.ScheduleLimitsRequest{
			Id: want.ID, Tree: want.Tree, Node: want.Node,
			Adjustments: map[string]*quoratev1.LimitAdjustment{
				want.Resource: {Value: &quoratev1.LimitAdjustment_Set{Set: want.Amount}},
			},
			BeginsAt: timestamppb.New(time.UnixMilli(want.From)), EndsAt: timestamppb.New(time.UnixMilli(want.Until)),
			Actor: "chaos", Reason: c.workload,
		})
		o.Repeated = answer.GetWrite().GetRepetition()
		return err
	})
	return c.endOp(o, err)
}

// readSchedule reads all scheduled limits and civil time at one index.
func (c *caller) readSchedule(ctx context.Context, f readMode) {
	s := c.randomServer()
	o := c.beginRead(history.ReadSchedule, s, f)
	var answer *quoratev1.ListScheduledLimitsResponse
	err := c.withTimeout(ctx, func(ctx context.Context) (err error) {
		answer, err = s.trees.ListScheduledLimits(ctx, &quoratev1.ListScheduledLimitsRequest{Read: f.protoOptions()})
		return err
	})
	setReadInfo(o, answer.GetRead())
	o.Scheduled, o.Civil = ScheduledOf(answer)
	o.Wall = wallMillis()
	c.endOp(o, err)
}

// ScheduledOf converts scheduled limits that set a limit, and civil time.
func ScheduledOf(answer *quoratev1.ListScheduledLimitsResponse) (all []history.ScheduledLimit, civil int64) {
	for _, l := range answer.GetLimits() {
		for resource, a := range l.GetAdjustments() {
			all = append(all, history.ScheduledLimit{
				Limit: history.Limit{Tree: l.GetTree(), Node: l.GetNode(), Resource: resource, Amount: a.GetSet()},
				ID:    l.GetId(), From: l.GetBeginsAt().AsTime().UnixMilli(), Until: l.GetEndsAt().AsTime().UnixMilli(),
				InForce: l.GetInForce(),
			})
		}
	}
	if answer.GetCivilAt() != nil {
		civil = answer.GetCivilAt().AsTime().UnixMilli()
	}
	return all, civil
}
