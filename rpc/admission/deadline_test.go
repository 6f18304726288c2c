package admission

import (
	"net/http"
	"testing"
	"time"
)

func TestDeadlines(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"1S": time.Second, "250m": 250 * time.Millisecond, "99999999H": time.Hour, "5M": 5 * time.Minute, "7u": 7 * time.Microsecond, "0n": 0,
	} {
		if got, ok := callerTimeout(http.Header{"Grpc-Timeout": {text}}); !ok || got != want {
			t.Errorf("%s: got %v, %v", text, got, ok)
		}
	}
	for _, bad := range []string{"", "1", "S", "1x", "-1S", "123456789S", "1.5S"} {
		if got, ok := callerTimeout(http.Header{"Grpc-Timeout": {bad}}); ok {
			t.Errorf("%q: got %v", bad, got)
		}
	}
	if got, ok := callerTimeout(http.Header{"Connect-Timeout-Ms": {"1500"}}); !ok || got != 1500*time.Millisecond {
		t.Errorf("got %v, %v", got, ok)
	}
}
