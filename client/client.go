// Package client calls a Quorate cluster from Go: it fails over between servers and repeats what did not get through.
//
// Every call may be repeated safely, writes too: an allocation is known by its id and a change of configuration by its
// request id, and the client makes up the one that the caller left empty, once for the call and all its repetitions. So
// an answer may say repeated although the caller asked once: the first answer was lost on its way.
//
//	c, err := client.New([]string{"http://10.0.0.1:7101", "http://10.0.0.2:7101"})
//	…
//	granted, err := c.Allocations.Allocate(ctx, &quoratev1.AllocateRequest{…})
//	if decision, denied := client.DecisionOf(err); denied {
//		// decision.Violations says every limit in the way
//	}
//
// Acquire waits for a lease and renews it for as long as it is needed; Watch follows what happens to allocations.
package client

import (
	"errors"
	"slices"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/gen/quorate/v1/quoratev1connect"
)

// maxResponse bounds the bytes of one answer; the largest that a server sends are pages of a thousand records.
const maxResponse = 64 << 20

// Client reaches the services of one cluster. It is safe for concurrent use and needs no closing; it has goroutines
// (two at most) only while there are leases to renew.
//
// Calls answer *connect.Error as the server sent it, wrapped when several attempts were made: use connect.CodeOf and
// DecisionOf on it, never its text.
type Client struct {
	// Trees reads and changes configuration, and reads usage.
	Trees quoratev1connect.TreeServiceClient
	// Allocations grants, releases and shows allocations.
	Allocations quoratev1connect.AllocationServiceClient
	// Items shows the items of itemized resources and changes those that are not held.
	Items quoratev1connect.ItemServiceClient
	// Activity shows what went on lately, as the server that is asked has seen it.
	Activity quoratev1connect.ActivityServiceClient
	// Cluster shows the standing of the cluster.
	Cluster quoratev1connect.ClusterServiceClient
	// Debug shows the inside of servers.
	Debug quoratev1connect.DebugServiceClient
	// Snapshots saves and restores the whole state; SaveBackup and RestoreBackup are easier.
	Snapshots quoratev1connect.SnapshotServiceClient

	settings
	servers *servers
	renewer *renewer
}

// New makes a client of the cluster behind the given servers, each an address such as "10.0.0.1:7101" or a URL, perhaps
// with a path. One server suffices, since every node forwards to the leader; more let the client fail over. It asks the
// first one until that fails, and then stays with the next that answers.
//
// New sends nothing; it is an error only if the list is empty or an address is malformed.
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
	if s.http == nil {
		s.http = newHTTPClient(s.tls)
	}
	sender := &sender{http: s.http, servers: known}
	calls := []connect.ClientOption{
		connect.WithInterceptors(append(slices.Clone(s.interceptors), &retrier{settings: s, servers: known})...),
		connect.WithReadMaxBytes(maxResponse),
		// Schedulers sit beside their cluster: compressing answers would cost more than it saves.
		connect.WithAcceptCompression("gzip", nil, nil),
	}
	c := &Client{
		Trees:       &treesWithIDs{quoratev1connect.NewTreeServiceClient(sender, placeholder, calls...)},
		Allocations: &allocationsWithIDs{quoratev1connect.NewAllocationServiceClient(sender, placeholder, calls...)},
		Items:       quoratev1connect.NewItemServiceClient(sender, placeholder, calls...),
		Activity:    quoratev1connect.NewActivityServiceClient(sender, placeholder, calls...),
		Cluster:     quoratev1connect.NewClusterServiceClient(sender, placeholder, calls...),
		Debug:       quoratev1connect.NewDebugServiceClient(sender, placeholder, calls...),
		Snapshots:   quoratev1connect.NewSnapshotServiceClient(sender, placeholder, calls...),
		settings:    s,
		servers:     known,
	}
	c.renewer = newRenewer(c)
	return c, nil
}
