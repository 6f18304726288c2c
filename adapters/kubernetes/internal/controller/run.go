// Package controller assembles the process: the webhook, the loop, its leader election, and health.
package controller

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/quorate/quorate/adapters/gate"
	"github.com/quorate/quorate/adapters/kubernetes/internal/podgate"
)

// webhookPath is the path of the webhook; the manifests name it too.
const webhookPath = "/gate-pods"

// Run runs the process until the context ends or it loses the leadership.
func Run(ctx context.Context, config *rest.Config, quorate gate.Quorate, settings Settings) error {
	if err := settings.check(); err != nil {
		return err
	}
	cert := &certificate{
		secret:  types.NamespacedName{Namespace: settings.Namespace, Name: "quorate-kubernetes-webhook"},
		webhook: settings.WebhookConfiguration, names: settings.WebhookNames, now: time.Now,
	}
	m, err := newManager(config, settings, cert)
	if err != nil {
		return err
	}
	if err := prepareCertificate(ctx, config, cert); err != nil {
		return err
	}
	if err := addWebhook(m, settings, cert); err != nil {
		return err
	}
	if err := addLoop(ctx, m, quorate, settings); err != nil {
		return err
	}
	if err := m.Start(ctx); err != nil {
		return fmt.Errorf("running: %w", err)
	}
	return nil
}

func newManager(config *rest.Config, settings Settings, cert *certificate) (manager.Manager, error) {
	gated := labels.SelectorFromSet(labels.Set{podgate.PodLabel: podgate.PodLabelValue})
	m, err := ctrl.NewManager(config, ctrl.Options{
		NewClient:                     settings.NewClient,
		Logger:                        logr.FromSlogHandler(slog.Default().Handler()),
		LeaderElection:                settings.LeaderElection,
		LeaderElectionID:              "quorate-kubernetes",
		LeaderElectionNamespace:       settings.Namespace,
		LeaderElectionReleaseOnCancel: true,
		HealthProbeBindAddress:        settings.HealthAddress,
		Metrics:                       server.Options{BindAddress: settings.MetricsAddress},
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:       {Label: gated, Transform: cache.TransformStripManagedFields()},
			&corev1.Namespace{}: {Transform: cache.TransformStripManagedFields()},
		}},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: settings.WebhookHost, Port: settings.WebhookPort,
			TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.GetCertificate = cert.get }},
		}),
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the manager: %w", err)
	}
	return m, nil
}

// prepareCertificate makes sure that the webhook can be called before anything else begins: pods wait for it.
func prepareCertificate(ctx context.Context, config *rest.Config, cert *certificate) error {
	api, err := client.New(config, client.Options{})
	if err != nil {
		return fmt.Errorf("connecting to the API server: %w", err)
	}
	cert.api = api
	return cert.ensure(ctx)
}

func addWebhook(m manager.Manager, settings Settings, cert *certificate) error {
	stamper := &podgate.Stamper{
		Namespaces: m.GetCache(), Live: m.GetAPIReader(), Mapping: settings.Mapping, Trusted: settings.Trusted,
	}
	m.GetWebhookServer().Register(webhookPath, admission.WithDefaulter[*corev1.Pod](m.GetScheme(), stamper))
	return errors.Join(m.Add(cert), m.AddHealthzCheck("webhook", m.GetWebhookServer().StartedChecker()))
}

// addLoop makes the loop run on the elected leader only.
func addLoop(ctx context.Context, m manager.Manager, quorate gate.Quorate, settings Settings) error {
	var system corev1.Namespace
	if err := m.GetAPIReader().Get(ctx, types.NamespacedName{Name: "kube-system"}, &system); err != nil {
		return fmt.Errorf("reading the namespace kube-system, whose UID stands for the cluster: %w", err)
	}
	source := &podgate.Source{
		Pods: m.GetCache(), Live: m.GetAPIReader(), API: m.GetClient(), Mapping: settings.Mapping,
		Events: m.GetEventRecorder("quorate-kubernetes"),
	}
	loop, err := gate.New(gate.Settings{
		Prefix: settings.Cluster, Identity: map[string]string{podgate.LabelCluster: string(system.UID)},
		TTL: settings.LeaseTTL, Refresh: settings.Refresh, Resync: settings.Resync,
	}, source, quorate)
	if err != nil {
		return err //nolint:wrapcheck // it names the setting
	}
	pods, err := m.GetCache().GetInformer(ctx, &corev1.Pod{})
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	_, err = pods.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { loop.Notify() },
		UpdateFunc: func(any, any) { loop.Notify() },
		DeleteFunc: func(any) { loop.Notify() },
	})
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	// Namespaces are read by the webhook: their copy must be complete before it is ready.
	if _, err := m.GetCache().GetInformer(ctx, &corev1.Namespace{}); err != nil {
		return fmt.Errorf("watching namespaces: %w", err)
	}
	var synced atomic.Bool
	follow := manager.RunnableFunc(func(ctx context.Context) error {
		if err := loop.Run(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("the loop: %w", err)
		}
		return nil
	})
	sync := notElected{manager.RunnableFunc(func(ctx context.Context) error {
		synced.Store(m.GetCache().WaitForCacheSync(ctx))
		<-ctx.Done()
		return nil
	})}
	ready := m.AddReadyzCheck("cache", func(*http.Request) error {
		if !synced.Load() {
			return errors.New("pods and namespaces are not read yet")
		}
		return nil
	})
	served := m.AddReadyzCheck("webhook", m.GetWebhookServer().StartedChecker())
	return errors.Join(ready, served, m.Add(sync), m.Add(follow))
}

// notElected runs on every replica.
type notElected struct{ manager.RunnableFunc }

// NeedLeaderElection is false.
func (notElected) NeedLeaderElection() bool { return false }
