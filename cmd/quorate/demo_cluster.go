package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/quorate/quorate/gen/quorate/v1/quoratev1connect"
	"github.com/quorate/quorate/server"
)

// demoNode is one real server process with a data folder of its own.
type demoNode struct {
	id, http string
	args     []string
	log      string

	process *exec.Cmd
	// ended is closed when the process is gone; then fault says how it went.
	ended chan struct{}
	fault error

	trees       quoratev1connect.TreeServiceClient
	allocations quoratev1connect.AllocationServiceClient
	cluster     quoratev1connect.ClusterServiceClient
}

// demoCluster is three of them on loopback.
type demoCluster struct {
	binary string
	nodes  []*demoNode
}

// startDemoCluster starts size processes of this binary with data below dir.
func startDemoCluster(ctx context.Context, dir string, size int) (*demoCluster, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program's own file: %w", err)
	}
	ports, err := freePorts(ctx, 3*size)
	if err != nil {
		return nil, err
	}
	c := &demoCluster{binary: binary}
	join := strings.Join(ports[2*size:], ",")
	for i := range size {
		c.nodes = append(c.nodes, newDemoNode(dir, fmt.Sprintf("n%d", i+1), ports[i], ports[size+i], ports[2*size+i], size, join))
	}
	for _, n := range c.nodes {
		if err := c.start(n); err != nil {
			return c, err
		}
	}
	return c, nil
}

func newDemoNode(dir, id, http, raft, gossip string, size int, join string) *demoNode {
	n := &demoNode{id: id, http: http, log: filepath.Join(dir, id+".log"), args: []string{
		"server", "--id", id, "--data-dir", filepath.Join(dir, id), "--http-addr", http, "--raft-addr", raft, "--gossip-addr", gossip,
		"--bootstrap-expect", fmt.Sprint(size), "--join", join, "--cluster-name", "demo", "--log-level", "warn",
	}}
	n.connect()
	return n
}

func (n *demoNode) connect() {
	caller := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // a killed server leaves nothing behind here
	url := "http://" + n.http
	n.trees = quoratev1connect.NewTreeServiceClient(caller, url)
	n.allocations = quoratev1connect.NewAllocationServiceClient(caller, url)
	n.cluster = quoratev1connect.NewClusterServiceClient(caller, url)
}

// start starts a node that does not run, on the data that it left.
func (c *demoCluster) start(n *demoNode) error {
	log, err := os.OpenFile(n.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", n.id, err)
	}
	defer log.Close()                            //nolint:errcheck // the process has its own handle
	process := exec.Command(c.binary, n.args...) //nolint:noctx // the demo ends its servers in order, also when it is cancelled
	process.Stdout, process.Stderr = log, log
	if err := process.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", n.id, err)
	}
	ended := make(chan struct{})
	n.process, n.ended, n.fault = process, ended, nil
	go func() {
		n.fault = process.Wait()
		close(ended)
	}()
	return nil
}

func (n *demoNode) runs() bool {
	if n.process == nil {
		return false
	}
	select {
	case <-n.ended:
		return false
	default:
		return true
	}
}

// kill ends a process as a power cut would, and waits until it is gone.
func (n *demoNode) kill() error {
	err := n.process.Process.Kill()
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("killing %s: %w", n.id, err)
	}
	<-n.ended
	return nil
}

// terminate asks a process to stop and wants that it ends well.
func (n *demoNode) terminate(within time.Duration) error {
	if err := n.process.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stopping %s: %w", n.id, err)
	}
	select {
	case <-n.ended:
	case <-time.After(within):
		return errors.Join(fmt.Errorf("%s does not stop within %v", n.id, within), n.kill())
	}
	if n.fault != nil {
		return fmt.Errorf("stopping %s: %w\n%s", n.id, n.fault, n.lastWords())
	}
	return nil
}

// stop ends all processes, one after the other so that each can hand over what it leads.
func (c *demoCluster) stop() error {
	var faults []error
	for _, n := range c.nodes {
		if n.runs() {
			faults = append(faults, n.terminate(server.StopTimeout))
		}
	}
	return errors.Join(faults...)
}

// killAll ends all processes at once; for the way out when something went wrong.
func (c *demoCluster) killAll() {
	for _, n := range c.nodes {
		if n.runs() {
			_ = n.kill() // there is nobody left to tell
		}
	}
}

// lastWords are the last lines of a node's log.
func (n *demoNode) lastWords() string {
	text, err := os.ReadFile(n.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return "  " + strings.Join(lines[max(0, len(lines)-10):], "\n  ")
}

// ready waits until a node says that it is.
func (n *demoNode) ready(ctx context.Context) error {
	for {
		answer, err := n.probe(ctx)
		if err == nil && answer == http.StatusOK {
			return nil
		}
		select {
		case <-n.ended:
			return fmt.Errorf("%s ended at its start:\n%s", n.id, n.lastWords())
		case <-ctx.Done():
			return fmt.Errorf("%s does not become ready: %w\n%s", n.id, ctx.Err(), n.lastWords())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (n *demoNode) probe(ctx context.Context) (status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.http+"/readyz", nil)
	if err != nil {
		return 0, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}
