package workload

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/quorate/quorate/chaos/history"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// freshness is how fresh a read must be.
type freshness struct {
	stale bool
	least uint64
}

func (f freshness) options() *quoratev1.ReadOptions {
	r := &quoratev1.ReadOptions{MinIndex: f.least, Consistency: quoratev1.Consistency_CONSISTENCY_LINEARIZABLE}
	if f.stale {
		r.Consistency = quoratev1.Consistency_CONSISTENCY_STALE
	}
	return r
}

// anyFreshness is linearizable, stale, or stale but not behind what this client has seen.
func (c *caller) anyFreshness() freshness {
	switch c.random.IntN(4) {
	case 0:
		return freshness{stale: true}
	case 1:
		return freshness{stale: true, least: c.seen}
	}
	return freshness{}
}

// beginRead starts the record of a read.
func (c *caller) beginRead(kind history.Kind, s *server, f freshness) *history.Op {
	o := c.begin(kind, s)
	o.Stale, o.Least = f.stale, f.least
	return o
}

// taken fills in where in the log a read was answered.
func taken(o *history.Op, r *quoratev1.ReadInfo) {
	if r == nil {
		return
	}
	o.Index, o.Ledger, o.ServedBy, o.Age = r.GetIndex(), r.GetLedgerTimeMs(), r.GetServedBy(), r.GetAgeMs()
	o.Marked = r.GetConsistency() == quoratev1.Consistency_CONSISTENCY_STALE
}

// readUsage sees a whole tree at one index.
func (c *caller) readUsage(ctx context.Context, tree string, f freshness) {
	s := c.server()
	o := c.beginRead(history.ReadUsage, s, f)
	o.Claims = []history.Claim{{Tree: tree}}
	var answer *quoratev1.GetUsageResponse
	err := c.call(ctx, func(ctx context.Context) (err error) {
		answer, err = s.trees.GetUsage(ctx, &quoratev1.GetUsageRequest{Tree: tree, Subtree: true, Read: f.options()})
		return err
	})
	taken(o, answer.GetRead())
	o.Usage = UsageOf(tree, answer.GetNodes())
	c.end(o, err)
}

// UsageOf is what the counted resource of nodes stands at.
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

// look reads one allocation.
func (c *caller) look(ctx context.Context, id string, f freshness) {
	s := c.server()
	o := c.beginRead(history.ReadAllocation, s, f)
	o.ID = id
	var answer *quoratev1.GetAllocationResponse
	err := c.call(ctx, func(ctx context.Context) (err error) {
		answer, err = s.allocations.GetAllocation(ctx, &quoratev1.GetAllocationRequest{Id: id, Read: f.options()})
		return err
	})
	taken(o, answer.GetRead())
	if answer.GetAllocation() != nil {
		o.Records = []history.Record{RecordOf(answer.GetAllocation())}
	}
	c.end(o, err)
}

// listHeld sees what is held in a tree, if that fits on one page: pages are taken at an index each.
func (c *caller) listHeld(ctx context.Context, tree string, f freshness) {
	s := c.server()
	o := c.beginRead(history.ListHeld, s, f)
	o.Claims = []history.Claim{{Tree: tree}}
	var answer *quoratev1.ListAllocationsResponse
	err := c.call(ctx, func(ctx context.Context) (err error) {
		answer, err = s.allocations.ListAllocations(ctx, &quoratev1.ListAllocationsRequest{Tree: tree, PageSize: 1000, Read: f.options()})
		return err
	})
	taken(o, answer.GetRead())
	for _, a := range answer.GetAllocations() {
		o.Records = append(o.Records, RecordOf(a))
	}
	if answer.GetNextPageToken() != "" {
		o.Kind, o.Records = history.ReadAllocation, nil // a part says nothing of the whole
	}
	c.end(o, err)
}

// listWaiting sees the queue of a tree.
func (c *caller) listWaiting(ctx context.Context, tree string, f freshness) {
	s := c.server()
	o := c.beginRead(history.ListWaiting, s, f)
	o.Claims = []history.Claim{{Tree: tree}}
	var answer *quoratev1.ListWaitingResponse
	err := c.call(ctx, func(ctx context.Context) (err error) {
		answer, err = s.allocations.ListWaiting(ctx, &quoratev1.ListWaitingRequest{Tree: tree, PageSize: 1000, Read: f.options()})
		return err
	})
	taken(o, answer.GetRead())
	for _, w := range answer.GetRequests() {
		o.Records = append(o.Records, RecordOf(w.GetAllocation()))
	}
	c.end(o, err)
}

// startRead reads the trees of all workloads of the run, linearizably and stale.
func startRead(c *caller) func(context.Context) {
	var trees []string
	for _, name := range c.config.Names {
		if plays()[name].trees == nil {
			continue
		}
		for _, t := range plays()[name].trees() {
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
			c.listHeld(ctx, tree, c.anyFreshness())
		case 1:
			c.listWaiting(ctx, tree, c.anyFreshness())
		default:
			c.readUsage(ctx, tree, c.anyFreshness())
		}
	}
}

// readLimits sees the limits of the trees whose names begin so, all at one index.
func (c *caller) readLimits(ctx context.Context, prefix string, f freshness) history.Op {
	s := c.server()
	o := c.beginRead(history.ReadLimits, s, f)
	var answer *quoratev1.GetConfigurationResponse
	err := c.call(ctx, func(ctx context.Context) (err error) {
		answer, err = s.trees.GetConfiguration(ctx, &quoratev1.GetConfigurationRequest{Read: f.options()})
		return err
	})
	taken(o, answer.GetRead())
	o.Revision = answer.GetRevision()
	for _, t := range answer.GetTrees() {
		if strings.HasPrefix(t.GetName(), prefix) {
			o.Limits = append(o.Limits, LimitsOf(t)...)
		}
	}
	return c.end(o, err)
}

// LimitsOf are the limits of a tree, by node as it lists them and resource.
func LimitsOf(t *quoratev1.Tree) []history.Limit {
	var all []history.Limit
	add := func(node string, limits map[string]*quoratev1.Limit) {
		for _, name := range slices.Sorted(maps.Keys(limits)) {
			all = append(all, history.Limit{Tree: t.GetName(), Node: node, Resource: name, Amount: fromLimit(limits[name])})
		}
	}
	add("", t.GetLimits())
	for _, n := range t.GetNodes() {
		add(n.GetPath(), n.GetLimits())
	}
	return all
}
