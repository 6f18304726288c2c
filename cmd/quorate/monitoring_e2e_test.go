package main_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/servertest"
)

// TestMetricsAddress: a server that requires certificates shows its metrics without one at metrics-addr, and nothing
// else there. Callers that take all connections or send too much neither stop it nor keep others away.
func TestMetricsAddress(t *testing.T) {
	t.Parallel()
	certs := makeCerts(t)
	address := servertest.FreePorts(t, 1)[0]
	f := singleServer(t, "--metrics-addr", address)
	f.withTLS(certs)
	server := startProcess(t, f.commandLine()...)
	url := "http://" + address
	awaitCondition(t, "the server is not ready at its metrics-addr", func() bool {
		status, body := httpGet(t, url+"/readyz")
		return status == http.StatusOK && body == "ok\n"
	})
	for path, want := range map[string]string{
		"/livez": "ok\n", "/metrics": "\n" + `quorate_leader{cluster="quorate"} 1` + "\n",
	} {
		if status, body := httpGet(t, url+path); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d without %q", path, status, want)
		}
	}
	for _, path := range []string{"/", "/ui/", "/version", "/debug/pprof/heap", "/ws/v1/partitions"} {
		if status, body := httpGet(t, url+path); status != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	for _, path := range []string{"/quorate.v1.TreeService/ListTrees", "/metrics"} {
		if status, body := httpPost(t, url+path, "{}"); status != http.StatusNotFound &&
			status != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: %d %s", path, status, body)
		}
	}
	if status, body := httpGet(t, "https://"+f.http+"/metrics"); status != 0 {
		t.Errorf("the API answers a caller without a certificate with %d %s", status, body)
	}
	refuseForeignHost(t, url)
	refuseLargeHeaders(t, address)
	fillConnections(t, address)
	if end := startProcess(t, append(singleServer(t).commandLine(), "--metrics-addr", address)...).awaitEnd(t); end.code !=
		1 || !strings.Contains(end.stderr, "choose another address with --metrics-addr") {
		t.Errorf("a second server on the address: %+v", end)
	}
	server.stopCleanly(t)
	if status, _ := httpGet(t, url+"/livez"); status != 0 {
		t.Errorf("%s answers %d after the server has stopped", address, status)
	}
}

// refuseForeignHost: on loopback a page whose name was made to stand for 127.0.0.1 reads nothing.
func refuseForeignHost(t *testing.T, url string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = "page.example.org"
	if status, body := sendRequest(t, request); status != http.StatusForbidden {
		t.Errorf("a page of another host: %d %.100s", status, body)
	}
}

func refuseLargeHeaders(t *testing.T, address string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Large", strings.Repeat("x", 64<<10))
	if status, _ := sendRequest(t, request); status != http.StatusRequestHeaderFieldsTooLarge && status != 0 {
		t.Errorf("64 KiB of headers are answered with %d", status)
	}
}

// fillConnections opens more connections from each of several addresses than one may have, and scrapes from another.
func fillConnections(t *testing.T, address string) {
	t.Helper()
	const addresses, attempts, share, most = 3, 40, 16, 64
	open := 0
	for i := range addresses {
		fromHere := 0
		for range attempts {
			c := dialFrom(t, fmt.Sprintf("127.0.0.%d", 10+i), address)
			t.Cleanup(func() { _ = c.Close() })
			if isOpen(t, c) {
				fromHere++
			}
		}
		if fromHere != share {
			t.Errorf("one address has %d connections, want %d", fromHere, share)
		}
		open += fromHere
	}
	if open > most {
		t.Errorf("%d connections are open, want at most %d", open, most)
	}
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(
		context.Context, string, string,
	) (net.Conn, error) {
		return dialFrom(t, "127.0.0.20", address), nil
	}}
	answer, err := (&http.Client{Transport: transport}).Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatalf("another address cannot scrape: %v", err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("another address gets %d", answer.StatusCode)
	}
}

func dialFrom(t *testing.T, local, address string) net.Conn {
	t.Helper()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(local)}}
	c, err := dialer.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// isOpen reports whether the server keeps a connection: it answers a request, and keeps it for the next.
func isOpen(t *testing.T, c net.Conn) bool {
	t.Helper()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	_, err := io.WriteString(c, "GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
	if err == nil {
		_, err = c.Read(make([]byte, 1024))
	}
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
		t.Fatal(err)
	}
	return err == nil
}
