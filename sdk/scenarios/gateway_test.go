package scenarios

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// gatewayStep is what a gateway answers by itself from now on.
type gatewayStep struct {
	// Status is the HTTP status; 0 passes all calls on.
	Status int `yaml:"status"`
	// Times is how many calls it answers so; 0 for all.
	Times int `yaml:"times"`
	// RetryAfter is the header, in seconds; 0 for none.
	RetryAfter int `yaml:"retryAfter"`
	// JSON makes the answer an object of JSON, as many gateways write it, and not a page.
	JSON bool `yaml:"json"`
	// Replace is a text in the answer to Allocate of the server, and With is what stands there instead, as long as it is.
	Replace string `yaml:"replace"`
	With    string `yaml:"with"`
}

// gateway is an HTTP proxy in front of a server that answers some calls by itself.
type gateway struct {
	url  string
	pass http.Handler

	mu    sync.Mutex
	now   gatewayStep
	calls int // of Allocate since the step
}

func startGateway(t *testing.T, server string) *gateway {
	t.Helper()
	target, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	pass := httputil.NewSingleHostReverseProxy(target)
	pass.FlushInterval = -1
	g := &gateway{pass: pass}
	pass.ModifyResponse = g.mixUp
	listening := httptest.NewServer(g)
	t.Cleanup(listening.Close)
	g.url = listening.URL
	return g
}

// ServeHTTP answers or passes on.
func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, isOwn := g.next(strings.HasSuffix(r.URL.Path, "/Allocate"))
	if !isOwn {
		r.Header.Del("Accept-Encoding") // to read the answers
		g.pass.ServeHTTP(w, r)
		return
	}
	if answer.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(answer.RetryAfter))
	}
	kind, body := "text/html", "<html><body>the gateway says no</body></html>"
	if answer.JSON {
		kind, body = "application/json", `{"message":"the gateway says no"}`
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(answer.Status)
	_, _ = fmt.Fprint(w, body) // the caller may have gone
}

// next counts a call and says whether the gateway answers it.
func (g *gateway) next(isAllocate bool) (gatewayStep, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if isAllocate {
		g.calls++
	}
	answer := g.now
	if answer.Status == 0 {
		return answer, false
	}
	if g.now.Times > 0 {
		if g.now.Times--; g.now.Times == 0 {
			g.now.Status = 0
		}
	}
	return answer, true
}

// mixUp changes the id in an answer, as a proxy that mixes connections up would.
func (g *gateway) mixUp(answer *http.Response) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.now.Replace == "" || !strings.HasSuffix(answer.Request.URL.Path, "/Allocate") {
		return nil
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	answer.Body = io.NopCloser(strings.NewReader(strings.ReplaceAll(string(body), g.now.Replace, g.now.With)))
	g.now.Replace = ""
	return nil
}

func (g *gateway) do(t *testing.T, s *driverStep) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case s.Gateway != nil:
		g.now, g.calls = *s.Gateway, 0
	case s.CallsAtMost > 0:
		if g.calls > s.CallsAtMost {
			t.Errorf("the gateway saw %d calls, want at most %d", g.calls, s.CallsAtMost)
		}
	default:
		t.Fatalf("the gateway does not know %+v", s)
	}
}
