package main_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
	quorate "github.com/quorate/quorate/cmd/quorate"
	"github.com/quorate/quorate/internal/servertest"
	"github.com/quorate/quorate/internal/testbinary"
	"github.com/quorate/quorate/internal/verify"
)

// These tests run the release binary, built once, as processes with real files and ports.

var binary string

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "curl" {
		if err := runCurl(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "quorate-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the system cleans up what is left
	binary = filepath.Join(dir, "quorate")
	if err := testbinary.Build(context.Background(), binary, "."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := prepareEnvironment(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := allowParallelServers(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// prepareEnvironment makes commands independent of the variables of the caller; the two that remain are for the tests.
func prepareEnvironment() error {
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, "QUORATE_") || name == "QUORATE_VERIFY" || name == "QUORATE_PAGES" {
			continue
		}
		if err := os.Unsetenv(name); err != nil {
			return err
		}
	}
	return os.Setenv("NO_COLOR", "1")
}

// allowParallelServers doubles the number of tests that run at once unless -parallel is given. The tests mostly wait
// for elections, leases and polls, and leave the processors idle.
func allowParallelServers() error {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return nil
	}
	return flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0)))
}

// patience is the timeout of a single step on a busy machine.
const patience = 4 * time.Minute

// outcome is the output and exit code of a command.
type outcome struct {
	code           int
	stdout, stderr string
}

// ownProcess are the commands that start programs, or run until a signal ends them.
var ownProcess = []string{"cluster bench", "cluster top", "lease", "server dev", "server run", "top"}

// startsPrograms reports whether a command line is one of ownProcess.
func startsPrograms(args []string) bool {
	line := strings.Join(args, " ") + " "
	return slices.ContainsFunc(ownProcess, func(own string) bool { return strings.HasPrefix(line, own+" ") })
}

// runCommand runs a command to its end: within this process, from the arguments on as main does, because to start the
// program takes twenty times as long as most commands. With QUORATE_VERIFY each is a process.
func runCommand(t *testing.T, args ...string) outcome {
	t.Helper()
	if verify.Enabled() || len(args) == 0 || startsPrograms(args) {
		return startProcess(t, args...).awaitEnd(t)
	}
	var stdout, stderr servertest.Buffer
	ended := make(chan int, 1)
	go func() { ended <- quorate.Execute(args, strings.NewReader(""), &stdout, &stderr) }()
	select {
	case code := <-ended:
		return outcome{code, stdout.String(), stderr.String()}
	case <-time.After(patience):
		t.Fatalf("%v still runs after %v\n%s%s", args, patience, stdout.String(), stderr.String())
		return outcome{}
	}
}

// process is a running command.
type process struct {
	*exec.Cmd

	stdout, stderr servertest.Buffer
	ended          chan struct{}
}

// startProcess runs a command; it does not outlive the test.
func startProcess(t *testing.T, args ...string) *process {
	t.Helper()
	return startCommand(t, exec.Command(binary, args...))
}

func startCommand(t *testing.T, command *exec.Cmd) *process {
	t.Helper()
	p := &process{Cmd: command, ended: make(chan struct{})}
	p.WaitDelay = 10 * time.Second // what a killed command started itself may hold its output open
	if p.Stdout == nil {           // not at a terminal
		p.Stdout = &p.stdout
	}
	if p.Stderr == nil {
		p.Stderr = &p.stderr
	}
	p.Env = append(os.Environ(), p.Env...)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.Wait() // the exit code is in ProcessState
		close(p.ended)
	}()
	t.Cleanup(func() {
		if p.isRunning() {
			_ = p.Process.Kill()
			<-p.ended
		}
		if t.Failed() {
			t.Logf("%v ended with %v\n%s%s", p.Args[1:], p.ProcessState, p.stdout.String(), p.stderr.String())
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

func (p *process) awaitEnd(t *testing.T) outcome {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		t.Fatalf("%v still runs after %v", p.Args[1:], patience)
	}
	return outcome{p.ProcessState.ExitCode(), p.stdout.String(), p.stderr.String()}
}

func (p *process) sendSignal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// endBySignal sends a signal until the process has ended: a shell can lose one that comes while it starts a program.
func (p *process) endBySignal(t *testing.T, s os.Signal) outcome {
	t.Helper()
	for begin := time.Now(); time.Since(begin) < patience; {
		if err := p.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		select {
		case <-p.ended:
			return p.awaitEnd(t)
		case <-time.After(time.Second):
		}
	}
	return p.awaitEnd(t)
}

// stopCleanly sends SIGTERM and expects exit code 0.
func (p *process) stopCleanly(t *testing.T) {
	t.Helper()
	p.sendSignal(t, syscall.SIGTERM)
	if end := p.awaitEnd(t); end.code != 0 {
		t.Fatalf("stopped with exit code %d\n%s", end.code, end.stderr)
	}
}

// serverFlags are the flags of one server.
type serverFlags struct {
	id, dir, http, raft, gossip string
	more                        []string
}

// singleServer returns the flags of a server that forms a cluster by itself.
func singleServer(t *testing.T, more ...string) serverFlags {
	t.Helper()
	ports := servertest.FreePorts(t, 3)
	return serverFlags{"n1", filepath.Join(t.TempDir(), "data"), ports[0], ports[1], ports[2], more}
}

// threeServers returns the flags of three servers that form a cluster together.
func threeServers(t *testing.T) []serverFlags {
	t.Helper()
	dir, ports := t.TempDir(), servertest.FreePorts(t, 9)
	together := []string{"--bootstrap-expect", "3", "--join", strings.Join(ports[6:], ",")}
	var list []serverFlags
	for i := range 3 {
		id := fmt.Sprintf("n%d", i+1)
		list = append(list, serverFlags{id, filepath.Join(dir, id), ports[i], ports[3+i], ports[6+i], together})
	}
	return list
}

func (f serverFlags) commandLine() []string {
	return append([]string{
		"server", "run", "--id", f.id, "--data-dir", f.dir, "--http-addr", f.http, "--raft-addr", f.raft, "--gossip-addr",
		f.gossip, "--log-level", "warn",
	}, f.more...)
}

func (f serverFlags) baseURL() string { return "http://" + f.http }

// startServer starts a server and waits until it is ready.
func startServer(t *testing.T, f serverFlags) *process {
	t.Helper()
	p := startProcess(t, f.commandLine()...)
	awaitReady(t, p, f)
	return p
}

func awaitReady(t *testing.T, p *process, f serverFlags) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if !p.isRunning() {
			t.Fatalf("%s ended at its start: %s", f.id, p.stderr.String())
		}
		if status, _ := httpGet(t, f.baseURL()+"/readyz"); status == http.StatusOK {
			return
		}
	}
	t.Fatalf("%s is not ready after %v: %s", f.id, patience, p.stderr.String())
}

// httpGet sends a GET request. Status 0 means that no server answered.
func httpGet(t *testing.T, url string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return sendRequest(t, request)
}

// httpPost sends a POST request.
func httpPost(t *testing.T, url, body string) (status int, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	return sendRequest(t, request)
}

func sendRequest(t *testing.T, request *http.Request) (status int, body string) {
	t.Helper()
	answer, err := fresh.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(content)
}

// fresh keeps no idle connections, because tests restart servers; http2 is required by gRPC.
var (
	fresh = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	http2 = &http.Client{Transport: &http.Transport{Protocols: unencryptedHTTP2()}}
)

func unencryptedHTTP2() *http.Protocols {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	return protocols
}

func (f serverFlags) allocationClient() quoratev1connect.AllocationServiceClient {
	return quoratev1connect.NewAllocationServiceClient(fresh, f.baseURL())
}

func (f serverFlags) treeClient() quoratev1connect.TreeServiceClient {
	return quoratev1connect.NewTreeServiceClient(fresh, f.baseURL())
}

// whileUnavailable repeats a call that does the same again, because a busy machine may delay a leader until the others
// elect another one.
func whileUnavailable[Q, A any](t *testing.T, call func(context.Context, *Q) (*A, error), request *Q) (*A, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		answer, err := call(ctx, request)
		if connect.CodeOf(err) != connect.CodeUnavailable || ctx.Err() != nil {
			return answer, err
		}
		pauseFor(ctx, 50*time.Millisecond)
	}
}

// applyTree creates a tree "t" with 1000 cores.
func (f serverFlags) applyTree(t *testing.T) {
	t.Helper()
	_, err := whileUnavailable(t, f.treeClient().ApplyTrees,
		&quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{smallTree()}})
	if err != nil {
		t.Fatal(err)
	}
}

func smallTree() *quoratev1.Tree {
	limit := map[string]*quoratev1.Limit{"cores": {Value: &quoratev1.Limit_Amount{Amount: 1000}}}
	return &quoratev1.Tree{
		Name: "t", Resources: []*quoratev1.Resource{{Name: "cores"}}, Limits: limit, Policy: "strict",
		Nodes: []*quoratev1.Node{{Path: "a", Limits: limit}, {Path: "a/b", Limits: limit}},
	}
}

func oneClaim(id string, amount int64) *quoratev1.AllocateRequest {
	return &quoratev1.AllocateRequest{
		Id:     id,
		Claims: []*quoratev1.Claim{{Tree: "t", Node: "a", Amounts: map[string]int64{"cores": amount}}},
	}
}

// allocateEach holds one core under each id and fails the test if it cannot.
func (f serverFlags) allocateEach(t *testing.T, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if _, err := whileUnavailable(t, f.allocationClient().Allocate, oneClaim(id, 1)); err != nil {
			t.Fatal(err)
		}
	}
}

// usedCores returns the number of held cores.
func (f serverFlags) usedCores(t *testing.T) int64 {
	t.Helper()
	answer, err := whileUnavailable(t, f.treeClient().GetUsage, &quoratev1.GetUsageRequest{Tree: "t"})
	if err != nil {
		t.Fatal(err)
	}
	return answer.GetNodes()[0].GetResources()[0].GetSubtree()
}

// withTimeout returns a context for one call.
func withTimeout(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// errorDetail finds a typed error detail.
func errorDetail[T any](err error) (T, bool) {
	var none T
	var failed *connect.Error
	if !errors.As(err, &failed) {
		return none, false
	}
	for _, d := range failed.Details() {
		if value, err := d.Value(); err == nil {
			if typed, ok := value.(T); ok {
				return typed, true
			}
		}
	}
	return none, false
}

// startWithEnv starts a command with additional environment variables.
func startWithEnv(t *testing.T, environment []string, args ...string) *process {
	t.Helper()
	command := exec.Command(binary, args...)
	command.Env = environment
	return startCommand(t, command)
}

// startCommandIn starts a command whose temporary files are in the given folder.
func startCommandIn(t *testing.T, tmp string, args ...string) *process {
	t.Helper()
	return startWithEnv(t, []string{"TMPDIR=" + tmp}, args...)
}
