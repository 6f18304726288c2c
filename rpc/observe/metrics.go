package observe

import (
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics count calls.
type Metrics struct {
	calls    *prometheus.CounterVec
	duration *prometheus.HistogramVec
	open     *prometheus.GaugeVec
	Relayed  prometheus.Counter
	// Streamed counts the relayed calls that went over a stream.
	Streamed prometheus.Counter
	Unsent   *prometheus.CounterVec
	// RefusedHeaders counts requests of clients with headers that only nodes may set.
	RefusedHeaders prometheus.Counter
	// procedures holds a *procedureMetrics for each procedure that was called.
	procedures sync.Map
}

// procedureMetrics are those of one procedure. They are looked up once and not for each call.
type procedureMetrics struct {
	open     prometheus.Gauge
	duration prometheus.Observer
	// answered counts the code "ok" from the first such answer on.
	answered func() prometheus.Counter
	// failed counts all other codes.
	failed func(code string)
}

func (m *Metrics) ofProcedure(procedure string) *procedureMetrics {
	if stored, found := m.procedures.Load(procedure); found {
		known, _ := stored.(*procedureMetrics)
		return known
	}
	added := &procedureMetrics{
		open: m.open.WithLabelValues(procedure), duration: m.duration.WithLabelValues(procedure),
		answered: sync.OnceValue(func() prometheus.Counter { return m.calls.WithLabelValues(procedure, CodeOK) }),
		failed:   func(code string) { m.calls.WithLabelValues(procedure, code).Inc() },
	}
	m.procedures.Store(procedure, added) // one that was stored meanwhile counts in the same metrics
	return added
}

func (p *procedureMetrics) countAnswer(code string) {
	if code == CodeOK {
		p.answered().Inc()
		return
	}
	p.failed(code)
}

// CodeOK is the code of a call that succeeded.
const CodeOK = "ok"

// Why a relay failed: nothing was done, and it is tried again; or the outcome is unknown.
const (
	RelayNotSent = "not_sent"
	RelayLost    = "lost"
)

// NewMetrics makes and registers the metrics of calls.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quorate_rpc_calls_total", Help: "Calls by procedure and outcome: ok, or the code of the error.",
		}, []string{"procedure", "outcome"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "quorate_rpc_duration_seconds", Help: "Time from the request's headers to the end of the answer.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 15),
		}, []string{"procedure"}),
		Relayed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quorate_rpc_relayed_total", Help: "Calls that this member relayed to the leader.",
		}),
		Streamed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quorate_rpc_relayed_streamed_total",
			Help: "Relayed calls that shared a stream to the leader with others.",
		}),
		open: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "quorate_rpc_open", Help: "Calls and streams that go on now, by procedure.",
		}, []string{"procedure"}),
		Unsent: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quorate_rpc_relay_failures_total",
			Help: "Attempts to relay a call that failed: not_sent (nothing was done) or lost (the outcome is unknown).",
		}, []string{"outcome"}),
	}
	m.RefusedHeaders = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "quorate_rpc_refused_headers_total",
		Help: "Requests of clients that were refused because they carry a header that only members may set.",
	})
	for _, outcome := range []string{RelayNotSent, RelayLost} {
		m.Unsent.WithLabelValues(outcome)
	}
	for _, c := range []prometheus.Collector{
		m.calls, m.duration, m.Relayed, m.Streamed, m.open, m.Unsent, m.RefusedHeaders,
	} {
		if err := registerer.Register(c); err != nil {
			return nil, fmt.Errorf("registering the metrics of the API: %w", err)
		}
	}
	return m, nil
}
