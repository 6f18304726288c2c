package boskos

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

func page(t *testing.T, h *Handler) string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(h); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w,
		httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

func TestMetrics(t *testing.T) {
	f := loaded(t, accounts)
	h := NewHandler(f.api(), Options{})
	acquired(t, h, "type=network owner=me")
	refused(t, h, "type=network owner=you request_id=1")
	released(t, h, "n1", "me")
	acquired(t, h, "type=network owner=you request_id=1")
	call(t, h, http.StatusOK, "acquire", "type=account state=free dest=a owner=me")
	call(t, h, http.StatusOK, "acquire", "type=account state=free dest=b owner=me")
	call(t, h, http.StatusOK, "somewhere/else", "")
	got := page(t, h)
	for _, want := range []string{
		`boskos_resources{state="busy",type="network"} 1`,
		`boskos_resources{state="tombstone",type="network"} 0`,
		`boskos_resources{state="other",type="account"} 2`,
		`boskos_acquire_duration_seconds_bucket{dest="busy",has_request_id="false",state="free",type="network",le="1"} 1`,
		// The clock of the fake stands in the past, so this one has waited for long.
		`boskos_acquire_duration_seconds_bucket{dest="busy",has_request_id="true",state="free",type="network",le="2000"} 0`,
		`boskos_acquire_duration_seconds_count{dest="busy",has_request_id="true",state="free",type="network"} 1`,
		`boskos_http_request_duration_seconds_bucket{method="POST",path="/acquire",status="200",user_agent="",le="0.0078125"}`,
		`boskos_http_request_duration_seconds_bucket{method="POST",path="/acquire",status="404",user_agent="",le="1200"} 1`,
		`boskos_http_response_size_bytes_bucket{method="POST",path="/acquire",status="200",user_agent="",le="128"} 4`,
		`boskos_http_response_size_bytes_sum{method="POST",path="/release",status="200",user_agent=""} 0`,
		`boskos_http_request_duration_seconds_count{method="POST",path="unmatched",status="200",user_agent=""} 1`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the page does not say %s:\n%s", want, got)
		}
	}
}

func TestBuckets(t *testing.T) {
	if got, want := powersOfTwo(128, 1024), []float64{128, 256, 512, 1024}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := powersOfTwo(0.3, 3), []float64{0.3, 0.5, 1, 2, 3}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestMetricsAreBounded: callers cannot create histograms with arbitrary user agents or methods.
func TestMetricsAreBounded(t *testing.T) {
	h := NewHandler(loaded(t, accounts).api(), Options{})
	for n := range 2 * mostCallSeries {
		r := httptest.NewRequest("M"+fmt.Sprint(n), "/", nil)
		r.Header.Set("User-Agent", fmt.Sprint("agent-", n))
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	if n := strings.Count(page(t, h), "boskos_http_response_size_bytes_sum"); n != mostCallSeries+1 {
		t.Errorf("%d combinations, want %d", n, mostCallSeries+1)
	}
}

// TestStatesOfCallersAreNoLabels: states are chosen by callers, and each would be a histogram until the next start.
func TestStatesOfCallersAreNoLabels(t *testing.T) {
	h := NewHandler(loaded(t, accounts).api(), Options{})
	for n := range 20 {
		acquired(t, h, fmt.Sprintf("type=network owner=me dest=made-up-%d", n))
		released(t, h, "n1", "me")
	}
	got := page(t, h)
	if n := strings.Count(got, "boskos_acquire_duration_seconds_sum"); n != 1 || strings.Contains(got, "made-up") {
		t.Errorf("%d histograms:\n%s", n, got)
	}
	if want := `boskos_acquire_duration_seconds_count{dest="other",has_request_id="false",state="free",type="network"} 20`; !strings.Contains(got, want) {
		t.Errorf("the page does not say %s:\n%s", want, got)
	}
	for n := range 2 * mostGrantSeries {
		h.metrics.observeGrant(acquisition{rtype: fmt.Sprint(n)}, time.Now())
	}
	if n := strings.Count(page(t, h), "boskos_acquire_duration_seconds_sum"); n != mostGrantSeries+1 {
		t.Errorf("%d histograms, want %d", n, mostGrantSeries+1)
	}
}

// TestAUserAgentMayBeAnyBytes: a label must be UTF-8, a header need not.
func TestAUserAgentMayBeAnyBytes(t *testing.T) {
	h := NewHandler(loaded(t, accounts).api(), Options{})
	for _, agent := range []string{"\xff", strings.Repeat("é", longestAgent), "plain"} {
		r := httptest.NewRequest(http.MethodPost, "/somewhere", nil)
		r.Header.Set("User-Agent", agent)
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	got := page(t, h)
	for _, want := range []string{
		`user_agent="?"`, `user_agent="` + strings.Repeat("é", longestAgent/2) + `"`,
		`user_agent="plain"`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the page does not say %s:\n%s", want, got)
		}
	}
}

// TestCountsThatFail: a failed count is reported through Notice, and the page has all other metrics.
func TestCountsThatFail(t *testing.T) {
	f := loaded(t, accounts)
	var reported []error
	h := NewHandler(API{f, f, f}, Options{Notice: func(err error) { reported = append(reported, err) }})
	call(t, h, http.StatusOK, "elsewhere", "")
	h.metrics.layout = newLayouts(brokenTrees{}, TreeName)
	if got := page(t, h); !strings.Contains(got, "boskos_http") || strings.Contains(got, "boskos_resources") ||
		len(reported) == 0 {
		t.Errorf("told %v, shown %s", reported, got)
	}
}

type brokenTrees struct{ Trees }

func (brokenTrees) GetTree(context.Context, *quoratev1.GetTreeRequest) (*quoratev1.GetTreeResponse, error) {
	return nil, errors.New("says the test")
}

func TestArrivalsAreBounded(t *testing.T) {
	a := newArrivalTimes()
	began := time.Now()
	for n := range mostArrivals + 10 {
		a.noteArrival(fmt.Sprint(n), began.Add(-time.Hour))
	}
	if len(a.known) != mostArrivals {
		t.Errorf("%d are remembered", len(a.known))
	}
	if got := a.takeArrival("0", began); !got.Equal(began.Add(-time.Hour)) {
		t.Errorf("got %v", got)
	}
	if got := a.takeArrival("0", began); !got.Equal(began) {
		t.Errorf("what was taken is still there: %v", got)
	}
	for id := range a.known {
		a.known[id] = arrival{seen: began.Add(-time.Hour)}
	}
	a.noteArrival("new", began)
	a.noteArrival("newer", began)
	if len(a.known) > 2 {
		t.Errorf("%d are remembered although they have left", len(a.known))
	}
}
