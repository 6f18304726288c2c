package main_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
	"github.com/quorate/quorate/internal/servertest"
	"github.com/quorate/quorate/internal/verify"
)

type boskosCluster struct {
	flags   []serverFlags
	urls    []string
	servers []*process
}

func startBoskosCluster(t *testing.T, file string) *boskosCluster {
	t.Helper()
	c := &boskosCluster{flags: threeServers(t)}
	for i, port := range servertest.FreePorts(t, 3) {
		c.flags[i].more = append(slices.Clone(c.flags[i].more), "--front-ends", "boskos="+port)
		c.urls = append(c.urls, "http://"+port)
		c.servers = append(c.servers, startProcess(t, c.flags[i].commandLine()...))
	}
	for i, f := range c.flags {
		awaitReady(t, c.servers[i], f)
	}
	applyBoskosFile(t, c.flags[0], file)
	return c
}

func (c *boskosCluster) leader(t *testing.T) int {
	t.Helper()
	at := -1
	awaitCondition(t, "no server leads", func() bool {
		for i, f := range c.flags {
			if !c.servers[i].isRunning() {
				continue
			}
			id := reportedLeader(t.Context(), f)
			at = slices.IndexFunc(c.flags, func(f serverFlags) bool { return f.id == id })
			if at >= 0 && c.servers[at].isRunning() {
				return true
			}
		}
		return false
	})
	return at
}

func reportedLeader(ctx context.Context, f serverFlags) string {
	status, err := adminv1connect.NewClusterServiceClient(fresh, f.baseURL()).GetStatus(ctx,
		&adminv1.GetStatusRequest{})
	if err != nil {
		return ""
	}
	return status.GetLeaderId()
}

func (c *boskosCluster) stop(t *testing.T, at int, signal syscall.Signal) {
	t.Helper()
	c.servers[at].sendSignal(t, signal)
	c.servers[at].awaitEnd(t)
}

func (c *boskosCluster) restart(t *testing.T, at int) {
	t.Helper()
	c.servers[at] = startProcess(t, c.flags[at].commandLine()...)
}

// boskosAnswers counts answers by call and status, and keeps those that clients should not get.
type boskosAnswers struct {
	mu    sync.Mutex
	count map[string]int
	wrong []string
}

// innerAddress matches what only operators should read: where servers listen, and how a connection failed.
var innerAddress = regexp.MustCompile(`[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+|localhost|in-process|https?://|\btcp\b|:[0-9]{4,5}\b`)

func (a *boskosAnswers) add(path string, status int, body string, allowed ...int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.count[fmt.Sprintf("%s %d", path, status)]++
	if !slices.Contains(allowed, status) || status != http.StatusOK && innerAddress.MatchString(body) {
		a.wrong = append(a.wrong, fmt.Sprintf("%s: %d %s", path, status, body))
	}
}

// boskosCaller acquires, updates and releases until its time is over, each time by another server.
type boskosCaller struct {
	name    string
	urls    []string
	answers *boskosAnswers
}

func (c *boskosCaller) post(ctx context.Context, path, query string, allowed ...int) (int, string) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	url := c.urls[rand.IntN(len(c.urls))] + path + "?owner=" + c.name + "&" + query
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, http.NoBody)
	if err != nil {
		return 0, ""
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, ""
	}
	defer answer.Body.Close() //nolint:errcheck // it was read to its end
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, ""
	}
	c.answers.add(path, answer.StatusCode, string(body), allowed...)
	return answer.StatusCode, string(body)
}

// insist repeats a call of the holder of a resource until a server has carried it out.
func (c *boskosCaller) insist(path, query string, allowed ...int) {
	for range 100 {
		status, _ := c.post(context.Background(), path, query, append(allowed, http.StatusServiceUnavailable)...)
		if slices.Contains(allowed, status) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

var resourceName = regexp.MustCompile(`"name":"([^"]+)"`)

// run changes the destination while it waits. An update is refused if the answer to the acquire had another state than
// the resource.
func (c *boskosCaller) run(ctx context.Context) {
	for round := 0; ctx.Err() == nil; round++ {
		name, dest := "", ""
		for ctx.Err() == nil && name == "" {
			dest = []string{"busy", "testing"}[rand.IntN(2)]
			_, body := c.post(ctx, "/acquire",
				fmt.Sprintf("type=slice&state=free&dest=%s&request_id=%s-%d", dest, c.name, round),
				http.StatusOK, http.StatusNotFound, http.StatusServiceUnavailable)
			if match := resourceName.FindStringSubmatch(body); match != nil {
				name = match[1]
			} else {
				time.Sleep(10 * time.Millisecond)
			}
		}
		if name != "" {
			c.insist("/update", "state="+dest+"&name="+name, http.StatusOK)
			// A repetition of a release that was carried out finds another owner, or none.
			c.insist("/release", "dest=free&name="+name, http.StatusOK, http.StatusUnauthorized)
		}
	}
}

// TestBoskosWhileLeadersDie: while leaders are killed and stopped, and while no majority is up, Boskos clients get the
// answers of Boskos or 503, never 500, and no answer says where servers listen.
func TestBoskosWhileLeadersDie(t *testing.T) {
	t.Parallel()
	c := startBoskosCluster(t, "resources: [{type: slice, names: [s1, s2, s3, s4]}]")
	answers := &boskosAnswers{count: map[string]int{}}
	ctx, cancel := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	for i := range 16 {
		callers.Go(func() { (&boskosCaller{fmt.Sprintf("caller-%d", i), c.urls, answers}).run(ctx) })
	}
	for round := range verify.Scale(2, 8) {
		time.Sleep(time.Second)
		at := c.leader(t)
		c.stop(t, at, []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM}[round%2])
		time.Sleep(time.Second)
		c.restart(t, at)
		awaitReady(t, c.servers[at], c.flags[at])
	}
	for _, at := range []int{0, 1} {
		c.stop(t, at, syscall.SIGKILL)
	}
	alone := &boskosCaller{"alone", c.urls[2:], answers}
	for deadline := time.Now().Add(patience); ; {
		status, _ := alone.post(ctx, "/acquire", "type=slice&state=free&dest=busy", 200, 404, 503)
		if status == http.StatusServiceUnavailable {
			break
		}
		if time.Now().After(deadline) {
			t.Errorf("without a majority an acquire is answered with %d", status)
			break
		}
	}
	c.restart(t, 0)
	c.restart(t, 1)
	awaitReady(t, c.servers[0], c.flags[0])
	cancel()
	callers.Wait()
	t.Logf("%v", answers.count)
	if answers.count["/acquire 200"] == 0 || answers.count["/release 200"] == 0 {
		t.Errorf("nothing was acquired and released: %v", answers.count)
	}
	for _, wrong := range answers.wrong[:min(10, len(answers.wrong))] {
		t.Error(wrong)
	}
}
