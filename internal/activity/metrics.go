package activity

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// metrics count events by tree. There are no labels for nodes, users or allocations: callers can create any number of
// these, and a metrics page must not grow with them (docs/adr/0034).
type metrics struct {
	grants, ends      *prometheus.CounterVec
	leases, waits     *prometheus.HistogramVec
	revocations, gaps prometheus.Counter
	denials           *denials
	// seenTrees are the trees that something was counted for.
	seenTrees map[string]bool
}

// denials count the requests that this server denied. Unlike the other metrics they are not made from events: a denial
// is the answer to one caller and no change of the ledger.
type denials struct {
	mu       sync.Mutex // held while a series is made or removed
	requests *prometheus.CounterVec
	// counted has the trees with series, and whether something was counted for them while a sample is taken: the sample
	// may be older than the tree.
	counted map[string]bool
}

func newDenials() *denials {
	return &denials{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quorate_denials_total",
			Help: "Requests that this member denied, by the tree and the reason of the first violation.",
		}, []string{"tree", "reason"}),
		counted: map[string]bool{},
	}
}

func (d *denials) count(tree, reason string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.counted[tree] = true
	d.requests.WithLabelValues(tree, reason).Inc()
}

// beginSample is called before a sample is taken, forgetTrees with what it found.
func (d *denials) beginSample() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for tree := range d.counted {
		d.counted[tree] = false
	}
}

func (d *denials) forgetTrees(there func(tree string) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for tree, isRecent := range d.counted {
		if !isRecent && !there(tree) {
			d.requests.DeletePartialMatch(prometheus.Labels{"tree": tree})
			delete(d.counted, tree)
		}
	}
}

// spans are the upper bounds of histogram buckets in seconds: one second to a week.
var spans = []float64{
	1,
	5,
	15,
	30,
	60,
	120,
	300,
	600,
	1800,
	3600,
	2 * 3600,
	4 * 3600,
	8 * 3600,
	24 * 3600,
	3 * 24 * 3600,
	7 * 24 * 3600,
}

func newMetrics() *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: spans},
			[]string{"tree"})
	}
	return &metrics{
		grants: counter(
			"quorate_grants_total",
			"Allocations granted, by tree and by where from: at once on request, or later from the queue."+sharedHelp,
			"tree",
			"from",
		),
		ends: counter(
			"quorate_ends_total",
			"Allocations and waiting requests that ended, by tree and how."+sharedHelp,
			"tree",
			"outcome",
		),
		revocations: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quorate_revocations_total", Help: "Leases that were revoked for another allocation." + sharedHelp,
		}),
		leases: histogram(
			"quorate_lease_duration_seconds",
			"Time from the grant of a lease to its end, renewals included, by tree."+sharedHelp,
		),
		waits: histogram(
			"quorate_wait_duration_seconds",
			"Time in the queue of requests that were granted from it, by tree."+sharedHelp,
		),
		gaps: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quorate_activity_gaps_total",
			Help: "Times that events were not recorded, because this member got a snapshot instead or was too slow.",
		}),
		denials:   newDenials(),
		seenTrees: map[string]bool{},
	}
}

func (m *metrics) allCollectors() []prometheus.Collector {
	return []prometheus.Collector{
		m.grants, m.ends, m.revocations, m.leases, m.waits, m.gaps, m.denials.requests,
	}
}

// observeSpans observes what an event says about durations, once for each tree of the allocation, and counts
// revocations.
func (m *metrics) observeSpans(n cluster.WatchEvent, trees []string) {
	switch {
	case n.Kind == ledger.FactRevoked:
		m.revocations.Inc()
	case n.Kind == ledger.FactGranted && n.Since != 0:
		for _, tree := range trees {
			m.waits.WithLabelValues(tree).Observe(toSeconds(n.At - n.Since))
		}
	case n.Kind == ledger.FactEnded && n.Allocation.IsLease():
		a := n.Allocation.InfoWithClaims(nil)
		if a.Fence == 0 || a.ReservedUntil != 0 {
			return
		}
		for _, tree := range trees {
			m.leases.WithLabelValues(tree).Observe(toSeconds(a.EndedAt - a.GrantedAt))
		}
	}
}

func (m *metrics) observeTally(t *tally) {
	for _, tree := range t.trees {
		m.seenTrees[tree] = true
		addCount(m.grants, t.atOnce, tree, "request")
		addCount(m.grants, t.queued, tree, "queue")
		for state, n := range t.ended {
			addCount(m.ends, n, tree, endWords[quota.State(state)])
		}
	}
}

func addCount(c *prometheus.CounterVec, n int, labels ...string) {
	if n > 0 {
		c.WithLabelValues(labels...).Add(float64(n))
	}
}

// endWords are the label values of final states.
var endWords = map[quota.State]string{
	quota.Released: "released", quota.Expired: "expired", quota.WasPreempted: "preempted", quota.Cancelled: "cancelled",
	quota.TimedOut: "timed_out", quota.Abandoned: "abandoned",
}

func toSeconds(ms quota.Instant) float64 { return float64(ms) / 1000 }

func (m *metrics) forgetTrees(there func(tree string) bool) {
	m.denials.forgetTrees(there)
	for tree := range m.seenTrees {
		if there(tree) {
			continue
		}
		for _, vector := range []interface {
			DeletePartialMatch(labels prometheus.Labels) int
		}{m.grants, m.ends, m.leases, m.waits} {
			vector.DeletePartialMatch(prometheus.Labels{"tree": tree})
		}
		delete(m.seenTrees, tree)
	}
}
