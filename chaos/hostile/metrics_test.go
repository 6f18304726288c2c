package hostile

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestGreedyReadersOfMetrics: clients that read metrics continuously cost few pages, and clients that do not read the
// answers do not block others.
func TestGreedyReadersOfMetrics(t *testing.T) {
	c := startCluster(t, clusterOptions{size: 1})
	n := c.nodes[0]
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(attackerAddress)}}
	for range 100 {
		conn, err := dialer.DialContext(t.Context(), "tcp", n.HTTP)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if err := conn.(*net.TCPConn).SetReadBuffer(1 << 10); err != nil {
			t.Fatal(err)
		}
		for range 50 {
			if _, err := fmt.Fprint(conn, "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"); err != nil {
				break // the server does not read on while its answers are not taken
			}
		}
	}
	begun, made := time.Now(), map[string]bool{}
	for range 100 {
		status, page := c.httpGet(t, n, "/metrics")
		if status != http.StatusOK || !strings.Contains(page, "quorate_leader") {
			t.Fatalf("another caller gets %d %.100s", status, page)
		}
		made[page] = true // no two that are made are equal: a server counts what it allocates
	}
	if most := int(time.Since(begun).Seconds()) + 2; len(made) > most {
		t.Errorf("%d pages were made in %v, want at most one a second", len(made), time.Since(begun))
	}
}

// TestMadeUpLabels: invented Boskos states, and headers that are not UTF-8, neither add metrics nor cause panics, and
// the calls are answered.
func TestMadeUpLabels(t *testing.T) {
	const calls = 200
	c := startCluster(t, clusterOptions{size: 1})
	n := c.nodes[0]
	if end := runCommand(t, append([]string{"apply", "--from", "boskos", "-f", "../../examples/boskos/boskos.yaml"},
		c.clientFlags(n)...)...); end.code != 0 {
		t.Fatalf("%+v", end)
	}
	boskosAt(t, n, "plain", "/metric?type=gcp-project")
	_, page := c.httpGet(t, n, "/metrics")
	acquired, before := 0, strings.Count(page, "\n")
	for i := range calls {
		agent := fmt.Sprintf("agent-%d\xff", i)
		if status := boskosAt(t, n, agent, fmt.Sprintf("/acquire?type=gcp-project&state=dirty&dest=made-up-%d&owner=me",
			i)); status == http.StatusOK {
			acquired++
		}
		for _, name := range []string{"project-1", "project-2"} {
			boskosAt(t, n, agent, "/release?dest=dirty&owner=me&name="+name)
		}
	}
	if acquired != calls {
		t.Errorf("%d of %d acquisitions were answered", acquired, calls)
	}
	// A state is a label of quorate_items while items are in it, as the last sample saw them.
	var left string
	for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(time.Second) {
		_, page = c.httpGet(t, n, "/metrics")
		at := strings.Index(page, "made-up")
		if at < 0 {
			left = ""
			break
		}
		left = page[max(0, at-100):min(len(page), at+50)]
	}
	t.Logf("%d lines of metrics were %d", strings.Count(page, "\n"), before)
	if left != "" {
		t.Errorf("states that a caller made up are labels: %s", left)
	}
	if log := n.Stderr.String(); strings.Contains(log, "panic") {
		t.Errorf("a call panicked:\n%s", lastLines(log, 30))
	}
}

// boskosAt posts to the Boskos port. The answer must not be a server error.
func boskosAt(t *testing.T, n *node, agent, target string) (status int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+n.boskos+target, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header["User-Agent"] = []string{agent}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode >= http.StatusInternalServerError {
		t.Errorf("%q got %d", agent, answer.StatusCode)
	}
	return answer.StatusCode
}
