package rpc

import (
	"net/http"
	"strings"
	"testing"

	"github.com/quorate/quorate/rpc/openapi"
)

// TestDescriptionIsServed: everyone may read the description of the API, and ask whether a copy is the present one.
func TestDescriptionIsServed(t *testing.T) {
	address := oneNode(t).url + openapi.Path
	got := send(t, http.MethodGet, address, "")
	etag := got.header.Get("Etag")
	if got.status != http.StatusOK || got.body != string(openapi.Document()) || etag == "" ||
		got.header.Get("Content-Type") != "application/yaml" || got.header.Get("Cache-Control") != "no-cache" {
		t.Fatalf("GET answers %d with %d bytes and %v", got.status, len(got.body), got.header)
	}
	for name, c := range map[string]struct {
		method, tag string
		status      int
	}{
		"head":          {http.MethodHead, "", http.StatusOK},
		"the same copy": {http.MethodGet, etag, http.StatusNotModified},
		"another copy":  {http.MethodGet, `"other"`, http.StatusOK},
	} {
		got := send(t, c.method, address, "", "If-None-Match", c.tag)
		wantsBody := c.method == http.MethodGet && c.status == http.StatusOK
		if got.status != c.status || (got.body != "") != wantsBody || got.header.Get("Etag") != etag {
			t.Errorf("%s: got %d with %d bytes and %v", name, got.status, len(got.body), got.header)
		}
	}
	if got := send(t, http.MethodGet, address, "", "Sec-Fetch-Site", "cross-site"); got.status != http.StatusForbidden {
		t.Errorf("a page of another site is answered with %d", got.status)
	}
	got = send(t, http.MethodPost, address, "{}", "Content-Type", "application/json")
	if got.status != http.StatusMethodNotAllowed || got.header.Get("Allow") != "GET, HEAD" ||
		!strings.Contains(got.body, `"reason":"INVALID"`) || !strings.Contains(got.body, "GET it") {
		t.Errorf("POST answers %d %v %s", got.status, got.header, got.body)
	}
}
