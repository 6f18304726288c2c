package workload

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/quorate/quorate/chaos/history"
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// readMode is the consistency of a read.
type readMode struct {
	stale    bool
	minIndex uint64
}

func (f readMode) protoOptions() *quoratev1.ReadOptions {
	r := &quoratev1.ReadOptions{MinIndex: f.minIndex, Consistency: quoratev1.Consistency_CONSISTENCY_LINEARIZABLE}
	if f.stale {
		r.Consistency = quoratev1.Consistency_CONSISTENCY_STALE
	}
	return r
}

func (c *caller) randomReadMode() readMode {
	switch c.random.IntN(4) {
	case 0:
		return readMode{stale: true}
	case 1:
		return readMode{stale: true, minIndex: c.highestIndex}
	}
	return readMode{}
}

func (c *caller) beginRead(kind history.Kind, s *server, f readMode) *history.Op {
	o := c.beginOp(kind, s)
	o.Stale, o.MinIndex = f.stale, f.minIndex
	return o
}

// setReadInfo records the log index and the node of the answer.
func setReadInfo(o *history.Op, r *quoratev1.ReadInfo) {
	if r == nil {
		return
	}
	o.Index, o.Ledger, o.ServedBy, o.Age = r.GetIndex(), r.GetLedgerTimeMs(), r.GetServedBy(), r.GetAgeMs()
	o.MarkedStale = r.GetConsistency() == quoratev1.Consistency_CONSISTENCY_STALE
}

func (c *caller) readUsage(ctx context.Context, tree string, f readMode) {
	s := c.randomServer()
	o := c.beginRead(history.ReadUsage, s, f)
	o.Claims = []history.Claim{{Tree: tree}}
	var answer *quoratev1.GetUsageResponse
	err := c.withTimeout(ctx, func(ctx context.Context) (err error) {
		answer, err = s.trees.GetUsage(ctx, &quoratev1.GetUsageRequest{
			Tree: tree, Subtree: true,
			Read: f.protoOptions(),
		})
		return err
	})
	setReadInfo(o, answer.GetRead())
	o.Usage = UsageOf(tree, answer.GetNodes())
	c.endOp(o, err)
}

// UsageOf converts the usage of counted resources.
func UsageOf(tree string, nodes []*quoratev1.NodeUsage) []history.Usage {
	var all []history.Usage
	for _, n := range nodes {
		for _, r := range n.GetResources() {
			if r.GetUnit() == quoratev1.Unit_UNIT_ITEMS {
				continue
			}
			all = append(all, history.Usage{
				Tree: tree, Node: n.GetNode(), Resource: r.GetResource(), Used: r.GetSubtree(), Own: r.GetOwn(),
				Limit: fromLimit(r.GetEffective()), Over: r.GetOver(),
			})
		}
	}
	return all
}

func fromLimit(l *quoratev1.Limit) int64 {
	if amount, limited := l.GetValue().(*quoratev1.Limit_Amount); limited {
		return amount.Amount
	}
	return history.Unlimited
}

func (c *caller) readAllocation(ctx context.Context, name string, f readMode) {
	s := c.randomServer()
	o := c.beginRead(history.ReadAllocation, s, f)
	o.ID = name
	namespace, id := splitName(name)
	var answer *quoratev1.GetAllocationResponse
	err := c.withTimeout(ctx, func(ctx context.Context) (err error) {
		answer, err = s.allocations.GetAllocation(ctx, &quoratev1.GetAllocationRequest{
			Namespace: namespace, Id: id, Read: f.protoOptions(),
		})
		return err
	})
	setReadInfo(o, answer.GetRead())
	if answer.GetAllocation() != nil {
		o.Records = []history.Record{RecordOf(answer.GetAllocation())}
	}
	c.endOp(o, err)
}

// listHeld records the list only if it fits on one page: each page has an index of its own.
func (c *caller) listHeld(ctx context.Context, tree string, f readMode) {
	s := c.randomServer()
	o := c.beginRead(history.ListHeld, s, f)
	o.Claims = []history.Claim{{Tree: tree}}
	var answer *quoratev1.ListAllocationsResponse
	err := c.withTimeout(ctx, func(ctx context.Context) (err error) {
		answer, err = s.allocations.ListAllocations(ctx, &quoratev1.ListAllocationsRequest{
			Tree: tree, PageSize: 1000,
			Read: f.protoOptions(),
		})
		return err
	})
	setReadInfo(o, answer.GetRead())
	for _, a := range answer.GetAllocations() {
		o.Records = append(o.Records, RecordOf(a))
	}
	if answer.GetNextPageToken() != "" {
		o.Kind, o.Records = history.ReadAllocation, nil // one page is not the whole list
	}
	c.endOp(o, err)
}

func (c *caller) listWaiting(ctx context.Context, tree string, f readMode) {
	s := c.randomServer()
	o := c.beginRead(history.ListWaiting, s, f)
	o.Claims = []history.Claim{{Tree: tree}}
	var answer *quoratev1.ListWaitingResponse
	err := c.withTimeout(ctx, func(ctx context.Context) (err error) {
		answer, err = s.allocations.ListWaiting(ctx, &quoratev1.ListWaitingRequest{
			Tree: tree, PageSize: 1000,
			Read: f.protoOptions(),
		})
		return err
	})
	setReadInfo(o, answer.GetRead())
	for _, w := range answer.GetRequests() {
		o.Records = append(o.Records, RecordOf(w.GetAllocation()))
	}
	c.endOp(o, err)
}

// startRead reads the trees of all workloads of the run, linearizably and stale.
func startRead(c *caller) func(context.Context) {
	var trees []string
	for _, name := range c.config.Names {
		if workloads()[name].trees == nil {
			continue
		}
		for _, t := range workloads()[name].trees() {
			trees = append(trees, t.name)
		}
	}
	return func(ctx context.Context) {
		if len(trees) == 0 {
			return
		}
		tree := trees[c.random.IntN(len(trees))]
		switch c.random.IntN(4) {
		case 0:
			c.listHeld(ctx, tree, c.randomReadMode())
		case 1:
			c.listWaiting(ctx, tree, c.randomReadMode())
		default:
			c.readUsage(ctx, tree, c.randomReadMode())
		}
	}
}

// readLimits reads the limits of the trees with a name prefix, all at one index.
func (c *caller) readLimits(ctx context.Context, prefix string, f readMode) history.Op {
	s := c.randomServer()
	o := c.beginRead(history.ReadLimits, s, f)
	var answer *adminv1.GetConfigurationResponse
	err := c.withTimeout(ctx, func(ctx context.Context) (err error) {
		answer, err = s.configuration.GetConfiguration(ctx, &adminv1.GetConfigurationRequest{Read: f.protoOptions()})
		return err
	})
	setReadInfo(o, answer.GetRead())
	o.Revision = answer.GetRevision()
	for _, t := range answer.GetTrees() {
		if strings.HasPrefix(t.GetName(), prefix) {
			o.Limits = append(o.Limits, LimitsOf(t)...)
		}
	}
	return c.endOp(o, err)
}

// LimitsOf returns the limits of a tree in the order of its nodes, by resource.
func LimitsOf(t *quoratev1.Tree) []history.Limit {
	var all []history.Limit
	add := func(node string, limits map[string]*quoratev1.Limit) {
		for _, name := range slices.Sorted(maps.Keys(limits)) {
			all = append(all, history.Limit{
				Tree: t.GetName(), Node: node, Resource: name,
				Amount: fromLimit(limits[name]),
			})
		}
	}
	add("", t.GetLimits())
	for _, n := range t.GetNodes() {
		add(n.GetPath(), n.GetLimits())
	}
	return all
}
