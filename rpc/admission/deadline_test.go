package admission

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/quorate/quorate/rpc/procedures"
)

func TestDeadlines(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"1S": time.Second, "250m": 250 * time.Millisecond, "99999999H": time.Hour, "5M": 5 * time.Minute,
		"7u": 7 * time.Microsecond, "0n": 0,
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

// TestTakeTimeout: only what LimitTime has read and the protocol accepts is taken from it.
func TestTakeTimeout(t *testing.T) {
	const unary, stream = "/quorate.v1.AllocationService/Allocate", "/quorate.v1.EventService/WatchEvents"
	known, err := procedures.New()
	if err != nil {
		t.Fatal(err)
	}
	a := Controller{procedures: known}
	for _, c := range []struct {
		path, timeout string
		taken         bool
	}{
		{unary, "1500", true},
		{unary, "0", true},
		{unary, "9999999999", true},
		{unary, "10000000000", false},
		{unary, "-1", false},
		{unary, "soon", false},
		{stream, "1500", false},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, c.path, nil)
		r.Header.Set(timeoutHeader, c.timeout)
		if a.TakeTimeout(r); (r.Header.Get(timeoutHeader) == "") != c.taken {
			t.Errorf("%s %s: taken is not %v", c.path, c.timeout, c.taken)
		}
	}
}
