//go:build linux

package main_test

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestLeaseRunEndsWhatItStarted: no process that the command has started outlives the lease, in whatever session it is
// and however the lease, the command or lease run itself ends.
func TestLeaseRunEndsWhatItStarted(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	playSteps(t, f, []step{{"apply -f ../../examples/ci.yaml", 0, ""}})
	under := func(t *testing.T, id, script string) (*process, func() int) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "pid")
		script = strings.ReplaceAll(script, "FILE", file)
		run := exec.Command(binary, "lease", "run", "--server", f.baseURL(), "--id", id, "--ttl", "1h", "--kill-after",
			"1s", "--resource", "aws-quota-slice", "--", "sh", "-c", script)
		run.Env = []string{"GITLAB_CI=true", "CI_JOB_NAME=unit", "GITLAB_USER_LOGIN=kim"}
		return startCommand(t, run), func() (pid int) {
			awaitTrue(t, func() bool {
				text, err := os.ReadFile(file)
				if err != nil || !strings.HasSuffix(string(text), "\n") {
					return false
				}
				pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
				return err == nil
			})
			return pid
		}
	}
	const detached = `(trap '' TERM; setsid sh -c 'echo $$ > FILE; exec sleep 600 >/dev/null 2>&1') & `
	isGone := func(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

	t.Run("the lease is lost", func(t *testing.T) {
		p, pid := under(t, "lost", detached+"sleep 600")
		daemon := pid()
		playSteps(t, f, []step{{"lease list", 0, "unit by kim"}, {"release lost", 0, "released"}})
		if end := p.awaitEnd(t); end.code != 7 || !isGone(daemon) {
			t.Errorf("exit code %d, and the daemon has ended: %v\n%s", end.code, isGone(daemon), end.stderr)
		}
	})
	t.Run("the command ends", func(t *testing.T) {
		p, pid := under(t, "short", detached+"while ! test -s FILE; do sleep 0.02; done; exit 5")
		daemon := pid()
		if end := p.awaitEnd(t); end.code != 5 || !isGone(daemon) || !strings.Contains(end.stderr, "left behind") {
			t.Errorf("exit code %d, and the daemon has ended: %v\n%s", end.code, isGone(daemon), end.stderr)
		}
	})
	t.Run("lease run is killed", func(t *testing.T) {
		p, pid := under(t, "killed", "echo $$ > FILE; exec sleep 600 >/dev/null 2>&1")
		command := pid()
		p.sendSignal(t, syscall.SIGKILL)
		awaitTrue(t, func() bool { return isGone(command) || isZombie(command) })
		playSteps(t, f, []step{{"release killed", 0, "released"}})
	})
}

// isZombie is true for a process whose exit code its parent has not collected.
func isZombie(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(text), ") Z ")
}

// TestGrantsThatAreNotCollected: a request whose caller is stopped leaves the queue, and a grant that its caller does
// not come for ends, without a TTL too.
func TestGrantsThatAreNotCollected(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	trees := filepath.Join(t.TempDir(), "trees.yaml")
	text := "trees: {t: {policy: open, resources: {slot: {unit: count}}, limits: {slot: 1}}}\n"
	if err := os.WriteFile(trees, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	playSteps(t, f, []step{
		{"apply -f " + trees, 0, ""},
		{"allocate --id holder --at t: --amount slot=1", 0, "granted"},
	})
	signals := map[string]syscall.Signal{"int": syscall.SIGINT}
	if !signal.Ignored(syscall.SIGHUP) { // below nohup, commands go on
		signals["hup"] = syscall.SIGHUP
	}
	for id, sent := range signals {
		p := startProcess(t, "allocate", "--server", f.baseURL(), "--id", id, "--at", "t:", "--amount", "slot=1", "--wait",
			"10m")
		awaitTrue(t, func() bool {
			return strings.Contains(runCommand(t, "queue", "list", "--server", f.baseURL()).stdout, id)
		})
		p.sendSignal(t, sent)
		p.awaitEnd(t)
		playSteps(t, f, []step{{"allocation show " + id, 0, "cancelled"}})
	}
	playSteps(t, f, []step{
		{"allocate --id job --at t: --amount slot=1 --wait 10m --keep 5s --async", 9, "collect the grant"},
		{"release holder", 0, "released"},
	})
	awaitTrue(t, func() bool {
		said := runCommand(t, "allocation", "show", "job", "--server", f.baseURL()).stdout
		return strings.Contains(said, "expired") || strings.Contains(said, "abandoned")
	})
	waiter := startProcess(t, "allocate", "--server", f.baseURL(), "--id", "kept", "--at", "t:", "--amount", "slot=1",
		"--wait", "10m", "--keep", "1s")
	if end := waiter.awaitEnd(t); end.code != 0 {
		t.Fatalf("exit code %d\n%s", end.code, end.stderr)
	}
	playSteps(t, f, []step{{"allocation show kept", 0, "held"}})
}
