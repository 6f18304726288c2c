package rpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/rpc/admission"
	"github.com/quorate/quorate/rpc/handlers"
	"github.com/quorate/quorate/rpc/observe"
	"github.com/quorate/quorate/rpc/relay"
)

type page struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (p *page) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *page) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

func (d *testServer) listen() *page {
	log := &page{}
	d.observer.Failures.Log = hclog.New(&hclog.LoggerOptions{Output: log, Level: hclog.Info})
	d.observer.Refusals.Log = d.observer.Failures.Log
	return log
}

func TestEveryCallHasARequestID(t *testing.T) {
	follower, _ := twoNodes(t)
	for given, kept := range map[string]bool{
		"job-17/retry:2": true, "a": true, strings.Repeat("x", 128): true,
		"": false, strings.Repeat("x", 129): false, "two words": false, "-dash": false, "a\tb": false, `quo"te`: false,
	} {
		for _, path := range []string{allocatePath, usagePath, "/nothing"} {
			got := send(t, "POST", follower.url+path, `{}`, observe.RequestIDHeader, given)
			ids := got.header.Values(observe.RequestIDHeader)
			if len(ids) != 1 || !observe.RequestIDPattern().MatchString(ids[0]) || (ids[0] == given) != kept {
				t.Errorf("%s under %q: the answer has %q", path, given, ids)
			}
		}
	}
}

func TestFailedCallsAreLoggedUnderTheirRequestID(t *testing.T) {
	d := oneNode(t)
	log := d.listen()
	d.node.reading = func(context.Context) error { return errors.New("the ledger is on fire") }
	send(t, "POST", d.url+usagePath, `{"tree":"cern"}`, observe.RequestIDHeader, "call-1")
	d.node.reading = nil
	send(t, "POST", d.url+usagePath, `{"tree":"nowhere"}`, observe.RequestIDHeader, "call-2")
	for deadline := time.Now().Add(2 * time.Minute); !strings.Contains(log.String(),
		"request_id=call-1"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("logged: %s", log)
		}
	}
	for _, part := range []string{"[WARN]", "code=internal", "procedure=" + usagePath} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("logged without %s: %s", part, log)
		}
	}
	if strings.Contains(log.String(), "call-2") {
		t.Errorf("what the caller did wrong is logged: %s", log)
	}
}

func TestFailuresDoNotFillTheLog(t *testing.T) {
	log, now := &page{}, time.Unix(0, 0)
	f := &observe.FailureLog{Log: hclog.New(&hclog.LoggerOptions{Output: log}), Now: func() time.Time { return now }}
	for i := range 50 {
		f.LogFailure("unavailable", "request_id", fmt.Sprint(i))
		f.LogFailure("not_found", "request_id", fmt.Sprint(i))
	}
	now = now.Add(time.Second)
	f.LogFailure("internal", "request_id", "last")
	if lines := strings.Count(log.String(), "\n"); lines != observe.MaxFailureLines+1 ||
		!strings.Contains(log.String(), "request_id=last left_out=40") {
		t.Errorf("%d lines:\n%s", lines, log)
	}
}

// TestATraceOfTheCallerPassesThrough: a server without tracing relays the caller's trace headers unchanged.
func TestATraceOfTheCallerPassesThrough(t *testing.T) {
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	follower, leader := twoNodes(t)
	seen := make(chan http.Header, 1)
	next := leader.http.Handler
	leader.http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Clone()
		next.ServeHTTP(w, r)
	})
	body := `{"id":"a","claims":[{"tree":"cern","node":"physics","amounts":{"cores":"1"}}]}`
	if got := send(t, "POST", follower.url+allocatePath, body, "Traceparent", trace, observe.RequestIDHeader,
		"call"); got.status != 200 {
		t.Fatalf("got %v", got)
	}
	if got := <-seen; got.Get("Traceparent") != trace || got.Get(observe.RequestIDHeader) != "call" {
		t.Errorf("the leader got %v", got)
	}
}

// someDiagnoses is shared by all servers of the tests.
var someDiagnoses = []handlers.Diagnosis{
	{Name: "long.txt", Collect: func(context.Context) ([]byte, error) {
		return bytes.Repeat([]byte("x"), handlers.MaxDiagnostic+1), nil
	}},
	{Name: "lost.txt", Collect: func(context.Context) ([]byte, error) { return nil, errors.New("it is lost") }},
}

func TestDiagnostics(t *testing.T) {
	follower, leader := twoNodes(t)
	ask := func(d *testServer, member string) (*adminv1.GetDiagnosticsResponse, error) {
		client := adminv1connect.NewDebugServiceClient(overHTTP2, d.url)
		return client.GetDiagnostics(t.Context(), &adminv1.GetDiagnosticsRequest{Member: member})
	}
	for _, d := range []*testServer{leader, follower} {
		got, err := ask(d, "n2")
		if err != nil || got.GetMember() != "n2" || len(got.GetDiagnostics()) != 2 {
			t.Fatalf("%s says %v, %v", d.id, got, err)
		}
		first, second := got.GetDiagnostics()[0], got.GetDiagnostics()[1]
		if len(first.GetContent()) != handlers.MaxDiagnostic || !first.GetTruncated() ||
			second.GetMissing() != "it is lost" {
			t.Errorf("%s says %d bytes, %v, %q", d.id, len(first.GetContent()), first.GetTruncated(),
				second.GetMissing())
		}
	}
	if _, err := ask(follower, "n9"); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("a stranger: %v", err)
	}
	follower.node.members = append(follower.node.members, cluster.Member{ID: "n3", HTTPAddr: "127.0.0.1:1"})
	got, err := ask(follower, "n3")
	if err != nil || got.GetMember() != "n3" || got.GetDiagnostics()[0].GetName() != handlers.WholeMember ||
		!strings.Contains(got.GetDiagnostics()[0].GetMissing(), "n3") {
		t.Errorf("a member that is away: %v, %v", got, err)
	}
}

// TestDiagnosticsAreForOneAtATime: one bundle is collected at a time, and a bounded number of calls wait.
func TestDiagnosticsAreForOneAtATime(t *testing.T) {
	limits, err := admission.NewLimiters(admission.Limits{}.WithDefaults(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	running, goOn := 0, make(chan struct{})
	s := handlers.NewDebugService(handlers.Service{ID: "n1"}, relay.Peers{},
		[]handlers.Diagnosis{{Name: "slow.txt", Collect: func(context.Context) ([]byte, error) {
			running++ // a data race if two calls collect concurrently
			<-goOn
			return []byte("x"), nil
		}}}, limits.Diagnostics)
	ended := make(chan error)
	ask := func(ctx context.Context) {
		_, err := s.GetDiagnostics(ctx, &adminv1.GetDiagnosticsRequest{Member: "n1"})
		ended <- err
	}
	impatient, leave := context.WithCancel(context.Background())
	go ask(context.Background())
	eventually(t, "the first collects", func() bool { return len(s.Busy) == 1 })
	go ask(impatient)
	for range admission.MaxDiagnostics - 2 {
		go ask(context.Background())
	}
	eventually(t, "the others wait", func() bool { return limits.Diagnostics.InUse.Load() == admission.MaxDiagnostics })
	_, err = s.GetDiagnostics(t.Context(), &adminv1.GetDiagnosticsRequest{})
	wantOverloaded(t, err, "diagnostics")
	leave()
	if err := <-ended; connect.CodeOf(err) != connect.CodeDeadlineExceeded {
		t.Errorf("one that did not wait got %v", err)
	}
	close(goOn)
	for range admission.MaxDiagnostics - 1 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if running != admission.MaxDiagnostics-1 {
		t.Errorf("%d were served", running)
	}
}
