package webhook

import (
	"context"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// sharedHelp ends the help of metrics of the replicated state. docs/metrics.md lists these, and a test compares.
const sharedHelp = " Every member reports it: take the maximum over members, not the sum."

var (
	attemptsDesc = prometheus.NewDesc("quorate_webhook_attempts_total",
		"Attempts of this member to deliver an event, by webhook and outcome: delivered or failed.",
		[]string{"webhook", "outcome"}, nil)
	deadDesc = prometheus.NewDesc("quorate_webhook_dead",
		"1 if a webhook is dead: nothing is delivered until it is resumed."+sharedHelp,
		[]string{"webhook"}, nil)
	behindDesc = prometheus.NewDesc("quorate_webhook_behind_events",
		"Events that a webhook has still to deliver or to skip."+sharedHelp, []string{"webhook"}, nil)
)

// metrics are counters of this member, and gauges of its ledger.
type metrics struct {
	node Node

	mu       sync.Mutex
	attempts map[attempt]float64
}

type attempt struct{ webhook, outcome string }

func newMetrics(node Node) *metrics { return &metrics{node: node, attempts: map[attempt]float64{}} }

func (m *metrics) count(webhook, outcome string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.attempts[attempt{webhook, outcome}]++
}

func (m *metrics) forgetOthers(hooks []*quota.Webhook) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.attempts {
		if !slices.ContainsFunc(hooks, func(hook *quota.Webhook) bool { return hook.Name == key.webhook }) {
			delete(m.attempts, key)
		}
	}
}

// Describe implements [prometheus.Collector].
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	to <- attemptsDesc
	to <- deadDesc
	to <- behindDesc
}

// Collect implements [prometheus.Collector].
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	m.mu.Lock()
	for key, n := range m.attempts {
		to <- prometheus.MustNewConstMetric(attemptsDesc, prometheus.CounterValue, n, key.webhook, key.outcome)
	}
	m.mu.Unlock()
	var hooks []*quota.Webhook
	_, err := m.node.Read(context.Background(), cluster.ReadOptions{Stale: true},
		func(v ledger.Reader) { hooks = v.Webhooks() })
	if err != nil {
		return
	}
	for _, hook := range hooks {
		dead := 0.0
		if hook.State == quota.WebhookDead {
			dead = 1
		}
		to <- prometheus.MustNewConstMetric(deadDesc, prometheus.GaugeValue, dead, hook.Name)
		page, err := m.node.ReadFeed(cluster.Position{Index: hook.Cursor.Index, Number: hook.Cursor.Number}, 1)
		if err == nil {
			behind := float64(len(page.Events) + page.Behind)
			to <- prometheus.MustNewConstMetric(behindDesc, prometheus.GaugeValue, behind, hook.Name)
		}
	}
}
