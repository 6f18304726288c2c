package host

import (
	"fmt"

	gometrics "github.com/armon/go-metrics"
	gometricsprometheus "github.com/armon/go-metrics/prometheus"
	"github.com/prometheus/client_golang/prometheus"
)

// InstallMetrics makes raft and memberlist report to a Prometheus registry, under names such as raft_apply and
// memberlist_gossip. Those libraries report to one place per process, so this is for the whole process and all nodes
// in it: call it once, before the first node is opened.
func InstallMetrics(registry prometheus.Registerer) error {
	sink, err := gometricsprometheus.NewPrometheusSinkFrom(gometricsprometheus.PrometheusOpts{Registerer: registry})
	if err != nil {
		return fmt.Errorf("report the metrics of raft and gossip: %w", err)
	}
	config := gometrics.DefaultConfig("")
	config.EnableHostname = false
	// The Go runtime's metrics come from Prometheus's own collector.
	config.EnableRuntimeMetrics = false
	if _, err := gometrics.NewGlobal(config, sink); err != nil {
		return fmt.Errorf("report the metrics of raft and gossip: %w", err)
	}
	return nil
}
