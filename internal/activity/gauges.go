package activity

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/quota"
)

// gauges show the last sample. A metrics page therefore never reads the ledger.
type gauges struct{ recorder *Recorder }

// sharedHelp ends the help of metrics of the replicated state. docs/metrics.md lists these, and a test compares.
const sharedHelp = " Every member reports it: take the maximum over members, not the sum."

var (
	heldGauge          = newSharedGauge("quorate_held_allocations", "Allocations that are held.")
	leasesGauge        = newSharedGauge("quorate_leases", "Held allocations that end unless they are renewed.")
	waitingGauge       = newSharedGauge("quorate_waiting_requests", "Requests that wait.")
	heldClaimsGauge    = newSharedGauge("quorate_held_claims", "Claims that are held, by tree.", "tree")
	waitingClaimsGauge = newSharedGauge("quorate_waiting_claims", "Claims of requests that wait, by tree.", "tree")
	itemsGauge         = newSharedGauge("quorate_items", "Items by tree, resource and state.", "tree", "resource", "state")
	ledgerBytesGauge   = newSharedGauge(
		"quorate_ledger_bytes",
		"Estimated memory of the parts of the ledger; of allocations, waiting requests and items what each has "+
			"beyond 512 bytes.",
		"part",
	)
	ledgerLimitGauge = newSharedGauge(
		"quorate_ledger_limit_bytes",
		"What allocations, waiting requests, items and trees may take together.",
	)
	nodeLimitGauge = newSharedGauge(
		"quorate_node_limit",
		"The limit in force at a node that metrics-nodes chooses; absent if there is none.",
		"tree", "node", "resource",
	)
	nodeAdvisoryGauge = newSharedGauge(
		"quorate_node_advisory_limit",
		"The advisory limit at a node that metrics-nodes chooses, which denies nothing; absent if there is none.",
		"tree", "node", "resource",
	)
	nodeUsedGauge = newSharedGauge(
		"quorate_node_used",
		"What is held at and below a node that metrics-nodes chooses.",
		"tree", "node", "resource",
	)
	nodeHeadroomGauge = newSharedGauge(
		"quorate_node_headroom",
		"What a claim at a node that metrics-nodes chooses could get now; absent if nothing limits it.",
		"tree", "node", "resource",
	)
	nodeWaitingGauge = newSharedGauge(
		"quorate_node_waiting",
		"What waiting requests ask for at and below a node that metrics-nodes chooses.",
		"tree", "node", "resource",
	)
	nodesLeftOutGauge = newSharedGauge(
		"quorate_nodes_left_out",
		"Nodes that metrics-nodes chooses and that are not shown, because there are too many.",
	)
	activitySeriesGauge = prometheus.NewDesc(
		"quorate_activity_series",
		"Nodes and itemized resources whose last 24 hours this member remembers.",
		nil, nil,
	)
)

func newSharedGauge(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help+sharedHelp, labels, nil)
}

// Describe implements prometheus.Collector.
func (g gauges) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		heldGauge, leasesGauge, waitingGauge, heldClaimsGauge, waitingClaimsGauge, itemsGauge, activitySeriesGauge,
		ledgerBytesGauge, ledgerLimitGauge, nodeLimitGauge, nodeAdvisoryGauge, nodeUsedGauge, nodeHeadroomGauge,
		nodeWaitingGauge, nodesLeftOutGauge,
	} {
		to <- d
	}
}

// Collect implements prometheus.Collector. It shows nothing before the first sample.
func (g gauges) Collect(to chan<- prometheus.Metric) {
	s, series, sampled := g.recorder.lastSample()
	if !sampled {
		return
	}
	show := func(d *prometheus.Desc, value int, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value), labels...)
	}
	show(heldGauge, s.counts.Held)
	show(leasesGauge, s.counts.Leases)
	show(waitingGauge, s.counts.Waiting)
	show(activitySeriesGauge, series)
	sizes := s.counts.Sizes
	for part, bytes := range map[string]int64{
		"allocations": sizes.Allocations, "waiting": sizes.Waiting, "items": sizes.Items, "trees": sizes.Trees,
		"ended": sizes.Ended, "history": sizes.History, "events": sizes.Events,
	} {
		show(ledgerBytesGauge, int(bytes), part)
	}
	show(ledgerLimitGauge, int(s.counts.MostLiveBytes))
	for _, t := range s.trees {
		show(heldClaimsGauge, t.held, t.name)
		show(waitingClaimsGauge, t.waiting, t.name)
	}
	for _, i := range s.items {
		for _, state := range i.States {
			show(itemsGauge, state.Count, i.Tree, i.Resource, state.Name)
		}
	}
	show(nodesLeftOutGauge, s.shown.leftOut)
	for _, n := range s.shown.nodes {
		n.collect(func(d *prometheus.Desc, amount quota.Amount, resource string) {
			show(d, int(amount), n.key.Tree, n.key.Node, resource)
		})
	}
}

// collect shows no series for what is not limited.
func (n nodeUsage) collect(show func(d *prometheus.Desc, amount quota.Amount, resource string)) {
	for _, u := range n.resources {
		name := u.Resource.Name
		show(nodeUsedGauge, u.Subtree, name)
		show(nodeWaitingGauge, n.waiting[name], name)
		switch u.Effective.Kind {
		case quota.Limited:
			show(nodeLimitGauge, u.Effective.Amount, name)
		case quota.Advisory: // in place of the limit, so a node has at most four series of a resource
			show(nodeAdvisoryGauge, u.Effective.Amount, name)
		case quota.Unlimited, quota.Unset:
		}
		if u.Bounded {
			show(nodeHeadroomGauge, u.Headroom, name)
		}
	}
}

// lastSample returns the totals of the last sample, which are never changed in place, and the number of series.
func (r *Recorder) lastSample() (s sampleTotals, series int, sampled bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.totals, len(r.nodes.byKey) + len(r.resources.byKey), r.samples > 0
}
