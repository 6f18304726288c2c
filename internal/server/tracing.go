package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strings"

	"github.com/hashicorp/go-hclog"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Environment variables of OpenTelemetry that say where traces go, as all programs with that SDK read them.
const (
	otelEndpoint       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	otelTracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	otelDisabled       = "OTEL_SDK_DISABLED"
)

// tracesPath is where a collector takes traces, unless the setting has a path.
const tracesPath = "/v1/traces"

// tracing sends nothing with the zero value.
type tracing struct {
	provider *sdktrace.TracerProvider
}

// startTracing sends traces if the settings or the environment of OpenTelemetry name a collector. It does not wait
// for the collector.
func startTracing(
	ctx context.Context, s Settings, version string, getenv func(string) string, logger hclog.Logger,
) (tracing, error) {
	var options []otlptracehttp.Option
	switch {
	case strings.EqualFold(getenv(otelDisabled), "true"):
		return tracing{}, nil
	case s.OTLPEndpoint != "":
		options = append(options, otlptracehttp.WithEndpointURL(s.tracesURL()))
	case getenv(otelEndpoint) == "" && getenv(otelTracesEndpoint) == "":
		return tracing{}, nil
	}
	exporter, err := otlptracehttp.New(ctx, options...)
	if err != nil {
		return tracing{}, fmt.Errorf("preparing to send traces: %w", err)
	}
	// Without a handler the library prints to standard error.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		logger.Warn("traces are not sent", "error", redactURLs(err.Error()))
	}))
	return tracing{sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(s.TraceSample))),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "quorate"), attribute.String("service.namespace", s.ClusterName),
			attribute.String("service.instance.id", s.ID), attribute.String("service.version", version),
		)),
	)}, nil
}

// tracerProvider is nil if no spans are sent.
func (t tracing) tracerProvider() trace.TracerProvider {
	if t.provider == nil {
		return nil
	}
	return t.provider
}

// flush sends the spans that are left and ends, at the latest when ctx ends. It logs a failure rather than returning
// it: a collector that is down must not make the server exit with an error.
func (t tracing) flush(ctx context.Context, logger hclog.Logger) {
	if t.provider == nil {
		return
	}
	if err := t.provider.Shutdown(ctx); err != nil {
		logger.Warn("the last traces were not sent", "error", redactURLs(err.Error()))
	}
}

func (s Settings) tracesURL() string {
	parsed, err := url.Parse(s.OTLPEndpoint)
	if err != nil || parsed.Path != "" && parsed.Path != "/" {
		return s.OTLPEndpoint
	}
	return parsed.JoinPath(tracesPath).String()
}

func (s Settings) checkTracing() error {
	var faults []error
	parsed, err := url.Parse(s.OTLPEndpoint)
	if s.OTLPEndpoint != "" && (err != nil || parsed.Host == "" || parsed.Scheme != "http" &&
		parsed.Scheme != "https") {
		faults = append(faults, fmt.Errorf("otlp-endpoint is %q: allowed is a URL of a collector, such as "+
			"http://127.0.0.1:4318", s.OTLPEndpoint))
	}
	if math.IsNaN(s.TraceSample) || s.TraceSample < 0 || s.TraceSample > 1 {
		faults = append(faults, fmt.Errorf(
			"trace-sample is %v: allowed are 0 (only what callers trace) to 1 (everything)",
			s.TraceSample))
	}
	return errors.Join(faults...)
}
