package rpc

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/quorate/quorate/rpc/admission"
	"github.com/quorate/quorate/rpc/observe"
	"github.com/quorate/quorate/rpc/relay"
	"github.com/quorate/quorate/rpc/wire"
)

// TestAnswersMustBeTaken: a caller that does not read its answer loses its place, while a stream may last longer than
// the time limit of answers.
func TestAnswersMustBeTaken(t *testing.T) {
	t.Parallel()
	d := oneNode(t)
	mux := http.NewServeMux()
	mux.Handle("/", d.Handler())
	// The call has its place for as long as its handler runs; a poll might come after the time limit of the answer.
	placed := make(chan int64, 1)
	mux.Handle("/large", d.FrontEnd(FrontEnd{Name: "test", New: func(Services) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			placed <- d.admission.Limiters.Clients.Calls.InUse.Load()
			_, _ = w.Write(bytes.Repeat([]byte("x"), 64<<20))
		})
	}}))
	const restorePath = "/quorate.admin.v1.SnapshotService/Restore"
	mux.Handle(restorePath, d.newPipeline(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(1500 * time.Millisecond)
		_, _ = io.WriteString(w, "restored")
	}), d.admission.EndWithServer(t.Context())))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	d.admission.LimitConnections(server)
	if want := admission.LongestDeadline + d.admission.Limits.SendPatience; server.WriteTimeout != want {
		t.Errorf("answers may take %v, want %v", server.WriteTimeout, want)
	}
	server.WriteTimeout = time.Second
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	c, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := io.WriteString(c, "GET /large HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if n := <-placed; n != 1 {
		t.Errorf("%d calls have a place while one is answered, want 1", n)
	}
	eventually(t, "the call has lost its place",
		func() bool { return d.admission.Limiters.Clients.Calls.InUse.Load() == 0 })
	if got := send(t, "POST", "http://"+listener.Addr().String()+restorePath, ""); got.body != "restored" {
		t.Errorf("a stream that lasted longer was answered %v", got)
	}
}

// TestPanicsDoNotFillTheLog: every panic is answered with an error, and only a few are logged.
func TestPanicsDoNotFillTheLog(t *testing.T) {
	d := oneNode(t)
	log, now := &page{}, time.Unix(0, 0)
	d.observer.Failures = &observe.FailureLog{
		Log: hclog.New(&hclog.LoggerOptions{Output: log}),
		Now: func() time.Time { return now },
	}
	handler := d.newPipeline(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("says the test") }))
	for range 50 {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/x", nil))
		if w.Code != http.StatusInternalServerError {
			t.Fatalf("answered %d", w.Code)
		}
	}
	if n := strings.Count(log.String(), "a call panicked"); n != observe.MaxFailureLines {
		t.Errorf("%d panics are logged, want %d", n, observe.MaxFailureLines)
	}
	now = now.Add(time.Second)
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/x", nil))
	if !strings.Contains(log.String(), "left_out=40") {
		t.Error("the log does not say how many were left out")
	}
}

// TestFewCallsAreTracedOnDemand: the rate of traces that a caller requests is limited, and a member does not limit
// relayed calls again.
func TestFewCallsAreTracedOnDemand(t *testing.T) {
	d := oneNode(t)
	spans, err := observe.NewTraces(noop.NewTracerProvider())
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	handler := d.newPipeline(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Traceparent") != "" {
			asked++
		}
	}), d.admission.IssueTicket, spans.LimitAsked(d.admission.IsRelayed))
	ask := func(flags, relay string) int {
		asked = 0
		for range 10 * observe.AskedTraces {
			r := httptest.NewRequest(http.MethodPost, allocatePath, nil)
			r.Header.Set("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-"+flags)
			r.Header.Set(wire.RelayedByHeader, relay)
			handler.ServeHTTP(httptest.NewRecorder(), r)
		}
		return asked
	}
	if n := ask("01", ""); n < observe.AskedTraces || n > 5*observe.AskedTraces {
		t.Errorf("%d of %d calls are traced, want about %d", n, 10*observe.AskedTraces, observe.AskedTraces)
	}
	for name, n := range map[string]int{"calls that are not sampled": ask("00", ""), "relayed calls": ask("01", "n2")} {
		if n != 10*observe.AskedTraces {
			t.Errorf("%s: %d of %d keep their trace", name, n, 10*observe.AskedTraces)
		}
	}
}

// TestRelayedAnswersAreBounded: a relayed answer that exceeds the size limit is refused.
func TestRelayedAnswersAreBounded(t *testing.T) {
	t.Parallel()
	for size, fits := range map[int64]bool{relay.MaxAnswer: true, relay.MaxAnswer + 1: false} {
		answer := &http.Response{Header: http.Header{}, Body: io.NopCloser(io.LimitReader(endless{}, size))}
		if err := relay.ReceiveWhole(answer); (err == nil) != fits {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
