package main_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
	"github.com/quorate/quorate/cluster/recurrence"
	"github.com/quorate/quorate/internal/servertest"
)

func TestDemo(t *testing.T) {
	t.Parallel()
	end := runCommand(t, "server", "dev", "--demo")
	if end.code != 0 {
		t.Fatalf("exit code %d\n%s%s", end.code, end.stdout, end.stderr)
	}
	for _, line := range []string{
		"18. Simulation is no longer over its limit", "kill -9 n", "nothing is charged twice", "has caught up",
		"All 18 steps came out as they must",
		"simulation  cores     5          5    5        0",
		"cern:atlas/operations/workflow holds 30 of 50 cores, 21 requested, 1 missing; " +
			"cern:atlas/operations holds 60 of 80",
	} {
		if !strings.Contains(end.stdout, line) {
			t.Errorf("the demo does not say %q", line)
		}
	}
	if strings.Contains(end.stdout, "\x1b") || end.stderr != "" {
		t.Errorf("colours in a pipe, or talk on stderr: %q", end.stderr)
	}
}

func TestDemoIsInterrupted(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	p := startCommandIn(t, tmp, "server", "dev", "--demo")
	awaitCondition(t, "the demo does not begin", func() bool { return strings.Contains(p.stdout.String(), " process ") })
	p.sendSignal(t, syscall.SIGINT)
	if end := p.awaitEnd(t); end.code != 1 || !strings.Contains(end.stderr, "interrupted") {
		t.Errorf("got %+v", end)
	}
	checkNothingIsLeft(t, p, tmp)
}

// TestDemoIsKept: with KEEP=1 the servers go on with the dashboard, until an interrupt, which is no failure.
func TestDemoIsKept(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	p := startWithEnv(t, []string{"TMPDIR=" + tmp, "KEEP=1"}, "server", "dev", "--demo")
	awaitCondition(t, "the demo does not name the dashboard", func() bool {
		if !p.isRunning() {
			t.Fatal("the demo ended")
		}
		return strings.Contains(p.stdout.String(), "Ctrl-C stops them")
	})
	_, rest, _ := strings.Cut(p.stdout.String(), "The dashboard:")
	url, _, _ := strings.Cut(strings.TrimSpace(rest), "\n")
	if status, page := httpGet(t, url); status != http.StatusOK || !strings.Contains(page, "<title>") {
		t.Errorf("%s answers %d: %.200s", url, status, page)
	}
	p.sendSignal(t, syscall.SIGINT)
	if end := p.awaitEnd(t); end.code != 0 || end.stderr != "" {
		t.Errorf("got %+v", end)
	}
	checkNothingIsLeft(t, p, tmp)
}

// checkNothingIsLeft: a demo that has ended has removed its files and stopped the servers that it names.
func checkNothingIsLeft(t *testing.T, p *process, tmp string) {
	t.Helper()
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("the demo left %v, %v", left, err)
	}
	for line := range strings.Lines(p.stdout.String()) {
		var id, url string
		var pid int
		if n, _ := fmt.Sscanf(line, " %s %s process %d", &id, &url, &pid); n == 3 && syscall.Kill(pid, 0) == nil {
			t.Errorf("%s still runs as process %d", id, pid)
		}
	}
}

func TestServerKeepsWhatItAcknowledged(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	first := startServer(t, f)
	f.applyTree(t)
	f.allocateEach(t, "a", "b")
	first.stopCleanly(t)
	second := startServer(t, f)
	if used := f.usedCores(t); used != 2 {
		t.Errorf("%d cores are held after a restart, want 2", used)
	}
	second.sendSignal(t, syscall.SIGKILL)
	second.awaitEnd(t)
	third := startServer(t, f)
	again, err := f.allocationClient().Allocate(t.Context(), oneClaim("a", 1))
	if err != nil || !again.GetWrite().GetRepetition() || f.usedCores(t) != 2 {
		t.Errorf("a retry after a crash: %v, %v", again, err)
	}
	third.stopCleanly(t)
	if third.stderr.String() != "" && strings.Contains(third.stderr.String(), "ERROR") {
		t.Errorf("an orderly life is not quiet:\n%s", third.stderr.String())
	}
}

func TestRealServerSpeaksEveryProtocol(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	f.applyTree(t)
	for name, options := range map[string][]connect.ClientOption{
		"connect": nil, "json": {connect.WithProtoJSON()}, "grpc": {connect.WithGRPC()},
		"grpc-web": {connect.WithGRPCWeb()},
	} {
		client := quoratev1connect.NewAllocationServiceClient(http2, f.baseURL(), options...)
		if granted, err := client.Allocate(t.Context(), oneClaim(name, 1)); err != nil ||
			granted.GetAllocation().GetFence() == 0 {
			t.Errorf("%s: %v, %v", name, granted, err)
		}
		_, err := client.Allocate(t.Context(), oneClaim(name+"-large", 1001))
		decision, ok := errorDetail[*quoratev1.Decision](err)
		if connect.CodeOf(err) != connect.CodeResourceExhausted || !ok || len(decision.GetViolations()) != 2 {
			t.Errorf("%s: %v", name, err)
		}
	}
	status, body := httpPost(t, f.baseURL()+"/quorate.v1.AllocationService/Allocate",
		`{"id":"curl","claims":[{"tree":"t","node":"a/b","amounts":{"cores":"2"}}]}`)
	if status != 200 || !strings.Contains(body, `"placed":"a/b"`) {
		t.Errorf("curl: %d %s", status, body)
	}
	if status, body = httpGet(t, f.baseURL()+"/metrics"); status != 200 || !strings.Contains(body, "\nraft_apply{") ||
		!strings.Contains(body, `quorate_leader{cluster="quorate"} 1`) {
		t.Errorf("metrics: %d without raft_apply or quorate_leader", status)
	}
	if status, _ = httpGet(t, f.baseURL()+"/livez"); status != 200 {
		t.Errorf("livez: %d", status)
	}
	if status, _ = httpGet(t, f.baseURL()+"/debug/pprof/"); status != 404 {
		t.Errorf("profiles are served to clients: %d", status)
	}
}

func TestSettingsFromFileEnvironmentAndFlags(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	profiles := servertest.FreePorts(t, 1)[0]
	file := filepath.Join(t.TempDir(), "quorate.yaml")
	text := fmt.Sprintf("id: from-file\ndata-dir: %s\nhttp-addr: %s\nraft-addr: %s\ngossip-addr: 127.0.0.1:1\njoin: "+
		"[%q]\npprof-addr: %s\nlog-json: true\n",
		f.dir, f.http, f.raft, f.gossip, profiles)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startWithEnv(t, []string{
		"QUORATE_SERVER_GOSSIP_ADDR=" + f.gossip, "QUORATE_SERVER_ID=from-env", "QUORATE_SERVER_CONFIG=" + file,
		// The first two are of commands, the next two of a service of Kubernetes, and the last is not known.
		"QUORATE_CONFIG=/nonexistent", "QUORATE_TLS_CA=/nonexistent", "QUORATE_SERVER_SERVICE_HOST=10.0.0.1",
		"QUORATE_SERVER_PORT=tcp://10.0.0.1:7101", "QUORATE_RAFT_ADDR=nonsense",
	}, "server", "run", "--id", "n1")
	awaitReady(t, p, f)
	if status, _ := httpGet(t, "http://"+profiles+"/debug/pprof/"); status != 200 {
		t.Errorf("profiles: %d", status)
	}
	status, err := adminv1connect.NewClusterServiceClient(fresh, f.baseURL()).GetStatus(t.Context(),
		&adminv1.GetStatusRequest{})
	if err != nil || status.GetServedBy() != "n1" {
		t.Errorf("got %v, %v", status, err)
	}
	p.stopCleanly(t)
	if !strings.Contains(p.stderr.String(), `"@message":"serving"`) {
		t.Errorf("the log is not JSON:\n%s", p.stderr.String())
	}
	warning := "warning: the variable QUORATE_RAFT_ADDR has no effect: did you mean QUORATE_SERVER_RAFT_ADDR?\n"
	if strings.Count(p.stderr.String(), "has no effect") != 1 || !strings.HasPrefix(p.stderr.String(), warning) {
		t.Errorf("the server does not warn of the one variable that has no effect:\n%s", p.stderr.String())
	}
}

func TestThreeServersLoseTheirLeaderAndThenTheirMajority(t *testing.T) {
	t.Parallel()
	flags := threeServers(t)
	flags[2].more = append(slices.Clone(flags[2].more), "--time-zones", otherTimeZones(t))
	servers := map[string]*process{}
	for _, f := range flags {
		servers[f.id] = startProcess(t, f.commandLine()...)
	}
	for _, f := range flags {
		awaitReady(t, servers[f.id], f)
	}
	checkOtherTimeZones(t, flags[0])
	flags[0].applyTree(t)
	flags[0].allocateEach(t, "a")
	flags[1].allocateEach(t, "b")
	flags[2].allocateEach(t, "c")
	lead := leaderOf(t, flags[0])
	servers[lead].stopCleanly(t) // transfers the leadership, so that the others continue at once
	left := flags[:0:0]
	for _, f := range flags {
		if f.id != lead {
			left = append(left, f)
		}
	}
	began := time.Now()
	left[0].allocateEach(t, "d")
	if took := time.Since(began); took > patience/2 { // package clustertest requires it within a second of virtual time
		t.Errorf("the hand-over took %v", took)
	}
	if used := left[1].usedCores(t); used != 4 {
		t.Errorf("%d cores are held, want 4", used)
	}
	runUntil(t, left[0], "cluster check", 1, lead+" ") // who is away, and that no further loss is survived
	servers[left[1].id].sendSignal(t, syscall.SIGKILL)
	servers[left[1].id].awaitEnd(t)
	noMajority(t, left[0])
	servers[left[1].id] = startProcess(t, left[1].commandLine()...)
	awaitReady(t, servers[left[1].id], left[1])
	left[1].allocateEach(t, "e")
}

func otherTimeZones(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	err := os.WriteFile(filepath.Join(dir, "tzdata.zi"), []byte("# version 2001a\nZ Etc/UTC 0 - UTC\n"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// checkOtherTimeZones: status names the member with an earlier table of time zones, or if that one leads, all others.
func checkOtherTimeZones(t *testing.T, f serverFlags) {
	t.Helper()
	const early, rest = "n3 has version 2001a of the time zones, and the leader n", ", and the leader n3 version 2001a"
	for _, command := range []string{"status", "member list -o json", "member list"} {
		awaitOutput(t, f, command, " of the time zones, and the leader n")
		shown := runCommand(t, append(strings.Fields(command), "--server", f.baseURL())...).stdout
		if !strings.Contains(shown, early) && !strings.Contains(shown, rest) {
			t.Errorf("%s names no member with other time zones:\n%s", command, shown)
		}
	}
	awaitOutput(t, f, "member list -o json", `"timeZones": "2001a"`)
	awaitOutput(t, f, "member list -o json", `"timeZones": "`+recurrence.CompiledZones().Version()+`"`)
	awaitOutput(t, f, "status", "time zones    2")
}

// noMajority: a node without a majority refuses calls within their deadline and still answers stale reads.
func noMajority(t *testing.T, f serverFlags) {
	t.Helper()
	time.Sleep(3 * time.Second) // until then it may still consider itself the leader
	for _, deadline := range []time.Duration{time.Second, 10 * time.Second} {
		awaitInTime(t, "no leader", deadline, func(ctx context.Context) error {
			_, err := f.allocationClient().Allocate(ctx, oneClaim("nobody", 1))
			return err
		})
		awaitInTime(t, "", deadline, func(ctx context.Context) error {
			_, err := f.treeClient().GetUsage(ctx, &quoratev1.GetUsageRequest{Tree: "t"})
			return err
		})
	}
	stale, err := f.treeClient().GetUsage(t.Context(), &quoratev1.GetUsageRequest{
		Tree: "t", Read: &quoratev1.ReadOptions{Consistency: quoratev1.Consistency_CONSISTENCY_STALE},
	})
	if err != nil || stale.GetRead().GetAgeMs() == 0 {
		t.Errorf("a stale read: %v, %v", stale, err)
	}
	if status, body := httpGet(t, f.baseURL()+"/readyz"); status != 503 {
		t.Errorf("ready without a majority: %d %s", status, body)
	}
}

// awaitInTime repeats a call without a majority until it fails with the error for a missing leader before its deadline.
// A busy machine may delay any single call.
func awaitInTime(t *testing.T, says string, deadline time.Duration, call func(context.Context) error) {
	t.Helper()
	var err error
	for range 20 {
		ctx := withTimeout(t, deadline)
		if err = call(ctx); err == nil {
			break
		}
		if connect.CodeOf(err) == connect.CodeUnavailable && ctx.Err() == nil && strings.Contains(err.Error(), says) {
			return
		}
	}
	t.Errorf("without a majority, a call with a deadline of %v: %v", deadline, err)
}

func leaderOf(t *testing.T, f serverFlags) string {
	t.Helper()
	var leader string
	awaitCondition(t, f.id+" knows no leader of three healthy members", func() bool {
		status, err := adminv1connect.NewClusterServiceClient(fresh, f.baseURL()).GetStatus(t.Context(),
			&adminv1.GetStatusRequest{})
		leader = status.GetLeaderId()
		list, failed := adminv1connect.NewClusterServiceClient(fresh, f.baseURL()).ListMembers(t.Context(),
			&adminv1.ListMembersRequest{})
		return err == nil && leader != "" && status.GetProblem() == "" && failed == nil && list.GetHealthyVoters() == 3
	})
	return leader
}

func TestDev(t *testing.T) {
	t.Parallel()
	for _, nodes := range []string{"1", "3"} {
		t.Run(nodes, func(t *testing.T) {
			t.Parallel()
			tmp := t.TempDir()
			p := startCommandIn(t, tmp, "server", "dev", "--http-addr", "127.0.0.1:0", "--members", nodes)
			for deadline := time.Now().Add(patience); !strings.Contains(p.stdout.String(),
				"quorate usage cern"); time.Sleep(20 * time.Millisecond) {
				if time.Now().After(deadline) || !p.isRunning() {
					t.Fatal("server dev does not say what to try")
				}
			}
			_, rest, _ := strings.Cut(p.stdout.String(), "QUORATE_SERVER=")
			urls, _, _ := strings.Cut(rest, "\n")
			for i, url := range strings.Split(urls, ",") {
				f := serverFlags{http: strings.TrimPrefix(url, "http://")}
				if i == 0 {
					f.applyTree(t)
				}
				f.allocateEach(t, fmt.Sprint("a", i))
				_, page := httpGet(t, url+"/metrics")
				checkMetricRules(t, page)
			}
			p.sendSignal(t, syscall.SIGINT)
			if end := p.awaitEnd(t); end.code != 0 || end.stderr != "" {
				t.Errorf("got %+v", end)
			}
			if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
				t.Errorf("server dev left %v, %v", left, err)
			}
		})
	}
}
