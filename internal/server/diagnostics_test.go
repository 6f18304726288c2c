package server

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/yamldoc"
)

// TestNoSecretIsTold sets a secret in every setting that could have one, and checks that diagnostics omit it.
func TestNoSecretIsTold(t *testing.T) {
	for key, value := range map[string]any{
		"gossip-key": "hunter2", "api-token": "hunter2", "db-password": "hunter2",
		"otlp-headers": "authorization=hunter2",
		"gossip-keys":  []string{"hunter2"}, "tls-private": "hunter2", "client-secrets": []string{"a", "hunter2"},
		"otlp-endpoint": "https://me:hunter2@collector:4318/v1/traces",
		"join":          []string{"a:1", "https://x/?token=hunter2"},
	} {
		if shown := fmt.Sprint(redactValue(key, value)); strings.Contains(shown, "hunter2") || !strings.Contains(shown,
			hiddenText) {
			t.Errorf("%s: %v is shown as %s", key, value, shown)
		}
	}
	for key, value := range map[string]any{
		"tls-key-file": "/etc/quorate/key.pem", "join": []string{"10.0.0.1:7301"},
		"otlp-endpoint": "http://127.0.0.1:4318", "log-json": false,
		"gossip-key": "", "trace-sample": 0.5,
	} {
		if shown := fmt.Sprint(redactValue(key, value)); shown != fmt.Sprint(value) {
			t.Errorf("%s: %v is shown as %s", key, value, shown)
		}
	}
	secret := Settings{ID: "n1", SnapshotCheck: time.Minute, OTLPEndpoint: "http://a:hunter2@b"}
	text, err := yamldoc.Marshal(secret.redacted())
	if err != nil || strings.Contains(string(text), "hunter2") ||
		!strings.Contains(string(text), "snapshot-check: 1m0s") {
		t.Errorf("told %s, %v", text, err)
	}
	remembered := new(logBuffer)
	Settings{ID: "n1", LogLevel: "info"}.NewLogger(remembered).Info("sending", "to",
		"https://me:hunter2@collector/?key=hunter2")
	if shown, err := remembered.redacted(); err != nil || strings.Contains(string(shown),
		"hunter2") || !strings.Contains(string(shown), "collector") {
		t.Errorf("told %s, %v", shown, err)
	}
}

func TestTheKeptLogIsBounded(t *testing.T) {
	l := new(logBuffer)
	for i := range bufferedLines + 500 {
		fmt.Fprintf(l, "line %d\n", i) //nolint:errcheck // it never fails
	}
	lines := strings.Split(strings.TrimSpace(string(l.contents())), "\n")
	if len(lines) != bufferedLines || lines[0] != "line 500" || lines[len(lines)-1] != fmt.Sprintf("line %d",
		bufferedLines+499) {
		t.Errorf("%d lines from %s to %s", len(lines), lines[0], lines[len(lines)-1])
	}
	for range 20 {
		if n, err := l.Write(bytes.Repeat([]byte("x"), bufferedBytes/10)); n != bufferedBytes/10 || err != nil {
			t.Fatal(n, err)
		}
	}
	if got := len(l.contents()); got > bufferedBytes || got < bufferedBytes/2 {
		t.Errorf("%d bytes are remembered", got)
	}
	var none *logBuffer
	if _, err := none.redacted(); err == nil {
		t.Error("a log that is not kept was shown")
	}
}
