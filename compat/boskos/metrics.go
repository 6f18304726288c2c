package boskos

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

type metrics struct {
	layout *layoutCache
	items  Items
	notice func(error)

	resources              *prometheus.Desc
	waited, duration, size *prometheus.HistogramVec
	grants, calls          *labelSets
}

// knownStates are always there, also with nothing in them; all others are counted together.
var knownStates = []string{"busy", "cleaning", "dirty", "free", "leased", "toBeDeleted", "tombstone"}

const (
	// otherLabel stands for all that is not told apart.
	otherLabel = "other"
	// collectTimeout bounds how long a page of metrics waits for the counts.
	collectTimeout = 5 * time.Second
)

func newMetrics(l *layoutCache, items Items, notice func(error)) *metrics {
	byCall := []string{"path", "method", "status", "user_agent"}
	return &metrics{
		layout: l, items: items, notice: notice, grants: newLabelSets(mostGrantSeries),
		calls: newLabelSets(mostCallSeries),
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

// powersOfTwo includes both bounds.
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

func (m *metrics) describeAll(to chan<- *prometheus.Desc) {
	to <- m.resources
	for _, histogram := range []*prometheus.HistogramVec{m.waited, m.duration, m.size} {
		histogram.Describe(to)
	}
}

func (m *metrics) collectAll(to chan<- prometheus.Metric) {
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
	l, err := m.layout.recentLayout(ctx)
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
				to <- prometheus.MustNewConstMetric(m.resources, prometheus.GaugeValue, float64(n),
					count.GetResource(), state)
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
			counts[otherLabel] += n
		}
	}
	return counts
}

// observeGrant counts a grant to a request that arrived at a time. States are chosen by callers: unknown ones are
// counted together.
func (m *metrics) observeGrant(a acquisition, since time.Time) {
	labels := [4]string{a.rtype, knownState(a.state), knownState(a.dest), strconv.FormatBool(a.requestID != "")}
	if !m.grants.admitLabels(labels) {
		labels = [4]string{otherLabel, otherLabel, otherLabel, labels[3]}
	}
	m.waited.WithLabelValues(labels[:]...).Observe(max(time.Since(since), 0).Seconds())
}

func knownState(state string) string {
	if slices.Contains(knownStates, state) {
		return state
	}
	return otherLabel
}

func (m *metrics) instrumentPath(path string, next http.Handler) http.Handler {
	if path == "/" {
		path = unmatched
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began, written := time.Now(), &measured{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(written, r)
		labels := [4]string{path, methodOf(r), strconv.Itoa(written.status), agentOf(r)}
		if !m.calls.admitLabels(labels) {
			labels[3] = otherLabel
		}
		m.duration.WithLabelValues(labels[:]...).Observe(time.Since(began).Seconds())
		m.size.WithLabelValues(labels[:]...).Observe(float64(written.size))
	})
}

// longestAgent is the length in bytes to which user agents are shortened.
const longestAgent = 64

// agentOf is the user agent of a request as a label can be: headers may hold any bytes, labels only UTF-8.
func agentOf(r *http.Request) string {
	agent := r.UserAgent()
	return strings.ToValidUTF8(agent[:min(len(agent), longestAgent)], "?")
}

// methodOf keeps methods that nothing is answered to, and words that are none, out of the metrics.
func methodOf(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost:
		return r.Method
	default:
		return otherLabel
	}
}

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

// Each combination of labels costs a histogram for as long as the process runs. The first ones are told apart, so
// many of calls and so many of grants; the rest is counted together.
const (
	mostCallSeries  = 100
	mostGrantSeries = 1000
)

type labelSets struct {
	most  int
	mu    sync.Mutex
	known map[[4]string]struct{}
}

func newLabelSets(most int) *labelSets {
	return &labelSets{most: most, known: map[[4]string]struct{}{}}
}

// admitLabels reports whether a combination of labels gets its own histogram.
func (l *labelSets) admitLabels(labels [4]string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, found := l.known[labels]; found {
		return true
	}
	if len(l.known) >= l.most {
		return false
	}
	l.known[labels] = struct{}{}
	return true
}
