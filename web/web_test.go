package web

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
)

func newTestHandler(t *testing.T) http.Handler {
	t.Helper()
	h, err := NewHandler(fstest.MapFS{
		"index.html": {Data: []byte(`<meta name="quorate-mode" content="{{mode}}">`)},
		"app.js":     {Data: []byte(strings.Repeat("run();\n", 100))},
	}, "write")
	if err != nil {
		t.Fatal(err)
	}
	return h
}

type answer struct {
	code   int
	header http.Header
	body   string
}

func ask(h http.Handler, method, path string, header ...string) answer {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return answer{w.Code, w.Header(), w.Body.String()}
}

// TestEveryAddressOfThePageGetsThePage checks that a link to any view works, with what the page may do written in it.
func TestEveryAddressOfThePageGetsThePage(t *testing.T) {
	h := newTestHandler(t)
	for _, path := range []string{"/ui/", "/ui/tree", "/ui/node"} {
		got := ask(h, http.MethodGet, path)
		if got.code != http.StatusOK || !strings.Contains(got.body, `content="write"`) {
			t.Errorf("%s: %d %s", path, got.code, got.body)
		}
		if policy := got.header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; ") ||
			strings.Contains(policy, "unsafe") {
			t.Errorf("%s: content policy %q", path, policy)
		}
	}
	for path, want := range map[string]int{"/ui/other.js": 404, "/ui/../web.go": 404, "/ui/app.js": 200} {
		if got := ask(h, http.MethodGet, path); got.code != want {
			t.Errorf("%s: %d, want %d", path, got.code, want)
		}
	}
	if got := ask(h, http.MethodPost, "/ui/"); got.code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", got.code)
	}
}

// TestFilesAreCompressedAndCached checks that a browser that has a file fetches no second copy.
func TestFilesAreCompressedAndCached(t *testing.T) {
	h := newTestHandler(t)
	plain := ask(h, http.MethodGet, "/ui/app.js")
	packed := ask(h, http.MethodGet, "/ui/app.js", "Accept-Encoding", "br, gzip;q=0.8")
	if packed.header.Get("Content-Encoding") != "gzip" || len(packed.body) >= len(plain.body) {
		t.Errorf("%d bytes of %d, encoded as %q", len(packed.body), len(plain.body),
			packed.header.Get("Content-Encoding"))
	}
	unpacked, err := gzip.NewReader(strings.NewReader(packed.body))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(unpacked); err != nil || string(text) != plain.body {
		t.Errorf("the compressed file is another one: %v", err)
	}
	none := ask(h, http.MethodGet, "/ui/app.js", "Accept-Encoding", "gzip;q=0")
	if none.header.Get("Content-Encoding") != "" {
		t.Error("gzip was sent to a caller that refuses it")
	}
	tag := plain.header.Get("Etag")
	for _, header := range []string{tag, "W/" + tag, `"other", ` + tag, "*"} {
		if got := ask(h, http.MethodGet, "/ui/app.js", "If-None-Match", header); got.code != 304 {
			t.Errorf("If-None-Match %s: %d", header, got.code)
		}
	}
	if got := ask(h, http.MethodGet, "/ui/app.js", "If-None-Match", `"other"`); got.code != 200 {
		t.Errorf("an old tag got %d", got.code)
	}
}

// TestWhatCannotBeServedIsRefusedAtOnce checks that a wrong build does not become a broken page.
func TestWhatCannotBeServedIsRefusedAtOnce(t *testing.T) {
	for name, files := range map[string]fstest.MapFS{
		"no page":      {"app.js": {}},
		"unknown type": {"index.html": {}, "notes.doc": {}},
	} {
		if _, err := NewHandler(files, "read"); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// most is how many bytes all files of the dashboard have at most, compressed.
const most = 180 << 10

// TestTheDashboardIsSmall bounds what is embedded, and checks that it is complete.
func TestTheDashboardIsSmall(t *testing.T) {
	h, err := NewHandler(Files(), "read")
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, name := range []string{"", "app.js", "app.css", "icon.svg", "inter.woff2", "licenses.txt"} {
		got := ask(h, http.MethodGet, "/ui/"+name, "Accept-Encoding", "gzip")
		if got.code != http.StatusOK {
			t.Errorf("/ui/%s: %d", name, got.code)
		}
		total += len(got.body)
	}
	if total > most {
		t.Errorf("the dashboard is %d bytes, compressed; at most %d", total, most)
	}
}
