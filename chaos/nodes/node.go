package nodes

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Node is one server of a cluster: how to start it, and its process while it runs. All methods are safe for
// concurrent use, but only one goroutine at a time should start and stop a node.
type Node struct {
	// ID is the node's name, n1 and so on.
	ID    string
	Disk  *Disk
	Clock *Clock

	// log is the file to which all processes of the node write.
	log            string
	env            []string
	enterNamespace func() error

	mu      sync.Mutex
	args    []string
	binary  string
	process *nodeProcess
	exits   []Exit
}

// Exit is the unexpected end of a process.
type Exit struct {
	Node string
	At   time.Time
	// Code is the exit code, -1 if a signal ended it.
	Code int
}

type nodeProcess struct {
	cmd *exec.Cmd
	// ending is true once the harness stops the process. The node's lock protects it.
	ending bool
	// ended is closed after the process has ended.
	ended chan struct{}
}

// Start starts the node with the data on its disk. Starting a running node is an error.
func (n *Node) Start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process != nil {
		return fmt.Errorf("start %s: it runs", n.ID)
	}
	log, err := os.OpenFile(n.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the log of %s: %w", n.ID, err)
	}
	defer log.Close() //nolint:errcheck // the process has its own handle
	r := &nodeProcess{ended: make(chan struct{})}
	r.cmd = exec.Command(n.binary, n.args...) //nolint:noctx // it lives until it is killed, or this process dies
	r.cmd.Env = append(os.Environ(), n.env...)
	r.cmd.Stdout, r.cmd.Stderr = log, log
	if err := startProcess(r.cmd, n.enterNamespace); err != nil {
		return fmt.Errorf("start %s: %w", n.ID, err)
	}
	n.process = r
	go n.awaitExit(r)
	return nil
}

// awaitExit records the end of a process if it was unexpected.
func (n *Node) awaitExit(r *nodeProcess) {
	_ = r.cmd.Wait() // ProcessState has the result
	n.mu.Lock()
	defer n.mu.Unlock()
	if !r.ending {
		n.exits = append(n.exits, Exit{n.ID, time.Now(), r.cmd.ProcessState.ExitCode()})
	}
	n.process = nil
	close(r.ended)
}

// Running reports whether the node has a process, even a paused one.
func (n *Node) Running() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.process != nil
}

// Exits returns the unexpected ends of the node's processes, the oldest first.
func (n *Node) Exits() []Exit {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]Exit(nil), n.exits...)
}

// SetBinary sets the binary that the next Start runs.
func (n *Node) SetBinary(path string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.binary = path
}

func (n *Node) setArgs(args []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.args = args
}

// Kill ends the node with SIGKILL, paused or not, and waits for the end. It does nothing if the node does not run.
func (n *Node) Kill() error {
	r, err := n.sendSignal(syscall.SIGKILL, true)
	if r != nil {
		<-r.ended
	}
	return err
}

// Pause stops the node with SIGSTOP, as if its machine had no time for it.
func (n *Node) Pause() error {
	_, err := n.sendSignal(syscall.SIGSTOP, false)
	return err
}

// Resume continues a paused node.
func (n *Node) Resume() error {
	_, err := n.sendSignal(syscall.SIGCONT, false)
	return err
}

// Terminate stops the node with SIGTERM and waits for its end. After patience it kills the node and returns an error.
func (n *Node) Terminate(patience time.Duration) error {
	r, err := n.sendSignal(syscall.SIGTERM, true)
	if r == nil || err != nil {
		return err
	}
	select {
	case <-r.ended:
		if code := r.cmd.ProcessState.ExitCode(); code != 0 {
			return fmt.Errorf("%s ended with code %d when it was asked to stop", n.ID, code)
		}
		return nil
	case <-time.After(patience):
		return errors.Join(fmt.Errorf("%s did not stop within %v of SIGTERM", n.ID, patience), n.Kill())
	}
}

// Wait waits until the node has no process, and returns false after patience.
func (n *Node) Wait(patience time.Duration) bool {
	n.mu.Lock()
	r := n.process
	n.mu.Unlock()
	if r == nil {
		return true
	}
	select {
	case <-r.ended:
		return true
	case <-time.After(patience):
		return false
	}
}

// sendSignal returns nil if the node has no process.
func (n *Node) sendSignal(s syscall.Signal, ending bool) (*nodeProcess, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process == nil {
		return nil, nil
	}
	n.process.ending = n.process.ending || ending
	err := syscall.Kill(-n.process.cmd.Process.Pid, s)
	if err != nil && !errors.Is(err, syscall.ESRCH) {
		return n.process, fmt.Errorf("signal %s: %w", n.ID, err)
	}
	return n.process, nil
}

// Wipe empties the disk of a node that does not run.
func (n *Node) Wipe() error {
	if n.Running() {
		return fmt.Errorf("wipe the disk of %s: it runs", n.ID)
	}
	return n.Disk.removeContents()
}

// Log returns the log of the node so far.
func (n *Node) Log() string {
	said, err := os.ReadFile(n.log)
	if err != nil {
		return err.Error()
	}
	return string(said)
}
