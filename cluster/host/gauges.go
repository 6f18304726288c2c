package host

import (
	"fmt"
	"runtime"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/cluster"
)

type gauge struct {
	desc   *prometheus.Desc
	labels []string
	value  func(cluster.NodeGauges) float64
}

// gaugeCollector reads all gauges of a node once per scrape.
type gaugeCollector struct {
	readGauges func() cluster.NodeGauges
	gauges     []gauge
}

var _ prometheus.Collector = (*gaugeCollector)(nil)

// RegisterGauges registers the gauges of a node and its build information.
func RegisterGauges(to prometheus.Registerer, node *cluster.Node) error {
	own := node.Status()
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "quorate_build_info", Help: "Always 1; its labels say which build this is.",
		ConstLabels: prometheus.Labels{
			"version": own.Version, "go": runtime.Version(),
			"level": strconv.FormatUint(uint64(own.FeatureLevel), 10),
		},
	})
	build.Set(1)
	for _, c := range []prometheus.Collector{build, newGaugeCollector(node.Gauges)} {
		if err := to.Register(c); err != nil {
			return fmt.Errorf("registering the sizes of the node: %w", err)
		}
	}
	return nil
}

func newGaugeCollector(measure func() cluster.NodeGauges) *gaugeCollector {
	s := &gaugeCollector{readGauges: measure}
	s.addLog()
	s.addSnapshots()
	s.addGauge("quorate_voters_alive", "Voters that answer gossip to this member, itself included.",
		func(m cluster.NodeGauges) float64 { return float64(m.VotersAlive) })
	members := newDesc("quorate_members",
		"Members by raft's configuration, and those that wait to be added."+SharedHelp, "role")
	s.addLabeledGauge(members, func(m cluster.NodeGauges) float64 { return float64(m.Voters) }, "voter")
	s.addLabeledGauge(members, func(m cluster.NodeGauges) float64 { return float64(m.Nonvoters) }, "nonvoter")
	peers := newDesc("quorate_gossip_peers", "Other members that gossip has heard of since the start, by whether they "+
		"answer.", "state")
	s.addLabeledGauge(peers, func(m cluster.NodeGauges) float64 { return float64(m.PeersAlive) }, "alive")
	s.addLabeledGauge(peers, func(m cluster.NodeGauges) float64 { return float64(m.PeersLost) }, "lost")
	return s
}

func (s *gaugeCollector) addLog() {
	s.addGauge("quorate_queued_commands", "Commands that wait for a log entry; 0 unless this member leads.",
		func(m cluster.NodeGauges) float64 { return float64(m.QueuedCommands) })
	s.addGauge("quorate_queued_bytes", "Bytes of the commands that wait for a log entry.",
		func(m cluster.NodeGauges) float64 { return float64(m.QueuedBytes) })
	s.addGauge("quorate_unrecorded_seconds", "Time of this leadership that is not in the ledger yet, while something "+
		"is timed; 0 unless this member leads.",
		func(m cluster.NodeGauges) float64 { return m.UnrecordedTime.Seconds() })
	s.addGauge("quorate_log_first_index", "The oldest entry in this member's log.",
		func(m cluster.NodeGauges) float64 { return float64(m.FirstIndex) })
	s.addGauge("quorate_log_last_index", "The newest entry in this member's log.",
		func(m cluster.NodeGauges) float64 { return float64(m.LastIndex) })
}

func (s *gaugeCollector) addSnapshots() {
	s.addGauge("quorate_snapshots", "Snapshots in this member's data folder.",
		func(m cluster.NodeGauges) float64 { return float64(m.Snapshots) })
	s.addGauge("quorate_snapshot_index", "The newest snapshot holds everything up to this log index.",
		func(m cluster.NodeGauges) float64 { return float64(m.SnapshotIndex) })
	s.addGauge("quorate_snapshot_bytes", "Size of the newest snapshot.",
		func(m cluster.NodeGauges) float64 { return float64(m.SnapshotBytes) })
}

func newDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

func (s *gaugeCollector) addGauge(name, help string, value func(cluster.NodeGauges) float64) {
	s.addLabeledGauge(newDesc(name, help), value)
}

func (s *gaugeCollector) addLabeledGauge(about *prometheus.Desc, value func(cluster.NodeGauges) float64,
	labels ...string,
) {
	s.gauges = append(s.gauges, gauge{desc: about, labels: labels, value: value})
}

// SharedHelp ends the help of metrics of the replicated state. docs/metrics.md lists these, and a test compares.
const SharedHelp = " Every member reports it: take the maximum over members, not the sum."

// unreachable is the one gauge with a time series for each member of raft's configuration.
var unreachable = newDesc("quorate_member_unreachable_seconds",
	"For how long all questions of this member to that peer have failed; 0 if it answers.", "peer")

// clockOffset has a time series for each member whose clock the leader knows.
var clockOffset = newDesc("quorate_member_clock_offset_seconds",
	"How far the wall clock of that peer is ahead of civil time; only on the leader.", "peer")

// Describe sends the descriptors of all gauges.
func (s *gaugeCollector) Describe(to chan<- *prometheus.Desc) {
	to <- unreachable
	to <- clockOffset
	for _, g := range s.gauges {
		to <- g.desc
	}
}

// Collect reads the gauges.
func (s *gaugeCollector) Collect(to chan<- prometheus.Metric) {
	m := s.readGauges()
	for _, g := range s.gauges {
		to <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, g.value(m), g.labels...)
	}
	for id, span := range m.Unreachable {
		to <- prometheus.MustNewConstMetric(unreachable, prometheus.GaugeValue, span.Seconds(), id)
	}
	for id, ahead := range m.ClockOffsets {
		to <- prometheus.MustNewConstMetric(clockOffset, prometheus.GaugeValue, ahead.Seconds(), id)
	}
}
