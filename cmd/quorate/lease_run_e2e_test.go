package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLeaseRunGivesWayInTime: if a lease is revoked with a grace shorter than --kill-after, its command has ended, by
// SIGKILL if necessary, before the items go to another holder.
func TestLeaseRunGivesWayInTime(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	trees := filepath.Join(t.TempDir(), "trees.yaml")
	const text = "trees: {b: {policy: borrowing, leases: {grace: 10s}, resources: {cpu: {unit: count}}, " +
		"limits: {cpu: 4}, " +
		"nodes: {x: {limits: {cpu: 2}}, y: {limits: {cpu: 2}}}}}\n"
	if err := os.WriteFile(trees, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	playSteps(t, f, []step{{"apply -f " + trees, 0, ""}})
	alive := filepath.Join(t.TempDir(), "alive")
	victim := startProcess(t, "lease", "run", "--server", f.baseURL(), "--at", "b:x", "--amount", "cpu=4",
		"--ttl", "1m", "--kill-after", "20s", "--",
		"sh", "-c", `trap '' TERM; echo ready; while :; do echo alive >> `+alive+`; sleep 0.05; done`)
	awaitTrue(t, func() bool { return strings.Contains(victim.stdout.String(), "ready") })
	winner := startProcess(t, "lease", "run", "--server", f.baseURL(), "--at", "b:y", "--amount", "cpu=2", "--priority",
		"5", "--ttl", "30s",
		"--wait", "1m", "--", "sh", "-c", `wc -l < `+alive+`; sleep 1; wc -l < `+alive)
	end := winner.awaitEnd(t)
	if counts := strings.Fields(end.stdout); end.code != 0 || len(counts) != 2 || counts[0] != counts[1] {
		t.Errorf("both ran at once: exit code %d, said %q\n%s%s", end.code, end.stdout, end.stderr,
			victim.stderr.String())
	}
	if end := victim.awaitEnd(t); end.code != 7 || !strings.Contains(end.stderr, "is revoked by") {
		t.Errorf("exit code %d\n%s", end.code, end.stderr)
	}
}

// TestLeaseRunMistakes: invalid flags, commands that cannot be started and an unreachable server have exit codes of
// their own, and no command is started.
func TestLeaseRunMistakes(t *testing.T) {
	t.Parallel()
	notExecutable := filepath.Join(t.TempDir(), "job")
	if err := os.WriteFile(notExecutable, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		words []string
		code  int
		says  string
	}{
		{[]string{"--resource", "account", "--", "/no/such/command"}, 127, "cannot be started"},
		{[]string{"--resource", "account", "--", notExecutable}, 126, "cannot be started"},
		{[]string{"--resource", "account", "--env", "acount=ACCOUNT", "--", "true"}, 2, "does not ask for"},
		{[]string{"--resource", "account", "--codes-from", "200", "--", "true"}, 2, "--codes-from"},
		{[]string{"--resource", "account", "--codes-from", "100", "--timeout", "1s", "--", "true"}, 106, "no answer"},
	} {
		end := runCommand(t, append([]string{"lease", "run", "--server", "http://127.0.0.1:1"}, c.words...)...)
		if end.code != c.code || !strings.Contains(end.stderr, c.says) {
			t.Errorf("%q: exit code %d, not %d\n%s", c.words, end.code, c.code, end.stderr)
		}
	}
}
