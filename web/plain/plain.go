// Package plain serves the overview and the cluster as one page without scripts, for curl, text browsers and scripts
// that only want to look. It calls the public API, as the dashboard does in a browser, with the rights of its caller.
package plain

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"connectrpc.com/connect"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/web"
)

// Path is where the page is.
const Path = web.Root + "plain"

// Bounds of the page.
const (
	maxTrees     = 50
	fullestNodes = 5
	maxResources = 20
)

// API is the part of the public API that the page shows. The generated clients implement it.
type API struct {
	Cluster interface {
		GetStatus(ctx context.Context, r *adminv1.GetStatusRequest) (*adminv1.GetStatusResponse, error)
		ListMembers(ctx context.Context, r *adminv1.ListMembersRequest) (*adminv1.ListMembersResponse, error)
	}
	Trees interface {
		ListTrees(ctx context.Context, r *quoratev1.ListTreesRequest) (*quoratev1.ListTreesResponse, error)
		GetUsage(ctx context.Context, r *quoratev1.GetUsageRequest) (*quoratev1.GetUsageResponse, error)
	}
}

// NewHandler answers GET and HEAD: HTML, or aligned text for callers that accept text/plain and not text/html. What the
// caller may not see is left out, and the page says so. Reads are stale: they need no leader.
func NewHandler(api API) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			write(w, r, http.StatusMethodNotAllowed, messagePage("this page only shows: GET it"))
			return
		}
		shown, err := read(r.Context(), api)
		if err != nil {
			WriteError(w, r, err)
			return
		}
		write(w, r, http.StatusOK, shown)
	})
}

// statuses are the answers to errors of the API; all others are 500.
var statuses = map[connect.Code]int{
	connect.CodeUnauthenticated:   http.StatusUnauthorized,
	connect.CodePermissionDenied:  http.StatusForbidden,
	connect.CodeResourceExhausted: http.StatusTooManyRequests,
	connect.CodeUnavailable:       http.StatusServiceUnavailable,
	connect.CodeDeadlineExceeded:  http.StatusGatewayTimeout,
}

// WriteError answers a call that gets no page, with the sentence of the error.
func WriteError(w http.ResponseWriter, r *http.Request, err error) {
	status, known := statuses[connect.CodeOf(err)]
	if !known {
		status = http.StatusInternalServerError
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("Www-Authenticate", "Bearer")
	}
	text := err.Error()
	if failed := new(connect.Error); errors.As(err, &failed) {
		text = failed.Message()
	}
	write(w, r, status, messagePage(text))
}

func write(w http.ResponseWriter, r *http.Request, status int, p page) {
	header := w.Header()
	web.SetPolicy(header)
	header.Add("Vary", "Accept")
	header.Set("Cache-Control", "no-store")
	render, mediaType := writeHTML, "text/html; charset=utf-8"
	if wantsText(r.Header.Get("Accept")) {
		render, mediaType = writeText, "text/plain; charset=utf-8"
	}
	header.Set("Content-Type", mediaType)
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_ = render(w, p) // the reader has gone
	}
}

// wantsText reports whether an Accept header names text/plain and not text/html.
func wantsText(accept string) bool {
	return strings.Contains(accept, "text/plain") && !strings.Contains(accept, "text/html")
}
