package main_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// holdLease starts a keeper whose lease ends with a process, and returns the file with its variables.
func holdLease(t *testing.T, f serverFlags, parent *exec.Cmd, resource string, more ...string) (envFile string) {
	t.Helper()
	envFile = filepath.Join(t.TempDir(), "job.env")
	args := []string{
		"lease", "hold", "--server", f.baseURL(), "--resource", resource, "--ttl", "30s", "--env-file", envFile,
		"--parent", fmt.Sprint(parent.Process.Pid),
	}
	holding := startWithEnv(t, []string{"TMPDIR=" + t.TempDir()}, append(args, more...)...)
	if end := holding.awaitEnd(t); end.code != 0 || !strings.Contains(end.stderr, "leased ci") {
		t.Fatalf("%+v", end)
	}
	return envFile
}

func wantEnd(t *testing.T, f serverFlags, envFile string, code int, says string) {
	t.Helper()
	end := runCommand(t, "lease", "end", "--server", f.baseURL(), "--env-file", envFile)
	if end.code != code || !strings.Contains(end.stderr, says) {
		t.Errorf("lease end: %+v, want exit code %d and %q", end, code, says)
	}
}

func leasesOf(t *testing.T, f serverFlags) string {
	t.Helper()
	return runCommand(t, "lease", "list", "--server", f.baseURL(), "-o", "name").stdout
}

// sleeper starts a process that runs until the test ends it.
func sleeper(t *testing.T) *exec.Cmd {
	t.Helper()
	command := exec.Command("sleep", "600")
	startCommand(t, command)
	return command
}

// awaitRenewal returns when a lease has been renewed once more.
func awaitRenewal(t *testing.T, f serverFlags, id string) {
	t.Helper()
	end := func() int64 {
		answer, err := whileUnavailable(t, f.allocationClient().GetAllocation, &quoratev1.GetAllocationRequest{Id: id})
		if err != nil {
			t.Fatal(err)
		}
		return answer.GetAllocation().GetExpiresLedgerMs()
	}
	first := end()
	awaitCondition(t, "the lease "+id+" is not renewed", func() bool { return end() > first })
}

// TestLeaseHold: a lease lasts longer than its TTL without a command that runs, until it is released; or until its
// parent or its deadline has ended, which the release then tells.
func TestLeaseHold(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	playSteps(t, f, []step{{"apply -f ../../examples/ci.yaml", 0, ""}})
	parent := sleeper(t)

	released := holdLease(t, f, parent, "aws-quota-slice", "--id", "step")
	awaitRenewal(t, f, "step")
	if got := leasesOf(t, f); got != "step\n" {
		t.Errorf("lease list after a renewal: %q", got)
	}
	wantEnd(t, f, released, 0, "released")
	if got := leasesOf(t, f); got != "" {
		t.Errorf("lease list after the release: %q", got)
	}
	wantEnd(t, f, released, 7, "ended before") // no keeper is left, and the servers know that it ended

	brief := holdLease(t, f, parent, "aws-quota-slice", "--id", "brief") // the keeper answers as soon as it has reported
	end := runCommand(t, "lease", "end", "--server", f.baseURL(), "--env-file", brief)
	if end.code != 0 || strings.Contains(end.stderr, "without a trace") {
		t.Errorf("lease end at once: %+v", end)
	}

	late := holdLease(t, f, parent, "aws-quota-slice", "--deadline", "1s", "--id", "late")
	awaitTrue(t, func() bool { return leasesOf(t, f) == "" })
	wantEnd(t, f, late, 7, "--deadline of 1s")

	orphan := holdLease(t, f, parent, "aws-quota-slice", "--id", "orphan")
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	awaitTrue(t, func() bool { return leasesOf(t, f) == "" })
	wantEnd(t, f, orphan, 7, fmt.Sprintf("process %d ended", parent.Process.Pid))
}

// TestLeaseHoldKeeperIsKilled: the release does not need the keeper, and tells whether the lease lasted until then.
func TestLeaseHoldKeeperIsKilled(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	playSteps(t, f, []step{{"apply -f ../../examples/ci.yaml", 0, ""}})
	parent := sleeper(t)
	for id, code := range map[string]int{"keeper-lasts": 0, "keeper-ends": 7} {
		file := holdLease(t, f, parent, "aws-quota-slice", "--ttl", "1h", "--id", id)
		killed, err := exec.Command("pkill", "-KILL", "-f", "--", "--id "+id).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, killed)
		}
		if code != 0 {
			if _, err := f.allocationClient().Renew(t.Context(), &quoratev1.RenewRequest{Id: id, TtlMs: 100}); err != nil {
				t.Fatal(err)
			}
			awaitTrue(t, func() bool { return leasesOf(t, f) == "" })
		}
		wantEnd(t, f, file, code, "has ended without a trace")
	}
	// The next holder under the same id keeps what it has.
	file := holdLease(t, f, parent, "aws-quota-slice", "--ttl", "1h", "--id", "keeper-late")
	if killed, err := exec.Command("pkill", "-KILL", "-f", "--", "--id keeper-late").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, killed)
	}
	variables, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, failed := variables.WriteString("QUORATE_FENCE=1099511627776\n")
	if err := errors.Join(failed, variables.Close()); err != nil {
		t.Fatal(err)
	}
	wantEnd(t, f, file, 7, "another grant has its id")
	if held := leasesOf(t, f); !strings.Contains(held, "keeper-late") {
		t.Errorf("a late end has released it: %q is held", held)
	}
}

// TestLeaseHoldEndsTheJob: a lost lease ends the processes that the job has named before another one can have its
// items, and a request is withdrawn if the command is killed while it waits.
func TestLeaseHoldEndsTheJob(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	server := startServer(t, f)
	playSteps(t, f, []step{{"apply -f ../../examples/ci.yaml", 0, ""}})
	parent, job := sleeper(t), exec.Command("sh", "-c", "trap '' TERM; while :; do sleep 0.1; done")
	stubborn := startCommand(t, job)
	file := holdLease(t, f, parent, "aws-account", "--ttl", "15s", "--terminate", fmt.Sprint(job.Process.Pid),
		"--kill-after", "1s")
	second := holdLease(t, f, parent, "aws-account", "--ttl", "15s")
	waits := startProcess(t, "lease", "hold", "--server", f.baseURL(), "--resource", "aws-account", "--wait", "1h",
		"--deadline", "1h", "--id", "waits")
	awaitTrue(t, func() bool {
		return runCommand(t, "queue", "list", "--server", f.baseURL(), "-o", "name").stdout == "waits\n"
	})
	if err := waits.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	awaitTrue(t, func() bool { return runCommand(t, "queue", "list", "--server", f.baseURL(), "-o", "name").stdout == "" })

	if !stubborn.isRunning() {
		t.Fatal("the job ended before its lease")
	}
	server.endBySignal(t, os.Kill)
	select {
	case <-stubborn.ended:
	case <-time.After(patience):
		t.Fatal("the job runs on without its lease")
	}
	startServer(t, f)
	wantEnd(t, f, file, 7, "ended before")
	wantEnd(t, f, second, 7, "ended before")
}

func TestLeaseHoldMistakes(t *testing.T) {
	t.Parallel()
	for flags, says := range map[string]string{
		"":                             "--parent $$",
		"--parent 1":                   "is not a process that can end",
		"--parent 999999999":           "there is no such process",
		"--deadline 1ms":               "--deadline must be 1s or more",
		"--deadline 1h --terminate 1":  "larger than 1",
		"--deadline 1h --terminate -1": "larger than 1",
	} {
		args := append([]string{"lease", "hold", "--resource", "account"}, strings.Fields(flags)...)
		if end := runCommand(t, args...); end.code != 2 || !strings.Contains(end.stderr, says) {
			t.Errorf("%v: %+v", args, end)
		}
	}
	if end := runCommand(t, "lease", "end"); end.code != 2 || !strings.Contains(end.stderr, "QUORATE_KEEPER") {
		t.Errorf("lease end: %+v", end)
	}
}
