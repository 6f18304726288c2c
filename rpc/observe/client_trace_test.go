package observe_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"
	"connectrpc.com/otelconnect"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
)

// unavailableTwice answers its first two calls that there is no leader.
type unavailableTwice struct {
	quoratev1connect.UnimplementedAllocationServiceHandler
	calls atomic.Int32
}

func (s *unavailableTwice) Allocate(
	context.Context, *quoratev1.AllocateRequest,
) (*quoratev1.AllocateResponse, error) {
	if s.calls.Add(1) <= 2 {
		return nil, connect.NewError(connect.CodeUnavailable, errors.New("no leader"))
	}
	return &quoratev1.AllocateResponse{}, nil
}

// TestTheTraceOfTheCallerGoesOn: a call is one span for any number of attempts, and each attempt carries its trace
// context.
func TestTheTraceOfTheCallerGoesOn(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	traced, err := otelconnect.NewInterceptor(
		otelconnect.WithTracerProvider(
			provider,
		),
		otelconnect.WithPropagator(propagation.TraceContext{}),
		otelconnect.WithoutMetrics(),
	)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var parents []string
	_, next := quoratev1connect.NewAllocationServiceHandler(&unavailableTwice{})
	listening := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		parents = append(parents, r.Header.Get("Traceparent"))
		mu.Unlock()
		next.ServeHTTP(w, r)
	}))
	t.Cleanup(listening.Close)
	c, err := client.New([]string{listening.URL}, client.WithInterceptors(traced))
	if err != nil {
		t.Fatal(err)
	}
	ctx, root := provider.Tracer("test").Start(t.Context(), "job")
	if _, err := c.Allocations.Allocate(ctx, &quoratev1.AllocateRequest{Id: "a"}); err != nil {
		t.Fatal(err)
	}
	root.End()
	if len(spans.Ended()) != 2 {
		t.Fatalf("%d spans, want the job and the call", len(spans.Ended()))
	}
	call := spans.Ended()[0].SpanContext()
	if call.TraceID() != root.SpanContext().TraceID() ||
		spans.Ended()[0].Parent().SpanID() != root.SpanContext().SpanID() {
		t.Errorf("the call %v is not of the job %v", call, root.SpanContext())
	}
	mu.Lock()
	defer mu.Unlock()
	want := call.TraceID().String() + "-" + call.SpanID().String()
	if len(parents) != 3 || slices.ContainsFunc(parents, func(p string) bool { return !strings.Contains(p, want) }) {
		t.Errorf("the server learnt %q, want thrice %s", parents, want)
	}
}
