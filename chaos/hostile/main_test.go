package hostile

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/testbinary"
	"github.com/quorate/quorate/internal/verify"
)

// waitTimeout bounds every wait on a busy machine.
const waitTimeout = 2 * time.Minute

// serverBinary is the program under test, built once for the package.
var serverBinary string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	if servers := os.Getenv(holderServers); servers != "" {
		fmt.Fprintln(os.Stderr, holdShare(servers)) // it returns with an error only
		return 1
	}
	dir, err := os.MkdirTemp("", "quorate-hostile-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the system cleans up what is left
	serverBinary = filepath.Join(dir, "quorate")
	build := testbinary.Build
	if verify.Enabled() {
		build = testbinary.BuildPlain // its tests compare throughputs, which the race detector changes
	}
	if err := build(context.Background(), serverBinary, "../../cmd/quorate"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// commandResult is the result of a command.
type commandResult struct {
	code           int
	stdout, stderr string
}

// runCommand runs a command to its end.
func runCommand(t *testing.T, args ...string) commandResult {
	t.Helper()
	p := startProcess(t, args...)
	select {
	case <-p.ended:
	case <-time.After(waitTimeout):
		t.Fatalf("quorate %v still runs after %v", args, waitTimeout)
	}
	return commandResult{p.cmd.ProcessState.ExitCode(), p.stdout.String(), p.stderr.String()}
}

// process is one process of the program. It ends with the test.
type process struct {
	cmd            *exec.Cmd
	stdout, stderr lockedBuffer
	ended          chan struct{}
}

func startProcess(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(serverBinary, args...), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	p.cmd.Env = append(os.Environ(), "NO_COLOR=1", "QUORATE_SERVER=")
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // how it ended is in ProcessState
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.killProcess(t)
		if t.Failed() {
			t.Logf("quorate %s\n%s%s", strings.Join(args, " "), p.stdout.String(), lastLines(p.stderr.String(), 60))
		}
	})
	return p
}

func (p *process) isRunning() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// killProcess kills the process, paused or not, and waits for its end.
func (p *process) killProcess(t *testing.T) {
	t.Helper()
	if p.isRunning() {
		p.sendSignal(t, syscall.SIGKILL)
		<-p.ended
	}
}

func (p *process) sendSignal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && p.isRunning() {
		t.Fatal(err)
	}
}

// memoryOf returns a field of /proc/<pid>/status in bytes: VmRSS is the present memory, VmHWM the peak.
func (p *process) memoryOf(t *testing.T, field string) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
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

// lockedBuffer can be read while a process writes to it.
type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

func lastLines(text string, count int) string {
	lines := strings.SplitAfter(text, "\n")
	return strings.Join(lines[max(0, len(lines)-count):], "")
}

// waitFor waits until a condition holds, at most for waitTimeout.
func waitFor(t *testing.T, failure string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(waitTimeout); !condition(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(failure)
		}
	}
}
