package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/boskos/client"
)

const (
	root = "../../.."
	// patience is how long anything may take on a busy machine.
	patience = time.Minute
)

// quorate and boskosctl are the binaries under test.
var quorate, boskosctl string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "quorate-conformance-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the system cleans up what is left
	quorate, boskosctl = filepath.Join(dir, "quorate"), filepath.Join(dir, "boskosctl")
	for _, build := range []struct{ in, from, to string }{
		{root, "./cmd/quorate", quorate}, {".", "sigs.k8s.io/boskos/cmd/boskosctl", boskosctl},
	} {
		command := exec.Command("go", "build", "-buildvcs=false", "-o", build.to, build.from)
		command.Dir = build.in
		if out, err := command.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "building %s: %v\n%s", build.from, err, out)
			return 1
		}
	}
	client.SleepFunc = func(d time.Duration) { time.Sleep(d / 10) } // the library's own knob for tests
	return m.Run()
}

// node is a real server.
type node struct {
	id, api, boskos string
	args            []string
	process         *exec.Cmd
	log             *os.File
	ended           chan struct{}
}

// cluster is three of them, for as long as a test runs.
type cluster struct {
	t     *testing.T
	nodes []*node
}

// start starts a cluster and applies a configuration file.
func start(t *testing.T, resources string) *cluster {
	t.Helper()
	const size = 3
	ports := freePorts(t, 4*size)
	c := &cluster{t: t}
	for i := range size {
		n := &node{id: fmt.Sprint("n", i+1), api: ports[i], boskos: ports[3*size+i]}
		n.args = []string{
			"server", "--id", n.id, "--data-dir", t.TempDir(), "--http-addr", n.api, "--boskos-addr", n.boskos,
			"--raft-addr", ports[size+i], "--gossip-addr", ports[2*size+i], "--bootstrap-expect", fmt.Sprint(size),
			"--join", strings.Join(ports[2*size:3*size], ","), "--log-level", "warn",
		}
		n.start(t)
		c.nodes = append(c.nodes, n)
	}
	for _, n := range c.nodes {
		n.ready(t)
	}
	run(t, quorate, "apply", "--from", "boskos", "-f", resources, "--server", "http://"+c.nodes[0].api)
	return c
}

// freePorts are below the range that systems take for outgoing connections.
func freePorts(t *testing.T, count int) []string {
	t.Helper()
	var ports []string
	for port := 10_000 + os.Getpid()%20_000; len(ports) < count; port++ {
		address := fmt.Sprintf("127.0.0.1:%d", port)
		listener, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		ports = append(ports, address)
	}
	return ports
}

func (n *node) start(t *testing.T) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), n.id+".log"))
	if err != nil {
		t.Fatal(err)
	}
	n.log, n.process, n.ended = log, exec.Command(quorate, n.args...), make(chan struct{})
	n.process.Stdout, n.process.Stderr = log, log
	if err := n.process.Start(); err != nil {
		t.Fatal(err)
	}
	process, ended := n.process, n.ended
	go func() {
		_ = process.Wait() // how it ended is seen by those who talk to it
		close(ended)
	}()
	t.Cleanup(func() {
		_ = process.Process.Kill()
		<-ended
		if text, err := os.ReadFile(log.Name()); t.Failed() && err == nil {
			t.Logf("%s says:\n%s", n.id, text)
		}
	})
}

// killLeader ends the leader as a power cut would.
func (c *cluster) killLeader(t *testing.T) *node {
	t.Helper()
	leader, _ := c.leader(t)
	if err := leader.process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-leader.ended
	return leader
}

// loseLeader kills the leader until the test is over.
func (c *cluster) loseLeader(t *testing.T) {
	t.Helper()
	lost := c.killLeader(t)
	t.Cleanup(func() {
		lost.start(c.t)
		lost.ready(c.t)
	})
}

func (n *node) url() string { return "http://" + n.boskos }

func (n *node) ready(t *testing.T) {
	t.Helper()
	await(t, n.id+" is ready", func() bool {
		answer, err := http.Get("http://" + n.api + "/readyz")
		if err != nil {
			return false
		}
		_ = answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// leader is the node that leads, and the others.
func (c *cluster) leader(t *testing.T) (leader *node, others []*node) {
	t.Helper()
	await(t, "a node leads", func() bool {
		id := c.leaderID()
		leader, others = nil, nil
		for _, n := range c.nodes {
			if n.id == id {
				leader = n
			} else {
				others = append(others, n)
			}
		}
		return leader != nil
	})
	return leader, others
}

// leaderID is what a node says that was heard lately; those that are gone do not answer.
func (c *cluster) leaderID() string {
	for _, n := range c.nodes {
		select {
		case <-n.ended:
			continue
		default:
		}
		answer, err := http.Post("http://"+n.api+"/quorate.v1.ClusterService/GetStatus", "application/json",
			strings.NewReader("{}"))
		if err != nil {
			continue
		}
		var status struct{ LeaderID string }
		err = json.NewDecoder(answer.Body).Decode(&status)
		_ = answer.Body.Close()
		for _, leader := range c.nodes {
			select {
			case <-leader.ended:
			default:
				if err == nil && leader.id == status.LeaderID {
					return leader.id
				}
			}
		}
	}
	return ""
}

// run runs a command that must end well, and answers what it prints.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	command := exec.CommandContext(ctx, name, args...)
	var out, errors bytes.Buffer
	command.Stdout, command.Stderr = &out, &errors
	if err := command.Run(); err != nil {
		t.Fatalf("%s %v: %v\n%s%s", filepath.Base(name), args, err, out.String(), errors.String())
	}
	return out.String()
}

// newClient is the unmodified library.
func newClient(t *testing.T, owner, url string) *client.Client {
	t.Helper()
	c, err := client.NewClient(owner, url, "", "")
	if err != nil {
		t.Fatal(err)
	}
	c.DistinguishNotFoundVsTypeNotFound = true
	c.Dialer.RetrySleep = 100 * time.Millisecond
	return c
}

// safeBuffer can be read while a process writes to it.
type safeBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}
