package servertest

import (
	"os"
	"strings"
	"testing"
	"time"
)

// patience is the timeout of a single step on a busy machine.
const patience = 2 * time.Minute

// TestProcessEndsWithItsTest starts a process in a test of its own.
func TestProcessEndsWithItsTest(t *testing.T) {
	var p *Process
	t.Run("starts", func(t *testing.T) {
		p = StartProcess(t, "runs", thisBinary(t, "runs"))
		Await(t, patience, "it has started", func() bool { return p.Output() == "started\n" })
		if !p.Running() || p.State() != nil {
			t.Errorf("it has ended: %v", p.State())
		}
	})
	if p.Running() {
		t.Error("the process outlives the test")
	}
	if state := p.State(); state == nil || state.Exited() {
		t.Errorf("it was not killed: %v", state)
	}
}

// TestOutputOfAFailedTest compares the logs of a test that fails and of one that does not.
func TestOutputOfAFailedTest(t *testing.T) {
	for _, failed := range []bool{false, true} {
		r := record(t, func(inner *recorder) {
			StartProcess(inner, "the program", thisBinary(t, "fails")).AwaitEnd(inner, patience)
		})
		r.failed = failed
		r.end()
		want := ""
		if failed {
			want = "the program: exit status 7\nthe output\nthe reason\n\n"
		}
		if r.said.String() != want {
			t.Errorf("failed %v: the log is %q, want %q", failed, r.said.String(), want)
		}
	}
}

// TestProgramThatDoesNotExist wants a test to end when its process cannot be started.
func TestProgramThatDoesNotExist(t *testing.T) {
	command := thisBinary(t, "runs")
	command.Path = "/nonexistent/program"
	r := record(t, func(inner *recorder) { StartProcess(inner, "none", command) })
	if !r.failed || !strings.Contains(r.said.String(), "/nonexistent/program") {
		t.Errorf("failed %v: %s", r.failed, r.said.String())
	}
}

func TestAwaitEnd(t *testing.T) {
	p := StartProcess(t, "runs", thisBinary(t, "runs"))
	r := record(t, func(inner *recorder) { p.AwaitEnd(inner, time.Nanosecond) })
	if !r.failed || !strings.Contains(r.said.String(), "still runs after 1ns") {
		t.Errorf("failed %v: %s", r.failed, r.said.String())
	}
	p.Kill()
	if code := p.AwaitEnd(t, patience); code != -1 {
		t.Errorf("exit code %d after a signal", code)
	}
	if code := StartProcess(t, "fails", thisBinary(t, "fails")).AwaitEnd(t, patience); code != 7 {
		t.Errorf("exit code %d, want 7", code)
	}
}

func TestSignal(t *testing.T) {
	p := StartProcess(t, "runs", thisBinary(t, "runs"))
	p.Signal(t, os.Kill)
	<-p.Ended()
	if r := record(t, func(inner *recorder) { p.Signal(inner, os.Kill) }); !r.failed {
		t.Error("a process that has ended takes a signal")
	}
	p.Kill() // harmless
}

func TestAwaitFailsAfterPatience(t *testing.T) {
	calls := 0
	r := record(t, func(inner *recorder) {
		Await(inner, time.Nanosecond, "it rains", func() bool { calls++; return false })
	})
	if want := "not within 1ns: it rains\n"; !r.failed || r.said.String() != want || calls != 1 {
		t.Errorf("failed %v after %d calls: %s", r.failed, calls, r.said.String())
	}
	Await(t, patience, "it is called three times", func() bool { calls++; return calls == 3 })
}
