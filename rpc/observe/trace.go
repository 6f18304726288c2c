package observe

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"connectrpc.com/connect"
	"connectrpc.com/otelconnect"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"golang.org/x/time/rate"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/gen/quorate/peer/v1/peerv1connect"
	"github.com/quorate/quorate/rpc/pipeline"
)

// Traces creates the spans of calls on this node. Without a provider it creates none at no cost, and a caller's trace
// context is relayed unchanged.
type Traces struct {
	// tracer makes all other spans; nil without a provider.
	tracer     trace.Tracer
	propagator propagation.TraceContext
	// calls makes the spans of handlers and clients; nil without a provider.
	calls *otelconnect.Interceptor
}

// NewTraces makes spans with a provider; nil for none.
func NewTraces(provider trace.TracerProvider) (Traces, error) {
	if provider == nil {
		return Traces{}, nil
	}
	calls, err := otelconnect.NewInterceptor(
		otelconnect.WithTracerProvider(provider), otelconnect.WithPropagator(propagation.TraceContext{}),
		otelconnect.WithTrustRemote(), // a relayed call belongs to the trace of the caller
		otelconnect.WithoutMetrics(), otelconnect.WithFilter(isTraced),
	)
	if err != nil {
		return Traces{}, fmt.Errorf("preparing traces: %w", err)
	}
	return Traces{tracer: provider.Tracer("github.com/quorate/quorate/rpc"), calls: calls}, nil
}

// isTraced excludes calls between nodes that serve many callers at once.
func isTraced(_ context.Context, called connect.Spec) bool {
	return !strings.HasPrefix(called.Procedure, "/"+peerv1connect.PeerServiceName+"/")
}

func (t Traces) startSpan(
	ctx context.Context, name string, options ...trace.SpanStartOption,
) (context.Context, trace.Span) {
	if t.tracer == nil {
		return ctx, noop.Span{}
	}
	return t.tracer.Start(ctx, name, options...)
}

// HandlerInterceptors go in front of all others.
func (t Traces) HandlerInterceptors() []connect.Interceptor {
	if t.calls == nil {
		return nil
	}
	return []connect.Interceptor{t.calls, Afterwards(noteTrace)}
}

// AskedTraces is the number of calls per second that are traced because their caller requests it. Further ones are
// sampled like calls without a request, because spans cost memory and load the collector.
const AskedTraces = 100

// LimitAsked returns the step that takes the wish to be traced from calls when too many have one. What members relay
// has passed here before.
func (t Traces) LimitAsked(isRelayed func(context.Context) bool) pipeline.Step {
	limit := rate.NewLimiter(AskedTraces, AskedTraces)
	return func(x *pipeline.Exchange) bool {
		header := x.Request.Header
		if t.tracer != nil && asksForTrace(header) && !isRelayed(x.Request.Context()) && !limit.Allow() {
			header.Del("Traceparent")
			header.Del("Tracestate")
		}
		return true
	}
}

// asksForTrace reports whether the traceparent header of a call has the sampled flag, the lowest bit of its last two
// digits.
func asksForTrace(h http.Header) bool {
	parent := h.Get("Traceparent")
	return parent != "" && strings.ContainsAny(parent[len(parent)-1:], "13579bdf")
}

// noteTrace notes the trace that a call belongs to.
func noteTrace(ctx context.Context, err error) error {
	if span := trace.SpanContextFromContext(ctx); span.IsSampled() {
		CallOf(ctx).traceID = span.TraceID().String()
	}
	return err
}

// StartRelay begins the span of a call on its way to the leader, under the caller's.
func (t Traces) StartRelay(r *http.Request, leader cluster.Member) (context.Context, func(error)) {
	ctx := t.propagator.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, span := t.startSpan(ctx, "relay", trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("quorate.leader", leader.ID), attribute.String("url.path", r.URL.Path),
	))
	_ = noteTrace(ctx, nil)
	return ctx, func(err error) { endSpan(span, err) }
}

// InjectHeaders puts a context into what is sent on.
func (t Traces) InjectHeaders(ctx context.Context, header http.Header) {
	t.propagator.Inject(ctx, propagation.HeaderCarrier(header))
}

// StartPropose makes the spans of commands on their way through the log: ledger.propose from their arrival to their
// outcome, and ledger.apply in it, which is the ledger of this node.
func (t Traces) StartPropose(ctx context.Context, commands int) (context.Context, func(error)) {
	ctx, span := t.startSpan(ctx, "ledger.propose", trace.WithAttributes(attribute.Int("quorate.commands", commands)))
	if !span.IsRecording() {
		return ctx, func(error) { span.End() }
	}
	way := new(cluster.EntryReport)
	return cluster.WithEntryReport(ctx, way), func(err error) {
		if way.Index != 0 {
			span.SetAttributes(
				attribute.Int64("quorate.entry.index", int64(way.Index)),
				attribute.Int("quorate.entry.commands", way.Commands), attribute.Int("quorate.entry.calls", way.Calls),
				attribute.Float64("quorate.queue_ms", way.Sent.Sub(way.Queued).Seconds()*1000),
				attribute.Float64("quorate.commit_ms", way.ApplyBegan.Sub(way.Sent).Seconds()*1000),
			)
			_, apply := t.startSpan(ctx, "ledger.apply", trace.WithTimestamp(way.ApplyBegan))
			apply.End(trace.WithTimestamp(way.ApplyEnded))
		}
		endSpan(span, err)
	}
}

// StartRead makes the span of a linearizable read.
func (t Traces) StartRead(ctx context.Context, o cluster.ReadOptions) (context.Context, func(error)) {
	if o.Stale {
		return ctx, func(error) {}
	}
	ctx, span := t.startSpan(ctx, "ledger.read")
	return ctx, func(err error) { endSpan(span, err) }
}

func endSpan(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

// TraceFrontEnd makes the span of a call of another system's protocol.
func (t Traces) TraceFrontEnd(x *pipeline.Exchange) bool {
	if t.calls == nil {
		return true
	}
	r := x.Request
	ctx := t.propagator.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, span := t.startSpan(ctx, "front end", trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("http.request.method", r.Method), attribute.String("url.path", r.URL.Path),
	))
	x.AtEnd(func() { span.End() })
	_ = noteTrace(ctx, nil)
	x.SetContext(ctx)
	return true
}
