package faults

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/quorate/quorate/client"
)

// TestCallsOfAStranger: what a stranger is told is a failure of the cluster, unless it is that it may not or that there
// is no leader.
func TestCallsOfAStranger(t *testing.T) {
	for _, c := range []struct {
		status         int
		code, failures string
		refused        int
	}{
		{http.StatusUnauthorized, "unauthenticated", "", 8},
		{http.StatusForbidden, "permission_denied", "", 8},
		{http.StatusNotFound, "not_found", "", 8},
		{http.StatusConflict, "already_exists", "tells a stranger at n1: already_exists", 0},
		{http.StatusOK, "", "of a stranger at n1 succeeded", 0},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if c.code == "" { // an empty message
				w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(c.status)
			_, _ = fmt.Fprintf(w, `{"code": %q, "message": "no"}`, c.code)
		}))
		t.Cleanup(server.Close)
		caller, err := client.New([]string{server.URL})
		if err != nil {
			t.Fatal(err)
		}
		refused, err := callAsStranger(t.Context(), caller, 1, "n1")
		if refused != c.refused || (err == nil) != (c.failures == "") {
			t.Errorf("after %d: %d calls were refused, and %v", c.status, refused, err)
		}
		if err != nil && !strings.Contains(err.Error(), c.failures) {
			t.Errorf("after %d: %v, want %q", c.status, err, c.failures)
		}
	}
}
