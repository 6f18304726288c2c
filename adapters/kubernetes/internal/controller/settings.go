package controller

import (
	"fmt"
	"regexp"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/quorate/quorate/adapters/gate"
	"github.com/quorate/quorate/adapters/kubernetes/internal/podgate"
)

// Settings are those of the process.
type Settings struct {
	// Cluster names the cluster: it begins the ids of allocations. 1 to 63 letters, digits, dots, dashes or underscores.
	Cluster string
	// Mapping says which requests are counted.
	Mapping podgate.Mapping
	// Trusted may name the users of pods; see podgate.Stamper.
	Trusted []string
	// LeaseTTL makes allocations leases; see gate.Settings.TTL.
	LeaseTTL time.Duration
	// Refresh and Resync are those of gate.Settings.
	Refresh, Resync time.Duration
	// Namespace is where the process keeps its certificate and its leader election.
	Namespace string
	// WebhookConfiguration is the name of the MutatingWebhookConfiguration, WebhookNames are the hosts under which the API
	// server calls the webhook, and WebhookHost and WebhookPort where it listens.
	WebhookConfiguration string
	WebhookNames         []string
	WebhookHost          string
	WebhookPort          int
	// HealthAddress and MetricsAddress are where the process listens; "0" for not at all.
	HealthAddress, MetricsAddress string
	// LeaderElection lets one of several replicas act at a time. All of them serve the webhook.
	LeaderElection bool
	// NewClient makes the client of the manager; nil for the usual one. Tests fail its calls.
	NewClient client.NewClientFunc
}

var validCluster = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

func (s *Settings) check() error {
	switch {
	case !validCluster.MatchString(s.Cluster):
		return fmt.Errorf("cluster: %q is not a name of 1 to 63 letters, digits, dots, dashes or underscores", s.Cluster)
	case s.LeaseTTL != 0 && (s.LeaseTTL < time.Minute || s.LeaseTTL > gate.MaxTTL):
		return fmt.Errorf("lease-ttl: %v is not 0 or 1m to %v", s.LeaseTTL, gate.MaxTTL)
	case s.WebhookPort < 1 || s.WebhookPort > 65535:
		return fmt.Errorf("webhook-port: %d is not 1 to 65535", s.WebhookPort)
	case len(s.WebhookNames) == 0:
		return fmt.Errorf("webhook-name: name at least one host under which the API server calls the webhook")
	}
	return nil
}
