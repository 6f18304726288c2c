package main_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorate/quorate/cmd/quorate/internal/bench"
)

// benchKinds are the operations that each workload measures.
var benchKinds = map[string]string{
	"contended": "pair allocate release", "spread": "pair allocate release", "levels": "pair allocate release",
	"principals": "pair allocate release", "leases": "lease allocate renew release", "items": "pair allocate release",
	"waiting": "pair wait release", "batch": "pair allocate release",
	"reads": "", "watch": "pair allocate release event",
}

// runBench fails the test for unknown fields in the JSON report.
func runBench(t *testing.T, args ...string) (bench.Report, outcome) {
	t.Helper()
	measured := runCommand(t, append([]string{"cluster", "bench", "-o", "json"}, args...)...)
	var report bench.Report
	decoder := json.NewDecoder(strings.NewReader(measured.stdout))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&report); err != nil {
		t.Fatalf("cluster bench %v: %v\n%s%s", args, err, measured.stdout, measured.stderr)
	}
	return report, measured
}

// TestBenchWorkloads runs each workload for a short time and checks what it measured and that it left nothing.
func TestBenchWorkloads(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	for name, kinds := range benchKinds {
		t.Run(name, func(t *testing.T) {
			report, measured := runBench(t, "--server", f.baseURL(), "--workload", name, "--callers", "1,5",
				"--iterations", "12", "--warmup", "5ms")
			if measured.code != 0 || report.Workload != name || report.Joined || report.Cluster != 0 {
				t.Fatalf("exit code %d: %+v\n%s", measured.code, report, measured.stderr)
			}
			checkReport(t, report, kinds)
			if !strings.Contains(measured.stderr, "usage of tree "+report.Ledger.Tree+" is zero") {
				t.Errorf("nothing is said of the tree:\n%s", measured.stderr)
			}
		})
	}
	if trees := runCommand(t, "tree", "list", "--server", f.baseURL()); strings.Contains(trees.stdout, "bench-") {
		t.Errorf("a tree is left behind:\n%s", trees.stdout)
	}
	for command, empty := range map[string]string{
		"allocation list -o json": `"allocations": []`, "queue list -o json": `"requests": []`,
	} {
		left := runCommand(t, append(strings.Fields(command), "--server", f.baseURL())...)
		if !strings.Contains(left.stdout, empty) {
			t.Errorf("%s: %s", command, left.stdout)
		}
	}
}

// checkReport checks that each operation was measured without errors, and that counts agree with each other.
func checkReport(t *testing.T, report bench.Report, kinds string) {
	t.Helper()
	if len(report.Runs) == 0 {
		t.Error("there is no measurement")
	}
	for _, run := range report.Runs {
		want := strings.Fields(kinds)
		if run.Read != "" {
			want = []string{"read " + run.Read}
		}
		if len(run.Operations) != len(want) {
			t.Errorf("%d operations are measured, want %v", len(run.Operations), want)
		}
		for _, kind := range want {
			o, found := run.Operation(kind)
			if l := o.Latency; !found || o.Count == 0 || o.PerSecond <= 0 || o.ErrorCount != 0 || l.MinMs < 0 ||
				l.P50Ms <= 0 || l.P50Ms > l.P99Ms || l.P99Ms > l.MaxMs || o.Units < o.Count {
				t.Errorf("%s with %d callers: %+v", kind, run.Callers, o)
			}
		}
		if n := run.Iterations; run.Stopped != "count" || n.Completed != 12 || n.Scheduled != 12 || n.WarmupErrors != 0 {
			t.Errorf("iterations: %+v", n)
		}
		if run.GeneratorCPU < 0 || run.CPUs < 1 { // the system may count nothing for a run of some milliseconds
			t.Errorf("%g of %d cores were used", run.GeneratorCPU, run.CPUs)
		}
	}
	if l := report.Ledger; !l.UsageIsZero || !l.TreeDeleted || l.LeftAllocations != 0 || l.Problem != "" ||
		!strings.HasPrefix(l.Tree, "bench-"+report.Workload+"-") {
		t.Errorf("left: %+v", l)
	}
}

// TestBenchTable checks the table for people and the options of earlier releases.
func TestBenchTable(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	reads := []string{"--reads", "linearizable,stale,min-index", "--callers", "1,2"}
	for _, test := range []struct {
		args  []string
		lines int
	}{
		{[]string{"--callers", "1,4", "--batch", "1", "--leaves", "3"}, 1 + 2*3},
		{[]string{"--callers", "1,4", "--batch", "10", "--leaves", "3", "--join-calls"}, 1 + 2*3},
		{reads, 1 + 3*2},
		{append(reads, "--after-write"), 1 + 3*2},
	} {
		measured := runCommand(t,
			append([]string{"cluster", "bench", "--server", f.baseURL(), "--duration", "100ms"}, test.args...)...)
		lines := strings.Split(strings.TrimSpace(measured.stdout), "\n")
		heading := "CALLERS OPERATION COUNT PER SECOND P50 P90 P99 P99.9 MAX ERRORS"
		if measured.code != 0 || len(lines) != test.lines || strings.Join(strings.Fields(lines[0]), " ") != heading {
			t.Errorf("%v: exit code %d, want %d lines\n%s%s", test.args, measured.code, test.lines, measured.stdout,
				measured.stderr)
		}
		calls := "each call is sent on its own"
		if strings.Contains(strings.Join(test.args, " "), "--join-calls") {
			calls = "concurrent calls are joined into batches with 10 allocations"
		}
		if !strings.Contains(measured.stderr, calls) || !strings.Contains(measured.stderr, "the load generator used") {
			t.Errorf("%v: want a note %q:\n%s", test.args, calls, measured.stderr)
		}
	}
}

// TestBenchOwnServers measures servers that the command starts itself, in an open loop, and draws pictures.
func TestBenchOwnServers(t *testing.T) {
	t.Parallel()
	for size, picture := range map[string]string{"1": "latency.svg", "3": "latency.html"} {
		t.Run(size+" servers", func(t *testing.T) {
			t.Parallel()
			folder, picture := t.TempDir(), filepath.Join(t.TempDir(), picture)
			command := exec.Command(binary, "cluster", "bench", "-o", "json", "--cluster", size, "--rate", "50", "--callers",
				"64",
				"--duration", "500ms", "--picture", picture)
			command.Env = append(os.Environ(), "TMPDIR="+folder)
			measured := startCommand(t, command).awaitEnd(t)
			var report bench.Report
			if err := json.Unmarshal([]byte(measured.stdout), &report); err != nil || measured.code != 0 {
				t.Fatalf("%v, exit code %d\n%s", err, measured.code, measured.stderr)
			}
			run := report.Runs[0]
			if run.Loop != "open" || run.RatePerSecond != 50 || run.StartDelay == nil || run.Iterations.Scheduled != 25 ||
				run.Errors() != 0 || run.Iterations.Completed == 0 || run.ServersCPU <= 0 {
				t.Errorf("%+v\n%s", run.Result, measured.stderr)
			}
			if len(report.Servers) != report.Cluster || !report.Ledger.UsageIsZero {
				t.Errorf("%+v", report)
			}
			if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
				t.Errorf("left in the temporary folder: %v, %v", left, err)
			}
			for _, url := range report.Servers {
				if status, _ := httpGet(t, url+"/livez"); status != 0 {
					t.Errorf("server %s still runs", url)
				}
			}
			checkPicture(t, picture)
		})
	}
}

// checkPicture checks that a picture is well-formed, complete in itself, and has a text for those who cannot see it.
func checkPicture(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	decoder := xml.NewDecoder(bytes.NewReader(text))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s is not well-formed: %v\n%s", file, err, text)
		}
		start, begins := token.(xml.StartElement)
		if !begins {
			continue
		}
		counts[start.Name.Local]++
		for _, a := range start.Attr {
			if a.Name.Local == "src" || a.Name.Local == "href" {
				t.Errorf("%s refers to %s", file, a.Value)
			}
		}
	}
	if counts["svg"] != 1 || counts["polyline"] != 6 || counts["title"] < 7 || counts["desc"] != 1 {
		t.Errorf("%s has %v", file, counts)
	}
	for _, said := range []string{"P99.9", "pair, 64 callers", "99 %", "p99", "per second", `role="img"`} {
		if !strings.Contains(string(text), said) {
			t.Errorf("%s does not say %q", file, said)
		}
	}
}

// TestBenchInterrupted checks that an interrupted benchmark prints what it has and cleans up, also its own servers.
func TestBenchInterrupted(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	p := startProcess(t, "cluster", "bench", "--server", f.baseURL(), "--workload", "waiting", "--callers", "20",
		"--duration", "1h",
		"-o", "json")
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if queue := runCommand(t, "queue", "list", "--server", f.baseURL()); strings.Contains(queue.stdout, "bench-waiting") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing waits")
		}
	}
	p.sendSignal(t, syscall.SIGINT)
	measured := p.awaitEnd(t)
	var report bench.Report
	if err := json.Unmarshal([]byte(measured.stdout), &report); err != nil || measured.code != 1 {
		t.Fatalf("%v, exit code %d\n%s", err, measured.code, measured.stderr)
	}
	l := report.Ledger
	if report.Runs[0].Stopped != "cancelled" || !l.UsageIsZero || !l.TreeDeleted || l.LeftAllocations == 0 {
		t.Errorf("%+v", report)
	}
	if trees := runCommand(t, "tree", "list", "--server", f.baseURL()); strings.Contains(trees.stdout, "bench-") {
		t.Errorf("a tree is left behind:\n%s", trees.stdout)
	}
}

// TestBenchInterruptedWithOwnServers sends Ctrl-C to the whole process group, as a terminal does. The servers must
// outlive it until the tree is cleaned up.
func TestBenchInterruptedWithOwnServers(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("finding the server needs /proc")
	}
	t.Parallel()
	folder := t.TempDir()
	command := exec.Command(binary, "cluster", "bench", "-o", "json", "--cluster", "1", "--workload", "leases",
		"--duration", "1h",
		"--max-errors", "1")
	command.Env = append(os.Environ(), "TMPDIR="+folder)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p := startCommand(t, command)
	server := ownServer(t, folder)
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if held := runCommand(t, "allocation", "list", "--server", server); strings.Contains(held.stdout, "bench-leases") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing is held")
		}
	}
	if err := syscall.Kill(-p.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	measured := p.awaitEnd(t)
	var report bench.Report
	if err := json.Unmarshal([]byte(measured.stdout), &report); err != nil || measured.code != 1 {
		t.Fatalf("%v, exit code %d\n%s", err, measured.code, measured.stderr)
	}
	if l := report.Ledger; !l.UsageIsZero || !l.TreeDeleted || report.Runs[0].Errors() != 0 {
		t.Errorf("%+v", report)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left in the temporary folder: %v, %v", left, err)
	}
	if status, _ := httpGet(t, server+"/livez"); status != 0 {
		t.Error("the server still runs")
	}
}

// ownServer finds the process of --cluster by the data folder in its command line.
func ownServer(t *testing.T, folder string) string {
	t.Helper()
	address := regexp.MustCompile(`--http-addr\x00([0-9.:]+)\x00`)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range lines {
			text, err := os.ReadFile(line)
			if err != nil || !bytes.Contains(text, []byte(folder)) {
				continue // it has ended, or is another process
			}
			if found := address.FindSubmatch(text); found != nil {
				return "http://" + string(found[1])
			}
		}
	}
	t.Fatal("no server was started")
	return ""
}

// TestBenchReportsErrors kills the server in the middle of a benchmark.
func TestBenchReportsErrors(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	server := startServer(t, f)
	p := startProcess(t, "cluster", "bench", "--server", f.baseURL(), "--callers", "3", "--duration", "1h",
		"--timeout", "5s",
		"--max-errors", "5")
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		held := runCommand(t, "allocation", "list", "--server", f.baseURL())
		if strings.Contains(held.stdout, "bench-contended") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing is held")
		}
	}
	server.sendSignal(t, syscall.SIGKILL)
	measured := p.awaitEnd(t)
	failed := regexp.MustCompile(`3 callers: \d+ × (allocate|release) failed with unavailable, for example: `)
	if measured.code != 1 || !failed.MatchString(measured.stderr) ||
		!strings.Contains(measured.stderr, "ended early because of too many errors") ||
		!regexp.MustCompile(`tree bench-contended-\S+ is not cleaned up`).MatchString(measured.stderr) {
		t.Errorf("exit code %d\n%s%s", measured.code, measured.stdout, measured.stderr)
	}
}

// TestBenchRefusesOptions checks that wrong options are refused with a text that names them.
func TestBenchRefusesOptions(t *testing.T) {
	t.Parallel()
	for wrong, said := range map[string]string{
		"--callers=0":                          "--callers must be between 1 and 1024, not 0",
		"--callers=1025":                       "--callers must be between 1 and 1024",
		"--batch=1001":                         "--batch must be between 1 and 1000",
		"--batch=2 --workload items":           "--batch cannot be combined with workload items",
		"--leaves=0":                           "--leaves must be between 1 and 1000",
		"--leaves=2 --workload waiting":        "--leaves cannot be combined with workload waiting",
		"--duration=0s":                        "--duration must be more than 0",
		"--duration=25h":                       "--duration must be more than 0 and at most 24h",
		"--warmup=-1s":                         "\"-1s\" is negative",
		"--rate=-1":                            "--rate must be between 0 and",
		"--rate=NaN":                           "--rate must be between 0 and",
		"--reads=fresh":                        "--reads fresh: allowed are linearizable, stale, min-index",
		"--reads=stale --workload batch":       "--reads needs workload reads, not batch",
		"--after-write":                        "--after-write needs --reads",
		"--reads=stale --after-write --rate=1": "--after-write cannot be combined with --rate",
		"--workload=nothing":                   "--workload nothing: allowed are contended, spread",
		"--renewals=3":                         "--renewals needs workload leases, not contended",
		"--watchers=0 --workload=watch":        "--watchers must be between 1 and 1000",
		"--watchers=3":                         "--watchers needs workload watch",
		"--cluster=2":                          "--cluster must be 1, 3 or 5, not 2",
		"--cluster=1 --server=http://x":        "--cluster starts its own servers",
		"--picture=latency.png":                "must end in .svg or .html",
		"--iterations=-1":                      "--iterations must not be negative",
		"--max-errors=-1":                      "--max-errors must not be negative",
		"--boskos=http://x":                    "--boskos and --boskos-type must be used together",
		"--boskos=http://x --boskos-type=t --join-calls": "--boskos cannot be combined with",
	} {
		refused := runCommand(t, append([]string{"cluster", "bench"}, strings.Fields(wrong)...)...)
		if refused.code != 2 || !strings.Contains(refused.stderr, said) || refused.stdout != "" {
			t.Errorf("cluster bench %s: exit code %d, want 2 and %q\n%s", wrong, refused.code, said, refused.stderr)
		}
	}
}

// TestBenchExamples runs the examples of the help, each for a short time.
func TestBenchExamples(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	help := runCommand(t, "cluster", "bench", "--help").stdout
	_, examples, _ := strings.Cut(help, "Examples:\n")
	examples, _, _ = strings.Cut(examples, "\n\n")
	played := 0
	for line := range strings.Lines(examples) {
		args := strings.Fields(line)
		if strings.Contains(line, "--boskos") {
			continue // another test measures a server for Boskos
		}
		command := exec.Command(binary, append(args[1:], "--duration", "60ms", "--warmup", "10ms")...)
		command.Dir, command.Env = t.TempDir(), []string{"QUORATE_SERVER=" + f.baseURL()}
		if end := startCommand(t, command).awaitEnd(t); end.code != 0 {
			t.Errorf("%s: exit code %d\n%s", line, end.code, end.stderr)
		}
		played++
	}
	if played != 6 {
		t.Errorf("%d examples were found in\n%s", played, help)
	}
}

// TestBenchmarkingPage checks that the page describes each option, workload and field of the JSON output.
func TestBenchmarkingPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	help := runCommand(t, "cluster", "bench", "--help").stdout
	local, _, _ := strings.Cut(help, "Global Flags:")
	flags := regexp.MustCompile(`(?m)^ +(--[a-z-]+)`).FindAllStringSubmatch(local, -1)
	if len(flags) < 15 {
		t.Errorf("only %d options were found in\n%s", len(flags), help)
	}
	for _, flag := range flags {
		if !strings.Contains(page, "`"+flag[1]) {
			t.Errorf("option %s is not described", flag[1])
		}
	}
	for name := range benchKinds {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("workload %s is not described", name)
		}
	}
	measured := runCommand(t, "cluster", "bench", "-o", "json", "--cluster", "1", "--rate", "20", "--duration", "200ms")
	_, fields, _ := strings.Cut(page, "## JSON")
	for _, field := range regexp.MustCompile(`"([a-z0-9_]+)":`).FindAllStringSubmatch(measured.stdout, -1) {
		if !regexp.MustCompile("[`.]" + field[1] + "`").MatchString(fields) {
			t.Errorf("field %s is not described", field[1])
		}
	}
}
