package host

import (
	"fmt"
	"time"

	gometrics "github.com/armon/go-metrics"
	gometricsprometheus "github.com/armon/go-metrics/prometheus"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/cluster"
)

type observer struct {
	entries, snapshots, restores, rounds  *prometheus.CounterVec
	reads, leaderships, applied           prometheus.Counter
	queued, commit, apply, commands, size prometheus.Histogram
	freeze, write, restore                prometheus.Histogram
	round                                 *prometheus.HistogramVec
}

var _ cluster.Observer = (*observer)(nil)

// Values of the label "outcome".
const (
	outcomeOK     = "ok"
	outcomeFailed = "failed"
)

func outcomeLabel(err error) string {
	if err != nil {
		return outcomeFailed
	}
	return outcomeOK
}

var (
	// latencyBuckets are the bucket bounds, in seconds, of operations on disk or network: 0.1 ms to 13 s.
	latencyBuckets = prometheus.ExponentialBuckets(0.0001, 2, 18)
	// durationBuckets are those of operations whose duration grows with the ledger: 1 ms to 4.4 minutes.
	durationBuckets = prometheus.ExponentialBuckets(0.001, 4, 10)
	// commandBuckets are those of commands per entry, byteBuckets those of bytes per entry.
	commandBuckets = prometheus.ExponentialBuckets(1, 2, 14)
	byteBuckets    = prometheus.ExponentialBuckets(64, 4, 9)
)

// NewObserver returns an observer for cluster.Config that registers its metrics with to. Create one per node and
// registerer.
func NewObserver(to prometheus.Registerer) (cluster.Observer, error) {
	o := &observer{
		entries: newCounterVec("quorate_entries_total",
			"Log entries that this member proposed as the leader, by outcome.",
			"outcome"),
		queued: newHistogram("quorate_entry_queue_seconds", "Time that the first commands of an entry waited for it.",
			latencyBuckets),
		commit: newHistogram("quorate_entry_commit_seconds", "Time from handing an entry to raft until a majority had "+
			"it.", latencyBuckets),
		commands: newHistogram("quorate_entry_commands", "Commands that share an entry.", commandBuckets),
		size:     newHistogram("quorate_entry_bytes", "Bytes of an entry.", byteBuckets),
		applied: newCounter("quorate_applied_commands_total",
			"Commands of the log that went into this member's ledger."),
		apply: newHistogram("quorate_apply_seconds", "Time to apply committed entries that came together.",
			latencyBuckets),
		snapshots: newCounterVec("quorate_snapshots_total", "Snapshots that this member took, by outcome.", "outcome"),
		freeze: newHistogram("quorate_snapshot_freeze_seconds", "Time that writers waited for a snapshot.",
			latencyBuckets),
		write: newHistogram("quorate_snapshot_write_seconds", "Time to write a snapshot, beside the writers.",
			durationBuckets),
		restores: newCounterVec("quorate_restores_total",
			"Times that a snapshot replaced this member's ledger, by outcome.",
			"outcome"),
		restore: newHistogram("quorate_restore_seconds", "Time to read a snapshot into the ledger.", durationBuckets),
		reads: newCounter("quorate_linearizable_reads_total", "Linearizable reads that were confirmed, or failed "+
			"to be."),
		rounds: newCounterVec("quorate_read_rounds_total", "Questions on behalf of linearizable reads, by who asked "+
			"and outcome.", "asker", "outcome"),
		leaderships: newCounter("quorate_leaderships_total", "Leaderships that this member established."),
		round: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "quorate_read_round_seconds",
			Help:    "Time of a question on behalf of linearizable reads, by who asked.",
			Buckets: latencyBuckets,
		}, []string{"asker"}),
	}
	o.initLabels()
	for _, c := range []prometheus.Collector{
		o.entries, o.queued, o.commit, o.commands, o.size, o.applied, o.apply, o.snapshots, o.freeze,
		o.write, o.restores,
		o.restore,
		o.reads, o.rounds, o.leaderships, o.round,
	} {
		if err := to.Register(c); err != nil {
			return nil, fmt.Errorf("registering the metrics of the node: %w", err)
		}
	}
	return o, nil
}

func newCounter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func newCounterVec(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func newHistogram(name, help string, buckets []float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
}

// initLabels creates every time series at zero: a rate would miss the first failure of a series that it creates.
func (o *observer) initLabels() {
	for _, what := range []string{outcomeOK, outcomeFailed} {
		for _, vector := range []*prometheus.CounterVec{o.entries, o.snapshots, o.restores} {
			vector.WithLabelValues(what)
		}
		for _, role := range []string{asLeader, asFollower} {
			o.rounds.WithLabelValues(role, what)
			o.round.WithLabelValues(role)
		}
	}
}

const (
	asLeader   = "leader"
	asFollower = "follower"
)

// EntryEnded counts an entry of a leader.
func (o *observer) EntryEnded(r cluster.EntryReport) {
	o.entries.WithLabelValues(outcomeLabel(r.Err)).Inc()
	o.queued.Observe(r.Sent.Sub(r.Queued).Seconds())
	o.commands.Observe(float64(r.Commands))
	o.size.Observe(float64(r.Bytes))
	if r.Err == nil {
		o.commit.Observe(max(0, r.ApplyBegan.Sub(r.Sent).Seconds()))
	}
}

// Applied counts applied commands.
func (o *observer) Applied(_, commands int, took time.Duration) {
	o.applied.Add(float64(commands))
	o.apply.Observe(took.Seconds())
}

// SnapshotEnded counts a snapshot.
func (o *observer) SnapshotEnded(r cluster.SnapshotReport) {
	o.snapshots.WithLabelValues(outcomeLabel(r.Err)).Inc()
	o.freeze.Observe(r.FreezeTime.Seconds())
	if r.Err == nil {
		o.write.Observe(r.WriteTime.Seconds())
	}
}

// Restored counts a ledger that was replaced by a snapshot.
func (o *observer) Restored(took time.Duration, err error) {
	o.restores.WithLabelValues(outcomeLabel(err)).Inc()
	o.restore.Observe(took.Seconds())
}

// ReadBatchEnded counts a confirmation of a batch of reads.
func (o *observer) ReadBatchEnded(r cluster.ReadBatchReport) {
	role := asFollower
	if r.Leader {
		role = asLeader
	}
	o.reads.Add(float64(r.Reads))
	o.rounds.WithLabelValues(role, outcomeLabel(r.Err)).Inc()
	o.round.WithLabelValues(role).Observe(r.Took.Seconds())
}

// LeadershipEstablished counts a leadership.
func (o *observer) LeadershipEstablished() { o.leaderships.Inc() }

// InstallMetrics makes raft and memberlist report to a Prometheus registry, under names such as raft_apply and
// memberlist_gossip. These libraries support only one sink per process, which all nodes of the process share: call it
// once, before the first node is opened.
func InstallMetrics(registry prometheus.Registerer) error {
	sink, err := gometricsprometheus.NewPrometheusSinkFrom(gometricsprometheus.PrometheusOpts{Registerer: registry})
	if err != nil {
		return fmt.Errorf("report the metrics of raft and gossip: %w", err)
	}
	config := gometrics.DefaultConfig("")
	config.EnableHostname = false
	// Prometheus's own collector provides the metrics of the Go runtime.
	config.EnableRuntimeMetrics = false
	if _, err := gometrics.NewGlobal(config, sink); err != nil {
		return fmt.Errorf("report the metrics of raft and gossip: %w", err)
	}
	return nil
}
