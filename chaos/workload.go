package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// The contended tree: every worker has a leaf of its own, whose usage only it changes, and all share the root.
const (
	treeName  = "chaos"
	resource  = "units"
	LeafLimit = 20
	// RootLimit is what all workers share; low enough that they get in each other's way.
	RootLimit = 60
)

func leaf(worker int) string { return fmt.Sprintf("w%d", worker) }

// SetUp creates the contended tree.
func SetUp(ctx context.Context, c *client.Client, workers int) error {
	tree := &quoratev1.Tree{
		Name: treeName, Resources: []*quoratev1.Resource{{Name: resource, Unit: quoratev1.Unit_UNIT_COUNT}}, Limits: limit(RootLimit),
	}
	for i := range workers {
		tree.Nodes = append(tree.Nodes, &quoratev1.Node{Path: leaf(i), Limits: limit(LeafLimit)})
	}
	_, err := c.Trees.ApplyTrees(ctx, &quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{tree}, Actor: "chaos", Reason: "workload"})
	return err
}

func limit(amount int64) map[string]*quoratev1.Limit {
	return map[string]*quoratev1.Limit{resource: {Value: &quoratev1.Limit_Amount{Amount: amount}}}
}

// Run lets workers allocate, release, repeat and read until ctx ends, and answers what they saw.
func Run(ctx context.Context, urls []string, workers int, seed uint64) (*History, error) {
	history := &History{}
	var group sync.WaitGroup
	for i := range workers {
		// Each worker prefers another server.
		servers := append(append([]string(nil), urls[i%len(urls):]...), urls[:i%len(urls)]...)
		c, err := client.New(servers)
		if err != nil {
			return nil, err
		}
		w := &worker{
			number: i, client: c, history: history,
			random: rand.New(rand.NewPCG(seed, uint64(i))),
			held:   map[string]Operation{},
		}
		group.Go(func() { w.run(ctx) })
	}
	group.Wait()
	return history, nil
}

// worker is one sequential caller.
type worker struct {
	number  int
	client  *client.Client
	history *History
	random  *rand.Rand
	serial  int
	held    map[string]Operation
	ids     []string // keys of held in the order of grant
	// seen is the highest log index of any answer so far.
	seen uint64
	// unsure is set once an operation ended without a verdict: from then on the worker does not know what it holds.
	unsure bool
}

func (w *worker) run(ctx context.Context) {
	for ctx.Err() == nil && !w.unsure {
		switch dice := w.random.IntN(10); {
		case dice < 4 || len(w.ids) == 0:
			w.allocate(ctx, fmt.Sprintf("w%d-%d", w.number, w.nextSerial()), 1+int64(w.random.IntN(8)))
		case dice < 7:
			w.release(ctx, w.ids[w.random.IntN(len(w.ids))])
		case dice < 8: // a late duplicate of an acknowledged request
			id := w.ids[w.random.IntN(len(w.ids))]
			w.allocate(ctx, id, w.held[id].Amount)
		default:
			w.readOwn(ctx)
		}
	}
}

func (w *worker) nextSerial() int {
	w.serial++
	return w.serial
}

func (w *worker) allocate(ctx context.Context, id string, amount int64) {
	o := Operation{Worker: w.number, Kind: Allocate, ID: id, Amount: amount, After: w.seen, Called: time.Now()}
	answer, err := w.client.Allocations.Allocate(ctx, &quoratev1.AllocateRequest{
		Id: id, Claims: []*quoratev1.Claim{{Tree: treeName, Node: leaf(w.number), Amounts: map[string]int64{resource: amount}}},
	})
	o.Returned = time.Now()
	switch {
	case err == nil:
		o.Verdict, o.Fence, o.Index, o.Repeated = Granted, answer.GetFence(), answer.GetIndex(), answer.GetRepeated()
		if _, had := w.held[id]; !had {
			w.ids = append(w.ids, id)
			w.held[id] = o
		}
	case connect.CodeOf(err) == connect.CodeResourceExhausted:
		o.Verdict = Denied
	default:
		w.unsure = true
	}
	w.note(o)
}

func (w *worker) release(ctx context.Context, id string) {
	o := Operation{Worker: w.number, Kind: Release, ID: id, Amount: w.held[id].Amount, After: w.seen, Called: time.Now()}
	answer, err := w.client.Allocations.Release(ctx, &quoratev1.ReleaseRequest{Id: id})
	o.Returned = time.Now()
	if err != nil {
		w.unsure = true
	} else {
		o.Verdict, o.Index, o.Repeated = Released, answer.GetIndex(), answer.GetRepeated()
		w.forget(id)
	}
	w.note(o)
}

// note records an operation, and how far in the log the worker has seen.
func (w *worker) note(o Operation) {
	w.seen = max(w.seen, o.Index)
	w.history.add(o)
}

func (w *worker) forget(id string) {
	delete(w.held, id)
	for i, have := range w.ids {
		if have == id {
			w.ids = append(w.ids[:i], w.ids[i+1:]...)
			return
		}
	}
}

// readOwn reads the worker's own leaf linearizably: nobody else changes it, so exactly one answer is right.
func (w *worker) readOwn(ctx context.Context) {
	o := Operation{Worker: w.number, Kind: ReadOwn, Called: time.Now()}
	for _, held := range w.held {
		o.Expected += held.Amount
	}
	answer, err := w.client.Trees.GetUsage(ctx, &quoratev1.GetUsageRequest{Tree: treeName, Node: leaf(w.number)})
	o.Returned = time.Now()
	if err == nil {
		o.Verdict, o.Index = Observed, answer.GetRead().GetIndex()
		o.Seen = answer.GetNodes()[0].GetResources()[0].GetSubtree()
	}
	w.note(o)
}
