package rpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/cluster"
	peerv1 "github.com/quorate/quorate/gen/quorate/peer/v1"
	"github.com/quorate/quorate/gen/quorate/peer/v1/peerv1connect"
	"github.com/quorate/quorate/rpc/admission"
	"github.com/quorate/quorate/rpc/relay"
	"github.com/quorate/quorate/rpc/wire"
)

// fakeNetworks connects the node listeners of a test.
type fakeNetworks struct {
	mu        sync.Mutex
	listeners map[string]chan net.Conn // by raft address
	dialled   []string
}

type fakeNetwork struct {
	*fakeNetworks
	id    string
	calls chan net.Conn
	done  chan struct{}
	end   func()
}

type knownConn struct {
	net.Conn
	id string
}

func (c knownConn) NodeID() string { return c.id }

func (w *fakeNetworks) networkOf(t testing.TB, id string) *fakeNetwork {
	t.Helper()
	n := &fakeNetwork{fakeNetworks: w, id: id, calls: make(chan net.Conn), done: make(chan struct{})}
	n.end = sync.OnceFunc(func() { close(n.done) })
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listeners["raft:"+id] = n.calls
	return n
}

func (w *fakeNetworks) note(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dialled = append(w.dialled, what)
}

// said also clears the list of dialled addresses.
func (w *fakeNetworks) said() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	said := strings.Join(w.dialled, ", ")
	w.dialled = nil
	return said
}

func (n *fakeNetwork) Calls() net.Listener { return n }
func (n *fakeNetwork) Addr() net.Addr      { return &net.TCPAddr{} }
func (n *fakeNetwork) Close() error        { n.end(); return nil }
func (n *fakeNetwork) Accept() (net.Conn, error) {
	select {
	case c := <-n.calls:
		return c, nil
	case <-n.done:
		return nil, net.ErrClosed
	}
}

func (n *fakeNetwork) DialNode(ctx context.Context, id, address string) (net.Conn, error) {
	n.note(id + " at " + address)
	n.mu.Lock()
	to := n.listeners[address]
	n.mu.Unlock()
	if to == nil {
		return nil, &net.OpError{Op: "dial", Err: fmt.Errorf("nothing listens at %s", address)}
	}
	near, far, err := tcpPair(ctx)
	if err != nil {
		return nil, err
	}
	to <- knownConn{far, n.id}
	return near, nil
}

func tcpPair(ctx context.Context) (near, far net.Conn, err error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	defer l.Close() //nolint:errcheck // it has served
	if near, err = new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String()); err != nil {
		return nil, nil, err
	}
	far, err = l.Accept()
	return near, far, err
}

// wired opens nodes with node listeners; the last one leads.
func wired(t *testing.T, ids ...string) (*fakeNetworks, map[string]*testServer) {
	t.Helper()
	w, c, servers := &fakeNetworks{listeners: map[string]chan net.Conn{}}, newFakeCluster(), map[string]*testServer{}
	for _, id := range ids {
		n := w.networkOf(t, id)
		d := openOn(t, c, id, admission.Limits{}, n)
		served := make(chan error, 1)
		go func() { served <- d.ServeNodes() }()
		t.Cleanup(func() {
			n.end()
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
		servers[id] = d
	}
	c.lead(ids[len(ids)-1])
	servers[ids[len(ids)-1]].applyCERN(t)
	return w, servers
}

// TestNodesCallEachOtherAtTheirRaftAddress: calls are relayed to the node listener at the raft address of the leader.
// The API address in gossip is ignored.
func TestNodesCallEachOtherAtTheirRaftAddress(t *testing.T) {
	w, servers := wired(t, "n1", "n2")
	follower, leader := servers["n1"], servers["n2"]
	members := follower.node.members
	members[1].HTTPAddr = closedPort(t)
	if _, err := follower.allocations(connect.WithGRPC()).Allocate(t.Context(),
		request("a", "cern:physics", 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := follower.services.Allocations.Allocate(t.Context(), request("b", "cern:physics", 1)); err != nil {
		t.Fatal(err)
	}
	if index, _, err := follower.RemoteReadIndex(t.Context(), members[1]); err != nil || index != leader.node.index {
		t.Errorf("%d, %v", index, err)
	}
	if standing, err := follower.Status(t.Context(), members[1]); err != nil || standing.ID != "n2" {
		t.Errorf("%v, %v", standing, err)
	}
	// Calls that begin together may each open a connection.
	for dialled := range strings.SplitSeq(w.said(), ", ") {
		if dialled != "n2 at raft:n2" {
			t.Errorf("dialled %q, want the listener for nodes", dialled)
		}
	}
	if inside := leader.admission.Limiters.Clients.Calls.InUse.Load() +
		leader.admission.Limiters.Members.Calls.InUse.Load(); inside != 0 {
		t.Errorf("%d calls are still inside", inside)
	}
}

// TestStrangersMayOnlyReadNodeStatus: a node that is not a member can call only the node status.
func TestStrangersMayOnlyReadNodeStatus(t *testing.T) {
	_, servers := wired(t, "n1", "n2")
	stranger, leader := servers["n1"], servers["n2"]
	leader.node.refused = "n1"
	m, _ := leader.node.find("n2")
	if _, err := stranger.Status(t.Context(), m); err != nil {
		t.Error(err)
	}
	if _, _, err := stranger.RemoteReadIndex(t.Context(), m); err == nil ||
		!strings.Contains(err.Error(), "not a member") {
		t.Errorf("got %v", err)
	}
	if _, err := stranger.allocations().Allocate(t.Context(),
		request("a", "cern:physics", 1)); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("got %v", err)
	}
}

// TestHeadersOfNodesAreRefusedFromClients: internal headers are refused, including those that a proxy sets for client
// certificates.
func TestHeadersOfNodesAreRefusedFromClients(t *testing.T) {
	_, servers := wired(t, "n1")
	d := servers["n1"]
	const body = `{"id":"a","claims":[{"tree":"cern","node":"physics","amounts":{"cores":"1"}}]}`
	for _, name := range []string{"Client-Cert", "Client-Cert-Chain", "Quorate-Anything", wire.RelayedByHeader} {
		if got := send(t, "POST", d.url+allocatePath, body, name, "x"); got.status != http.StatusBadRequest ||
			!strings.Contains(got.body, name) {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := send(t, "GET", d.url+"/metrics", ""); !strings.Contains(got.body, "quorate_rpc_refused_headers_total 4") {
		t.Error("the refusals were not counted")
	}
}

// TestThePeerServiceIsForNodesOnly: the client port does not serve the peer service.
func TestThePeerServiceIsForNodesOnly(t *testing.T) {
	_, servers := wired(t, "n1")
	d := servers["n1"]
	peers := peerv1connect.NewPeerServiceClient(overHTTP2, d.url)
	if _, err := peers.GetStanding(t.Context(),
		&peerv1.GetStandingRequest{}); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("got %v", err)
	}
}

func TestURLsOfNodes(t *testing.T) {
	for _, id := range []string{"n1", "a.b_c-D", strings.Repeat("x", 64)} {
		for _, address := range []string{"10.0.0.1:7201", "[::1]:7201", "node-1.example.org:7201"} {
			url := relay.NodeURL(id, address, relay.NodePort)
			r, err := http.NewRequest(http.MethodPost, url, nil)
			if err != nil {
				t.Fatal(err)
			}
			gotID, gotAddress, port, err := relay.SplitNodeURL(r.URL.Host)
			if err != nil || gotID != id || gotAddress != address || port != relay.NodePort {
				t.Errorf("%s: %q %q %q %v", url, gotID, gotAddress, port, err)
			}
			if relay.WithHostAddress(r).Host != address {
				t.Errorf("it is sent to %s", relay.WithHostAddress(r).Host)
			}
		}
	}
	for _, foreign := range []string{"127.0.0.1:80", "n1:1", "n1.zz:1", "n1"} {
		if id, address, _, err := relay.SplitNodeURL(foreign); err == nil {
			t.Errorf("%s names %q at %q", foreign, id, address)
		}
	}
	p := relay.Peers{Network: true}
	if url := p.URLOf(cluster.Member{ID: "n1"}); url != "" {
		t.Errorf("a member without an address is at %s", url)
	}
}

// FuzzListenerForNodes sends arbitrary bytes after the HTTP/2 preface. The server must still answer other connections.
func FuzzListenerForNodes(f *testing.F) {
	const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	f.Add([]byte(preface))
	f.Add([]byte(preface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00"))
	f.Add([]byte(preface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x05\x01\x05\x00\x00\x00\x01\x82\x86\x84\x41\x8a"))
	f.Add([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
	f.Add([]byte{})
	w, c := &fakeNetworks{listeners: map[string]chan net.Conn{}}, newFakeCluster()
	network := w.networkOf(f, "n1")
	server, err := newFuzzed(c, network)
	if err != nil {
		f.Fatal(err)
	}
	go func() { _ = server.ServeNodes() }()
	f.Cleanup(func() { network.end(); _ = server.nodes.Close() })
	c.lead("n1")
	self := c.members[0]
	f.Fuzz(func(t *testing.T, sent []byte) {
		near, far, err := tcpPair(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		network.calls <- knownConn{far, "n2"}
		_, _ = near.Write(sent)
		_ = near.(*net.TCPConn).CloseWrite()
		_ = near.SetReadDeadline(time.Now().Add(time.Minute))
		for buffer := make([]byte, 4096); err == nil; {
			_, err = near.Read(buffer)
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("the connection stays open although nothing more will come")
		}
		_ = near.Close()
		if _, err := server.peers.GetStanding(t.Context(), self); err != nil {
			t.Errorf("the listener does not serve any more: %v", err)
		}
	})
}

// newFuzzed returns a server that stops when its listener closes.
func newFuzzed(c *fakeCluster, network relay.Network) (*Server, error) {
	c.members = append(c.members, cluster.Member{
		ID: "n1", RaftAddr: "raft:n1", Voter: true,
	})
	return New(Config{
		Node: &fakeNode{fakeCluster: c, id: "n1"}, ClusterName: "test", Logger: hclog.NewNullLogger(),
		Metrics:    http.NotFoundHandler(),
		Registerer: prometheus.NewRegistry(), Network: network, PeerSilence: longSilence,
	})
}
