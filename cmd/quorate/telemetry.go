package main

import (
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/host"
)

// telemetry is what this process measures. There is one in a process, because raft reports to one global place.
type telemetry struct {
	registry *prometheus.Registry
	// labelled takes the metrics of one node.
	labelled prometheus.Registerer
	tracing  tracing
	// lately is the log; nil if it is not remembered.
	lately *lately
}

func newTelemetry(remembered *lately) (*telemetry, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if err := host.InstallMetrics(registry); err != nil {
		return nil, err
	}
	return &telemetry{registry: registry, labelled: registry, lately: remembered}, nil
}

// of is the telemetry of one of several nodes in this process.
func (t *telemetry) of(id string) *telemetry {
	own := *t
	own.labelled = prometheus.WrapRegistererWith(prometheus.Labels{"node": id}, t.registry)
	return &own
}

// page answers /metrics.
func (t *telemetry) page() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{Registry: t.registry})
}

// watch shows how a node stands.
func watch(to prometheus.Registerer, node *cluster.Node) error {
	if err := host.WatchNode(to, node); err != nil {
		return err
	}
	gauges := map[string]struct {
		help  string
		value func() float64
	}{
		"quorate_leader":               {"1 while this node leads.", func() float64 { return number(node.IsLeader()) }},
		"quorate_ready":                {"1 while this node knows a leader and has caught up with it.", func() float64 { return number(node.Ready() == nil) }},
		"quorate_term":                 {"The present term.", func() float64 { return float64(node.Standing().Term) }},
		"quorate_commit_index":         {"The last log index known to be on a majority.", func() float64 { return float64(node.Standing().CommitIndex) }},
		"quorate_applied_index":        {"The last log index in this node's ledger.", func() float64 { return float64(node.Standing().AppliedIndex) }},
		"quorate_feature_level":        {"The feature level of the cluster: every member must understand it.", func() float64 { return float64(node.Level().Now) }},
		"quorate_differing_members":    {"Members found to hold another state than a majority, or to disagree without one; 0 is well.", func() float64 { return float64(node.Differing()) }},
		"quorate_disk_free_bytes":      {"Bytes that are left for the data folder; -1 if unknown.", func() float64 { return float64(node.Disk().Free) }},
		"quorate_disk_low":             {"1 while less than the reserve is left for the data folder.", func() float64 { return number(node.Disk().Low) }},
		"quorate_log_write_seconds":    {"What writing to the log took on average in the last half minute.", func() float64 { return node.Disk().WriteMean.Seconds() }},
		"quorate_last_contact_seconds": {"Seconds since this node last heard from a leader; 0 on the leader.", func() float64 { return node.Standing().LastContact.Seconds() }},
	}
	for name, gauge := range gauges {
		if err := to.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: gauge.help}, gauge.value)); err != nil {
			return fmt.Errorf("registering the metric %s: %w", name, err)
		}
	}
	return nil
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
