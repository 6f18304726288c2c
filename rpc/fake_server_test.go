package rpc

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/rpc/admission"
	"github.com/quorate/quorate/rpc/relay"
)

type testServer struct {
	*Server

	node *fakeNode
	url  string
}

func openServer(t testing.TB, c *fakeCluster, id string) *testServer {
	t.Helper()
	return openWith(t, c, id, admission.Limits{})
}

func openWith(t testing.TB, c *fakeCluster, id string, limits admission.Limits) *testServer {
	t.Helper()
	return openOn(t, c, id, limits, nil)
}

func openOn(t testing.TB, c *fakeCluster, id string, limits admission.Limits, network relay.Network) *testServer {
	t.Helper()
	return openSecured(t, c, id, limits, network, Security{})
}

func openSecured(
	t testing.TB, c *fakeCluster, id string, limits admission.Limits, network relay.Network, security Security,
) *testServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c.members = append(c.members, cluster.Member{
		ID: id, HTTPAddr: listener.Addr().String(), RaftAddr: "raft:" + id,
		Voter: true, Alive: true,
	})
	registry := prometheus.NewRegistry()
	node := &fakeNode{fakeCluster: c, id: id}
	server, err := New(Config{
		Node: node, ClusterName: "test", Logger: hclog.NewNullLogger(),
		Metrics: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), Registerer: registry, Diagnoses: someDiagnoses,
		Limits: limits, Network: network, BootstrapSecret: c.bootstrapSecret, Recovery: c.recovery, Closed: c.closed,
		WasGuarded: c.wasGuarded,
		Audit:      c.audit, AuditRequired: c.auditRequired, AuditGrants: c.auditGrants,
		Security: security, PeerSilence: longSilence,
	})
	if err != nil {
		t.Fatal(err)
	}
	c.hangUp = append(c.hangUp, server.transport.CloseIdleConnections)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		for _, hangUp := range append(c.hangUp, overHTTP2.CloseIdleConnections) {
			hangUp()
		}
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			t.Errorf("shutting down %s: %v", id, err)
		}
		if err := <-served; err != nil {
			t.Errorf("serving %s: %v", id, err)
		}
	})
	return &testServer{Server: server, node: node, url: "http://" + listener.Addr().String()}
}

// oneNode starts a cluster of one node that leads, with the CERN tree in it.
func oneNode(t testing.TB) *testServer {
	t.Helper()
	c := newFakeCluster()
	d := openServer(t, c, "n1")
	c.lead("n1")
	d.applyCERN(t)
	return d
}

func explainRequest(r *quoratev1.AllocateRequest) *quoratev1.ExplainRequest {
	return &quoratev1.ExplainRequest{Question: &quoratev1.ExplainRequest_Request{Request: r}}
}

// explain returns what a request would lead to.
func (d *testServer) explain(t *testing.T, r *quoratev1.AllocateRequest) *quoratev1.ExplainResponse {
	t.Helper()
	answer, err := d.allocations().Explain(t.Context(), explainRequest(r))
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// allocationCalls are the calls for allocations and for events.
type allocationCalls struct {
	quoratev1connect.AllocationServiceClient
	quoratev1connect.EventServiceClient
}

func (d *testServer) allocations(options ...connect.ClientOption) allocationCalls {
	return allocationCallsOf(overHTTP2, d.url, options...)
}

func allocationCallsOf(over connect.HTTPClient, url string, options ...connect.ClientOption) allocationCalls {
	return allocationCalls{
		quoratev1connect.NewAllocationServiceClient(over, url, options...),
		quoratev1connect.NewEventServiceClient(over, url, options...),
	}
}

// treeCalls are the calls for trees, for the whole configuration and for holds.
type treeCalls struct {
	quoratev1connect.TreeServiceClient
	adminv1connect.ConfigurationServiceClient
	adminv1connect.CordonServiceClient
}

func (d *testServer) trees(options ...connect.ClientOption) treeCalls {
	return treeCallsOf(overHTTP2, d.url, options...)
}

func treeCallsOf(over connect.HTTPClient, url string, options ...connect.ClientOption) treeCalls {
	return treeCalls{
		quoratev1connect.NewTreeServiceClient(over, url, options...),
		adminv1connect.NewConfigurationServiceClient(over, url, options...),
		adminv1connect.NewCordonServiceClient(over, url, options...),
	}
}

// longSilence is for nodes and clients of a busy machine: they answer late, and no connection is given up.
const longSilence = 2 * time.Minute

// overHTTP2 is an HTTP/2 client, which gRPC requires.
var overHTTP2 = &http.Client{Transport: relay.NewPeerTransport(relay.TransportConfig{Silence: longSilence})}

func (d *testServer) applyCERN(t testing.TB) {
	t.Helper()
	if _, err := d.trees().ApplyTrees(t.Context(),
		&quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{cern()}, Actor: "test"}); err != nil {
		t.Fatal(err)
	}
}

// cern is a small strict tree: 100 cores, of which physics has 20 and operations 80.
func cern() *quoratev1.Tree {
	return &quoratev1.Tree{
		Name: "cern", Policy: "strict", Resources: []*quoratev1.Resource{
			{Name: "cores", Unit: quoratev1.Unit_UNIT_COUNT},
		},
		Limits: cores(100),
		Nodes: []*quoratev1.Node{
			{Path: "physics/higgs", Limits: cores(10)},
			{Path: "physics", Limits: cores(20)},
			{Path: "operations", Limits: cores(80)},
		},
	}
}

func cores(n int64) map[string]*quoratev1.Limit {
	return map[string]*quoratev1.Limit{"cores": {Value: &quoratev1.Limit_Amount{Amount: n}}}
}

func request(id, place string, n int64) *quoratev1.AllocateRequest {
	tree, node, _ := strings.Cut(place, ":")
	return &quoratev1.AllocateRequest{
		Id:     id,
		Claims: []*quoratev1.Claim{{Tree: tree, Node: node, Amounts: map[string]int64{"cores": n}}},
	}
}

func problemOf(t *testing.T, err error) *quoratev1.Problem {
	t.Helper()
	detail, ok := detailOf[*quoratev1.Problem](err)
	if !ok {
		t.Fatalf("error without a Problem: %v", err)
	}
	return detail
}

func detailOf[T any](err error) (T, bool) {
	var none T
	failed, ok := err.(*connect.Error) //nolint:errorlint // clients return it as it is
	if !ok {
		return none, false
	}
	for _, d := range failed.Details() {
		if value, err := d.Value(); err == nil {
			if typed, ok := value.(T); ok {
				return typed, true
			}
		}
	}
	return none, false
}
