// Command quorate-kubernetes gates pods until Quorate grants what they request: a webhook closes the gate of new pods,
// and a controller opens it. docs/with-kubernetes.md is its manual.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/quorate/quorate/adapters/gate"
	"github.com/quorate/quorate/adapters/kubernetes/internal/controller"
	"github.com/quorate/quorate/adapters/kubernetes/internal/podgate"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "quorate-kubernetes:", err)
		stop()
		os.Exit(1)
	}
}

// list is a flag that may be given several times. The first value replaces the default.
type list struct {
	values []string
	given  bool
}

// String implements flag.Value.
func (l *list) String() string { return strings.Join(l.values, ",") }

// Set implements flag.Value.
func (l *list) Set(value string) error {
	if !l.given {
		l.values, l.given = nil, true
	}
	l.values = append(l.values, strings.Split(value, ",")...)
	return nil
}

type options struct {
	settings  controller.Settings
	quorate   connection
	resources list
	trusted   list
	names     list
}

func (o *options) declare(flags *flag.FlagSet) {
	s := &o.settings
	o.resources.values, o.trusted.values = podgate.DefaultMapping(), podgate.DefaultTrusted()
	o.names.values = []string{"quorate-kubernetes.quorate-system.svc"}
	flags.StringVar(&s.Cluster, "cluster", "", "name of this cluster in Quorate; each cluster has its own (required)")
	flags.Var(&o.quorate.servers, "server",
		"address of a server of Quorate, such as https://quorate:7101; may be repeated")
	flags.StringVar(&o.quorate.authority, "ca-file", "",
		"authority of the servers' certificates; empty for that of the system")
	flags.StringVar(&o.quorate.certificate, "cert-file", "", "certificate for the servers")
	flags.StringVar(&o.quorate.key, "key-file", "", "key of the certificate")
	flags.StringVar(&o.quorate.token, "token-file", "",
		"file with the token for the servers; it is read again when it changes")
	flags.Var(&o.resources, "resource", "KUBERNETES=TREE or KUBERNETES=TREE:milli: what is counted; may be repeated")
	flags.Var(&o.trusted, "trusted", "user, or group:NAME, whose pods may name another user; may be repeated")
	flags.DurationVar(&s.LeaseTTL, "lease-ttl", 0,
		"make allocations leases of this time, 1m to 168h, so that trees can revoke them with a grace; 0 holds them for good")
	flags.DurationVar(&s.Refresh, "refresh", time.Minute, "how often the reason of waiting pods is updated")
	flags.DurationVar(&s.Resync, "resync", 5*time.Minute, "how often pods and allocations are compared as a whole")
	flags.StringVar(&s.Namespace, "namespace", "quorate-system", "namespace of this process")
	flags.StringVar(&s.WebhookConfiguration, "webhook-configuration", "quorate-kubernetes",
		"name of the MutatingWebhookConfiguration")
	flags.Var(&o.names, "webhook-name", "host under which the API server calls the webhook; may be repeated")
	flags.StringVar(&s.WebhookHost, "webhook-host", "", "address that the webhook listens at; empty for all")
	flags.IntVar(&s.WebhookPort, "webhook-port", 9443, "port that the webhook listens at")
	flags.StringVar(&s.HealthAddress, "health-address", ":8081", "address of /healthz and /readyz")
	flags.StringVar(&s.MetricsAddress, "metrics-address", ":8080", "address of /metrics; 0 for none")
	flags.BoolVar(&s.LeaderElection, "leader-election", true, "let one of several replicas act at a time")
}

func run(ctx context.Context, args []string) error {
	var o options
	flags := flag.NewFlagSet("quorate-kubernetes", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "file of the connection to the API server; empty inside a cluster")
	o.declare(flags)
	if err := flags.Parse(args); err != nil {
		return err //nolint:wrapcheck // the flag set has printed it
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	ctrl.SetLogger(logr.FromSlogHandler(slog.Default().Handler()))
	mapping, err := podgate.ParseMapping(o.resources.values)
	if err != nil {
		return err //nolint:wrapcheck // it names the flag
	}
	o.settings.Mapping, o.settings.Trusted, o.settings.WebhookNames = mapping, o.trusted.values, o.names.values
	quorate, err := o.quorate.open()
	if err != nil {
		return err
	}
	config, err := loadConfig(*kubeconfig)
	if err != nil {
		return err
	}
	return controller.Run(ctx, config, gate.Connect(quorate), o.settings) //nolint:wrapcheck // it says what failed
}
