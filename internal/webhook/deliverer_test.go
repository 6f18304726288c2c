package webhook

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// fakeNode is a leader with a ledger, and with events that a test makes up.
type fakeNode struct {
	mu        sync.Mutex
	ledger    *ledger.Ledger
	events    []cluster.WatchEvent
	forgotten uint64
	changed   chan struct{}
	leads     bool
	reports   int
}

func newFakeNode() *fakeNode {
	return &fakeNode{ledger: ledger.New(quota.DefaultBounds()), changed: make(chan struct{}), leads: true}
}

func (n *fakeNode) IsLeader() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.leads
}

func (n *fakeNode) Read(_ context.Context, _ cluster.ReadOptions, fn func(ledger.Reader)) (cluster.ReadInfo, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	fn(n.ledger.Reader())
	return cluster.ReadInfo{}, nil
}

func (n *fakeNode) ReadFeed(after cluster.Position, most int) (cluster.FeedPage, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if after.Index < n.forgotten {
		return cluster.FeedPage{Next: cluster.PositionAfter(n.forgotten)},
			&cluster.Error{Reason: cluster.Forgotten, Text: "forgotten"}
	}
	page := cluster.FeedPage{Next: after, Changed: n.changed}
	for _, e := range n.events {
		if e.Compare(after) > 0 && len(page.Events) < most {
			page.Events = append(page.Events, e)
			page.Next = e.Position
		}
	}
	return page, nil
}

func (n *fakeNode) Propose(_ context.Context, commands ...quota.Command) ([]ledger.Outcome, uint64, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.reports++
	return []ledger.Outcome{n.ledger.Apply(quota.Stamp{}, commands[0])}, 0, nil
}

func (n *fakeNode) add(index uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	fact := ledger.Fact{Kind: ledger.FactCrossed, Crossing: &quota.Crossing{Tree: "t"}}
	n.events = append(n.events, cluster.WatchEvent{Position: cluster.Position{Index: index, Number: 1}, Fact: fact})
	close(n.changed)
	n.changed = make(chan struct{})
}

func (n *fakeNode) hook() quota.Webhook {
	n.mu.Lock()
	defer n.mu.Unlock()
	return *n.ledger.Reader().Webhooks()[0]
}

// fakeReceiver answers with the code of the moment, and keeps the ids and bodies of all deliveries.
type fakeReceiver struct {
	mu     sync.Mutex
	code   int
	ids    []string
	bodies []string
}

func (r *fakeReceiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.ids, r.bodies = append(r.ids, q.Header.Get("Webhook-Id")), append(r.bodies, string(body))
	}
	w.WriteHeader(r.code)
}

func (r *fakeReceiver) answer(code int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.code = code
}

func (r *fakeReceiver) received() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ids)
}

func startDeliverer(t *testing.T, n *fakeNode, r *fakeReceiver) (stop func()) {
	t.Helper()
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	secret := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("a", minSecret)))
	if err := os.WriteFile(filepath.Join(dir, "s"), []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	out := n.ledger.Apply(quota.Stamp{}, quota.SetWebhook{
		WebhookSpec: quota.WebhookSpec{Name: "hook", URL: server.URL, Secret: "s"}, After: quota.EventPosition{Index: 1},
	})
	if out.Refused != nil {
		t.Fatal(out.Refused)
	}
	d, err := New(Config{
		Node: n, ClusterName: "c", Log: hclog.NewNullLogger(), Registerer: prometheus.NewRegistry(),
		Hosts: mustParse(t, "http://127.0.0.1:*"), SecretsDir: dir,
		TypeOf: func(cluster.WatchEvent) string { return "x" },
		Encode: func(_ ledger.Reader, _ *quota.Webhook, e cluster.WatchEvent) ([]byte, error) {
			return fmt.Appendf(nil, `{"index":%d}`, e.Index), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { d.Run(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
	}
}

// TestTheCursorFollowsTheReceiver: an event that the receiver does not acknowledge is not reported, and what follows it
// waits. A deliverer that stops reports what was acknowledged. Another one begins there.
func TestTheCursorFollowsTheReceiver(t *testing.T) {
	t.Parallel()
	n, r := newFakeNode(), &fakeReceiver{code: http.StatusOK}
	stop := startDeliverer(t, n, r)
	n.add(2)
	await(t, "the first event does not arrive", func() bool { return len(r.received()) == 1 })
	await(t, "the first event is not reported", func() bool { return n.hook().Cursor.Index == 2 })
	r.answer(http.StatusBadGateway)
	n.add(3)
	n.add(4)
	await(t, "the failure is not reported", func() bool { return n.hook().LastError != "" })
	if w := n.hook(); w.Cursor.Index != 2 || w.Delivered != 1 {
		t.Errorf("the cursor is in front of the receiver: %+v", w)
	}
	if ids := r.received(); slices.Contains(ids, "c-4-1") {
		t.Errorf("an event came before the one in front of it: %q", ids)
	}
	r.answer(http.StatusNoContent)
	await(t, "the events do not arrive", func() bool { return slices.Contains(r.received(), "c-4-1") })
	stop()
	// The stop may come before the last acknowledgement has been read; then that event is sent again later.
	if w := n.hook(); w.Cursor.Index < 3 || w.Delivered != w.Cursor.Index-1 || w.LastError != "" {
		t.Errorf("after the stop the webhook is %+v", w)
	}
	if n.reports > 20 {
		t.Errorf("there were %d reports", n.reports)
	}
}

// TestAGapIsDelivered: events that the node has forgotten become a message, which is delivered before the next event.
func TestAGapIsDelivered(t *testing.T) {
	t.Parallel()
	n, r := newFakeNode(), &fakeReceiver{code: http.StatusOK}
	n.forgotten = 7
	n.add(8)
	stop := startDeliverer(t, n, r)
	await(t, "the event does not arrive", func() bool { return len(r.received()) == 2 })
	await(t, "the event is not reported", func() bool { return n.hook().Cursor.Index == 8 })
	stop()
	if ids := r.received(); !slices.Equal(ids, []string{"c-1-0-gap", "c-8-1"}) {
		t.Errorf("received %q", ids)
	}
	want := `{"type":"gap","data":{"after":{"index":"1"},"until":{"index":"7"}}}`
	if r.bodies[0] != want {
		t.Errorf("the gap is %s, want %s", r.bodies[0], want)
	}
	if w := n.hook(); w.Cursor.Index != 8 || w.Gaps != 1 || w.Delivered != 2 {
		t.Errorf("the webhook is %+v", w)
	}
}

// TestNodeEventsAreSelected by their type and by the node that they are about.
func TestNodeEventsAreSelected(t *testing.T) {
	d := &Deliverer{config: Config{TypeOf: func(cluster.WatchEvent) string { return "limit.started" }}}
	scheduled := quota.Event{Kind: quota.EventLimitStarted, Scheduled: &quota.ScheduledLimitEvent{
		Limit: quota.ScheduledLimit{Tree: "t", Node: "a/b"},
	}}
	drained := quota.Event{Kind: quota.EventDrained, Tree: "t", Node: "a/b"}
	for _, e := range []*quota.Event{&scheduled, &drained} {
		event := cluster.WatchEvent{Fact: ledger.Fact{Kind: ledger.FactNode, Event: e}}
		for spec, want := range map[[3]string]bool{
			{"", "", ""}: true, {"t", "a", ""}: true, {"t", "a/b", "limit.started"}: true,
			{"t", "a/c", ""}: false, {"u", "", ""}: false, {"t", "", "limit.ended"}: false,
		} {
			s := quota.WebhookSpec{Tree: spec[0], Node: spec[1]}
			if spec[2] != "" {
				s.Types = []string{spec[2]}
			}
			if got := d.selects(s, event); got != want {
				t.Errorf("%v selects %v: %v", spec, e, got)
			}
		}
	}
}
