package systems

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Process is a program that runs as long as its system.
type Process struct {
	// Name is that of the node.
	Name string

	cmd   *exec.Cmd
	log   string
	ended chan struct{}
}

const (
	// stopPatience is how long a process may take to stop before it is killed.
	stopPatience = 5 * time.Second
	// startPatience is how long a system may take until it serves.
	startPatience = 60 * time.Second
	pollPause     = 50 * time.Millisecond
	// shownLog is how much of a log an error shows.
	shownLog = 2000
)

// startProcess starts a command with its output in a log file. The process is killed when this one dies.
func startProcess(name, folder string, cmd *exec.Cmd) (*Process, error) {
	p := &Process{Name: name, cmd: cmd, log: filepath.Join(folder, name+".log"), ended: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, fmt.Errorf("create the log of %s: %w", name, err)
	}
	defer log.Close() //nolint:errcheck // the process has its own handle
	cmd.Stdout, cmd.Stderr = log, log
	if err := startOwned(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		_ = cmd.Wait() // the state of the process has the result
		close(p.ended)
	}()
	return p, nil
}

// signal takes a process that has ended as success.
func (p *Process) signal(signal syscall.Signal) error {
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %v to %s: %w", signal, p.Name, err)
	}
	return nil
}

// stop asks the process to end with a signal, and kills it if it does not. A paused process continues first.
func (p *Process) stop(signal syscall.Signal) error {
	if p.hasEnded() {
		return nil
	}
	if err := errors.Join(p.signal(syscall.SIGCONT), p.signal(signal)); err != nil {
		return err
	}
	select {
	case <-p.ended:
		return nil
	case <-time.After(stopPatience):
	}
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.ended
	return nil
}

func (p *Process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

func (p *Process) lastLog() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text[max(0, len(text)-shownLog):]))
}

type processGroup []*Process

// Processes are the nodes.
func (g processGroup) Processes() []*Process { return g }

// stopAll stops the last node first.
func (g processGroup) stopAll(signal syscall.Signal) error {
	var failed []error
	for _, p := range slices.Backward(g) {
		failed = append(failed, p.stop(signal))
	}
	return errors.Join(failed...)
}

func (g processGroup) signalAll(signal syscall.Signal) error {
	var failed []error
	for _, p := range g {
		failed = append(failed, p.signal(signal))
	}
	return errors.Join(failed...)
}

// Pause stops all nodes where they are.
func (g processGroup) Pause() error { return g.signalAll(syscall.SIGSTOP) }

// await calls ready until it returns nil, a process has ended or the patience is over.
func (g processGroup) await(ctx context.Context, what string, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		for _, p := range g {
			if p.hasEnded() {
				return fmt.Errorf("%s ended with %v before it served: %s", p.Name, p.cmd.ProcessState, p.lastLog())
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %w", what, ctx.Err(), err)
		case <-time.After(pollPause):
		}
	}
}

// Free ports are searched below the ephemeral range, because an outgoing connection could take a port of that range
// between the search and its use, and above the range of internal/servertest, whose tests may run at the same time.
const (
	lowestPort  = 28_000
	highestPort = 30_000
	portTries   = 1_000
)

// freeAddresses are free for TCP and UDP both.
func freeAddresses(ctx context.Context, count int) (addresses []string, err error) {
	var listen net.ListenConfig
	var held []interface{ Close() error }
	defer func() {
		for _, h := range held {
			err = errors.Join(err, h.Close())
		}
	}()
	for range portTries {
		if len(addresses) == count {
			return addresses, nil
		}
		address := fmt.Sprintf("127.0.0.1:%d", lowestPort+rand.IntN(highestPort-lowestPort))
		tcp, err := listen.Listen(ctx, "tcp", address)
		if err != nil {
			continue
		}
		held = append(held, tcp)
		udp, err := listen.ListenPacket(ctx, "udp", address)
		if err != nil {
			continue
		}
		held = append(held, udp)
		addresses = append(addresses, address)
	}
	return nil, fmt.Errorf("no %d ports between %d and %d of 127.0.0.1 are free", count, lowestPort, highestPort)
}
