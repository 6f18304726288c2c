package host

import (
	"fmt"
	"runtime"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/cluster"
)

// gauge is one size of a node, under one set of labels' values.
type gauge struct {
	about  *prometheus.Desc
	labels []string
	value  func(cluster.Measures) float64
}

// sizes reads all sizes of a node once for each scrape.
type sizes struct {
	measure func() cluster.Measures
	gauges  []gauge
}

var _ prometheus.Collector = (*sizes)(nil)

// WatchNode shows the sizes of a node, and which build it is.
func WatchNode(to prometheus.Registerer, node *cluster.Node) error {
	own := node.Standing()
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "quorate_build_info", Help: "Always 1; its labels say which build this is.",
		ConstLabels: prometheus.Labels{"version": own.Version, "go": runtime.Version(), "level": strconv.FormatUint(uint64(own.FeatureLevel), 10)},
	})
	build.Set(1)
	for _, c := range []prometheus.Collector{build, newSizes(node.Measures)} {
		if err := to.Register(c); err != nil {
			return fmt.Errorf("registering the sizes of the node: %w", err)
		}
	}
	return nil
}

func newSizes(measure func() cluster.Measures) *sizes {
	s := &sizes{measure: measure}
	s.addLog()
	s.addSnapshots()
	s.add("quorate_voters_alive", "Voters that answer gossip, this node included.", func(m cluster.Measures) float64 { return float64(m.VotersAlive) })
	members := describe("quorate_members", "Members by raft's configuration, and nodes that wait to be added.", "role")
	s.put(members, func(m cluster.Measures) float64 { return float64(m.Voters) }, "voter")
	s.put(members, func(m cluster.Measures) float64 { return float64(m.Nonvoters) }, "nonvoter")
	peers := describe("quorate_gossip_peers", "Other nodes that gossip has heard of since the start, by whether they answer.", "state")
	s.put(peers, func(m cluster.Measures) float64 { return float64(m.PeersAlive) }, "alive")
	s.put(peers, func(m cluster.Measures) float64 { return float64(m.PeersLost) }, "lost")
	return s
}

func (s *sizes) addLog() {
	s.add("quorate_queued_commands", "Commands that wait for a log entry; 0 unless this node leads.",
		func(m cluster.Measures) float64 { return float64(m.QueuedCommands) })
	s.add("quorate_queued_bytes", "Bytes of the commands that wait for a log entry.",
		func(m cluster.Measures) float64 { return float64(m.QueuedBytes) })
	s.add("quorate_log_first_index", "The oldest entry in this node's log.",
		func(m cluster.Measures) float64 { return float64(m.FirstIndex) })
	s.add("quorate_log_last_index", "The newest entry in this node's log.",
		func(m cluster.Measures) float64 { return float64(m.LastIndex) })
}

func (s *sizes) addSnapshots() {
	s.add("quorate_snapshots", "Snapshots in this node's data folder.",
		func(m cluster.Measures) float64 { return float64(m.Snapshots) })
	s.add("quorate_snapshot_index", "The newest snapshot holds everything up to this log index.",
		func(m cluster.Measures) float64 { return float64(m.SnapshotIndex) })
	s.add("quorate_snapshot_bytes", "Size of the newest snapshot.",
		func(m cluster.Measures) float64 { return float64(m.SnapshotBytes) })
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

func (s *sizes) add(name, help string, value func(cluster.Measures) float64) {
	s.put(describe(name, help), value)
}

func (s *sizes) put(about *prometheus.Desc, value func(cluster.Measures) float64, labels ...string) {
	s.gauges = append(s.gauges, gauge{about: about, labels: labels, value: value})
}

// unreachable is the one size with a line for each member of raft's configuration.
var unreachable = describe("quorate_member_unreachable_seconds",
	"For how long all questions of this node to that member have failed; 0 if it answers.", "member")

// Describe tells what there is.
func (s *sizes) Describe(to chan<- *prometheus.Desc) {
	to <- unreachable
	for _, g := range s.gauges {
		to <- g.about
	}
}

// Collect reads the sizes.
func (s *sizes) Collect(to chan<- prometheus.Metric) {
	m := s.measure()
	for _, g := range s.gauges {
		to <- prometheus.MustNewConstMetric(g.about, prometheus.GaugeValue, g.value(m), g.labels...)
	}
	for id, span := range m.Unreachable {
		to <- prometheus.MustNewConstMetric(unreachable, prometheus.GaugeValue, span.Seconds(), id)
	}
}
