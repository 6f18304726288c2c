package activity

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// fakeNode is a node without a log: a real ledger, and a feed of everything that it did.
type fakeNode struct {
	mu      sync.Mutex
	ledger  *ledger.Ledger
	at      quota.Instant
	index   uint64
	news    []cluster.WatchEvent
	changed chan struct{}
	// forgotten is the last position that the feed has dropped.
	forgotten cluster.Position
	// reads is the number of reads of the ledger; failing is the error that they return.
	reads   int
	failing error
}

func newFakeNode() *fakeNode {
	return &fakeNode{ledger: ledger.New(quota.DefaultBounds()), at: 1000, changed: make(chan struct{})}
}

func (n *fakeNode) ReadFeed(after cluster.Position, most int) (cluster.FeedPage, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if after.Compare(n.forgotten) < 0 {
		return cluster.FeedPage{}, &cluster.Error{
			Reason: cluster.Forgotten, NotApplied: true,
			Text: "it is not remembered",
		}
	}
	from := slices.IndexFunc(n.news, func(x cluster.WatchEvent) bool { return x.Compare(after) > 0 })
	if from < 0 {
		from = len(n.news)
	}
	to := min(len(n.news), from+most)
	b := cluster.FeedPage{
		Events:  slices.Clone(n.news[from:to]),
		Next:    cluster.PositionAfter(n.index),
		Behind:  len(n.news) - to,
		Changed: n.changed,
	}
	if b.Behind > 0 {
		b.Next = b.Events[len(b.Events)-1].Position
	}
	return b, nil
}

func (n *fakeNode) Read(_ context.Context, o cluster.ReadOptions, fn func(ledger.Reader)) (cluster.ReadInfo, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.failing != nil {
		return cluster.ReadInfo{}, n.failing
	}
	n.reads++
	fn(n.ledger.Reader())
	return cluster.ReadInfo{Index: n.index, Now: n.at, Stale: o.Stale}, nil
}

func (n *fakeNode) do(t testing.TB, commands ...quota.Command) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.index++
	number := uint32(0)
	for _, c := range commands {
		out := n.ledger.Apply(quota.Stamp{At: n.at}, c)
		if out.Refused != nil {
			t.Fatal(out.Refused)
		}
		for _, fact := range n.ledger.TakeFacts() {
			number++
			n.news = append(
				n.news,
				cluster.WatchEvent{Position: cluster.Position{Index: n.index, Number: number}, Fact: fact, At: out.Now},
			)
		}
	}
	close(n.changed)
	n.changed = make(chan struct{})
}

// forget empties the feed, as a restored snapshot does.
func (n *fakeNode) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.news, n.forgotten = nil, cluster.PositionAfter(n.index)
}

func (n *fakeNode) pass(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.at += quota.Instant(d.Milliseconds())
}

type clock struct {
	mu sync.Mutex
	at time.Time
}

var morning = time.Date(2026, 11, 20, 8, 2, 0, 0, time.UTC)

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// scene is a recorder with its node and clock, in which tree t has 2 cores, all of which the node a/b may hold.
type scene struct {
	*Recorder
	*fakeNode

	wall     *clock
	registry *prometheus.Registry
}

func newScene(t testing.TB, bounds Bounds) *scene {
	t.Helper()
	s := &scene{fakeNode: newFakeNode(), wall: &clock{at: morning}, registry: prometheus.NewRegistry()}
	r, err := New(
		Config{
			Node: s.fakeNode, Logger: hclog.NewNullLogger(), Registerer: s.registry, Now: s.wall.now,
			Bounds: bounds,
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	s.Recorder = r
	s.do(t, quota.ApplyTrees{Trees: []quota.TreeSpec{
		{
			Name:      "t",
			Resources: []quota.Resource{{Name: "cores", Unit: quota.Count}},
			Nodes: []quota.NodeSpec{
				{Limits: []quota.ResourceLimit{
					{Resource: "cores", Limit: quota.Limit{Kind: quota.Limited, Amount: 2}},
				}},
				{Path: "a"},
				{Path: "a/b"},
				{Path: "c"},
			},
		},
	}})
	if !r.beginAtLog(t.Context(), cluster.ReadOptions{}) {
		t.Fatal("it does not begin")
	}
	return s
}

// tick records the present state, as Run does periodically, and advances wall time and ledger time.
func (s *scene) tick(t testing.TB, d time.Duration) {
	t.Helper()
	if _, err := s.followEvents(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.refreshSample(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	s.wall.add(d)
	s.pass(d)
}

func want(id, node string) quota.Allocate {
	return quota.Allocate{
		ID:     id,
		Claims: []quota.Claim{{Tree: "t", Node: node, Amounts: quota.Vector{{Resource: "cores", Amount: 1}}}},
	}
}

func lease(id, node string, ttl quota.Span) quota.Allocate {
	a := want(id, node)
	a.TTL = ttl
	return a
}

func waiting(id, node string) quota.Allocate {
	a := want(id, node)
	a.Mode = quota.Wait
	return a
}

func (s *scene) steps(t testing.TB, key Key) ([]Step, error) {
	t.Helper()
	list, _, err := s.Series(t.Context(), Query{Keys: []Key{key}, LastSteps: Steps})
	switch {
	case err != nil:
		return nil, err
	case len(list[0]) == 0:
		return nil, NotRecorded(key)
	}
	return list[0], nil
}

func (s *scene) series(t testing.TB, key Key) string {
	t.Helper()
	steps, err := s.steps(t, key)
	if err != nil {
		return err.Error()
	}
	text := ""
	for _, step := range steps {
		text += fmt.Sprintf(
			"%s held %d waiting %d granted %d released %d lost %d longest %d",
			step.From.Format("15:04"),
			step.Held,
			step.Waiting,
			step.Granted,
			step.Released,
			step.Lost,
			step.LongestWait,
		)
		for _, c := range step.States {
			text += fmt.Sprintf(" %s=%d", c.Name, c.Count)
		}
		text += "\n"
	}
	return text
}
