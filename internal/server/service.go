package server

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/internal/activity"
	"github.com/quorate/quorate/internal/audit/sink"
	"github.com/quorate/quorate/internal/webhook"
	"github.com/quorate/quorate/rpc"
)

// Service is what a node serves, without ports: the API, the front ends, and the loops that run beside them.
type Service struct {
	api     *rpc.Server
	boskos  http.Handler
	record  func(context.Context)
	backups *backupSchedule
	audit   *sink.Sink
	holds   func(context.Context) // records of allocations; nil if none are wanted
	deliver func(context.Context) // events to webhooks
}

// Transport is how a service reaches the other nodes and knows its callers. The zero value is plain text over the
// network.
type Transport struct {
	// Security is how nodes and callers prove who they are.
	Security rpc.Security
	// CertificateEnds is when the certificate of the node ends, and the first authority that it trusts; nil without
	// certificates.
	CertificateEnds func() (own, authority time.Time)
	// Network carries calls between nodes apart from those of clients; nil sends them to the API of the other node.
	Network rpc.Network
	// Peers carries calls to other nodes instead of a network; nil for the network. Simulations set it.
	Peers http.RoundTripper
}

// NewService makes what a node serves: the API, the front ends on its port, and Boskos's if the settings name an
// address for it. The node asks the other nodes through it from then on. Nothing listens yet: [Start] opens the
// ports, a simulation calls [Service.API] and [Service.Boskos].
func NewService(node *cluster.Node, s Settings, p Process, t Transport) (*Service, error) {
	p.Telemetry = p.Telemetry.orPrivate(s.ClusterName)
	registerer := p.Telemetry.labelled
	if err := watchNode(registerer, node); err != nil {
		return nil, err
	}
	shown, err := s.shownNodes()
	if err != nil {
		return nil, err
	}
	recorder, err := activity.New(activity.Config{
		Node: node, Logger: p.Log.Named("activity"), Registerer: registerer, ShownNodes: shown,
	})
	if err != nil {
		return nil, err
	}
	secret, err := loadBootstrapSecret(s.BootstrapSecret)
	if err != nil {
		return nil, err
	}
	records, err := openAudit(node, s, p)
	if err != nil {
		return nil, err
	}
	deliverer, err := newDeliverer(node, s, registerer, p)
	if err != nil {
		return nil, err
	}
	pages, err := newDashboard(s, p)
	if err != nil {
		return nil, err
	}
	backups, err := newBackupSchedule(s, node, registerer, p.Log.Named("backups"))
	if err != nil {
		return nil, err
	}
	api, err := rpc.New(rpc.Config{
		Node: node, ClusterName: s.ClusterName, Logger: p.Log.Named("rpc"),
		Metrics: p.Telemetry.handler(), Registerer: registerer,
		FrontEnds: apiFrontEnds(s), Dashboard: pages, OpenFrontEnds: openFrontEnds(s),
		Security: t.Security, Activity: rpc.NewActivity(node, recorder), CountDenial: recorder.CountDenial,
		Traces: p.tracing.tracerProvider(), Diagnoses: diagnostics(node, s, p),
		Limits: s.apiLimits(), Backups: node, Upkeep: upkeep(t.CertificateEnds, backups),
		Network: t.Network, Peers: t.Peers, Browsers: s.browserPolicy(),
		BootstrapSecret: secret, Recovery: recoveryOffer(s), Closed: p.closed, WasGuarded: p.note.Guarded,
		Audit: records, AuditRequired: s.AuditRequired != auditNone, AuditGrants: s.AuditRequired == auditAll,
		AuditReads: slices.Contains(s.AuditClasses, auditReads), CheckWebhook: deliverer.CheckURL,
	})
	if err != nil {
		return nil, err
	}
	node.SetRemoteReadIndex(api.RemoteReadIndex)
	node.SetPeerClient(api)
	service := &Service{api: api, record: recorder.Run, audit: records, deliver: deliverer.Run, backups: backups}
	if slices.Contains(s.AuditClasses, auditHolds) {
		last := records.Holds()
		recorder := &holdRecorder{
			node: node, note: records.Note, isBusy: records.IsBusy, log: p.Log.Named("audit"),
			position: cluster.Position{Index: last.Index, Number: last.Count},
		}
		service.holds = recorder.run
	}
	if s.boskosAddr() != "" {
		if service.boskos, err = boskosFrontEnd(api, p); err != nil {
			return nil, err
		}
	}
	return service, nil
}

// upkeep tells of certificates, which may be nil, and of periodic backups.
func upkeep(certificateEnds func() (own, authority time.Time), backups *backupSchedule) func() rpc.Upkeep {
	return func() rpc.Upkeep {
		var u rpc.Upkeep
		if certificateEnds != nil {
			u.CertificateEnds, u.AuthorityEnds = certificateEnds()
		}
		if backups != nil {
			u.BackupEvery = backups.every
			if last := backups.last.Load(); last != nil {
				u.LastBackup = *last
			}
		}
		return u
	}
}

// API answers what arrives at the port of the API.
func (s *Service) API() http.Handler { return s.api.Handler() }

// Boskos answers clients of Boskos; nil if the settings name no address for them.
func (s *Service) Boskos() http.Handler { return s.boskos }

func openAudit(node *cluster.Node, s Settings, p Process) (*sink.Sink, error) {
	return sink.Open(sink.Options{
		Path: s.AuditFile, Out: os.Stdout, MaxBytes: int64(s.AuditSize) << 20, Keep: s.AuditKeep, Server: s.ID,
		Version: p.Version, Source: node, Log: p.Log.Named("audit"), Now: time.Now,
		FindHolds: slices.Contains(s.AuditClasses, auditHolds),
	})
}

func newDeliverer(
	node *cluster.Node, s Settings, registerer prometheus.Registerer, p Process,
) (*webhook.Deliverer, error) {
	hosts, err := webhook.ParseHosts(s.WebhookHosts)
	if err != nil {
		return nil, fmt.Errorf("webhook-hosts: %w", err)
	}
	return webhook.New(webhook.Config{
		Node: node, ClusterName: s.ClusterName, Log: p.Log.Named("webhooks"), Registerer: registerer, Hosts: hosts,
		SecretsDir: s.WebhookSecrets, TypeOf: rpc.EventType, Encode: rpc.EncodeEvent,
	})
}

// RunLoops records what happens at the node, writes its audit records, saves its periodic backups, and delivers events
// to webhooks, until ctx ends.
func (s *Service) RunLoops(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { s.record(ctx) })
	running.Go(func() { s.audit.Run(ctx) })
	running.Go(func() { s.deliver(ctx) })
	if s.holds != nil {
		running.Go(func() { s.holds(ctx) })
	}
	running.Go(func() { s.backups.run(ctx) })
	running.Wait()
}
