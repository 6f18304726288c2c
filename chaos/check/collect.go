package check

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/chaos/history"
	"github.com/quorate/quorate/chaos/workload"
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
)

// collectInterval is the pause between two attempts to find all nodes at one index.
const collectInterval = 200 * time.Millisecond

// Collect reads the state of every server until all of them show their state at the same index, or until ctx ends. In
// the second case Finals.Missing says what was missing, which Judge reports as a cluster that did not heal. No client
// may write meanwhile; leases may still expire. The only error is a call without servers.
func Collect(ctx context.Context, servers []string, client connect.HTTPClient) (Finals, error) {
	if len(servers) == 0 {
		return Finals{}, errors.New("collect final states: there are no servers")
	}
	if client == nil {
		client = http.DefaultClient
	}
	for {
		f, err := collectOnce(ctx, servers, client)
		if err == nil {
			f.Digests, err = collectDigests(ctx, servers, client)
		}
		if err == nil {
			err = f.CheckLateness()
		}
		if err == nil {
			return f, nil
		}
		select {
		case <-ctx.Done():
			f.Missing = err.Error()
			return f, nil
		case <-time.After(collectInterval):
		}
		advanceTime(ctx, servers[0], client)
	}
}

// advanceTime makes a call that changes nothing: the states show the times of the last command, and without any for a
// while, civil time looks late.
func advanceTime(ctx context.Context, url string, client connect.HTTPClient) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, _ = quoratev1connect.NewAllocationServiceClient(client, url).Release(ctx,
		&quoratev1.ReleaseRequest{Id: "unknown-id-of-the-collector"}) // it is refused
}

// collectOnce reads the first server linearizably and the others once they have reached its index.
func collectOnce(ctx context.Context, servers []string, client connect.HTTPClient) (f Finals, err error) {
	index := uint64(0)
	for _, url := range servers {
		state, err := collectFrom(ctx, url, client, index)
		if err != nil {
			return f, fmt.Errorf("%s shows no state: %w", url, err)
		}
		if index > 0 && state.Index != index {
			return f, fmt.Errorf("%s is at index %d and %s at %d", servers[0], index, url, state.Index)
		}
		index = state.Index
		f.States = append(f.States, state)
	}
	return f, nil
}

type stateCollector struct {
	state         State
	minIndex      uint64
	allocations   quoratev1connect.AllocationServiceClient
	trees         quoratev1connect.TreeServiceClient
	cordons       adminv1connect.CordonServiceClient
	configuration adminv1connect.ConfigurationServiceClient
	items         quoratev1connect.ItemServiceClient
}

func collectFrom(ctx context.Context, url string, client connect.HTTPClient, least uint64) (State, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	c := &stateCollector{
		state: State{Server: url}, minIndex: least, allocations: quoratev1connect.NewAllocationServiceClient(client,
			url),
		trees:         quoratev1connect.NewTreeServiceClient(client, url),
		cordons:       adminv1connect.NewCordonServiceClient(client, url),
		configuration: adminv1connect.NewConfigurationServiceClient(client, url),
		items:         quoratev1connect.NewItemServiceClient(client, url),
	}
	for _, part := range []func(context.Context) error{
		c.readConfiguration, c.readHeld, c.readWaiting, c.readSchedule, c.readHolds,
	} {
		if err := part(ctx); err != nil {
			return State{}, err
		}
	}
	return c.state, nil
}

// readOptions asks for the node's own state once it has reached the index. The very first read is linearizable and
// sets the index.
func (c *stateCollector) readOptions() *quoratev1.ReadOptions {
	if c.minIndex == 0 && c.state.Index == 0 {
		return &quoratev1.ReadOptions{Consistency: quoratev1.Consistency_CONSISTENCY_LINEARIZABLE}
	}
	return &quoratev1.ReadOptions{
		Consistency: quoratev1.Consistency_CONSISTENCY_STALE,
		MinIndex:    max(c.minIndex, c.state.Index),
	}
}

var errMoved = errors.New("its state moved while it was read")

// checkIndex requires that all parts of the state are of the same index.
func (c *stateCollector) checkIndex(r *quoratev1.ReadInfo) error {
	if c.state.Index > 0 && r.GetIndex() != c.state.Index {
		return errMoved
	}
	c.state.Index, c.state.Ledger, c.state.Node = r.GetIndex(), r.GetLedgerTimeMs(), r.GetServedBy()
	return nil
}

func (c *stateCollector) readConfiguration(ctx context.Context) error {
	answer, err := c.configuration.GetConfiguration(ctx, &adminv1.GetConfigurationRequest{Read: c.readOptions()})
	if err != nil {
		return err
	}
	if err := c.checkIndex(answer.GetRead()); err != nil {
		return err
	}
	c.state.Revision = answer.GetRevision()
	for _, t := range answer.GetTrees() {
		c.state.Limits = append(c.state.Limits, workload.LimitsOf(t)...)
		if err := errors.Join(c.readUsage(ctx, t.GetName()), c.readItems(ctx, t.GetName())); err != nil {
			return err
		}
	}
	return nil
}

func (c *stateCollector) readUsage(ctx context.Context, tree string) error {
	for token := ""; ; {
		answer, err := c.trees.GetUsage(ctx, &quoratev1.GetUsageRequest{
			Tree: tree, Subtree: true, PageToken: token,
			Read: c.readOptions(),
		})
		if err != nil {
			return err
		}
		c.state.Usage = append(c.state.Usage, workload.UsageOf(tree, answer.GetNodes())...)
		if token = answer.GetNextPageToken(); token == "" {
			return c.checkIndex(answer.GetRead())
		}
	}
}

func (c *stateCollector) readItems(ctx context.Context, tree string) error {
	for token := ""; ; {
		answer, err := c.items.ListItems(ctx, &quoratev1.ListItemsRequest{
			Tree: tree, PageSize: 1000, PageToken: token,
			Read: c.readOptions(),
		})
		if err != nil {
			return err
		}
		for _, item := range answer.GetItems() {
			c.state.Items = append(c.state.Items, Item{
				Tree: tree, Name: item.GetName().GetResource() + "/" + item.GetName().GetName(),
				Holder: workload.NameOf(item.GetAllocation()), Fence: item.GetFence(),
			})
		}
		if token = answer.GetNextPageToken(); token == "" {
			return c.checkIndex(answer.GetRead())
		}
	}
}

func (c *stateCollector) readHeld(ctx context.Context) error {
	for token := ""; ; {
		answer, err := c.allocations.ListAllocations(ctx, &quoratev1.ListAllocationsRequest{
			PageSize:  1000,
			PageToken: token, Read: c.readOptions(),
		})
		if err != nil {
			return err
		}
		c.state.Held = append(c.state.Held, recordsOf(answer.GetAllocations())...)
		if err := c.checkIndex(answer.GetRead()); err != nil {
			return err
		}
		if token = answer.GetNextPageToken(); token == "" {
			return nil
		}
	}
}

func (c *stateCollector) readWaiting(ctx context.Context) error {
	for token := ""; ; {
		answer, err := c.allocations.ListWaiting(ctx, &quoratev1.ListWaitingRequest{
			PageSize: 1000, PageToken: token,
			Read: c.readOptions(),
		})
		if err != nil {
			return err
		}
		for _, w := range answer.GetRequests() {
			c.state.Waiting = append(c.state.Waiting, workload.RecordOf(w.GetAllocation()))
		}
		if err := c.checkIndex(answer.GetRead()); err != nil {
			return err
		}
		if token = answer.GetNextPageToken(); token == "" {
			return nil
		}
	}
}

func (c *stateCollector) readSchedule(ctx context.Context) error {
	answer, err := c.trees.ListScheduledLimits(ctx, &quoratev1.ListScheduledLimitsRequest{Read: c.readOptions()})
	if err != nil {
		return err
	}
	c.state.Scheduled, c.state.Civil = workload.ScheduledOf(answer)
	c.state.Wall = time.Now().UnixMilli()
	return c.checkIndex(answer.GetRead())
}

func (c *stateCollector) readHolds(ctx context.Context) error {
	answer, err := c.cordons.ListCordons(ctx, &adminv1.ListCordonsRequest{Read: c.readOptions()})
	if err != nil {
		return err
	}
	for _, h := range answer.GetCordons() {
		held := history.Limit{Tree: h.GetTree(), Node: h.GetNode(), Resource: history.OnHold}
		c.state.OnHold = append(c.state.OnHold, held)
	}
	return c.checkIndex(answer.GetRead())
}

func recordsOf(all []*quoratev1.Allocation) []history.Record {
	var seen []history.Record
	for _, a := range all {
		seen = append(seen, workload.RecordOf(a))
	}
	return seen
}
