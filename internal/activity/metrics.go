package activity

import (
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
	// seenTrees are the trees that something was counted for.
	seenTrees map[string]bool
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
			"Allocations granted, by tree and by where from: at once on request, or later from the queue.",
			"tree",
			"from",
		),
		ends: counter(
			"quorate_ends_total",
			"Allocations and waiting requests that ended, by tree and how.",
			"tree",
			"kind",
		),
		revocations: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quorate_revocations_total", Help: "Leases that were revoked for another allocation.",
		}),
		leases: histogram(
			"quorate_lease_duration_seconds",
			"Time from the grant of a lease to its end, renewals included, by tree.",
		),
		waits: histogram(
			"quorate_wait_duration_seconds",
			"Time in the queue of requests that were granted from it, by tree.",
		),
		gaps: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quorate_activity_gaps_total",
			Help: "Times that events were not recorded, because this node got a snapshot instead or was too slow.",
		}),
		seenTrees: map[string]bool{},
	}
}

func (m *metrics) allCollectors() []prometheus.Collector {
	return []prometheus.Collector{m.grants, m.ends, m.revocations, m.leases, m.waits, m.gaps}
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

// observeTally counts events once for each tree of the allocations.
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

// addCount adds to a counter, which does not exist before anything was counted.
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

// forgetTrees removes the counters of deleted trees.
func (m *metrics) forgetTrees(there func(tree string) bool) {
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
