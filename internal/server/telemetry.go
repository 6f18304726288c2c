package server

import (
	"bytes"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/host"
)

// Telemetry is the metrics of a process and of the nodes in it.
type Telemetry struct {
	registry *prometheus.Registry
	// process takes the metrics of the process, labelled those of one node. Both add the label of the cluster.
	process, labelled prometheus.Registerer
}

// ClusterLabel is the label of every metric that names the cluster.
const ClusterLabel = "cluster"

// NewTelemetry makes a registry with the metrics of this process, whose nodes belong to the named cluster; an empty
// name is that of [cluster.Config]. A process calls it once, because raft reports to one place for the whole process.
func NewTelemetry(clusterName string) (*Telemetry, error) {
	t := newTelemetry(clusterName)
	for _, c := range []prometheus.Collector{
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		if err := t.process.Register(c); err != nil {
			return nil, fmt.Errorf("registering the metrics of the process: %w", err)
		}
	}
	if err := host.InstallMetrics(t.process); err != nil {
		return nil, err
	}
	return t, nil
}

func newTelemetry(clusterName string) *Telemetry {
	registry := prometheus.NewRegistry()
	named := cluster.Config{ClusterName: clusterName}.WithDefaults().ClusterName
	process := prometheus.WrapRegistererWith(prometheus.Labels{ClusterLabel: named}, registry)
	return &Telemetry{registry: registry, process: process, labelled: process}
}

// ForNode labels what a node reports with its id as a member, for a process with several nodes.
func (t *Telemetry) ForNode(id string) *Telemetry {
	own := *t
	own.labelled = prometheus.WrapRegistererWith(prometheus.Labels{"member": id}, t.process)
	return &own
}

func (t *Telemetry) orPrivate(clusterName string) *Telemetry {
	if t != nil {
		return t
	}
	return newTelemetry(clusterName)
}

func (t *Telemetry) handler() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{Registry: t.process})
}

func (t *Telemetry) exposition() ([]byte, error) {
	families, err := t.registry.Gather()
	var out bytes.Buffer
	for _, family := range families {
		if _, failed := expfmt.MetricFamilyToText(&out, family); failed != nil {
			return nil, failed
		}
	}
	if out.Len() > 0 {
		err = nil // what could be gathered is worth more than nothing
	}
	return out.Bytes(), err
}

func watchNode(to prometheus.Registerer, node *cluster.Node) error {
	if err := host.RegisterGauges(to, node); err != nil {
		return err
	}
	for name, gauge := range nodeGauges(node) {
		if err := to.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: gauge.help},
			gauge.value)); err != nil {
			return fmt.Errorf("registering the metric %s: %w", name, err)
		}
	}
	return nil
}

type nodeGauge struct {
	help  string
	value func() float64
}

func nodeGauges(node *cluster.Node) map[string]nodeGauge {
	return map[string]nodeGauge{
		"quorate_leader": {
			"1 while this member leads.",
			func() float64 { return boolGauge(node.IsLeader()) },
		},
		"quorate_ready": {
			"1 while this member knows a leader and has caught up with it.",
			func() float64 { return boolGauge(node.Ready() == nil) },
		},
		"quorate_term": {
			"The present term." + host.SharedHelp,
			func() float64 { return float64(node.Status().Term) },
		},
		"quorate_commit_index": {
			"The last log index known to be on a majority." + host.SharedHelp,
			func() float64 { return float64(node.Status().CommitIndex) },
		},
		"quorate_applied_index": {
			"The last log index in this member's ledger.",
			func() float64 { return float64(node.Status().AppliedIndex) },
		},
		"quorate_feature_level": {
			"The feature level of the cluster: every member must understand it." + host.SharedHelp,
			func() float64 { return float64(node.Level().Current) },
		},
		"quorate_differing_members": {
			"Members found to hold another state than a majority, or to disagree without one; 0 is well." +
				host.SharedHelp,
			func() float64 { return float64(node.CountDiffering()) },
		},
		"quorate_disk_free_bytes": {
			"Bytes that are left for the data folder; -1 if unknown.",
			func() float64 { return float64(node.DiskStatus().Free) },
		},
		"quorate_disk_low": {
			"1 while less than the reserve is left for the data folder.",
			func() float64 { return boolGauge(node.DiskStatus().Low) },
		},
		"quorate_log_write_seconds": {
			"What writing to the log took on average in the last half minute.",
			func() float64 { return node.DiskStatus().WriteMean.Seconds() },
		},
		"quorate_last_contact_seconds": {
			"Seconds since this member last heard from a leader; 0 on the leader.",
			func() float64 { return node.Status().LastContact.Seconds() },
		},
	}
}

func boolGauge(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
