package rpc

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestWhichPagesMayCall: requests of browsers are accepted only from pages of the server itself, from links and from
// configured origins.
func TestWhichPagesMayCall(t *testing.T) {
	t.Parallel()
	const trusted = "https://quotas.example.org"
	form := map[string]string{
		"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors",
		"Origin": "https://evil.example",
	}
	with := func(headers map[string]string, name, value string) map[string]string {
		headers = maps.Clone(headers)
		headers[name] = value
		return headers
	}
	named := with(form, "Origin", trusted)
	for name, tc := range map[string]struct {
		method  string
		headers map[string]string
		origins []string
		want    int
		allows  string // Access-Control-Allow-Origin
	}{
		"no browser":             {method: "POST", want: 200},
		"a form of another site": {method: "POST", headers: form, want: 403},
		"a form of a neighbouring site": {
			method:  "POST",
			headers: with(form, "Sec-Fetch-Site", "same-site"), want: 403,
		},
		"a form in an old browser": {
			method:  "POST",
			headers: map[string]string{"Origin": "https://evil.example"}, want: 403,
		},
		"a form of a sandboxed page": {method: "POST", headers: map[string]string{"Origin": "null"}, want: 403},
		"a script of another site":   {method: "GET", headers: form, want: 403},
		"a preflight of another site": {
			method:  "OPTIONS",
			headers: with(form, "Access-Control-Request-Method", "POST"), want: 403,
		},
		"an image of another site": {
			method: "GET",
			headers: map[string]string{
				"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors",
				"Sec-Fetch-Dest": "image",
			}, want: 403,
		},
		"a frame of another site": {
			method: "GET",
			headers: map[string]string{
				"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate",
				"Sec-Fetch-Dest": "iframe",
			}, want: 403,
		},
		"a link of another site": {
			method: "GET",
			headers: map[string]string{
				"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate",
				"Sec-Fetch-Dest": "document",
			}, want: 200,
		},
		"a form that navigates": {
			method: "POST",
			headers: map[string]string{
				"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate",
				"Sec-Fetch-Dest": "document",
			}, want: 403,
		},
		"a page of the server": {
			method:  "POST",
			headers: map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": "http://127.0.0.1:7101"}, want: 200,
		},
		"an address that was typed": {
			method:  "GET",
			headers: map[string]string{"Sec-Fetch-Site": "none"}, want: 200,
		},
		"a page that is named": {
			method: "POST", headers: named, origins: []string{trusted}, want: 200,
			allows: trusted,
		},
		"a preflight of a page": {
			method:  "OPTIONS",
			headers: with(named, "Access-Control-Request-Method", "POST"), origins: []string{trusted}, want: 204,
			allows: trusted,
		},
		"another page than the named one": {method: "POST", headers: form, origins: []string{trusted}, want: 403},
		"a name that goes on": {
			method: "POST", headers: with(form, "Origin", trusted+".evil.example"),
			origins: []string{trusted}, want: 403,
		},
	} {
		var reason string
		handler := Browsers{Origins: tc.origins}.Protect(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
			func(why string) { reason = why })
		r := httptest.NewRequest(tc.method, "http://127.0.0.1:7101/x", nil)
		for header, value := range tc.headers {
			r.Header.Set(header, value)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		refused := w.Code == http.StatusForbidden
		if w.Code != tc.want || w.Header().Get("Access-Control-Allow-Origin") != tc.allows ||
			refused != (reason == refusedCrossSite) || refused && !strings.Contains(w.Body.String(), "cors-origin") {
			t.Errorf("%s: %d %v %q %s, want %d", name, w.Code, w.Header(), reason, w.Body, tc.want)
		}
	}
}

// TestAServerOfOneMachineServesNoOtherHost: a server on loopback refuses other host names, which a page would send
// after DNS rebinding.
func TestAServerOfOneMachineServesNoOtherHost(t *testing.T) {
	t.Parallel()
	alone := Browsers{LoopbackOnly: true, Hosts: []string{"n1.test"}}
	for host, want := range map[string]int{
		"localhost": 200, "localhost:7101": 200, "LOCALHOST.:80": 200, "127.0.0.1:7101": 200, "127.8.9.1": 200,
		"[::1]:7101": 200, "[::1]": 200,
		"[::ffff:127.0.0.1]:1": 200, "n1.test:7101": 200, "": 200,
		"evil.example": 403, "evil.example:7101": 403, "localhost.evil.example": 403,
		"127.0.0.1.evil.example:7101": 403, "10.0.0.1:7101": 403, "[2001:db8::1]:7101": 403,
		"0.0.0.0:7101": 403,
	} {
		for _, b := range []Browsers{alone, {}} {
			r := httptest.NewRequest(http.MethodGet, "/x", nil)
			r.Host = host
			w := httptest.NewRecorder()
			b.Protect(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), nil).ServeHTTP(w, r)
			switch {
			case !b.LoopbackOnly && w.Code != 200:
				t.Errorf("a server of many machines answers host %q with %d", host, w.Code)
			case b.LoopbackOnly && w.Code != want:
				t.Errorf("host %q: %d %s, want %d", host, w.Code, w.Body, want)
			}
		}
	}
}

func TestOriginsThatNoPageCanHave(t *testing.T) {
	t.Parallel()
	for _, origin := range []string{"*", "quotas.example.org", "https://quotas.example.org/path", "https://", "null"} {
		if err := (Browsers{Origins: []string{origin}}).Check(); err == nil ||
			!strings.Contains(err.Error(), "cors-origin") {
			t.Errorf("%q: %v", origin, err)
		}
	}
	if err := (Browsers{Origins: []string{"https://a.example:8443", "http://b.example"}}).Check(); err != nil {
		t.Error(err)
	}
	if err := (Browsers{Origins: make([]string, maxOrigins+1)}).Check(); err == nil {
		t.Error("any number of origins is taken")
	}
}
