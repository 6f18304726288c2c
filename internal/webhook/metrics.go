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

var (
	attemptsDesc = prometheus.NewDesc("quorate_webhook_attempts_total",
		"Attempts of this server to deliver an event, by webhook and result: delivered or failed.",
		[]string{"webhook", "result"}, nil)
	deadDesc = prometheus.NewDesc("quorate_webhook_dead",
		"1 if a webhook is dead: nothing is delivered until it is resumed. Only the leader reports it.",
		[]string{"webhook"}, nil)
	behindDesc = prometheus.NewDesc("quorate_webhook_behind_events",
		"Events that a webhook has still to deliver or to skip. Only the leader reports it.", []string{"webhook"}, nil)
)

// metrics are counters of this server, and gauges that the leader reads from the ledger.
type metrics struct {
	node Node

	mu       sync.Mutex
	attempts map[attempt]float64
}

type attempt struct{ webhook, result string }

func newMetrics(node Node) *metrics { return &metrics{node: node, attempts: map[attempt]float64{}} }

func (m *metrics) count(webhook, result string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.attempts[attempt{webhook, result}]++
}

// forgetOthers drops the counters of webhooks that do not exist any more.
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
		to <- prometheus.MustNewConstMetric(attemptsDesc, prometheus.CounterValue, n, key.webhook, key.result)
	}
	m.mu.Unlock()
	if !m.node.IsLeader() {
		return
	}
	var hooks []*quota.Webhook
	_, err := m.node.Read(context.Background(), cluster.ReadOptions{Stale: true},
		func(v ledger.View) { hooks = v.Webhooks() })
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
