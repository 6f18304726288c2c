package boskos

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// metrics are Boskos's, under its names.
type metrics struct {
	layout *layouts
	items  Items
	notice func(error)

	resources              *prometheus.Desc
	waited, duration, size *prometheus.HistogramVec
	agents                 agents
}

// knownStates are always there, also with nothing in them; all others are counted together.
var knownStates = []string{"busy", "cleaning", "dirty", "free", "leased", "toBeDeleted", "tombstone"}

const (
	otherStates = "other"
	// collectTimeout bounds how long a page of metrics waits for the counts.
	collectTimeout = 5 * time.Second
)

func newMetrics(l *layouts, items Items, notice func(error)) *metrics {
	byCall := []string{"path", "method", "status", "user_agent"}
	return &metrics{
		layout: l, items: items, notice: notice, agents: agents{known: map[string]bool{}},
		resources: prometheus.NewDesc("boskos_resources",
			"Number of resources recorded in Boskos by resource type and state.", []string{"type", "state"}, nil),
		waited: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "boskos_acquire_duration_seconds",
			Help:    "Histogram of waiting in seconds for a Boskos' client to acquire a resource.",
			Buckets: []float64{1, 10, 100, 500, 1000, 1500, 2000},
		}, []string{"type", "state", "dest", "has_request_id"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "boskos_http_request_duration_seconds", Help: "http request duration in seconds",
			Buckets: powersOfTwo(0.005, 1200),
		}, byCall),
		size: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "boskos_http_response_size_bytes", Help: "http response size in bytes",
			Buckets: powersOfTwo(128, 65536),
		}, byCall),
	}
}

// powersOfTwo are those between two bounds, and the bounds.
func powersOfTwo(from, to float64) []float64 {
	buckets := []float64{from}
	power := 1.0
	for power > from {
		power /= 2
	}
	for ; power < to; power *= 2 {
		if power > from {
			buckets = append(buckets, power)
		}
	}
	return append(buckets, to)
}

func (m *metrics) describe(to chan<- *prometheus.Desc) {
	to <- m.resources
	for _, histogram := range []*prometheus.HistogramVec{m.waited, m.duration, m.size} {
		histogram.Describe(to)
	}
}

func (m *metrics) collect(to chan<- prometheus.Metric) {
	for _, histogram := range []*prometheus.HistogramVec{m.waited, m.duration, m.size} {
		histogram.Collect(to)
	}
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	if err := m.collectResources(ctx, to); err != nil {
		m.notice(err)
	}
}

// collectResources counts as this node knows it, so that a page of metrics does not wait for a leader.
func (m *metrics) collectResources(ctx context.Context, to chan<- prometheus.Metric) error {
	l, err := m.layout.recent(ctx)
	if err != nil {
		return err
	}
	for _, tree := range l.trees {
		found, err := m.items.CountItems(ctx, &quoratev1.CountItemsRequest{
			Tree: tree, Read: &quoratev1.ReadOptions{Consistency: quoratev1.Consistency_CONSISTENCY_STALE},
		})
		if err != nil {
			return err
		}
		for _, count := range found.GetCounts() {
			for state, n := range byKnownState(count.GetStates()) {
				to <- prometheus.MustNewConstMetric(m.resources, prometheus.GaugeValue, float64(n), count.GetResource(), state)
			}
		}
	}
	return nil
}

func byKnownState(states map[string]int64) map[string]int64 {
	counts := map[string]int64{}
	for _, state := range knownStates {
		counts[state] = states[state]
	}
	for state, n := range states {
		if !slices.Contains(knownStates, state) {
			counts[otherStates] += n
		}
	}
	return counts
}

// acquired counts a grant to a request that came at a time.
func (m *metrics) acquired(a acquisition, since time.Time) {
	m.waited.WithLabelValues(a.rtype, a.state, a.dest, strconv.FormatBool(a.requestID != "")).
		Observe(max(time.Since(since), 0).Seconds())
}

// observe measures the calls of a path.
func (m *metrics) observe(path string, next http.Handler) http.Handler {
	if path == "/" {
		path = unmatched
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began, written := time.Now(), &measured{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(written, r)
		labels := []string{path, methodOf(r), strconv.Itoa(written.status), m.agents.name(r.UserAgent())}
		m.duration.WithLabelValues(labels...).Observe(time.Since(began).Seconds())
		m.size.WithLabelValues(labels...).Observe(float64(written.size))
	})
}

// methodOf keeps words that are no methods out of the metrics.
func methodOf(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return r.Method
	default:
		return "other"
	}
}

// measured notes what a handler writes.
type measured struct {
	http.ResponseWriter

	status, size int
}

func (w *measured) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *measured) Write(data []byte) (int, error) {
	n, err := w.ResponseWriter.Write(data)
	w.size += n
	return n, err
}

// mostAgents bounds how many user agents are told apart: each costs histograms.
const mostAgents = 50

// agents are the user agents that are told apart: the first that came.
type agents struct {
	mu    sync.Mutex
	known map[string]bool
}

func (a *agents) name(agent string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.known[agent] && len(a.known) >= mostAgents {
		return "other"
	}
	a.known[agent] = true
	return agent
}
