package server

import (
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
)

// TestTracesAreOffWithoutACollector: without a collector there is no exporter.
func TestTracesAreOffWithoutACollector(t *testing.T) {
	for name, c := range map[string]struct {
		endpoint string
		environ  map[string]string
		on       bool
	}{
		"nothing":         {},
		"the setting":     {endpoint: "http://127.0.0.1:4318", on: true},
		"the environment": {environ: map[string]string{otelEndpoint: "http://127.0.0.1:4318"}, on: true},
		"one for traces": {
			environ: map[string]string{otelTracesEndpoint: "http://127.0.0.1:4318/v1/traces"}, on: true,
		},
		"switched off": {endpoint: "http://127.0.0.1:4318", environ: map[string]string{otelDisabled: "true"}},
	} {
		got, err := startTracing(t.Context(), Settings{OTLPEndpoint: c.endpoint}, "devel",
			func(key string) string { return c.environ[key] }, hclog.NewNullLogger())
		if err != nil || (got.tracerProvider() != nil) != c.on {
			t.Errorf("%s: on is %v, %v", name, got.tracerProvider() != nil, err)
		}
		got.flush(t.Context(), hclog.NewNullLogger())
	}
}

func TestSettingsOfTraces(t *testing.T) {
	for endpoint, want := range map[string]string{
		"http://c:4318": "http://c:4318/v1/traces", "https://c/": "https://c/v1/traces",
		"https://c/otlp/in": "https://c/otlp/in",
	} {
		if got := (Settings{OTLPEndpoint: endpoint}).tracesURL(); got != want {
			t.Errorf("%s became %s, want %s", endpoint, got, want)
		}
	}
	for _, bad := range [][]string{
		{"--otlp-endpoint", "c:4318"},
		{"--otlp-endpoint", "grpc://c:4317"},
		{"--trace-sample", "1.1"},
		{"--trace-sample", "-1"},
		{"--trace-sample", "NaN"},
	} {
		_, err := loadWith(t, nil, append(bad, "--id", "n1", "--data-dir", "d")...)
		if err == nil || !strings.Contains(err.Error(), bad[0][2:]) || !strings.Contains(err.Error(), "allowed") {
			t.Errorf("%v: %v", bad, err)
		}
	}
	s, err := loadWith(t, []string{"QUORATE_SERVER_TRACE_SAMPLE=0.5"}, "--id", "n1", "--data-dir", "d")
	if err != nil || s.TraceSample != 0.5 || s.OTLPEndpoint != "" {
		t.Errorf("got %+v, %v", s, err)
	}
	if s, err = loadWith(t, nil, "--id", "n1", "--data-dir", "d"); err != nil || s.TraceSample != 0.1 {
		t.Errorf("the default is %v, %v", s.TraceSample, err)
	}
}
