package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
)

// mostElements is how many elements a page of any tree may have: those of the rows on the screen and its frame.
const mostElements = 1500

// largeTree is a manifest with 19,820 nodes below the root: 20 with 10 each, and 98 below each of these.
func largeTree() string {
	var b strings.Builder
	b.WriteString("trees:\n  large:\n    resources: {cores: {unit: count}}\n    limits: {cores: 1000000}\n    nodes:\n")
	for i := range 20 {
		fmt.Fprintf(&b, "      lab-%02d:\n        limits: {cores: 50000}\n        nodes:\n", i)
		for j := range 10 {
			fmt.Fprintf(&b, "          group-%d:\n            limits: {cores: 5000}\n            nodes:\n", j)
			for k := range 98 {
				fmt.Fprintf(&b, "              team-%02d: {limits: {cores: 50}}\n", k)
			}
		}
	}
	return b.String()
}

// TestLargeTree measures the page of a tree of 20,000 nodes, its memory under load, and what an open page costs the
// cluster. Figures are printed; what is asserted is that the page has few elements.
func TestLargeTree(t *testing.T) {
	if !exhaustive() {
		t.Skip("it takes minutes: QUORATE_VERIFY=1 runs it")
	}
	servers := startServers(t, 3)
	s := servers[0]
	manifest := filepath.Join(t.TempDir(), "large.yaml")
	if err := os.WriteFile(manifest, []byte(largeTree()), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Run(t, "apply", "-f", manifest)
	b := emptyTab(t)
	b.measureViews(s)
	tabs := []*tab{b}
	for range 4 {
		tabs = append(tabs, emptyTab(t))
	}
	for _, b := range tabs {
		b.allow("404.*/GetUsage$") // a load deletes its tree at the end, which a page may be reading
	}
	b.measureMemory(s)
	var costs []float64
	for range 5 {
		b.leave()
		full := measureLoad(t, servers, 10*time.Second)
		t.Logf("bench without a page: %v", full)
		b.open(s.URL() + "/ui/")
		t.Logf("bench with a page: %v", measureLoad(t, servers, 10*time.Second))
		costs = append(costs, measureCost(t, servers, tabs)/full.cpu)
	}
	slices.Sort(costs)
	t.Logf("an open page costs the servers %.2f %% of what full load does (median; from %.2f to %.2f)",
		100*costs[2], 100*costs[0], 100*costs[4])
}

// measureCost measures how many processors an open page costs the servers. At a low rate a page is told of changes as
// often as under full load, and what several pages cost is not lost in the noise of the load.
func measureCost(t *testing.T, servers []*server, tabs []*tab) float64 {
	t.Helper()
	const rate = "20"
	for _, b := range tabs {
		b.leave()
	}
	without := measureLoad(t, servers, 20*time.Second, "--rate", rate)
	for _, b := range tabs {
		b.open(servers[0].URL() + "/ui/")
		b.awaitTrue("the page is visible, so that its stream is open", `document.visibilityState === "visible"`)
	}
	with := measureLoad(t, servers, 20*time.Second, "--rate", rate)
	t.Logf("at %s operations/s the servers use %.4f processors without a page and %.4f with %d",
		rate, without.cpu, with.cpu, len(tabs))
	return (with.cpu - without.cpu) / float64(len(tabs))
}

func (b *tab) leave() {
	b.t.Helper()
	b.do("closing the page", chromedp.Navigate("about:blank"))
}

func (b *tab) measureViews(s *server) {
	b.t.Helper()
	began := time.Now()
	b.open(s.URL() + "/ui/tree?tree=large")
	b.awaitTrue("the first level is there", `document.querySelectorAll("[role=rowheader]").length > 10`)
	b.t.Logf("first view: %v", time.Since(began).Round(time.Millisecond))
	for _, level := range []string{"2", "3"} {
		began = time.Now()
		b.click("[role=treegrid] [aria-level='"+level+"'] .grid-twisty", "▸")
		b.awaitTrue("the level is open", fmt.Sprintf(
			`document.querySelector("[role=row][aria-level='%s'][aria-expanded=true]") &&
			!document.querySelector("[role=treegrid]").innerText.includes("Reading")`, level))
		b.t.Logf("level %s opened: %v", level, time.Since(began).Round(time.Millisecond))
	}
	if n := eval[int](b, `document.querySelectorAll("*").length`); n > mostElements {
		b.t.Errorf("the page has %d elements, %d are allowed", n, mostElements)
	}
}

// measureMemory measures the heap of an open page while the cluster is under load, and counts what it is told.
func (b *tab) measureMemory(s *server) {
	b.t.Helper()
	length := 2 * time.Minute
	if text := os.Getenv("QUORATE_LOAD"); text != "" {
		parsed, err := time.ParseDuration(text)
		if err != nil {
			b.t.Fatal(err)
		}
		length = parsed
	}
	b.open(s.URL() + "/ui/")
	before := b.heap()
	chunks := b.countChunks("/WatchChanges")
	began := time.Now()
	rate := bench(b.t, s, length)
	took := time.Since(began)
	perSecond := float64(chunks.Load()) / took.Seconds()
	b.t.Logf("%v of load: %.0f operations/s, %.1f parts of the stream of changes/s, heap %.1f MB before and %.1f MB after",
		length, rate, perSecond, before/1e6, b.heap()/1e6)
	if n := eval[int](b, `document.querySelectorAll("*").length`); n > mostElements {
		b.t.Errorf("the page has %d elements, %d are allowed", n, mostElements)
	}
}

// countChunks counts the parts in which the answers of a procedure arrive from now on; a message may come in several.
func (b *tab) countChunks(procedure string) *atomic.Int64 {
	b.t.Helper()
	var count atomic.Int64
	var request network.RequestID
	err := chromedp.Listen(b.ctx, func(event any) {
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			if strings.HasSuffix(e.Request.URL, procedure) {
				request = e.RequestID
			}
		case *network.EventDataReceived:
			if e.RequestID == request {
				count.Add(1)
			}
		}
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.open(eval[string](b, "location.href"))
	return &count
}

func (b *tab) heap() float64 {
	b.t.Helper()
	eval[any](b, "void gc()")
	b.do("enabling metrics", command(performance.Enable, performance.EnableParams{}))
	read := func(ctx context.Context, t *chromedp.Target) (performance.GetMetricsResult, error) {
		return cdp.Call(ctx, t, performance.GetMetrics, cdp.Empty{})
	}
	measured := perform(b, "reading metrics", read)
	for _, m := range measured.Metrics {
		if m.Name == "JSHeapUsedSize" {
			return m.Value
		}
	}
	b.t.Fatal("the browser does not measure the heap")
	return 0
}

// load is the work of bench in a second, and the processor time of the servers for it.
type load struct{ rate, cpu float64 }

func (l load) String() string {
	return fmt.Sprintf("%.0f operations/s, servers use %.2f processors", l.rate, l.cpu)
}

// measureLoad loads the cluster and measures it.
func measureLoad(t *testing.T, servers []*server, length time.Duration, more ...string) load {
	t.Helper()
	began, before := time.Now(), cpuSeconds(t, servers)
	rate := bench(t, servers[0], length, more...)
	used := cpuSeconds(t, servers) - before
	return load{rate, used / time.Since(began).Seconds()}
}

// cpuSeconds is the CPU time that all servers have used since their start.
func cpuSeconds(t *testing.T, servers []*server) float64 {
	t.Helper()
	const ticksPerSecond = 100 // of all Linux systems
	ticks := 0
	for _, s := range servers {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.PID()))
		if err != nil {
			t.Fatal(err)
		}
		_, fields, _ := strings.Cut(string(text), ") ") // the name before may have blanks
		for _, field := range strings.Fields(fields)[11:13] {
			n, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			ticks += n
		}
	}
	return float64(ticks) / ticksPerSecond
}

// bench runs 64 callers, and returns the operations per second.
func bench(t *testing.T, s *server, length time.Duration, more ...string) float64 {
	t.Helper()
	var report struct {
		Runs []struct {
			Operations []struct {
				PerSecond float64 `json:"per_second"`
			}
		}
	}
	caller := s.Client
	caller.Patience += length
	args := append([]string{"cluster", "bench", "--callers", "64", "--duration", length.String(), "-o", "json"}, more...)
	out := caller.Run(t, args...)
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, operation := range report.Runs[0].Operations {
		sum += operation.PerSecond
	}
	return sum
}
