package servertest

import (
	"bytes"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"
)

// Process is a program that runs until it ends by itself, is killed, or the test ends.
type Process struct {
	// Stdout and Stderr are what it has written so far.
	Stdout, Stderr Buffer

	command *exec.Cmd
	ended   chan struct{}
}

// mostLogged is how many bytes of the output of a process the log of a failed test has.
const mostLogged = 16 << 10

// pipeDelay is how long the output of a killed process may stay open, because a program that it started has it too.
const pipeDelay = 10 * time.Second

// StartProcess starts a command, with Environment unless it has one of its own. The log of a failed test has its output
// under the given name.
func StartProcess(t testing.TB, name string, command *exec.Cmd) *Process {
	t.Helper()
	return startProcess(t, t, name, command)
}

// startProcess starts a command that ends with the test of owner.
func startProcess(t, owner testing.TB, name string, command *exec.Cmd) *Process {
	t.Helper()
	p := &Process{command: command, ended: make(chan struct{})}
	if command.Stdout == nil {
		command.Stdout = &p.Stdout
	}
	if command.Stderr == nil {
		command.Stderr = &p.Stderr
	}
	if command.Env == nil {
		command.Env = Environment()
	}
	command.WaitDelay = pipeDelay
	killWithParent(command)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = command.Wait() // how it ended is in ProcessState
		close(p.ended)
	}()
	owner.Cleanup(func() {
		end := "ran until the test ended"
		if !p.Running() {
			end = p.command.ProcessState.String()
		}
		p.Kill()
		if owner.Failed() {
			text := p.Output()
			owner.Logf("%s: %s\n%s", name, end, text[max(0, len(text)-mostLogged):])
		}
	})
	return p
}

// Output returns what the process has written so far, standard output first.
func (p *Process) Output() string { return p.Stdout.String() + p.Stderr.String() }

// Ended is closed when the process has ended and all of its output is there.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Running reports whether the process was started and has not ended.
func (p *Process) Running() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// State returns how the process ended, and nil while it runs.
func (p *Process) State() *os.ProcessState {
	if p.Running() {
		return nil
	}
	return p.command.ProcessState
}

// AwaitEnd waits until the process has ended and returns its exit code, which is -1 if a signal ended it.
func (p *Process) AwaitEnd(t testing.TB, patience time.Duration) (code int) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		t.Fatalf("%v still runs after %v", p.command.Args[1:], patience)
	}
	return p.command.ProcessState.ExitCode()
}

// PID returns the id of the process.
func (p *Process) PID() int { return p.command.Process.Pid }

// Kill ends the process as a power cut would, and returns when it has ended. It may have ended before.
func (p *Process) Kill() {
	_ = p.command.Process.Kill() // fails if it has ended
	<-p.ended
}

// Signal sends a signal to the process, which must not have ended.
func (p *Process) Signal(t testing.TB, signal os.Signal) {
	t.Helper()
	if err := p.command.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}

// Buffer is a buffer that can be read while a process writes to it. The zero value is empty.
type Buffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

// Write appends to the buffer.
func (b *Buffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(text)
}

// String returns everything that was written.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// Await waits until done returns true, at most as long as patience allows; what completes the sentence "not within a
// minute: …".
func Await(t testing.TB, patience time.Duration, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}
