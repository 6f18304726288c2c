package rpc

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"buf.build/go/protovalidate"
	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"connectrpc.com/grpcreflect"
	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
	"github.com/quorate/quorate/client/gen/quorate/v1beta1/quoratev1beta1connect"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/gen/quorate/peer/v1/peerv1connect"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/rpc/admission"
	"github.com/quorate/quorate/rpc/authorize"
	"github.com/quorate/quorate/rpc/codec"
	"github.com/quorate/quorate/rpc/handlers"
	"github.com/quorate/quorate/rpc/identify"
	"github.com/quorate/quorate/rpc/inprocess"
	"github.com/quorate/quorate/rpc/notify"
	"github.com/quorate/quorate/rpc/observe"
	"github.com/quorate/quorate/rpc/pipeline"
	"github.com/quorate/quorate/rpc/plain"
	"github.com/quorate/quorate/rpc/procedures"
	"github.com/quorate/quorate/rpc/relay"
)

// What a server is made of is in the packages below; these are the names that its user needs.
type (
	// Limits bound what a server takes on at once.
	Limits = admission.Limits
	// Security is how nodes authenticate each other.
	Security = relay.Security
	// Network is how nodes call each other apart from clients.
	Network = relay.Network
	// Diagnosis is one thing that a node can report about itself.
	Diagnosis = handlers.Diagnosis
	// Node is what a server needs of the node below it.
	Node = handlers.Node
	// Backups save and restore the state of the node below.
	Backups = handlers.Backups
	// Upkeep is what a server must renew or repeat: certificates and backups.
	Upkeep = handlers.Upkeep
	// ActivityLog is the memory of recent activity.
	ActivityLog = handlers.ActivityLog
)

// NewActivity is the service that shows what a log remembers on a node, for [Config].
func NewActivity(node Node, log ActivityLog) quoratev1beta1connect.ActivityServiceHandler {
	return handlers.NewActivity(node, log)
}

// EventType is the type of an event for webhooks, such as "allocation.granted".
func EventType(e cluster.WatchEvent) string { return handlers.EventType(e) }

// EncodeEvent is an event as JSON for a webhook, without user data; nil if the owner of the webhook may not see it.
func EncodeEvent(v ledger.Reader, hook *quota.Webhook, e cluster.WatchEvent) ([]byte, error) {
	return handlers.EncodeEvent(v, hook, e)
}

// Config is what a Server needs. All fields but FrontEnds, Dashboard, OpenFrontEnds, Security, Activity, CountDenial,
// Traces, Diagnoses, Limits, Backups, Upkeep, Network, Browsers, Peers, Audit, BootstrapSecret, Recovery and
// CheckWebhook are required.
type Config struct {
	Node        Node
	ClusterName string
	Logger      hclog.Logger
	// Metrics provides the metrics of /metrics; the server registers its own with Registerer.
	Metrics    http.Handler
	Registerer prometheus.Registerer
	// FrontEnds are served on the same port.
	FrontEnds []FrontEnd
	// Dashboard serves the files of the dashboard below /ui/; nil for none.
	Dashboard http.Handler
	// OpenFrontEnds are the names of front ends, on this port or on one of their own, of which callers without a
	// credential are the user frontend/NAME, who may do what bindings give that user.
	OpenFrontEnds []string
	// Security authenticates nodes. If it is set, Serve needs a listener of TLS connections.
	Security Security
	// Activity is served if there is one.
	Activity quoratev1beta1connect.ActivityServiceHandler
	// CountDenial is called for each request that this node denies, with the tree and the reason; nil for no count.
	CountDenial func(tree, reason string)
	// Traces takes the spans of calls; nil for none.
	Traces trace.TracerProvider
	// Diagnoses are the diagnostics of the node for GetDiagnostics; at most 16.
	Diagnoses []Diagnosis
	// Limits bound what the server takes on at once.
	Limits Limits
	// Backups are saved and restored if there are any.
	Backups Backups
	// Upkeep tells of the certificates and periodic backups of this server, for the status of members.
	Upkeep func() Upkeep
	// Browsers say which web pages may call.
	Browsers Browsers
	// Network is how nodes call each other apart from clients. Without one they do at each other's listener for clients.
	Network Network
	// Peers carries calls to other nodes instead of a network, for clusters that have none.
	Peers http.RoundTripper
	// PeerSilence is how long another node may be silent before it is asked for a sign of life, and how long that may
	// take. Default 2 s.
	PeerSilence time.Duration
	// Audit takes the audit records of this server; nil drops them.
	Audit AuditLog
	// AuditRequired makes this server write the intent of each change of the configuration and of access with Audit before
	// it proposes the change.
	AuditRequired bool
	// AuditGrants, with AuditRequired, makes it do so before each request for quota too.
	AuditGrants bool
	// AuditReads records calls of clients that only read.
	AuditReads bool
	// BootstrapSecret is the SHA-256 of the secret for the first administrator; zero if this server has none.
	BootstrapSecret [32]byte
	// Recovery returns the recovery of access that was prepared on this machine, and false if there is none; nil if there
	// never is.
	Recovery func() (RecoveryOffer, bool, error)
	// CheckWebhook refuses a URL that this server does not deliver events to; nil refuses all.
	CheckWebhook func(url string) error
	// Closed is true if the server does not serve an open cluster. Bootstrap guards the cluster then.
	Closed bool
	// WasGuarded is true if the cluster was guarded when the server last knew: it refuses calls until it knows again.
	WasGuarded bool
}

// RecoveryOffer is a recovery of access that was prepared on the machine of a server.
type RecoveryOffer = handlers.RecoveryOffer

// Server serves the API of one node on one port.
type Server struct {
	id       string
	node     handlers.Node
	observer *observe.Observer
	metrics  *observe.Metrics
	// pages serves the metrics without looking at the caller.
	pages      http.Handler
	traces     observe.Traces
	forwarder  *relay.Forwarder
	procedures procedures.Table
	audit      AuditLog // nil drops records
	auditReads bool
	authorizer *authorize.Authorizer
	transport  *relay.RenewingTransport
	identifier *identify.Identifier
	peers      relay.Peers
	services   Services
	// streams makes the calls of AllocateStream.
	streams handlers.StreamCalls
	// direct are the calls of services that need no encoding.
	direct      map[string]connect.UnaryFunc
	validator   protovalidate.Validator
	notifier    *notify.Notifier
	admission   *admission.Controller
	screenRules screenRules
	network     relay.Network

	draining atomic.Bool
	// endStreams is called when shutting down begins, endCalls when it must be over.
	endStreams, endCalls context.CancelFunc
	// http serves clients, nodes serves other nodes.
	http, nodes *http.Server
}

// New makes a server that does not listen yet.
func New(c Config) (*Server, error) {
	counters, err := observe.NewMetrics(c.Registerer)
	if err != nil {
		return nil, err
	}
	refused, err := newRefused(c.Registerer)
	if err != nil {
		return nil, err
	}
	validator, err := newValidator()
	if err != nil {
		return nil, fmt.Errorf("compiling the rules of the API: %w", err)
	}
	elements, err := codec.NewElementChecker()
	if err != nil {
		return nil, fmt.Errorf("compiling the bounds of the API: %w", err)
	}
	spans, err := observe.NewTraces(c.Traces)
	if err != nil {
		return nil, err
	}
	options := handlerOptions(validator, elements, spans)
	known, err := procedures.New()
	if err != nil {
		return nil, fmt.Errorf("reading the schema of the API: %w", err)
	}
	s := &Server{
		id: c.Node.Status().ID, node: c.Node, metrics: counters, procedures: known,
		network: c.Network, notifier: notify.New(c.Node),
		transport: relay.NewRenewingTransport(
			relay.TransportConfig{
				Security: c.Security, Network: c.Network, Peers: c.Peers, Silence: c.PeerSilence,
			}), traces: spans,
		screenRules: screenRules{c.Browsers, refused, c.Security.CheckClient},
		observer: &observe.Observer{
			Log: c.Logger, Metrics: counters, Table: known, Errors: connect.NewErrorWriter(options...),
			Failures: &observe.FailureLog{Log: c.Logger, Now: time.Now},
			Refusals: &observe.FailureLog{Log: c.Logger, Now: time.Now},
		},
	}
	s.audit, s.auditReads = c.Audit, c.AuditReads
	s.observer.AfterCall = s.auditCall
	s.admission, err = admission.NewController(c.Limits, known, c.Registerer, admission.ControllerHooks{
		WriteError: s.observer.WriteError, RelayedByMember: s.relayedByMember, UserOf: s.chargedUser,
	})
	if err != nil {
		return nil, err
	}
	if s.identifier, err = s.newIdentifier(c); err != nil {
		return nil, err
	}
	if s.authorizer, err = s.newAuthorizer(c); err != nil {
		return nil, err
	}
	s.peers = relay.Peers{
		Self: s.id, Transport: s.transport, Security: c.Security, Network: c.Network != nil,
	}
	s.http = newHTTPServer(c.Logger)
	s.forwarder = &relay.Forwarder{
		ID: s.id, Node: s.node, Peers: s.peers, Transport: s.transport, Table: known, Traces: spans, Metrics: counters,
		CheckLevel: s.checkLevel, WriteError: s.observer.WriteError,
	}
	if c.Network != nil {
		s.forwarder.Streams = relay.NewCallStreams(s.peers)
	}
	s.validator, s.pages = validator, admission.CachePages(c.Metrics)
	s.assembleHandlers(c, options)
	return s, nil
}

func (s *Server) assembleHandlers(c Config, options []connect.HandlerOption) {
	streams, endStreams := context.WithCancel(context.Background())
	calls, endCalls := context.WithCancel(context.Background())
	s.endStreams, s.endCalls = endStreams, endCalls
	base := handlers.Service{
		ID: s.id, Node: c.Node, Validator: s.validator, Traces: s.traces,
		Expensive: s.admission.Expensive, Access: s.authorizer, CountDenial: c.CountDenial,
	}
	if c.AuditRequired && c.Audit != nil {
		base.Intents, base.GrantIntents = c.Audit.Require, c.AuditGrants
	}
	s.direct = directCalls(s.allocationService(base), handlers.ItemService{Service: base})
	api := s.apiHandler(base, c, options)
	s.services = s.localServices(streams, api)
	s.streams.Client = s.localAllocations(streams, api)
	s.http.Handler = s.screenCalls(s.clientRoutes(streams, api, c))
	s.http.BaseContext = func(net.Listener) context.Context { return calls }
	s.admission.LimitConnections(s.http)
	s.nodes = newNodeServer(s.http, s.nodeRoutes(streams, api))
	s.admission.KeyByMember(s.nodes, func(ctx context.Context) string { return relay.NodeCallOf(ctx).ID })
}

// newHTTPServer serves HTTP/1.1 and HTTP/2, with and without TLS. It has no handler yet.
func newHTTPServer(logger hclog.Logger) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Protocols:         protocols,
		ErrorLog:          logger.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
		ReadHeaderTimeout: admission.HeaderPatience,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: admission.CallsPerConnection},
	}
}

func (s *Server) apiHandler(base handlers.Service, c Config, options []connect.HandlerOption) http.Handler {
	api := serviceHandlers{}
	api.Handle(quoratev1connect.NewAllocationServiceHandler(s.allocationService(base), options...))
	api.Handle(quoratev1connect.NewTreeServiceHandler(handlers.TreeService{Service: base}, options...))
	api.Handle(adminv1connect.NewConfigurationServiceHandler(handlers.ConfigurationService{Service: base}, options...))
	api.Handle(adminv1connect.NewCordonServiceHandler(handlers.CordonService{Service: base}, options...))
	api.Handle(quoratev1connect.NewIdentityServiceHandler(handlers.IdentityService{Service: base}, options...))
	api.Handle(quoratev1connect.NewEventServiceHandler(
		handlers.EventService{Service: base, Notifier: s.notifier}, options...))
	api.Handle(quoratev1connect.NewItemServiceHandler(handlers.ItemService{Service: base}, options...))
	api.Handle(quoratev1connect.NewChangeServiceHandler(handlers.ChangeService{Service: base}, options...))
	api.Handle(adminv1connect.NewClusterServiceHandler(
		handlers.ClusterService{Service: base, ClusterName: c.ClusterName, Peers: s.peers, Upkeep: c.Upkeep}, options...))
	api.Handle(adminv1connect.NewAccessServiceHandler(
		handlers.AccessService{
			Service: base, BootstrapSecret: c.BootstrapSecret, Recovery: c.Recovery, Random: rand.Reader,
			GuardsAtBootstrap: c.Closed,
			Log:               c.Logger.Named("access"),
		}, options...))
	api.Handle(adminv1connect.NewAuditServiceHandler(
		handlers.AuditService{Service: base, Recent: s.recentAudit}, options...))
	api.Handle(quoratev1beta1connect.NewLimitRequestServiceHandler(
		handlers.LimitRequestService{Service: base}, options...))
	api.Handle(quoratev1beta1connect.NewWebhookServiceHandler(
		handlers.WebhookService{Service: base, CheckURL: c.CheckWebhook}, options...))
	if c.Activity != nil {
		api.Handle(quoratev1beta1connect.NewActivityServiceHandler(c.Activity, options...))
	}
	api.Handle(adminv1connect.NewDebugServiceHandler(
		handlers.NewDebugService(base, s.peers, c.Diagnoses, s.admission.Limiters.Diagnostics), options...))
	if c.Backups != nil {
		api.Handle(adminv1connect.NewSnapshotServiceHandler(handlers.SnapshotService{
			Service: base, Backups: c.Backups, ClusterName: c.ClusterName, Peers: s.peers, Count: s.metrics.Relayed.Inc,
			Saving: s.admission.Limiters.Backups,
		}, options...))
	}
	peers := handlers.PeerService{Node: s.node, Upkeep: c.Upkeep, Calls: &handlers.RelayedCallServer{
		Transport: &inprocess.Transport{
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.nodes.Handler.ServeHTTP(w, r) }),
			Whole:   func(*http.Request) bool { return true },
		},
		Known: func(path string) bool {
			return s.procedures[path].Kind == procedures.ServesClients && s.procedures.IsUnary(path)
		},
	}}
	path, peerHandler := peerv1connect.NewPeerServiceHandler(peers, options...)
	api.Handle(path, s.refuseClients(c.Security.NodesOnly(peerHandler, s.observer.WriteError)))
	limited := connect.WithReadMaxBytes(admission.SmallBody)
	reflector := grpcreflect.NewStaticReflector(append(procedures.PublicServices(), grpchealth.HealthV1ServiceName)...)
	api.Handle(grpcreflect.NewHandlerV1(reflector, limited))
	api.Handle(grpcreflect.NewHandlerV1Alpha(reflector, limited))
	api.Handle(grpchealth.NewHandler(healthChecker{s}, limited))
	return api
}

func (s *Server) allocationService(base handlers.Service) handlers.AllocationService {
	return handlers.AllocationService{
		Service: base, Notifier: s.notifier, Limiters: s.admission.Limiters, Streams: &s.streams,
		FollowCredential: s.identifier.FollowCredential,
	}
}

// serviceHandlers are the handlers of services, each under the part of the path that its methods share, such as
// "/quorate.v1.TreeService/".
type serviceHandlers map[string]http.Handler

// Handle adds the handler of a service.
func (h serviceHandlers) Handle(path string, service http.Handler) { h[path] = service }

// ServeHTTP calls the handler of the service that a path names.
func (h serviceHandlers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	service, found := h[r.URL.Path[:strings.LastIndexByte(r.URL.Path, '/')+1]]
	if !found {
		http.NotFound(w, r)
		return
	}
	service.ServeHTTP(w, r)
}

// clientRoutes puts the services behind what every call passes, beside what machines ask by plain HTTP and the front
// ends. Known procedures do not need to be searched for among the patterns of those.
func (s *Server) clientRoutes(streams context.Context, api http.Handler, c Config) http.Handler {
	a := s.admission
	calls := s.newPipeline(api,
		s.observer.ObserveCall, plain.CheckProtocol(s.procedures), plain.StreamLines(s.procedures), plain.CompleteErrors,
		a.IssueTicket, s.refuseInternal, s.identifier.Authenticate, a.AttributeUser,
		s.traces.LimitAsked(a.IsRelayed), a.AdmitCall, a.EndWithServer(streams), s.identifier.EndWithCredential,
		s.forbidBuffering, a.LimitTools, a.LimitTime, a.LimitBody, a.LimitElements, s.forwarder.ForwardWrites,
		s.authorizer.AuthorizeCall, a.DecodeInTurn, a.LimitDecoded, s.prepareCall)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", withoutBody(serveLivez))
	mux.HandleFunc("GET /readyz", withoutBody(s.serveReadyz))
	mux.Handle("GET /metrics", s.newPipeline(s.admission.LimitScrapes(s.pages),
		s.identifier.AuthenticateFrontEnd("", s.admission.RefuseCall), s.authorizer.AuthorizeScrape))
	mux.Handle("/", calls)
	s.mountFrontEnds(mux, c.FrontEnds)
	s.mountDashboard(mux, c.Dashboard, calls)
	s.mountDescription(mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, known := s.procedures[r.URL.Path]; known {
			calls.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// newPipeline makes a panic end no more than its call.
func (s *Server) newPipeline(last http.Handler, steps ...pipeline.Step) *pipeline.Pipeline {
	return &pipeline.Pipeline{Steps: steps, Last: last, Recover: s.observer.AnswerPanic}
}

// prepareCall is the last step before the handler of the protocol.
func (s *Server) prepareCall(x *pipeline.Exchange) bool {
	s.admission.TakeTimeout(x.Request)
	return forbidCaching(x)
}

// forbidCaching forbids proxies and browsers to store an answer.
func forbidCaching(x *pipeline.Exchange) bool {
	x.Writer.Header().Set("Cache-Control", "no-store")
	return true
}

// forbidBuffering tells a proxy in front, such as nginx, to pass a stream on as it comes. Without the header a proxy
// that speaks HTTP/1.0 to its servers collects an answer until it ends, and a watch does not end.
func (s *Server) forbidBuffering(x *pipeline.Exchange) bool {
	if s.procedures[x.Request.URL.Path].Streams {
		x.Writer.Header().Set("X-Accel-Buffering", "no")
	}
	return true
}

// Handler serves all paths of the client port.
func (s *Server) Handler() http.Handler { return s.http.Handler }

// Serve serves calls on l until Shutdown, and then returns nil.
func (s *Server) Serve(l net.Listener) error {
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the API on %s: %w", l.Addr(), err)
	}
	return nil
}

// Drain makes health checks report that the node is about to stop; it still serves.
func (s *Server) Drain() { s.draining.Store(true) }

// Shutdown stops accepting calls, ends streams at once and waits for the other calls. Calls that still run when ctx
// ends are cancelled. No call runs after it returns.
func (s *Server) Shutdown(ctx context.Context) error {
	s.Drain()
	s.endStreams()
	err := errors.Join(s.http.Shutdown(ctx), s.nodes.Shutdown(ctx))
	s.endCalls()
	if err != nil {
		err = errors.Join(err, s.http.Close(), s.nodes.Close())
	}
	if s.forwarder.Streams != nil {
		s.forwarder.Streams.Close()
	}
	s.transport.CloseIdleConnections()
	s.identifier.Close()
	return err
}

// RemoteReadIndex asks the leader for the log index that a linearizable read on this node must wait for, and for ledger
// time. It implements the argument of [cluster.Node.SetRemoteReadIndex].
func (s *Server) RemoteReadIndex(ctx context.Context, leader cluster.Member) (uint64, quota.Instant, error) {
	return s.peers.ReadIndex(ctx, leader)
}
