//go:build unix

package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/quorate/quorate/cmd/quorate/internal/node"
)

const (
	clusterPatience = time.Minute      // until new servers are ready
	stopPatience    = 20 * time.Second // until a server has ended
	readyPoll       = 20 * time.Millisecond
)

// ownCluster is for --cluster: processes of this program, with their data in a temporary folder.
type ownCluster struct {
	folder  string
	servers []*ownServer
}

type ownServer struct {
	id, url string
	command *exec.Cmd
	log     *os.File
	ended   chan struct{}
}

// startCluster leaves nothing behind if it returns an error.
func startCluster(ctx context.Context, size int) (cluster *ownCluster, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding the file of this program: %w", err)
	}
	addresses, err := node.FreePorts(ctx, 3*size)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "quorate-bench-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the data: %w", err)
	}
	cluster = &ownCluster{folder: folder}
	defer func() {
		if err != nil {
			err = errors.Join(err, cluster.stop())
		}
	}()
	for i := range size {
		if err := cluster.startServer(ctx, program, i, size, addresses); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, clusterPatience)
	defer cancel()
	for _, s := range cluster.servers {
		if err := s.awaitReady(ctx); err != nil {
			return nil, err
		}
	}
	return cluster, nil
}

func (c *ownCluster) startServer(
	ctx context.Context, program string, i, size int, addresses []string,
) error {
	id := fmt.Sprintf("n%d", i+1)
	log, err := os.OpenFile(filepath.Join(c.folder, id+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("making the log of a server: %w", err)
	}
	command := exec.CommandContext(context.WithoutCancel(ctx), program, // it is needed for the clean-up
		"server", "run", "--id", id, "--data-dir", filepath.Join(c.folder, id),
		"--cluster-name", "bench", "--log-level", "warn", "--http-addr", addresses[i], "--raft-addr", addresses[size+i],
		"--gossip-addr", addresses[2*size+i], "--bootstrap-expect", strconv.Itoa(size),
		"--join", strings.Join(addresses[2*size:], ","))
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = serverAttributes()
	if err := command.Start(); err != nil {
		return errors.Join(fmt.Errorf("starting server %s: %w", id, err), log.Close())
	}
	s := &ownServer{id: id, url: "http://" + addresses[i], command: command, log: log, ended: make(chan struct{})}
	go func() {
		_ = command.Wait() // its log says why it ended
		close(s.ended)
	}()
	c.servers = append(c.servers, s)
	return nil
}

func (c *ownCluster) urls() []string {
	var urls []string
	for _, s := range c.servers {
		urls = append(urls, s.url)
	}
	return urls
}

// cpuTime is zero where it cannot be read.
func (c *ownCluster) cpuTime() time.Duration {
	var total time.Duration
	for _, s := range c.servers {
		total += cpuTimeOf(s.command.Process.Pid)
	}
	return total
}

func (s *ownServer) awaitReady(ctx context.Context) error {
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/readyz", nil)
		if err != nil {
			return fmt.Errorf("asking server %s whether it is ready: %w", s.id, err)
		}
		if answer, err := http.DefaultClient.Do(request); err == nil {
			if err := answer.Body.Close(); err != nil {
				return fmt.Errorf("asking server %s whether it is ready: %w", s.id, err)
			}
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-s.ended:
			return fmt.Errorf("server %s ended at its start: %s", s.id, s.lastWords())
		case <-ctx.Done():
			return fmt.Errorf("server %s is not ready: %w: %s", s.id, context.Cause(ctx), s.lastWords())
		case <-time.After(readyPoll):
		}
	}
}

func (s *ownServer) lastWords() string {
	text, err := os.ReadFile(s.log.Name())
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text[max(len(text)-1000, 0):]))
}

func (c *ownCluster) stop() error {
	var faults []error
	for _, s := range c.servers {
		_ = s.command.Process.Signal(syscall.SIGTERM) // it may have ended
	}
	deadline := time.After(stopPatience)
	for _, s := range c.servers {
		select {
		case <-s.ended:
		case <-deadline:
			faults = append(faults, fmt.Errorf("server %s did not stop within %v and was killed", s.id, stopPatience))
			_ = s.command.Process.Kill() // it may have ended
			<-s.ended
		}
		faults = append(faults, s.log.Close())
	}
	return errors.Join(append(faults, os.RemoveAll(c.folder))...)
}
