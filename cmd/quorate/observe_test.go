package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/hashicorp/go-hclog"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// TestNoSecretIsTold plants secrets wherever a setting could have one.
func TestNoSecretIsTold(t *testing.T) {
	for key, value := range map[string]any{
		"gossip-key": "hunter2", "api-token": "hunter2", "db-password": "hunter2", "otlp-headers": "authorization=hunter2",
		"gossip-keys": []string{"hunter2"}, "tls-private": "hunter2", "client-secrets": []string{"a", "hunter2"},
		"otlp-endpoint": "https://me:hunter2@collector:4318/v1/traces", "join": []string{"a:1", "https://x/?token=hunter2"},
	} {
		if shown := fmt.Sprint(tell(key, value)); strings.Contains(shown, "hunter2") || !strings.Contains(shown, hidden) {
			t.Errorf("%s: %v is shown as %s", key, value, shown)
		}
	}
	for key, value := range map[string]any{
		"tls-key-file": "/etc/quorate/key.pem", "join": []string{"10.0.0.1:7301"}, "otlp-endpoint": "http://127.0.0.1:4318", "log-json": false,
		"gossip-key": "", "trace-sample": 0.5,
	} {
		if shown := fmt.Sprint(tell(key, value)); shown != fmt.Sprint(value) {
			t.Errorf("%s: %v is shown as %s", key, value, shown)
		}
	}
	text, err := yaml.Marshal(settings{ID: "n1", SnapshotCheck: time.Minute, OTLPEndpoint: "http://a:hunter2@b"}.told())
	if err != nil || strings.Contains(string(text), "hunter2") || !strings.Contains(string(text), "snapshot-check: 1m0s") {
		t.Errorf("told %s, %v", text, err)
	}
	remembered := new(lately)
	newLogger(remembered, settings{ID: "n1", LogLevel: "info"}).Info("sending", "to", "https://me:hunter2@collector/?key=hunter2")
	if told, err := remembered.told(); err != nil || strings.Contains(string(told), "hunter2") || !strings.Contains(string(told), "collector") {
		t.Errorf("told %s, %v", told, err)
	}
}

func TestTheLogIsRememberedInABoundedRoom(t *testing.T) {
	l := new(lately)
	for i := range latelyLines + 500 {
		fmt.Fprintf(l, "line %d\n", i) //nolint:errcheck // it never fails
	}
	lines := strings.Split(strings.TrimSpace(string(l.text())), "\n")
	if len(lines) != latelyLines || lines[0] != "line 500" || lines[len(lines)-1] != fmt.Sprintf("line %d", latelyLines+499) {
		t.Errorf("%d lines from %s to %s", len(lines), lines[0], lines[len(lines)-1])
	}
	for range 20 {
		if n, err := l.Write(bytes.Repeat([]byte("x"), latelyBytes/10)); n != latelyBytes/10 || err != nil {
			t.Fatal(n, err)
		}
	}
	if got := len(l.text()); got > latelyBytes || got < latelyBytes/2 {
		t.Errorf("%d bytes are remembered", got)
	}
	var nobody *lately
	if _, err := nobody.told(); err == nil {
		t.Error("a log that is not remembered was told")
	}
}

// TestTracesAreOffUnlessSomebodyNamesACollector: then there is nothing that could send.
func TestTracesAreOffUnlessSomebodyNamesACollector(t *testing.T) {
	for name, c := range map[string]struct {
		endpoint string
		environ  map[string]string
		on       bool
	}{
		"nothing":         {},
		"the setting":     {endpoint: "http://127.0.0.1:4318", on: true},
		"the environment": {environ: map[string]string{otelEndpoint: "http://127.0.0.1:4318"}, on: true},
		"one for traces":  {environ: map[string]string{otelTracesEndpoint: "http://127.0.0.1:4318/v1/traces"}, on: true},
		"switched off":    {endpoint: "http://127.0.0.1:4318", environ: map[string]string{otelDisabled: "true"}},
	} {
		got, err := startTracing(t.Context(), settings{OTLPEndpoint: c.endpoint}, func(key string) string { return c.environ[key] }, hclog.NewNullLogger())
		if err != nil || (got.spans() != nil) != c.on {
			t.Errorf("%s: on is %v, %v", name, got.spans() != nil, err)
		}
		got.stop(t.Context(), hclog.NewNullLogger())
	}
}

func TestSettingsOfTraces(t *testing.T) {
	for endpoint, want := range map[string]string{
		"http://c:4318": "http://c:4318/v1/traces", "https://c/": "https://c/v1/traces", "https://c/otlp/in": "https://c/otlp/in",
	} {
		if got := (settings{OTLPEndpoint: endpoint}).tracesURL(); got != want {
			t.Errorf("%s became %s, want %s", endpoint, got, want)
		}
	}
	for _, bad := range [][]string{
		{"--otlp-endpoint", "c:4318"}, {"--otlp-endpoint", "grpc://c:4317"}, {"--trace-sample", "1.1"}, {"--trace-sample", "-1"}, {"--trace-sample", "NaN"},
	} {
		_, err := load(t, nil, append(bad, "--id", "n1", "--data-dir", "d")...)
		if err == nil || !strings.Contains(err.Error(), bad[0][2:]) || !strings.Contains(err.Error(), "allowed") {
			t.Errorf("%v: %v", bad, err)
		}
	}
	s, err := load(t, []string{"QUORATE_TRACE_SAMPLE=0.5"}, "--id", "n1", "--data-dir", "d")
	if err != nil || s.TraceSample != 0.5 || s.OTLPEndpoint != "" {
		t.Errorf("got %+v, %v", s, err)
	}
	if s, err = load(t, nil, "--id", "n1", "--data-dir", "d"); err != nil || s.TraceSample != 0.1 {
		t.Errorf("the default is %v, %v", s.TraceSample, err)
	}
}

// TestABundleStaysInItsFolder: names come from servers.
func TestABundleStaysInItsFolder(t *testing.T) {
	var file bytes.Buffer
	b := newBundle(&file)
	for _, id := range []string{"n1", "..", "a/b"} {
		err := b.putMember(id, &quoratev1.GetDiagnosticsResponse{Member: id, Diagnostics: []*quoratev1.Diagnostic{
			{Name: "ok.txt", Content: []byte("x")}, {Name: "../../evil", Content: []byte("x")}, {Name: ".rc", Content: []byte("x")},
		}}, nil)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := b.close(); err != nil {
		t.Fatal(err)
	}
	unzipped, err := gzip.NewReader(&file)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	archive := tar.NewReader(unzipped)
	for header, err := archive.Next(); err == nil; header, err = archive.Next() {
		names = append(names, header.Name)
	}
	if got := strings.Join(names, " "); got != "quorate-debug/n1/ok.txt quorate-debug/manifest.json" {
		t.Errorf("the archive has %s", got)
	}
	if len(b.manifest.Members[0].Missing) != 2 || len(b.manifest.Members[1].Missing) != 3 || b.manifest.told() != 1 {
		t.Errorf("the manifest says %+v", b.manifest)
	}
}
