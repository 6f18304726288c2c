package hostile

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/pki"
	"github.com/quorate/quorate/internal/servertest"
)

func browserCall(
	t *testing.T, method, target, host string, headers map[string]string,
) (status int, answer http.Header, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, target, strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	if host != "" {
		r.Host = host
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	got, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close() //nolint:errcheck // it is only read
	text, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return got.StatusCode, got.Header, string(text)
}

// TestBrowserAttacks: the calls that a browser makes for a web page of an attacker change nothing and reveal nothing,
// at the API, the Boskos front end and the profiles. The same calls without a browser work.
func TestBrowserAttacks(t *testing.T) {
	profiles := servertest.FreePorts(t, 1)[0]
	c := startCluster(t, clusterOptions{size: 1, args: []string{"--pprof-addr", profiles}})
	c.applyTree(t, 10)
	n := c.nodes[0]
	api, boskos := "http://"+n.HTTP, "http://"+n.boskos
	form := map[string]string{
		"Content-Type": "application/x-www-form-urlencoded", "Origin": "https://evil.example",
		"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document",
	}
	script := map[string]string{
		"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site",
		"Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty",
	}
	old := map[string]string{"Content-Type": "application/x-www-form-urlencoded", "Origin": "https://evil.example"}
	acquire := boskos + "/acquire?" + url.Values{
		"type": {"t"}, "state": {"free"}, "dest": {"busy"},
		"owner": {"page"},
	}.Encode()
	reset := boskos + "/reset?" + url.Values{
		"type": {"t"}, "state": {"busy"}, "dest": {"free"},
		"expire": {"0s"},
	}.Encode()
	usage := api + "/quorate.v1.TreeService/GetUsage?connect=v1&encoding=json&message=" +
		url.QueryEscape(`{"tree":"t"}`)
	for name, attack := range map[string]struct {
		method, target, host string
		headers              map[string]string
	}{
		"a form acquires":                 {"POST", acquire, "", form},
		"a form resets":                   {"POST", reset, "", form},
		"a form of an old browser resets": {"POST", reset, "", old},
		"a script reads /ws/v1":           {"GET", api + "/ws/v1/partition/t/queues", "", script},
		"a script reads the API":          {"GET", usage, "", script},
		"a script asks what it may do": {
			"OPTIONS", api + "/quorate.v1.AllocationService/Allocate", "",
			script,
		},
		"a script reads metrics":  {"GET", api + "/metrics", "", script},
		"a script reads profiles": {"GET", "http://" + profiles + "/debug/pprof/cmdline", "", script},
		"a page that rebinds reads /ws/v1": {
			"GET", api + "/ws/v1/partition/t/queues", "evil.example:7101",
			map[string]string{"Sec-Fetch-Site": "same-origin"},
		},
		"a page that rebinds calls the API": {
			"GET", usage, "evil.example",
			map[string]string{"Sec-Fetch-Site": "same-origin"},
		},
		"a page that rebinds acquires": {
			"POST", acquire, "evil.example",
			map[string]string{"Sec-Fetch-Site": "same-origin"},
		},
		"a page that rebinds in an old browser": {
			"POST", reset, "evil.example",
			map[string]string{"Origin": "http://evil.example"},
		},
		"a page that rebinds reads profiles": {
			"GET", "http://" + profiles + "/debug/pprof/cmdline", "evil.example",
			nil,
		},
		"a page that rebinds reads what is said": {"GET", api + "/readyz", "evil.example", nil},
	} {
		status, header, body := browserCall(t, attack.method, attack.target, attack.host, attack.headers)
		if status != http.StatusForbidden || header.Get("Access-Control-Allow-Origin") != "" ||
			!strings.Contains(body, "cors-origin") && !strings.Contains(body, "localhost") {
			t.Errorf("%s: %d %v %.200s", name, status, header, body)
		}
	}
	for _, target := range []string{api + "/ws/v1/partition/t/queues", usage, api + "/metrics", "http://" + profiles +
		"/debug/pprof/cmdline"} {
		if status, header, body := browserCall(t, http.MethodGet, target, "", nil); status != http.StatusOK ||
			header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("without a browser, %s: %d %v %.200s", target, status, header, body)
		}
	}
	if status, _, body := browserCall(t, http.MethodPost, acquire, "", nil); status != http.StatusNotFound {
		t.Errorf("without a browser, Boskos: %d %s, want that there is no such type", status, body)
	}
}

// TestAllowedOriginsMayCall: pages of a configured origin may call, and no others.
func TestAllowedOriginsMayCall(t *testing.T) {
	const page = "https://quotas.example.org"
	c := startCluster(t, clusterOptions{size: 1, args: []string{"--cors-origin", page}})
	c.applyTree(t, 10)
	api := "http://" + c.nodes[0].HTTP
	script := map[string]string{
		"Origin": page, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors",
		"Access-Control-Request-Method": "POST",
	}
	if status, header, body := browserCall(t, http.MethodOptions, api+"/quorate.v1.AllocationService/Allocate", "",
		script); status != http.StatusNoContent ||
		!strings.Contains(header.Get("Access-Control-Allow-Headers"), "Connect-Protocol-Version") {
		t.Errorf("a preflight: %d %v %s", status, header, body)
	}
	if status, header, body := browserCall(t, http.MethodGet, api+"/ws/v1/partition/t/queues", "",
		script); status != http.StatusOK || header.Get("Access-Control-Allow-Origin") != page {
		t.Errorf("a page that is named: %d %v %s", status, header, body)
	}
	script["Origin"] = page + ".evil.example"
	if status, header, body := browserCall(t, http.MethodGet, api+"/ws/v1/partition/t/queues", "",
		script); status != http.StatusForbidden || header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("another page: %d %v %s", status, header, body)
	}
}

// TestCertificateIsCheckedPerCall: a client whose authority is not trusted any more, or whose certificate is of
// another cluster, gets no answer even on an existing connection.
func TestCertificateIsCheckedPerCall(t *testing.T) {
	c := startCluster(t, clusterOptions{size: 1, encrypted: true})
	n := c.nodes[0]
	kept := c.httpClient(t, "") // keeps its connection
	ask := func() (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, n.URL()+"/readyz", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := kept.Do(r)
		if err != nil {
			return 0, err.Error()
		}
		defer answer.Body.Close() //nolint:errcheck // it is only read
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			return 0, err.Error()
		}
		return answer.StatusCode, string(text)
	}
	if status, body := ask(); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	c.replaceAuthorityAtOnce(t)
	if status, body := ask(); status != http.StatusUnauthorized ||
		!strings.Contains(body, "certificate of the client") {
		t.Errorf("on a connection of before: %d %s", status, body)
	}
	if status, body := ask(); status != 0 {
		t.Errorf("on a new connection: %d %s", status, body)
	}
	if end := runCommand(t, append([]string{"status"}, c.clientFlags(n)...)...); end.code != 0 {
		t.Errorf("a client of the new authority: %+v", end)
	}
}

// replaceAuthorityAtOnce replaces the certificates of the only node and the client by those of another authority,
// which becomes the only trusted one.
func (c *cluster) replaceAuthorityAtOnce(t *testing.T) {
	t.Helper()
	next := pki.Folder(t.TempDir() + "/next")
	if end := runCommand(t, "tls", "create", string(next), "--nodes", "n1"); end.code != 0 {
		t.Fatalf("%+v", end)
	}
	for _, pair := range [][2]string{
		{c.certs.CA(), next.CA()},
		{c.certs.Key("n1"), next.Key("n1")},
		{c.certs.Cert("n1"), next.Cert("n1")},
		{c.certs.Key("client"), next.Key("client")},
		{c.certs.Cert("client"), next.Cert("client")},
	} {
		replaceFile(t, pair[0], readFile(t, pair[1]))
	}
	c.nodes[0].reloadCertificates(t)
}
