package hostile

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
	"github.com/quorate/quorate/internal/verify"
)

type readKind struct {
	kind string
	read func(context.Context, serviceClients) error
}

type serviceClients struct {
	trees         quoratev1connect.TreeServiceClient
	configuration adminv1connect.ConfigurationServiceClient
	allocations   quoratev1connect.AllocationServiceClient
	events        quoratev1connect.EventServiceClient
}

// expensiveReads returns the cheapest read, the usage of one node, followed by kinds that cost more.
func expensiveReads(large *quoratev1.Tree) []readKind {
	ask := requestCores("would-it-fit", 1)
	plan := &quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{large}, DryRun: true}
	return []readKind{
		{"usage of a node", func(ctx context.Context, c serviceClients) error {
			_, err := c.trees.GetUsage(ctx, &quoratev1.GetUsageRequest{Tree: "t"})
			return err
		}},
		{"a plan of 16,000 nodes", func(ctx context.Context, c serviceClients) error {
			_, err := c.trees.ApplyTrees(ctx, plan)
			return err
		}},
		{"a plan of one limit among 16,000", func(ctx context.Context, c serviceClients) error {
			_, err := c.trees.SetLimits(ctx, &quoratev1.SetLimitsRequest{
				Tree: "large", Node: "g00", Limits: map[string]*quoratev1.Limit{"cores": limitOf(1)}, DryRun: true,
			})
			return err
		}},
		{"1,000 waiting requests", func(ctx context.Context, c serviceClients) error {
			_, err := c.allocations.ListWaiting(ctx, &quoratev1.ListWaitingRequest{PageSize: 1000})
			return err
		}},
		{"the configuration", func(ctx context.Context, c serviceClients) error {
			_, err := c.configuration.GetConfiguration(ctx, &adminv1.GetConfigurationRequest{})
			return err
		}},
		{"usage of 1,000 nodes", func(ctx context.Context, c serviceClients) error {
			_, err := c.trees.GetUsage(ctx, &quoratev1.GetUsageRequest{Tree: "large", Subtree: true, PageSize: 1000})
			return err
		}},
		{"1,000 events", func(ctx context.Context, c serviceClients) error {
			_, err := c.events.ListEvents(ctx, &quoratev1.ListEventsRequest{PageSize: 1000})
			return err
		}},
		{"an explanation", func(ctx context.Context, c serviceClients) error {
			_, err := c.allocations.Explain(ctx,
				&quoratev1.ExplainRequest{Question: &quoratev1.ExplainRequest_Request{Request: ask}})
			return err
		}},
	}
}

func limitOf(n int64) *quoratev1.Limit {
	return &quoratev1.Limit{Value: &quoratev1.Limit_Amount{Amount: n}}
}

// largeTree has 16 groups of 1,000 nodes.
func largeTree() *quoratev1.Tree {
	tree := &quoratev1.Tree{Name: "large", Resources: []*quoratev1.Resource{{Name: "cores"}}}
	for group := range 16 {
		path := fmt.Sprintf("g%02d", group)
		tree.Nodes = append(tree.Nodes, &quoratev1.Node{
			Path:   path,
			Limits: map[string]*quoratev1.Limit{"cores": limitOf(1 << 30)},
		})
		for i := range 999 {
			tree.Nodes = append(tree.Nodes, &quoratev1.Node{
				Path: fmt.Sprintf("%s/n%03d", path, i), Limits: map[string]*quoratev1.Limit{"cores": limitOf(1 << 20)},
			})
		}
	}
	return tree
}

func (c *cluster) queueUp(t *testing.T, n *node, count int) {
	t.Helper()
	full := &quoratev1.Tree{
		Name: "full", Resources: []*quoratev1.Resource{{Name: "cores"}},
		Limits: map[string]*quoratev1.Limit{"cores": limitOf(1)},
	}
	if _, err := c.treeClient(t, n).ApplyTrees(t.Context(),
		&quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{full}}); err != nil {
		t.Fatal(err)
	}
	batch := &quoratev1.BatchAllocateRequest{}
	for i := range count {
		batch.Requests = append(batch.Requests, &quoratev1.AllocateRequest{
			Id: fmt.Sprintf("waits-%d", i), Mode: quoratev1.Mode_MODE_WAIT, WaitMs: new(int64(3_600_000)), KeepMs: 3_600_000,
			Claims: []*quoratev1.Claim{{Tree: "full", Amounts: map[string]int64{"cores": 1}}},
		})
	}
	answer, err := c.allocationClient(t, n).BatchAllocate(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range answer.GetOutcomes()[1:] { // the first one is granted
		if !isWaiting(o) {
			t.Fatalf("it does not wait: %v", o)
		}
	}
}

// TestExpensiveReads: while 16 clients repeat an expensive read, writers get at least a third of what they get while
// as many clients repeat the cheapest read. Before the fix, plans left a fiftieth, and the configuration a tenth.
func TestExpensiveReads(t *testing.T) {
	verify.Only(t) // compares rates
	c := startCluster(t, clusterOptions{})
	c.applyTree(t, 100)
	leader, _ := c.findLeader(t)
	large := largeTree()
	if _, err := c.treeClient(t, leader).ApplyTrees(t.Context(),
		&quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{large}}); err != nil {
		t.Fatal(err)
	}
	c.queueUp(t, leader, 1000)
	alone := c.pairsPerSecond(t, leader, 4, time.Second)
	t.Logf("%-34s %6.0f pairs/s", "without reads", alone)
	kinds := expensiveReads(large)
	for _, r := range kinds[1:] {
		// The machine may be busy for a while: then both are measured again.
		for attempt := 1; ; attempt++ {
			usage := c.pairsDuringReads(t, leader, kinds[0])
			rate := c.pairsDuringReads(t, leader, r)
			if rate >= usage/3 {
				break
			}
			if attempt == 3 {
				t.Errorf("%s leaves %.0f pairs/s, reads of usage %.0f", r.kind, rate, usage)
				break
			}
		}
	}
}

// pairsDuringReads returns the pairs per second of writers while 16 clients repeat a read. A read may fail because
// the server is overloaded or the time is over.
func (c *cluster) pairsDuringReads(t *testing.T, n *node, r readKind) float64 {
	t.Helper()
	const span = 700 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	client := c.httpClient(t, "127.0.0.2")
	careless := connect.WithCodec(&carelessCodec{})
	greedy := serviceClients{
		quoratev1connect.NewTreeServiceClient(client, n.URL(), careless),
		adminv1connect.NewConfigurationServiceClient(client, n.URL(), careless),
		quoratev1connect.NewAllocationServiceClient(client, n.URL(), careless),
		quoratev1connect.NewEventServiceClient(client, n.URL(), careless),
	}
	var all sync.WaitGroup
	var count atomic.Int64
	var failure atomic.Pointer[error]
	for range 16 {
		all.Go(func() {
			for ctx.Err() == nil {
				err := r.read(ctx, greedy)
				switch {
				case err == nil:
					count.Add(1)
				case connect.CodeOf(err) == connect.CodeUnavailable: // overloaded
					time.Sleep(50 * time.Millisecond)
				case ctx.Err() == nil:
					failure.Store(&err)
					time.Sleep(50 * time.Millisecond)
				}
			}
		})
	}
	waitFor(t, r.kind+": nothing was read", func() bool { return count.Load() > 0 || failure.Load() != nil })
	before, begun := count.Load(), time.Now()
	pairs := c.pairsPerSecond(t, n, 4, span)
	reads := float64(count.Load()-before) / time.Since(begun).Seconds()
	t.Logf("%-34s %6.0f pairs/s, %6.1f reads/s", r.kind, pairs, reads)
	cancel()
	all.Wait()
	if err := failure.Load(); err != nil {
		t.Errorf("%s: %v", r.kind, *err)
	}
	return pairs
}

// carelessCodec is the codec of an attacker that encodes each request once and ignores answers. Encoding them again, or
// decoding, would take more CPU under the race detector than all servers do, and what it takes writers miss too.
type carelessCodec struct {
	encoded sync.Map // the bytes of each request
}

func (*carelessCodec) Name() string { return "proto" }

func (c *carelessCodec) Marshal(message any) ([]byte, error) {
	if known, ok := c.encoded.Load(message); ok {
		return bytes.Clone(known.([]byte)), nil // its caller uses it again for other messages
	}
	data, err := proto.Marshal(message.(proto.Message))
	if err == nil {
		c.encoded.Store(message, bytes.Clone(data))
	}
	return data, err
}

func (*carelessCodec) Unmarshal([]byte, any) error { return nil }

func isWaiting(o *quoratev1.AllocateOutcome) bool {
	return o.GetGranted().GetAllocation().GetState() == quoratev1.AllocationState_ALLOCATION_STATE_WAITING
}
