package host

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/cluster"
)

// observer counts what a node does.
type observer struct {
	entries, snapshots, restores, rounds  *prometheus.CounterVec
	reads, leaderships, applied           prometheus.Counter
	queued, commit, apply, commands, size prometheus.Histogram
	freeze, write, restore                prometheus.Histogram
	round                                 *prometheus.HistogramVec
}

var _ cluster.Observer = (*observer)(nil)

// Words of labels.
const (
	wentWell = "ok"
	failed   = "failed"
)

func outcome(err error) string {
	if err != nil {
		return failed
	}
	return wentWell
}

var (
	// moments are the upper ends of buckets in seconds for what takes a disk or a network: 0.1 ms to 13 s.
	moments = prometheus.ExponentialBuckets(0.0001, 2, 18)
	// minutes are those for what grows with the ledger: 1 ms to 4.4 minutes.
	minutes = prometheus.ExponentialBuckets(0.001, 4, 10)
	// crowds are those for commands in an entry, volumes those for its bytes.
	crowds  = prometheus.ExponentialBuckets(1, 2, 14)
	volumes = prometheus.ExponentialBuckets(64, 4, 9)
)

// NewObserver makes metrics of what a node does, for cluster.Config. One for each node and registerer.
func NewObserver(to prometheus.Registerer) (cluster.Observer, error) {
	o := &observer{
		entries:     counters("quorate_entries_total", "Log entries that this node proposed as the leader, by outcome.", "outcome"),
		queued:      histogram("quorate_entry_queue_seconds", "Time that the first commands of an entry waited for it.", moments),
		commit:      histogram("quorate_entry_commit_seconds", "Time from handing an entry to raft until a majority had it.", moments),
		commands:    histogram("quorate_entry_commands", "Commands that share an entry.", crowds),
		size:        histogram("quorate_entry_bytes", "Bytes of an entry.", volumes),
		applied:     counter("quorate_applied_commands_total", "Commands of the log that went into this node's ledger."),
		apply:       histogram("quorate_apply_seconds", "Time to apply committed entries that came together.", moments),
		snapshots:   counters("quorate_snapshots_total", "Snapshots that this node took, by outcome.", "outcome"),
		freeze:      histogram("quorate_snapshot_freeze_seconds", "Time that writers waited for a snapshot.", moments),
		write:       histogram("quorate_snapshot_write_seconds", "Time to write a snapshot, beside the writers.", minutes),
		restores:    counters("quorate_restores_total", "Times that a snapshot replaced this node's ledger, by outcome.", "outcome"),
		restore:     histogram("quorate_restore_seconds", "Time to read a snapshot into the ledger.", minutes),
		reads:       counter("quorate_linearizable_reads_total", "Linearizable reads that were confirmed, or failed to be."),
		rounds:      counters("quorate_read_rounds_total", "Questions on behalf of linearizable reads, by who asked and outcome.", "by", "outcome"),
		leaderships: counter("quorate_leaderships_total", "Leaderships that this node established."),
		round: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "quorate_read_round_seconds", Help: "Time of a question on behalf of linearizable reads, by who asked.", Buckets: moments,
		}, []string{"by"}),
	}
	o.begin()
	for _, c := range []prometheus.Collector{
		o.entries, o.queued, o.commit, o.commands, o.size, o.applied, o.apply, o.snapshots, o.freeze, o.write, o.restores, o.restore,
		o.reads, o.rounds, o.leaderships, o.round,
	} {
		if err := to.Register(c); err != nil {
			return nil, fmt.Errorf("registering the metrics of the node: %w", err)
		}
	}
	return o, nil
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func histogram(name, help string, buckets []float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
}

// begin shows every line from the start, at zero: a rate over a line that appears with its first failure misses it.
func (o *observer) begin() {
	for _, what := range []string{wentWell, failed} {
		for _, vector := range []*prometheus.CounterVec{o.entries, o.snapshots, o.restores} {
			vector.WithLabelValues(what)
		}
		for _, by := range []string{asLeader, asFollower} {
			o.rounds.WithLabelValues(by, what)
			o.round.WithLabelValues(by)
		}
	}
}

const (
	asLeader   = "leader"
	asFollower = "follower"
)

// EntryEnded counts an entry of a leader.
func (o *observer) EntryEnded(r cluster.EntryReport) {
	o.entries.WithLabelValues(outcome(r.Err)).Inc()
	o.queued.Observe(r.Sent.Sub(r.Queued).Seconds())
	o.commands.Observe(float64(r.Commands))
	o.size.Observe(float64(r.Bytes))
	if r.Err == nil {
		o.commit.Observe(max(0, r.ApplyBegan.Sub(r.Sent).Seconds()))
	}
}

// Applied counts what went into the ledger.
func (o *observer) Applied(_, commands int, took time.Duration) {
	o.applied.Add(float64(commands))
	o.apply.Observe(took.Seconds())
}

// SnapshotEnded counts a snapshot.
func (o *observer) SnapshotEnded(r cluster.SnapshotReport) {
	o.snapshots.WithLabelValues(outcome(r.Err)).Inc()
	o.freeze.Observe(r.Froze.Seconds())
	if r.Err == nil {
		o.write.Observe(r.Wrote.Seconds())
	}
}

// Restored counts a ledger that was replaced.
func (o *observer) Restored(took time.Duration, err error) {
	o.restores.WithLabelValues(outcome(err)).Inc()
	o.restore.Observe(took.Seconds())
}

// RoundEnded counts a question on behalf of reads.
func (o *observer) RoundEnded(r cluster.RoundReport) {
	by := asFollower
	if r.Leader {
		by = asLeader
	}
	o.reads.Add(float64(r.Reads))
	o.rounds.WithLabelValues(by, outcome(r.Err)).Inc()
	o.round.WithLabelValues(by).Observe(r.Took.Seconds())
}

// Led counts a leadership.
func (o *observer) Led() { o.leaderships.Inc() }
