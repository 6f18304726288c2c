package servertest

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestProcessEndsWithTheTestProcess looks at a process whose parent has ended without killing it.
func TestProcessEndsWithTheTestProcess(t *testing.T) {
	p := StartProcess(t, "dies", thisBinary(t, "dies"))
	if code := p.AwaitEnd(t, patience); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(p.Stdout.String()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			_ = syscall.Kill(pid, syscall.SIGKILL) // nothing else does
		}
	})
	Await(t, patience, "the process ends", func() bool {
		state, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return errors.Is(err, os.ErrNotExist) || strings.Contains(string(state), ") Z ") // the system may not wait for it
	})
}
