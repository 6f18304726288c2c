package deploytest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// keepBusy calls the servers until the test ends, with everything that a dashboard shows: grants, leases that are
// renewed, expire or are released, items, waiting requests, denials, reads on all members, plans, watches, and a
// credential that is not valid.
func (w *watched) keepBusy(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	l := &load{watched: w, answers: map[string]int{}}
	running.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			l.round(ctx, n)
		}
	})
	running.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			l.waitForGrant(ctx, n)
		}
	})
	running.Go(func() {
		for ctx.Err() == nil {
			l.call(ctx, 0, "v1.EventService/WatchEvents", `{"tree": "lab"}`)
		}
	})
	t.Cleanup(func() {
		if t.Failed() {
			l.mu.Lock()
			defer l.mu.Unlock()
			t.Logf("the load was answered with %v", l.answers)
		}
	})
}

// load counts the answers for the log of a failed test: the queries judge.
type load struct {
	*watched

	mu      sync.Mutex
	answers map[string]int
}

func (l *load) round(ctx context.Context, n int) {
	at := n % len(l.URLs)
	id := func(kind string) string { return fmt.Sprintf("%s-%d", kind, n) }
	l.allocate(ctx, at, id("held"), "physics", `"cores": 1`, `"ttlMs": 60000`)
	l.allocate(ctx, at, id("crashed"), "advised", `"cores": 2`, `"ttlMs": 1000`)
	l.allocate(ctx, at, id("denied"), "physics", `"cores": 1000`, `"ttlMs": 60000`)
	l.call(ctx, at, "v1.AllocationService/Allocate", fmt.Sprintf(`{"id": %q, "ttlMs": 60000, "claims": [{"tree": "lab", `+
		`"node": "advised", "items": [{"resource": "machine", "count": 1}]}]}`, id("item")))
	l.call(ctx, at, "v1.AllocationService/Renew", fmt.Sprintf(`{"id": %q, "ttlMs": 60000}`, id("held")))
	l.call(ctx, at, "v1.AllocationService/Release", fmt.Sprintf(`{"id": %q}`, id("held")))
	for server := range l.URLs {
		l.call(ctx, server, "v1.TreeService/GetUsage", `{"tree": "lab"}`)
	}
	l.call(ctx, at, "v1.AllocationService/Explain", fmt.Sprintf(`{"id": %q}`, id("denied")))
	l.send(ctx, at, "v1.TreeService/ListTrees", `{}`, "Bearer nonsense")
	l.call(ctx, at, "v1.AllocationService/Release", fmt.Sprintf(`{"id": %q}`, id("item")))
	pause(ctx, 200*time.Millisecond)
}

// waitForGrant takes what another request then waits for, and gives it back.
func (l *load) waitForGrant(ctx context.Context, n int) {
	first, second := fmt.Sprintf("first-%d", n), fmt.Sprintf("second-%d", n)
	l.allocate(ctx, 0, first, "queue", `"cores": 1`, `"ttlMs": 60000`)
	var waiting sync.WaitGroup
	waiting.Go(func() {
		l.allocate(ctx, 1, second, "queue", `"cores": 1`, `"ttlMs": 60000, "mode": "MODE_WAIT", "pollMs": 30000`)
	})
	pause(ctx, 1500*time.Millisecond)
	l.call(ctx, 2, "v1.AllocationService/Release", fmt.Sprintf(`{"id": %q}`, first))
	waiting.Wait()
	l.call(ctx, 2, "v1.AllocationService/Release", fmt.Sprintf(`{"id": %q}`, second))
}

func pause(ctx context.Context, span time.Duration) {
	select {
	case <-time.After(span):
	case <-ctx.Done():
	}
}

func (l *load) allocate(ctx context.Context, server int, id, node, amounts, more string) {
	l.call(ctx, server, "v1.AllocationService/Allocate",
		fmt.Sprintf(`{"id": %q, %s, "claims": [{"tree": "lab", "node": %q, "amounts": {%s}}]}`, id, more, node, amounts))
}

func (l *load) call(ctx context.Context, server int, procedure, body string) {
	l.send(ctx, server, procedure, body, "")
}

func (l *load) send(ctx context.Context, server int, procedure, body, credential string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost,
		l.URLs[server]+"/quorate."+procedure, strings.NewReader(body))
	if err != nil {
		panic(err) // the arguments are constants of this file
	}
	request.Header.Set("Content-Type", "application/json")
	if credential != "" {
		request.Header.Set("Authorization", credential)
	}
	said := procedure + " "
	if answer, err := l.client.Do(request); err != nil {
		said += "failed"
	} else {
		text, _ := io.ReadAll(answer.Body) // a stream ends with the test
		_ = answer.Body.Close()
		said += answer.Status
		if answer.StatusCode != http.StatusOK {
			said += fmt.Sprintf(" %.120s", text)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.answers) < 100 { // texts may name ids
		l.answers[said]++
	}
}
