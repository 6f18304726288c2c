package relay

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// connectionCount counts all connections of a server and those that are open.
type connectionCount struct {
	mu   sync.Mutex
	open map[net.Conn]bool
	made int
}

func (c *connectionCount) note(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.made++
		c.open[conn] = true
	case http.StateClosed, http.StateHijacked:
		delete(c.open, conn)
	case http.StateActive, http.StateIdle:
	}
}

func (c *connectionCount) counts() (made, open int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made, len(c.open)
}

func sendCall(t *testing.T, through http.RoundTripper, url string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := through.RoundTrip(r)
	if err != nil {
		t.Error(err)
		return ""
	}
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil {
		t.Error(err)
	}
	return string(body)
}

// TestCallsBetweenNodesMoveToNewCertificates: after a certificate renewal, new calls use new connections; the old
// connection closes when its last call ends.
func TestCallsBetweenNodesMoveToNewCertificates(t *testing.T) {
	t.Parallel()
	inside, mayEnd := make(chan struct{}), make(chan struct{})
	count := &connectionCount{open: map[net.Conn]bool{}}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(inside)
			<-mayEnd
		}
		_, _ = io.WriteString(w, r.Proto)
	}))
	server.Config.ConnState, server.EnableHTTP2 = count.note, true
	server.StartTLS()
	defer server.Close()
	var version atomic.Uint64
	through := NewRenewingTransport(TransportConfig{Security: Security{
		// peer identity is not tested here
		Dial:    func(string) *tls.Config { return &tls.Config{InsecureSkipVerify: true} },
		Version: version.Load,
	}})
	defer through.CloseIdleConnections()

	var slow sync.WaitGroup
	slow.Go(func() {
		if got := sendCall(t, through, server.URL+"/slow"); got != "HTTP/2.0" {
			t.Errorf("the call under way was answered %q", got)
		}
	})
	<-inside
	sendCall(t, through, server.URL)
	if made, open := count.counts(); made != 1 || open != 1 {
		t.Fatalf("two calls made %d connections, %d are open", made, open)
	}
	version.Add(1)
	sendCall(t, through, server.URL)
	sendCall(t, through, server.URL)
	if made, open := count.counts(); made != 2 || open != 2 {
		t.Errorf("after a renewal: %d connections were made, %d are open, want 2 and 2: one under way, "+
			"one for new calls", made, open)
	}
	close(mayEnd)
	slow.Wait()
	awaitOpen(t, count, 1)
	through.mu.Lock()
	through.opened = through.opened.Add(-connectionSpan - time.Second)
	through.mu.Unlock()
	sendCall(t, through, server.URL)
	awaitOpen(t, count, 1)
	if made, _ := count.counts(); made != 3 {
		t.Errorf("a connection takes new calls beyond its span: %d were made, want 3", made)
	}
}

func awaitOpen(t *testing.T, count *connectionCount, want int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if _, open := count.counts(); open == want {
			return
		}
	}
	_, open := count.counts()
	t.Errorf("%d connections are open, want %d", open, want)
}

// TestARefusedNodeConnectsAnew: the connection of a refused node is closed, so that its next call can present a new
// certificate.
func TestARefusedNodeConnectsAnew(t *testing.T) {
	t.Parallel()
	count := &connectionCount{open: map[net.Conn]bool{}}
	guarded := Security{NodeOf: func(*tls.ConnectionState) (string, error) { return "", io.EOF }}.NodesOnly(
		http.NotFoundHandler(),
		func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusForbidden) })
	server := httptest.NewUnstartedServer(guarded)
	server.Config.ConnState, server.EnableHTTP2 = count.note, true
	server.StartTLS()
	defer server.Close()
	through := NewRenewingTransport(TransportConfig{Security: Security{Dial: func(string) *tls.Config {
		return &tls.Config{InsecureSkipVerify: true}
	}}})
	sendCall(t, through, server.URL)
	awaitOpen(t, count, 0)
}
