// Package client is the Go client of a Quorate cluster. It fails over between servers, retries calls that were not
// answered, and joins concurrent calls into batches.
//
// Retries are safe, for writes too: an allocation has an id and a change of configuration a request id, and the client
// generates the one that the caller leaves empty, once for a call and all its attempts. An answer may therefore say
// that it is repeated although the caller asked once: the answer to an earlier attempt was lost.
//
//	c, err := client.New([]string{"http://10.0.0.1:7101", "http://10.0.0.2:7101"})
//	…
//	granted, err := c.Allocations.Allocate(ctx, &quoratev1.AllocateRequest{…})
//	if decision, denied := client.DecisionOf(err); denied {
//		// decision.Violations says every limit in the way
//	}
//
// Concurrent calls of Allocate, Release and Renew are joined: what waits while others are under way is sent as one
// batch. Each caller has its own answer, error, deadline and retries, as if it had called alone; see WithoutJoining.
//
// Acquire waits for a lease and renews it until it is released. Watch streams the changes of allocations.
//
// WithTokenSource and WithTokenFile give all calls a token, WithTLS a certificate.
package client

import (
	"errors"
	"slices"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
	"github.com/quorate/quorate/client/gen/quorate/v1beta1/quoratev1beta1connect"
)

// maxResponse bounds the bytes of one answer; the largest that a server sends are pages of a thousand records.
const maxResponse = 64 << 20

// Client calls the services of one cluster. It is safe for concurrent use and does not have to be closed: it runs
// goroutines, at most two, only while there are leases to renew.
//
// Calls return the *connect.Error of the server, wrapped if several attempts were made. Use connect.CodeOf and
// DecisionOf to examine it; texts may change.
type Client struct {
	// Trees reads and changes the configuration, and reads usage.
	Trees quoratev1connect.TreeServiceClient
	// Allocations grants, releases and shows allocations.
	Allocations quoratev1connect.AllocationServiceClient
	// Configuration shows, restores and parses whole configurations, and lists their history.
	Configuration adminv1connect.ConfigurationServiceClient
	// Cordons puts nodes on hold.
	Cordons adminv1connect.CordonServiceClient
	// Identity says who the caller is, and what it may do.
	Identity quoratev1connect.IdentityServiceClient
	// Events tells what happens; Watch is the convenient way to follow it.
	Events quoratev1connect.EventServiceClient
	// Items lists the items of itemized resources and changes items that are not held.
	Items quoratev1connect.ItemServiceClient
	// Access shows and changes who may do what: accounts, tokens, refused credentials, the mode. The calls that make
	// tokens are repeated only while it is certain that they were not carried out.
	Access adminv1connect.AccessServiceClient
	// Audit shows who changed what.
	Audit adminv1connect.AuditServiceClient
	// Requests asks for limits, and decides about such requests.
	Requests quoratev1beta1connect.LimitRequestServiceClient
	// Webhooks configures where the cluster delivers its events.
	Webhooks quoratev1beta1connect.WebhookServiceClient
	// Activity reads what happened in the last 24 hours, as recorded by the server that answers.
	Activity quoratev1beta1connect.ActivityServiceClient
	// Changes tells what to read again; WatchChanges is the convenient way to use it.
	Changes quoratev1connect.ChangeServiceClient
	// Cluster reads the status of the cluster and changes its members.
	Cluster adminv1connect.ClusterServiceClient
	// Debug reads diagnostics of servers.
	Debug adminv1connect.DebugServiceClient
	// Snapshots saves and restores the whole state. SaveBackup and RestoreBackup are easier to use.
	Snapshots adminv1connect.SnapshotServiceClient

	settings
	servers *servers
	tokens  *tokens // nil if calls carry none
	renewer *renewer
}

// New returns a client of the cluster that the given servers belong to. Each server is an address such as
// "10.0.0.1:7101", with port 7101 if it names none, or a URL, which may have a path. One server suffices, because every
// node forwards to the leader; with more the client can fail over. The client calls the first server until that fails,
// and then the next one that answers.
//
// New does not connect. It returns an error if the list is empty or an address is malformed.
func New(servers []string, options ...Option) (*Client, error) {
	s := defaultSettings()
	for _, option := range options {
		option(&s)
	}
	if s.attemptTimeout <= 0 || s.patience <= 0 {
		return nil, errors.New("client: attempt timeout and patience must be positive")
	}
	known, err := parseServers(servers, s.tls != nil)
	if err != nil {
		return nil, err
	}
	tokens, err := newTokens(&s, known)
	if err != nil {
		return nil, err
	}
	if s.http == nil {
		s.http = newHTTPClient(s.tls)
	}
	sender := &sender{http: withoutRedirects(s.http), servers: known, tokens: tokens}
	encoding := connect.WithClientOptions(
		connect.WithCodec(Codec()),
		connect.WithReadMaxBytes(maxResponse),
		// Schedulers run close to their cluster, where compressing answers costs more than it saves.
		connect.WithAcceptCompression("gzip", nil, nil),
	)
	interceptors := append(slices.Clone(s.interceptors), &retrier{settings: s, servers: known, tokens: tokens})
	if s.batches > 0 {
		interceptors = append(interceptors, newJoiner(s.batches, sender, tokens, encoding))
	}
	calls := []connect.ClientOption{connect.WithInterceptors(interceptors...), encoding}
	c := &Client{
		Trees: &treesWithIDs{quoratev1connect.NewTreeServiceClient(sender, anyServer, calls...)},
		Configuration: &configurationWithIDs{
			adminv1connect.NewConfigurationServiceClient(sender, anyServer, calls...),
		},
		Cordons:  &cordonsWithIDs{adminv1connect.NewCordonServiceClient(sender, anyServer, calls...)},
		Identity: quoratev1connect.NewIdentityServiceClient(sender, anyServer, calls...),
		Allocations: &allocationsWithIDs{
			AllocationServiceClient: quoratev1connect.NewAllocationServiceClient(sender, anyServer, calls...),
			namespace:               s.namespace,
		},
		Events: &eventsWithNamespace{
			EventServiceClient: quoratev1connect.NewEventServiceClient(sender, anyServer, calls...),
			namespace:          s.namespace,
		},
		Items:     quoratev1connect.NewItemServiceClient(sender, anyServer, calls...),
		Access:    adminv1connect.NewAccessServiceClient(sender, anyServer, calls...),
		Audit:     adminv1connect.NewAuditServiceClient(sender, anyServer, calls...),
		Requests:  quoratev1beta1connect.NewLimitRequestServiceClient(sender, anyServer, calls...),
		Webhooks:  quoratev1beta1connect.NewWebhookServiceClient(sender, anyServer, calls...),
		Activity:  quoratev1beta1connect.NewActivityServiceClient(sender, anyServer, calls...),
		Changes:   quoratev1connect.NewChangeServiceClient(sender, anyServer, calls...),
		Cluster:   adminv1connect.NewClusterServiceClient(sender, anyServer, calls...),
		Debug:     adminv1connect.NewDebugServiceClient(sender, anyServer, calls...),
		Snapshots: adminv1connect.NewSnapshotServiceClient(sender, anyServer, calls...),
		settings:  s,
		servers:   known,
		tokens:    tokens,
	}
	c.renewer = newRenewer(c)
	return c, nil
}
