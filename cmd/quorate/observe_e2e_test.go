package main_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// collector is an OpenTelemetry collector in memory.
type collector struct {
	*httptest.Server

	mu    sync.Mutex
	spans []collected
}

// collected is a span and the member that made it.
type collected struct {
	*tracev1.Span

	member string
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var request collectorv1.ExportTraceServiceRequest
		if err = errors.Join(err, proto.Unmarshal(body, &request)); err != nil || r.URL.Path != "/v1/traces" {
			http.Error(w, fmt.Sprint(r.URL.Path, err), http.StatusBadRequest)
			return
		}
		c.addSpans(&request)
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) addSpans(request *collectorv1.ExportTraceServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range request.GetResourceSpans() {
		member := ""
		for _, a := range r.GetResource().GetAttributes() {
			if a.GetKey() == "service.instance.id" {
				member = a.GetValue().GetStringValue()
			}
		}
		for _, scope := range r.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				c.spans = append(c.spans, collected{span, member})
			}
		}
	}
}

func (c *collector) findSpan(trace, parent, member, name string) (id string, span *tracev1.Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if hex.EncodeToString(s.GetTraceId()) == trace && hex.EncodeToString(s.GetParentSpanId()) == parent &&
			s.member == member && s.GetName() == name {
			return hex.EncodeToString(s.GetSpanId()), s.Span
		}
	}
	return "", nil
}

// TestObservedTrio checks what three real servers show an operator: the trace of a call through a follower, its request
// id, the metrics of the libraries, and a diagnostic bundle.
func TestObservedTrio(t *testing.T) {
	t.Parallel()
	sink := newCollector(t)
	flags := threeServers(t)
	servers := map[string]*process{}
	for i := range flags {
		if i == 0 { // its library has metrics too
			flags[i].more = slices.Concat(bolt, flags[i].more)
		}
		flags[i].more = append(append([]string{}, flags[i].more...), "--log-level", "debug", "--log-json",
			"--otlp-endpoint", "http://planted:hunter2@"+strings.TrimPrefix(sink.URL, "http://"), "--trace-sample", "0")
		servers[flags[i].id] = startWithEnv(t, []string{"OTEL_BSP_SCHEDULE_DELAY=100"}, flags[i].commandLine()...)
	}
	for _, f := range flags {
		awaitReady(t, servers[f.id], f)
	}
	awaitCondition(t, "the tree is not taken", func() bool {
		_, err := flags[0].treeClient().ApplyTrees(t.Context(),
			&quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{smallTree()}, RequestId: "tree"})
		return err == nil
	})
	follower, leader, call := traceACall(t, sink, flags)
	for _, member := range []serverFlags{follower, leader} {
		awaitCondition(t, member.id+" does not log the call under its request id", func() bool {
			return hasLogged(servers[member.id],
				map[string]any{"request_id": call, "trace_id": traceOf(call), "code": "ok"})
		})
	}
	awaitLibraryMetrics(t, flags)
	checkBundles(t, servers, follower, leader)
}

// traceACall sends calls through a follower until one is relayed, because the leader may change meanwhile.
func traceACall(t *testing.T, sink *collector, flags []serverFlags) (follower, leader serverFlags, id string) {
	t.Helper()
	attempt := 0
	awaitCondition(t, "no call through a follower is one trace", func() bool {
		attempt++
		id = fmt.Sprintf("call-%d", attempt)
		lead := leaderNow(t, flags[0])
		for _, f := range flags {
			if f.id == lead {
				leader = f
			} else {
				follower = f
			}
		}
		return leader.id != "" && follower.id != "" && tracedCall(t, follower, id) &&
			isOneTrace(t, sink, follower.id, leader.id, traceOf(id))
	})
	return follower, leader, id
}

func leaderNow(t *testing.T, f serverFlags) string {
	t.Helper()
	status, err := adminv1connect.NewClusterServiceClient(fresh, f.baseURL()).GetStatus(t.Context(),
		&adminv1.GetStatusRequest{})
	if err != nil {
		return ""
	}
	return status.GetLeaderId()
}

// callersSpan is the id of the caller's span.
const callersSpan = "00f067aa0ba902b7"

func traceOf(id string) string { return fmt.Sprintf("%032x", id) }

func tracedCall(t *testing.T, f serverFlags, id string) bool {
	t.Helper()
	body := fmt.Sprintf(`{"id":%q,"claims":[{"tree":"t","node":"a","amounts":{"cores":"1"}}]}`, id)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		f.baseURL()+"/quorate.v1.AllocationService/Allocate", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Request-Id", id)
	request.Header.Set("Traceparent", "00-"+traceOf(id)+"-"+callersSpan+"-01")
	answer, err := fresh.Do(request)
	if err != nil {
		return false
	}
	defer func() { _ = answer.Body.Close() }()
	if got := answer.Header.Values("X-Request-Id"); len(got) != 1 || got[0] != id {
		t.Errorf("the answer has the request ids %q, want %s", got, id)
	}
	return answer.StatusCode == http.StatusOK
}

// isOneTrace waits briefly for all spans of a call: caller, follower, leader, log and ledger.
func isOneTrace(t *testing.T, sink *collector, follower, leader, trace string) bool {
	t.Helper()
	for range 100 {
		relay, _ := sink.findSpan(trace, callersSpan, follower, "relay")
		handled, _ := sink.findSpan(trace, relay, leader, "quorate.v1.AllocationService/Allocate")
		proposed, span := sink.findSpan(trace, handled, leader, "ledger.propose")
		if applied, _ := sink.findSpan(trace, proposed, leader, "ledger.apply"); relay != "" &&
			handled != "" && applied != "" {
			keys := map[string]bool{}
			for _, a := range span.GetAttributes() {
				keys[a.GetKey()] = true
			}
			for _, key := range []string{
				"quorate.commands", "quorate.entry.index", "quorate.entry.commands",
				"quorate.queue_ms", "quorate.commit_ms",
			} {
				if !keys[key] {
					t.Errorf("ledger.propose does not tell %s: %v", key, span.GetAttributes())
				}
			}
			return true
		}
		time.Sleep(50 * time.Millisecond)
	}
	return false
}

func hasLogged(p *process, want map[string]any) bool {
	for line := range strings.Lines(p.stderr.String()) {
		var said map[string]any
		if json.Unmarshal([]byte(line), &said) != nil {
			continue
		}
		all := true
		for key, value := range want {
			all = all && said[key] == value
		}
		if all {
			return true
		}
	}
	return false
}

// awaitLibraryMetrics waits until the members have exported every library metric in docs/metrics.md. A sample is
// exported only for a minute after it was reported.
func awaitLibraryMetrics(t *testing.T, flags []serverFlags) {
	t.Helper()
	missing := libraryMetrics(t)
	defer func() {
		if len(missing) > 0 {
			t.Errorf("no member shows %q", missing)
		}
	}()
	awaitCondition(t, "the members lack metrics of the libraries", func() bool {
		var left []string
		pages := ""
		for _, f := range flags {
			_, page := httpGet(t, f.baseURL()+"/metrics")
			pages += page
		}
		for _, line := range missing {
			if !strings.Contains(pages, line) {
				left = append(left, line)
			}
		}
		missing = left
		return len(missing) == 0
	})
}

// checkBundles collects a bundle from all members, then from one, and then from those that remain without the leader.
func checkBundles(t *testing.T, servers map[string]*process, follower, leader serverFlags) {
	t.Helper()
	all := readBundle(t, follower)
	for _, member := range []string{"n1", "n2", "n3"} {
		for _, name := range []string{
			"build.txt", "settings.yaml", "standing.json", "members.json", "snapshots.json",
			"metrics.txt", "goroutines.txt", "heap.pprof", "log.txt",
		} {
			if len(all[member+"/"+name]) == 0 {
				t.Errorf("%s of %s is not in the bundle", name, member)
			}
		}
	}
	for name, content := range all {
		if strings.Contains(content, "hunter2") {
			t.Errorf("%s tells a password", name)
		}
	}
	if !strings.Contains(all["n1/settings.yaml"], "trace-sample: 0") ||
		!strings.Contains(all["n1/settings.yaml"], "(hidden)@") {
		t.Errorf("settings: %s", all["n1/settings.yaml"])
	}
	alone := readBundle(t, follower, "--local")
	if len(alone[follower.id+"/log.txt"]) == 0 || len(alone[leader.id+"/log.txt"]) > 0 {
		t.Error("--local does not stay with the server that is asked")
	}
	servers[leader.id].sendSignal(t, os.Kill)
	servers[leader.id].awaitEnd(t)
	left := readBundle(t, follower)
	var manifest struct {
		Members []struct {
			ID      string
			Missing []struct{ Name, Why string }
		}
	}
	if err := json.Unmarshal([]byte(left["manifest.json"]), &manifest); err != nil {
		t.Fatal(err)
	}
	for _, m := range manifest.Members {
		lost := len(m.Missing) == 1 && strings.Contains(m.Missing[0].Why, leader.id)
		if m.ID == leader.id && !lost || m.ID == follower.id && len(m.Missing) > 0 {
			t.Errorf("the manifest says %+v", m)
		}
	}
	if len(left[follower.id+"/log.txt"]) == 0 {
		t.Error("nothing is collected without a leader")
	}
}

func readBundle(t *testing.T, f serverFlags, more ...string) map[string]string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	command := exec.Command(
		binary, append([]string{"cluster", "dump", file, "--server", f.baseURL(), "--timeout", "1m"}, more...)...)
	if end := startCommand(t, command).awaitEnd(t); end.code != 0 {
		t.Fatalf("exit code %d: %s", end.code, end.stderr)
	}
	packed, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	archive := tar.NewReader(unzipped)
	for header, err := archive.Next(); !errors.Is(err, io.EOF); header, err = archive.Next() {
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(header.Name, "quorate-debug/")] = string(content)
	}
	return files
}
