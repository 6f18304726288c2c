package chaos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Cluster is a set of server processes on loopback with data folders of their own. One goroutine drives it.
type Cluster struct {
	binary string
	nodes  []*process
}

// process is one server and what is needed to start it again.
type process struct {
	id, dir            string
	http, raft, gossip string
	join               string
	size               int

	cmd *exec.Cmd
	// ended is closed when the running process has been reaped.
	ended chan struct{}
}

// Start starts a new cluster of the given size from a binary, with data below dir.
func Start(binary, dir string, size int) (*Cluster, error) {
	ports, err := freePorts(3 * size)
	if err != nil {
		return nil, err
	}
	c := &Cluster{binary: binary}
	var join []string
	for i := range size {
		join = append(join, ports[3*i+2])
	}
	for i := range size {
		id := fmt.Sprintf("n%d", i+1)
		c.nodes = append(c.nodes, &process{
			id: id, dir: filepath.Join(dir, id), http: ports[3*i], raft: ports[3*i+1], gossip: ports[3*i+2],
			join: strings.Join(join, ","), size: size,
		})
	}
	for i := range c.nodes {
		if err := c.Restart(i); err != nil {
			c.Stop()
			return nil, err
		}
	}
	return c, nil
}

// freePorts finds ports on loopback that nobody listens on, for TCP and UDP both.
func freePorts(n int) ([]string, error) {
	ctx, listen := context.Background(), net.ListenConfig{}
	var addresses []string
	var open []interface{ Close() error }
	defer func() {
		for _, o := range open {
			_ = o.Close()
		}
	}()
	for len(addresses) < n {
		tcp, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		open = append(open, tcp)
		udp, err := listen.ListenPacket(ctx, "udp", tcp.Addr().String())
		if err != nil {
			continue
		}
		open = append(open, udp)
		addresses = append(addresses, tcp.Addr().String())
	}
	return addresses, nil
}

// URLs are the API addresses of all nodes.
func (c *Cluster) URLs() []string {
	urls := make([]string, len(c.nodes))
	for i, p := range c.nodes {
		urls[i] = "http://" + p.http
	}
	return urls
}

// Size is the number of nodes.
func (c *Cluster) Size() int { return len(c.nodes) }

// Index finds a node by its id, or -1.
func (c *Cluster) Index(id string) int {
	for i, p := range c.nodes {
		if p.id == id {
			return i
		}
	}
	return -1
}

// Restart starts a node that does not run, on its old data.
func (c *Cluster) Restart(i int) error {
	p := c.nodes[i]
	cmd := exec.CommandContext(context.Background(), c.binary, "server", "--id", p.id, "--data-dir", p.dir, "--http-addr", p.http, "--raft-addr", p.raft,
		"--gossip-addr", p.gossip, "--bootstrap-expect", fmt.Sprint(p.size), "--join", p.join, "--log-level", "warn")
	log, err := os.OpenFile(p.dir+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the log of %s: %w", p.id, err)
	}
	defer log.Close() //nolint:errcheck // the process has its own handle
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.id, err)
	}
	ended := make(chan struct{})
	p.cmd, p.ended = cmd, ended
	go func() {
		_ = cmd.Wait() // how it ended is for Logs to tell
		close(ended)
	}()
	return nil
}

// Kill ends a node with SIGKILL and waits until it is gone.
func (c *Cluster) Kill(i int) error {
	if err := c.Signal(i, syscall.SIGKILL); err != nil {
		return err
	}
	<-c.nodes[i].ended
	return nil
}

// Signal sends a signal to a node.
func (c *Cluster) Signal(i int, s os.Signal) error {
	p := c.nodes[i]
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s: %w", p.id, err)
	}
	return nil
}

// Terminate asks a node to stop and answers its exit code, or an error if it does not stop in time.
func (c *Cluster) Terminate(i int, within time.Duration) (int, error) {
	if err := c.Signal(i, syscall.SIGTERM); err != nil {
		return 0, err
	}
	select {
	case <-c.nodes[i].ended:
		return c.nodes[i].cmd.ProcessState.ExitCode(), nil
	case <-time.After(within):
		return 0, fmt.Errorf("%s did not stop within %v of SIGTERM", c.nodes[i].id, within)
	}
}

// Stop kills everything that still runs.
func (c *Cluster) Stop() {
	for i, p := range c.nodes {
		if p.cmd != nil {
			_ = c.Signal(i, syscall.SIGCONT) // a paused process would not be reaped
			_ = c.Kill(i)
		}
	}
}

// Logs is what all nodes have said.
func (c *Cluster) Logs() string {
	var b strings.Builder
	for _, p := range c.nodes {
		said, err := os.ReadFile(p.dir + ".log")
		if err != nil {
			said = []byte(err.Error())
		}
		fmt.Fprintf(&b, "--- %s\n%s", p.id, said)
	}
	return b.String()
}
