package main_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestLeaseCommands runs the lease commands of a CI system against a real server.
func TestLeaseCommands(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	web, data := " --at ci:tenants/web --item aws-account", " --at ci:tenants/data --item aws-account"
	playSteps(t, f, []step{
		{"apply -f ../../examples/ci.yaml", 0, "items aws-account: 2 names"},
		{"item list ci:aws-account", 0, "account-2"},
		{
			"allocate --id a --ttl 1h --user ann" + web + " --amount cores=4", 0,
			"a lease of 1h: ends in 1h unless it is renewed",
		},
		{"allocate --id b --ttl 48h" + web, 2, "lasts at most"},
		{"allocate --id b" + web, 3, "missing 1"},
		{"allocate --id b --wait 1h" + web + "=3", 3, "cannot fit"},
		{"allocate --id b --wait 1h --async" + web, 9, "waits at position 1 for aws-account at ci:tenants/web"},
		{"allocate --id b --wait 1h --async" + web, 9, "position 1"},
		{"allocate --id b --wait 2h --async" + web, 5, "other content"},
		{"allocate --id c --wait 1h --async --priority 5" + web, 9, "position 1"},
		{"allocate --id d --wait 1s" + web, 8, "not granted after "},
		{"allocate --id other" + data, 0, "account-2"}, // a request that waits for its own limit does not delay others
		{"queue list", 0, "b   0"},
		{"queue list --at ci --resource cores", 0, "no request is waiting"},
		{"lease list", 0, "ann"},
		{"renew a --fence 1 --ttl 2h", 0, "ends in 2h"},
		{"renew a --fence 99", 5, "99"},
		{"renew b", 0, "position 2"},
		{"release a", 0, "released"},
		{"item list ci:aws-account --state dirty", 0, "account-1"},
		{"queue list", 0, "ci  aws-account (free): limit 2, used 2, requested 1, missing 1"},
		{"item set ci:aws-account:account-1 --new-state free", 0, "changed 1"},
		{"allocation show c", 0, "held"}, // the one with the higher priority, in the same entry
		{"allocation show b", 0, "waiting"},
		{"item set ci:aws-account:account-1 --new-state free", 3, "held"},
		{"release b --restore", 0, "cancelled"},
		{"queue list", 0, "no request is waiting"},
		{"item list --counts", 0, "ci:aws-account      2 leased"},
		{"item reset ci:aws-account --state leased --new-state free --dry-run", 0, "would take 2"},
		{"item reset ci:aws-account --state leased --new-state free", 0, "took 2"},
		{"renew c", 5, "ended"},
		{"item list ci:aws-account --counts -o json", 0, `"free": "2"`},
		{"watch --after 2 --limit 1", 0, "granted    a  ci:tenants/web cores=4 aws-account:account-1"},
		{"watch --after 2 --limit 1 --id c -o json", 0, `"kind":"ALLOCATION_CHANGE_KIND_WAITING"`},
		{"allocate --id nothing --at ci:tenants/web --amount cores=0", 0, "granted, and it holds nothing"},
		{"item list ci:cores", 1, "quorate: cores of tree ci is a count"},
		{"limit show ci:tenats", 1, "quorate: tree ci has no node"},
		{"watch --after 999999 --limit 1 --timeout 1s --server http://127.0.0.1:1", 6, "no server answers"},
	})
}

// TestLeasesCountDownOnAQuietServer (P12): what is left of a lease becomes less while there are no writes.
func TestLeasesCountDownOnAQuietServer(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	playSteps(t, f, []step{
		{"apply -f ../../examples/ci.yaml", 0, ""},
		{"allocate --id j --ttl 10m --at ci:tenants/web --amount cores=4", 0, "ends in 10m unless it is renewed"},
	})
	less := regexp.MustCompile(`\b[1-9]m[0-9]+s`)
	for _, line := range []string{"lease list", "allocation show j", "explain j"} {
		words := append(strings.Fields(line), "--server", f.baseURL())
		var last outcome
		for deadline := time.Now().Add(patience); !less.MatchString(last.stdout); time.Sleep(100 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s shows the same after %v: %d\n%s%s", line, patience, last.code, last.stdout, last.stderr)
			}
			last = runCommand(t, words...)
		}
	}
}

// TestLeaseRun: a command runs under a lease, which is released when the command ends.
func TestLeaseRun(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	slices := func() string {
		return runCommand(t, "item", "list", "ci:aws-quota-slice", "--state", "leased", "--server", f.baseURL()).stdout
	}
	under := func(more ...string) *process {
		return startProcess(
			t, append([]string{"lease", "run", "--server", f.baseURL(), "--resource", "aws-quota-slice"}, more...)...)
	}
	playSteps(t, f, []step{{"apply -f ../../examples/ci.yaml", 0, ""}})

	t.Run("environment and exit code", func(t *testing.T) {
		end := under("--count", "2", "--env", "aws-quota-slice=SLICES", "--", "sh", "-c",
			`echo "$LEASED_RESOURCE, $SLICES, $QUORATE_FENCE"; exit 41`).awaitEnd(t)
		if end.code != 41 || end.stdout != "aws-quota-slice-1 aws-quota-slice-2, aws-quota-slice-1 "+
			"aws-quota-slice-2, 1\n" {
			t.Errorf("exit code %d, said %q\n%s", end.code, end.stdout, end.stderr)
		}
	})
	t.Run("a signal is the command's", func(t *testing.T) {
		p := under("--id", "trapped", "--", "sh", "-c",
			`trap 'echo trapped; exit 42' HUP; echo ready; while :; do sleep 0.1; done`)
		awaitTrue(t, func() bool { return strings.Contains(p.stdout.String(), "ready") })
		p.sendSignal(t, syscall.SIGHUP)
		if end := p.awaitEnd(t); end.code != 42 || !strings.Contains(end.stdout, "trapped") {
			t.Errorf("exit code %d\n%s%s", end.code, end.stdout, end.stderr)
		}
	})
	t.Run("ended by a signal", func(t *testing.T) {
		p := under("--", "sh", "-c", `echo ready; sleep 600`)
		awaitTrue(t, func() bool { return strings.Contains(p.stdout.String(), "ready") })
		if end := p.endBySignal(t, os.Interrupt); end.code != 130 {
			t.Errorf("exit code %d\n%s%s", end.code, end.stdout, end.stderr)
		}
	})
	t.Run("one after the other", func(t *testing.T) {
		first := under("--count", "10", "--", "sh", "-c", "echo ready; sleep 600")
		awaitTrue(t, func() bool { return strings.Contains(first.stdout.String(), "ready") })
		second := under("--id", "second", "--wait", "10m", "--", "true")
		third := under("--id", "third", "--wait", "10m", "--", "true")
		awaitTrue(t, func() bool {
			return strings.Contains(second.stderr.String(), "waiting") &&
				strings.Contains(third.stderr.String(), "waiting")
		})
		third.sendSignal(t, syscall.SIGTERM)
		if end := third.awaitEnd(t); end.code != 143 || !strings.Contains(end.stderr, "withdrawn") {
			t.Errorf("interrupted while it waits: exit code %d\n%s", end.code, end.stderr)
		}
		playSteps(t, f, []step{{"queue list", 0, "second"}, {"allocation show third", 0, "cancelled"}})
		first.sendSignal(t, syscall.SIGTERM)
		if end := second.awaitEnd(t); end.code != 0 || !strings.Contains(end.stderr, "under fence") {
			t.Errorf("granted after a wait: exit code %d\n%s", end.code, end.stderr)
		}
		first.awaitEnd(t)
	})
	t.Run("no room, and no wait", func(t *testing.T) {
		if end := under("--count", "11", "--", "true").awaitEnd(t); end.code != 3 ||
			!strings.Contains(end.stderr, "cannot fit") {
			t.Errorf("exit code %d\n%s", end.code, end.stderr)
		}
	})
	t.Run("told that it is lost", func(t *testing.T) {
		p := under("--id", "taken", "--ttl", "1h", "--", "sh", "-c", `echo ready; sleep 600`)
		awaitTrue(t, func() bool { return strings.Contains(p.stdout.String(), "ready") })
		playSteps(t, f, []step{{"release taken", 0, "released"}})
		if end := p.awaitEnd(t); end.code != 7 || !strings.Contains(end.stderr, `lease "taken" is lost: it has ended`) {
			t.Errorf("exit code %d\n%s", end.code, end.stderr)
		}
	})
	if left := slices(); strings.Contains(left, "leased") {
		t.Errorf("still held:\n%s", left)
	}
}

// TestLeaseRunGivesWay: a request of higher priority waits for the grace, during which the command is signalled and
// ends.
func TestLeaseRunGivesWay(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	tree := filepath.Join(t.TempDir(), "grace.yaml")
	text := "trees: {b: {policy: borrowing, leases: {grace: 20s}, resources: {cpu: {unit: count}}, limits: {cpu: 10}, " +
		"nodes: {x: {limits: {cpu: 5}}, y: {limits: {cpu: 5}}}}}\n"
	if err := os.WriteFile(tree, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	playSteps(t, f, []step{{"apply -f " + tree, 0, "lease grace: 20s"}})
	p := startProcess(t, "lease", "run", "--server", f.baseURL(), "--at", "b:x", "--amount", "cpu=10", "--ttl", "10m",
		"--kill-after", "16s", "--id", "borrower",
		"--", "sh", "-c", `trap 'echo asked; exit 0' TERM; echo ready; while :; do sleep 0.1; done`)
	awaitTrue(t, func() bool { return strings.Contains(p.stdout.String(), "ready") })
	playSteps(t, f, []step{
		{"allocate --id owner --at b:y --amount cpu=5", 3, "missing"},
		{"allocate --id owner --at b:y --amount cpu=5 --wait 2m", 0, "granted"},
		{"allocation show borrower", 0, "released"}, // released by "lease run" as soon as its command had ended
	})
	end := p.awaitEnd(t)
	if end.code != 7 || !strings.Contains(end.stdout, "asked") ||
		!strings.Contains(end.stderr, "the lease is revoked by owner") ||
		!strings.Contains(end.stderr, "it had to give way to owner") {
		t.Errorf("exit code %d\n%s%s", end.code, end.stdout, end.stderr)
	}
}

// TestLeaseRunIsLost: without servers, a command that ignores SIGTERM is killed with its child processes before its
// lease can expire. The closed output shows that the whole process group has ended.
func TestLeaseRunIsLost(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	server := startServer(t, f)
	playSteps(t, f, []step{{"apply -f ../../examples/ci.yaml", 0, ""}})
	p := startProcess(t, "lease", "run", "--server", f.baseURL(), "--resource", "aws-account", "--ttl", "15s",
		"--kill-after", "4s", "--timeout", "10m", // the release is not tried for longer than the lease lasts
		"--", "sh", "-c", `trap 'echo asked' TERM; (trap '' TERM; sleep 600) & echo ready; while :; do sleep 0.1; done`)
	awaitTrue(t, func() bool { return strings.Contains(p.stdout.String(), "ready") })
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	end := p.awaitEnd(t)
	if end.code != 7 || !strings.Contains(end.stdout, "asked") ||
		!strings.Contains(end.stderr, "could not be renewed in time") {
		t.Errorf("exit code %d\n%s%s", end.code, end.stdout, end.stderr)
	}
}

// TestLeaseRunOutlivesItsLeader: the command continues when the leader is killed.
func TestLeaseRunOutlivesItsLeader(t *testing.T) {
	t.Parallel()
	nodes := threeServers(t)
	servers := map[string]*process{}
	var urls []string
	for _, f := range nodes {
		servers[f.id] = startProcess(t, f.commandLine()...)
		urls = append(urls, f.baseURL())
	}
	for _, f := range nodes {
		awaitReady(t, servers[f.id], f)
	}
	playSteps(t, nodes[0], []step{{"apply -f ../../examples/ci.yaml", 0, ""}})
	done := filepath.Join(t.TempDir(), "done")
	p := startProcess(t, "lease", "run", "--server", strings.Join(urls, ","), "--resource", "cluster", "--ttl", "30s",
		"--id", "long", "--",
		"sh", "-c", `echo ready; while [ ! -e `+done+` ]; do sleep 0.1; done`)
	awaitTrue(t, func() bool { return strings.Contains(p.stdout.String(), "ready") })
	leader := leaderOf(t, nodes[0])
	if err := servers[leader].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	other := nodes[0]
	if other.id == leader {
		other = nodes[1]
	}
	awaitRenewal(t, other, "long")
	if !p.isRunning() {
		t.Fatalf("the command has ended: %s", p.stderr.String())
	}
	playSteps(t, other, []step{{"allocation show long", 0, "held"}})
	if err := os.WriteFile(done, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if end := p.awaitEnd(t); end.code != 0 {
		t.Errorf("exit code %d\n%s", end.code, end.stderr)
	}
	playSteps(t, other, []step{{"allocation show long", 0, "released"}})
}

func awaitTrue(t *testing.T, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it is not so after %v", patience)
		}
	}
}
