package hostile

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
	"github.com/quorate/quorate/internal/pki"
	"github.com/quorate/quorate/internal/servertest"
)

// clusterOptions describe a cluster. The zero value is three servers in plain text on loopback.
type clusterOptions struct {
	// size is the number of servers; 3 if 0.
	size int
	// encrypted gives the servers certificates and gossip keys of "quorate tls create", and requires client
	// certificates.
	encrypted bool
	// args are additional arguments of every server.
	args []string
}

type node struct {
	*servertest.Server

	boskos string // host:port
}

type cluster struct {
	nodes []*node
	certs pki.Folder // empty in plain text
}

func startCluster(t *testing.T, o clusterOptions) *cluster {
	t.Helper()
	c := &cluster{}
	o.size = cmp.Or(o.size, 3)
	if o.encrypted {
		c.certs = pki.Folder(filepath.Join(t.TempDir(), "certs"))
		ids := []string{"n1", "n2", "n3"}[:o.size]
		if end := runCommand(t, "tls", "create", string(c.certs), "--nodes", strings.Join(ids, ",")); end.code != 0 {
			t.Fatalf("tls create: %+v", end)
		}
	}
	servertest.StartCluster(t, servertest.Settings{
		Size: o.size, Certificates: string(c.certs), ClientAuth: o.encrypted, Patience: waitTimeout,
		Each: func(_ int, s *servertest.Server) {
			n := &node{s, servertest.FreePorts(t, 1)[0]}
			s.Args = slices.Concat(s.Args, []string{
				"--front-ends", "keystone,yunikorn,boskos=" + n.boskos, "--log-level", "info", "--raise-level-after", "1s",
			}, o.args)
			c.nodes = append(c.nodes, n)
		},
	})
	return c
}

// memoryOf returns a field of /proc/<pid>/status in bytes: VmRSS is the present memory, VmHWM the peak.
func (n *node) memoryOf(t *testing.T, field string) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.PID()))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		var kilobytes int64
		if _, err := fmt.Sscanf(line, field+": %d kB", &kilobytes); err == nil {
			return kilobytes << 10
		}
	}
	t.Fatalf("/proc has no %s", field)
	return 0
}

// clientFlags returns the flags of commands that call this server.
func (c *cluster) clientFlags(n *node) []string {
	if c.certs == "" {
		return []string{"--server", n.URL()}
	}
	return []string{"--server", n.URL(), "--tls-ca", n.CA, "--tls-cert", n.Cert, "--tls-key", n.Key}
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
	return quoratev1connect.NewAllocationServiceClient(c.httpClient(t, ""), n.URL())
}

func (c *cluster) treeClient(t *testing.T, n *node) quoratev1connect.TreeServiceClient {
	t.Helper()
	return quoratev1connect.NewTreeServiceClient(c.httpClient(t, ""), n.URL())
}

func (c *cluster) awaitReady(t *testing.T) {
	t.Helper()
	for _, n := range c.nodes {
		if n.Running() {
			waitFor(t, n.ID+" does not get ready", func() bool { return c.isReady(t, n) })
		}
	}
}

func (c *cluster) isReady(t *testing.T, n *node) bool {
	t.Helper()
	status, _ := c.httpGet(t, n, "/readyz")
	return status == http.StatusOK
}

// httpGet returns status 0 if the server did not answer.
func (c *cluster) httpGet(t *testing.T, n *node, path string) (status int, body string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, n.URL()+path, http.NoBody)
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

// findLeader also returns a server that does not lead.
func (c *cluster) findLeader(t *testing.T) (leader, follower *node) {
	t.Helper()
	waitFor(t, "there is no leader", func() bool {
		leader, follower = nil, nil
		for _, n := range c.nodes {
			if !n.Running() {
				continue
			}
			if status, body := c.httpGet(t, n, "/metrics"); status == http.StatusOK &&
				strings.Contains(body, "\n"+`quorate_leader{cluster="quorate"} 1`) {
				leader = n
			} else {
				follower = n
			}
		}
		return leader != nil
	})
	return leader, follower
}

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

func requestCores(id string, cores int64) *quoratev1.AllocateRequest {
	return &quoratev1.AllocateRequest{
		Id:     id,
		Claims: []*quoratev1.Claim{{Tree: "t", Amounts: map[string]int64{"cores": cores}}},
	}
}
