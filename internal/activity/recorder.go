package activity

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// Node is the part of [cluster.Node] that a Recorder uses.
type Node interface {
	// ReadFeed returns events after a position of the log.
	ReadFeed(after cluster.Position, most int) (cluster.FeedPage, error)
	// Read calls a function with the state, as fresh as the options require.
	Read(ctx context.Context, o cluster.ReadOptions, fn func(ledger.Reader)) (cluster.ReadInfo, error)
}

// Config configures a Recorder. All fields but Now, Bounds and ShownNodes are required.
type Config struct {
	Node       Node
	Logger     hclog.Logger
	Registerer prometheus.Registerer
	// Now returns the time; time.Now if nil.
	Now func() time.Time
	// Bounds are DefaultBounds if zero.
	Bounds Bounds
	// ShownNodes choose the nodes whose usage the metrics page shows, at most MostPatterns.
	ShownNodes []NodePattern
}

// Recorder records the activity of a node. It is safe for concurrent use.
type Recorder struct {
	node    Node
	log     hclog.Logger
	now     func() time.Time
	bounds  Bounds
	metrics *metrics

	sampleLock sync.Mutex // held while a sample is taken; it protects shown
	shown      shownNodes

	mu sync.Mutex // protects the fields below
	// begun is false until the node has caught up with its cluster, because events until then happened long ago.
	begun            bool
	position         cluster.Position
	nodes, resources *seriesCache
	samples          uint64
	sampledAt        time.Time
	totals           sampleTotals
}

// New returns a recorder and registers its metrics. Run must be called.
func New(c Config) (*Recorder, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Bounds == (Bounds{}) {
		c.Bounds = DefaultBounds()
	}
	r := &Recorder{
		node: c.Node, log: c.Logger, now: c.Now, bounds: c.Bounds, metrics: newMetrics(),
		nodes: newSeriesCache(c.Bounds.Nodes), resources: newSeriesCache(c.Bounds.Resources),
		shown: shownNodes{patterns: c.ShownNodes},
	}
	for _, collector := range append(r.metrics.allCollectors(), gauges{r}) {
		if err := c.Registerer.Register(collector); err != nil {
			return nil, fmt.Errorf("registering the metrics of the activity: %w", err)
		}
	}
	return r, nil
}

// Run records events and samples until ctx ends.
func (r *Recorder) Run(ctx context.Context) {
	for ctx.Err() == nil && !r.beginAtLog(ctx, cluster.ReadOptions{}) {
		sleepContext(ctx, retryAfter)
	}
	for ctx.Err() == nil {
		changed, err := r.followEvents(ctx)
		if err == nil {
			err = r.refreshSample(ctx, sampleEvery)
		}
		if err != nil {
			sleepContext(ctx, retryAfter)
			continue
		}
		waitForChange(ctx, changed, sampleEvery)
		sleepContext(ctx, batchPause)
	}
}

// beginAtLog begins at the end of the log; false if the node cannot be read.
func (r *Recorder) beginAtLog(ctx context.Context, o cluster.ReadOptions) bool {
	info, err := r.node.Read(ctx, o, func(ledger.Reader) {})
	if err != nil {
		r.log.Debug("activity cannot be recorded yet", "error", err)
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun, r.position = true, cluster.PositionAfter(info.Index)
	return true
}

// followEvents records all events up to now; changed is closed when there are more. If the feed no longer has the next
// event, because the node got a snapshot instead or the recorder was too slow, it continues from now.
func (r *Recorder) followEvents(ctx context.Context) (changed <-chan struct{}, err error) {
	changed, err = r.readEvents()
	if cluster.ReasonOf(err) != cluster.Forgotten {
		return changed, err
	}
	r.metrics.gaps.Inc()
	r.log.Warn("some events are not recorded: the feed no longer has them", "error", err)
	r.beginAtLog(ctx, cluster.ReadOptions{Stale: true})
	return r.readEvents()
}

func (r *Recorder) readEvents() (changed <-chan struct{}, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		b, err := r.node.ReadFeed(r.position, eventsAtOnce)
		if err != nil {
			return nil, err
		}
		r.recordEvents(b.Events, stepAt(r.now()))
		if r.position = b.Next; b.Behind == 0 {
			return b.Changed, nil
		}
	}
}

// Query names series, and how much of them.
type Query struct {
	Keys []Key
	// LastSteps is the most steps of each series, from 1 to Steps.
	LastSteps int
	// MinIndex is a log index that must be applied here before.
	MinIndex uint64
}

// Series returns the steps of nodes and resources up to now, the oldest first: a list for each key, which is empty if
// nothing has happened there since this server started, or if the series was dropped for more active ones. All are of
// one moment. It waits until the index of the query is applied. The errors are the node's.
func (r *Recorder) Series(ctx context.Context, q Query) ([][]Step, cluster.ReadInfo, error) {
	info, err := r.node.Read(ctx, cluster.ReadOptions{Stale: true, MinIndex: q.MinIndex}, func(ledger.Reader) {})
	if err != nil {
		return nil, info, err
	}
	if err := r.catchUp(ctx); err != nil {
		return nil, info, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([][]Step, len(q.Keys))
	for i, key := range q.Keys {
		if s := r.seriesFor(key).findSeries(key); s != nil {
			list[i] = s.listSteps(stepAt(r.now()), q.LastSteps)
		}
	}
	return list, info, nil
}

// catchUp takes a sample if the last one is too old.
func (r *Recorder) catchUp(ctx context.Context) error {
	if !r.hasBegun() {
		return &cluster.Error{
			Reason:     cluster.NoLeader,
			NotApplied: true,
			Text: "this server has not found a leader since its start, so it has " +
				"recorded nothing; try again, or ask another one",
		}
	}
	if _, err := r.followEvents(ctx); err != nil {
		return err
	}
	return r.refreshSample(ctx, freshFor)
}

func (r *Recorder) hasBegun() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.begun
}

func (r *Recorder) seriesFor(key Key) *seriesCache {
	if key.Resource != "" {
		return r.resources
	}
	return r.nodes
}

// CountDenial counts a request that this server denied, at most once for each request.
func (r *Recorder) CountDenial(tree, reason string) { r.metrics.denials.count(tree, reason) }

// NotRecorded is the refusal of a key without steps.
func NotRecorded(key Key) *quota.Error {
	place, field := quota.Place(key.Tree, key.Node), "node"
	if key.Resource != "" {
		place, field = fmt.Sprintf("resource %s of %s", key.Resource, key.Tree), "resource"
	}
	return &quota.Error{Kind: quota.NotFound, Field: field, Text: fmt.Sprintf(
		"this server has seen nothing happen to %s since its start, or much more elsewhere; check the name, or "+
			"ask another server",
		place,
	)}
}

func sleepContext(ctx context.Context, d time.Duration) { waitForChange(ctx, nil, d) }

func waitForChange(ctx context.Context, changed <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-changed:
	case <-timer.C:
	}
}
