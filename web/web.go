// Package web serves the dashboard: the files of a page that calls the public API of the node it came from.
//
// The files are built from web/ui by `make ui` and kept in web/dist, so that the Go compiler needs no other tool. The
// page computes no capacity: every number on it is one that the server answered.
package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

// Root is the path below which the dashboard is served.
const Root = "/ui/"

//go:embed dist
var embedded embed.FS

// Files are those that were built into the binary.
func Files() fs.FS {
	files, err := fs.Sub(embedded, "dist")
	if err != nil {
		panic(err) // the folder is a constant
	}
	return files
}

// contentPolicy lets the page load its own files and call its own server, and nothing else: no inline code, no other
// site, no frame around it. Text becomes markup only through the trusted types that the policy does not allow.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// modeMark stands in index.html for what the page may do.
const modeMark = "{{mode}}"

// types are the media types by the extension of a file; other files are not served.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8", ".woff2": "font/woff2",
}

type file struct {
	mediaType, etag string
	content         []byte
	// compressed is made at the first request for it: many servers never get one.
	compressed func() []byte
}

// handler serves files from memory.
type handler struct{ files map[string]file }

// NewHandler serves the files of a built dashboard below [Root]. The mode, "read" or "write", says whether the page
// offers changes; the server judges every call by the rights of its caller in both. Paths without an extension are
// addresses within the page, and get the page itself. It is an error if the files lack the page, or have one of an
// unknown type.
func NewHandler(built fs.FS, mode string) (http.Handler, error) {
	h := handler{files: map[string]file{}}
	err := fs.WalkDir(built, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(built, name)
		if err != nil {
			return err
		}
		if name == page {
			content = bytes.ReplaceAll(content, []byte(modeMark), []byte(html.EscapeString(mode)))
		}
		h.files[name], err = newFile(name, content)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the files of the dashboard: %w", err)
	}
	if _, found := h.files[page]; !found {
		return nil, fmt.Errorf("the files of the dashboard lack %s: build them with make ui", page)
	}
	return h, nil
}

const page = "index.html"

func newFile(name string, content []byte) (file, error) {
	mediaType, known := types[path.Ext(name)]
	if !known {
		return file{}, fmt.Errorf("%s: files of this type are not served", name)
	}
	digest := sha256.Sum256(content)
	return file{
		mediaType: mediaType, etag: `"` + base64.RawURLEncoding.EncodeToString(digest[:18]) + `"`,
		content: content, compressed: sync.OnceValue(func() []byte { return compress(content) }),
	}, nil
}

func compress(content []byte) []byte {
	var compressed bytes.Buffer
	writer, _ := gzip.NewWriterLevel(&compressed, gzip.BestCompression) // the level exists
	_, _ = writer.Write(content)                                        // a buffer takes everything
	_ = writer.Close()
	return compressed.Bytes()
}

// ServeHTTP answers GET and HEAD.
func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the dashboard only has files: GET them", http.StatusMethodNotAllowed)
		return
	}
	name := strings.TrimPrefix(r.URL.Path, Root)
	if path.Ext(name) == "" {
		name = page
	}
	f, found := h.files[name]
	if !found {
		http.NotFound(w, r)
		return
	}
	f.send(w, r)
}

// SetPolicy tells browsers what an answer below [Root] may do.
func SetPolicy(header http.Header) {
	header.Set("Content-Security-Policy", contentPolicy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
}

func (f file) send(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	SetPolicy(header)
	header.Set("Content-Type", f.mediaType)
	// The names of files stay the same from version to version: the browser asks each time whether its copy is still
	// the right one.
	header.Set("Cache-Control", "no-cache")
	header.Set("Etag", f.etag)
	header.Set("Vary", "Accept-Encoding")
	if matches(r.Header.Get("If-None-Match"), f.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	content := f.content
	if acceptsGzip(r.Header.Get("Accept-Encoding")) {
		header.Set("Content-Encoding", "gzip")
		content = f.compressed()
	}
	header.Set("Content-Length", strconv.Itoa(len(content)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(content) // the reader has gone
	}
}

// matches reports whether an If-None-Match header names a tag. A proxy may have made the tag a weak one.
func matches(header, etag string) bool {
	for tag := range strings.SplitSeq(header, ",") {
		if tag = strings.TrimSpace(tag); tag == "*" || strings.TrimPrefix(tag, "W/") == etag {
			return true
		}
	}
	return false
}

// acceptsGzip reports whether an Accept-Encoding header names gzip without forbidding it.
func acceptsGzip(header string) bool {
	for coding := range strings.SplitSeq(header, ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(coding), ";")
		if strings.TrimSpace(name) == "gzip" {
			quality, err := strconv.ParseFloat(strings.TrimPrefix(strings.TrimSpace(weight), "q="), 64)
			return err != nil || quality > 0
		}
	}
	return false
}
