package hostile

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
	"github.com/quorate/quorate/gen/quorate/v1/quoratev1connect"
	"github.com/quorate/quorate/pki"
)

// clusterOptions describe a cluster. The zero value is three servers in plain text on loopback.
type clusterOptions struct {
	// size is the number of servers; 3 if 0.
	size int
	// encrypted gives the servers certificates and gossip keys of "quorate tls init", and requires client
	// certificates.
	encrypted bool
	// args are additional arguments of every server.
	args []string
}

// node is one server of a cluster.
type node struct {
	id                         string
	http, raft, gossip, boskos string // host:port
	data                       string // its data folder
	args                       []string
	*process
}

// cluster is a set of servers; the first is n1.
type cluster struct {
	nodes []*node
	certs pki.Folder // empty in plain text
}

// startCluster starts servers and waits until all of them are ready.
func startCluster(t *testing.T, o clusterOptions) *cluster {
	t.Helper()
	c := &cluster{}
	size := max(1, o.size)
	if o.size == 0 {
		size = 3
	}
	var ids, peers []string
	ports := freePorts(t, 4*size)
	for i := range size {
		n := &node{
			id: fmt.Sprintf("n%d", i+1), http: ports[4*i], raft: ports[4*i+1], gossip: ports[4*i+2],
			boskos: ports[4*i+3],
			data:   filepath.Join(t.TempDir(), "data"),
		}
		c.nodes, ids, peers = append(c.nodes, n), append(ids, n.id), append(peers, n.gossip)
	}
	if o.encrypted {
		c.certs = pki.Folder(filepath.Join(t.TempDir(), "certs"))
		if end := runCommand(t, "tls", "init", string(c.certs), "--nodes", strings.Join(ids, ",")); end.code != 0 {
			t.Fatalf("tls init: %+v", end)
		}
	}
	for _, n := range c.nodes {
		n.args = append([]string{
			"server", "--id", n.id, "--data-dir", n.data, "--http-addr", n.http, "--raft-addr", n.raft, "--gossip-addr",
			n.gossip,
			"--boskos-addr", n.boskos, "--bootstrap-expect", fmt.Sprint(size), "--join", strings.Join(peers, ","),
			"--raise-level-after", "1s",
		}, o.args...)
		if o.encrypted {
			n.args = append(n.args, "--tls-ca", c.certs.CA(), "--tls-cert", c.certs.Cert(n.id), "--tls-key",
				c.certs.Key(n.id),
				"--tls-client-auth", "require", "--gossip-keys-file", c.certs.GossipKeys())
		}
		n.startServer(t)
	}
	c.awaitReady(t)
	return c
}

// startServer starts the server with the data in its folder.
func (n *node) startServer(t *testing.T) {
	t.Helper()
	n.process = startProcess(t, n.args...)
}

// restartProcess kills the server and starts it again.
func (n *node) restartProcess(t *testing.T) {
	t.Helper()
	n.killProcess(t)
	n.startServer(t)
}

// pauseProcess stops the server with SIGSTOP.
func (n *node) pauseProcess(t *testing.T) { t.Helper(); n.sendSignal(t, syscall.SIGSTOP) }

// clientFlags returns the flags of commands that call this server.
func (c *cluster) clientFlags(n *node) []string {
	if c.certs == "" {
		return []string{"--server", "http://" + n.http}
	}
	return []string{
		"--server", "https://" + n.http, "--tls-ca", c.certs.CA(), "--tls-cert", c.certs.Cert("client"), "--tls-key",
		c.certs.Key("client"),
	}
}

// apiURL returns the API address of a server.
func (c *cluster) apiURL(n *node) string {
	if c.certs == "" {
		return "http://" + n.http
	}
	return "https://" + n.http
}

// httpClient returns a client with its own connections from a source address ("" for any), so that the server can
// distinguish attackers from other clients: all of 127.0.0.0/8 is loopback.
func (c *cluster) httpClient(t *testing.T, from string) *http.Client {
	t.Helper()
	dialer := &net.Dialer{Timeout: waitTimeout}
	if from != "" {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	transport := &http.Transport{
		DialContext: dialer.DialContext, MaxIdleConnsPerHost: 512,
		TLSClientConfig: c.tlsConfig(t),
	}
	protocols := new(http.Protocols)
	if c.certs == "" {
		protocols.SetUnencryptedHTTP2(true)
	} else {
		protocols.SetHTTP2(true)
	}
	transport.Protocols = protocols
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func (c *cluster) tlsConfig(t *testing.T) *tls.Config {
	t.Helper()
	if c.certs == "" {
		return nil
	}
	files := pki.Files{CA: c.certs.CA(), Cert: c.certs.Cert("client"), Key: c.certs.Key("client")}
	config, err := pki.ClientConfig(files, "localhost")
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func (c *cluster) allocationClient(t *testing.T, n *node) quoratev1connect.AllocationServiceClient {
	t.Helper()
	return quoratev1connect.NewAllocationServiceClient(c.httpClient(t, ""), c.apiURL(n))
}

func (c *cluster) treeClient(t *testing.T, n *node) quoratev1connect.TreeServiceClient {
	t.Helper()
	return quoratev1connect.NewTreeServiceClient(c.httpClient(t, ""), c.apiURL(n))
}

// awaitReady waits until every server that runs answers /readyz with 200.
func (c *cluster) awaitReady(t *testing.T) {
	t.Helper()
	for _, n := range c.nodes {
		if n.isRunning() {
			waitFor(t, n.id+" does not get ready", func() bool { return c.isReady(t, n) })
		}
	}
}

// isReady reports whether /readyz of a server answers 200.
func (c *cluster) isReady(t *testing.T, n *node) bool {
	t.Helper()
	status, _ := c.httpGet(t, n, "/readyz")
	return status == http.StatusOK
}

// httpGet makes a GET request. Status 0 means that the server did not answer.
func (c *cluster) httpGet(t *testing.T, n *node, path string) (status int, body string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.apiURL(n)+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := c.httpClient(t, "").Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close() //nolint:errcheck // it is only read
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(content)
}

// findLeader waits until a server leads, and returns it and another one.
func (c *cluster) findLeader(t *testing.T) (leader, follower *node) {
	t.Helper()
	waitFor(t, "there is no leader", func() bool {
		leader, follower = nil, nil
		for _, n := range c.nodes {
			if !n.isRunning() {
				continue
			}
			if status, body := c.httpGet(t, n, "/metrics"); status == http.StatusOK &&
				strings.Contains(body, "\nquorate_leader 1") {
				leader = n
			} else {
				follower = n
			}
		}
		return leader != nil
	})
	return leader, follower
}

// applyTree applies tree "t" with a root limit of so many cores.
func (c *cluster) applyTree(t *testing.T, cores int64) {
	t.Helper()
	tree := &quoratev1.Tree{
		Name: "t", Policy: "strict", Resources: []*quoratev1.Resource{{Name: "cores"}},
		Limits: map[string]*quoratev1.Limit{"cores": {Value: &quoratev1.Limit_Amount{Amount: cores}}},
	}
	if _, err := c.treeClient(t, c.nodes[0]).ApplyTrees(t.Context(),
		&quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{tree}}); err != nil {
		t.Fatal(err)
	}
}

// requestCores returns a request for cores of tree "t".
func requestCores(id string, cores int64) *quoratev1.AllocateRequest {
	return &quoratev1.AllocateRequest{
		Id:     id,
		Claims: []*quoratev1.Claim{{Tree: "t", Amounts: map[string]int64{"cores": cores}}},
	}
}

// Ports are counted up from a random start, below the range of outgoing connections.
var (
	firstPort = 20_000 + rand.Int32N(10_000)
	nextPort  atomic.Int32
)

// freePorts finds addresses on loopback that are free for both TCP and UDP.
func freePorts(t *testing.T, count int) []string {
	t.Helper()
	var found []string
	for len(found) < count {
		address := fmt.Sprintf("127.0.0.1:%d", firstPort+nextPort.Add(1))
		tcp, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
		if err != nil {
			continue
		}
		udp, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp", address)
		if err == nil {
			found = append(found, address)
			_ = udp.Close() // it was only to see that it is free
		}
		_ = tcp.Close() // it was only to see that it is free
	}
	return found
}
