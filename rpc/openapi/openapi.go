// Package openapi serves the description of the public API as an OpenAPI document, which tools/openapi generates from
// the protocol.
package openapi

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"net/http"
	"time"
)

// Path is where the document is served.
const Path = "/openapi.yaml"

//go:embed openapi.yaml
var document []byte

// Document is the text that is served.
func Document() []byte { return bytes.Clone(document) }

// NewHandler serves the document to GET and HEAD, which the caller checks.
func NewHandler() http.Handler {
	digest := sha256.Sum256(document)
	etag := `"` + base64.RawURLEncoding.EncodeToString(digest[:18]) + `"`
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Type", "application/yaml")
		header.Set("X-Content-Type-Options", "nosniff")
		// The path stays the same from version to version: a caller asks each time whether its copy is the right one.
		header.Set("Cache-Control", "no-cache")
		header.Set("Etag", etag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(document))
	})
}
