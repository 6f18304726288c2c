package rpc

import (
	"net/http"
	"strings"
	"time"

	"github.com/quorate/quorate/rpc/admission"
	"github.com/quorate/quorate/rpc/openapi"
	"github.com/quorate/quorate/rpc/pipeline"
	"github.com/quorate/quorate/rpc/plain"
)

// dashboardRoot is the path below which the dashboard is served.
const dashboardRoot = "/ui/"

// mountDashboard serves the files of the dashboard, which are the same for everyone: callers need no credential, but a
// place among the calls. A browser that opens the address of the server is led there; other callers of the root get
// what they got without a dashboard.
func (s *Server) mountDashboard(mux *http.ServeMux, dashboard, calls http.Handler) {
	if dashboard == nil {
		return
	}
	a := s.admission
	mux.Handle(dashboardRoot, s.newPipeline(dashboard, a.IssueTicket, a.AdmitFrontEnd, limitFileTime))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Accept"), "text/html") {
			calls.ServeHTTP(w, r)
			return
		}
		admission.LimitRest(w, r)
		w.Header().Set("Vary", "Accept")
		w.Header().Set("Cache-Control", "no-store")
		http.Redirect(w, r, dashboardRoot, http.StatusFound)
	})
}

// mountDescription serves the description of the API, which is public text as the dashboard is.
func (s *Server) mountDescription(mux *http.ServeMux) {
	a := s.admission
	mux.Handle(openapi.Path,
		s.newPipeline(openapi.NewHandler(), a.IssueTicket, plain.AllowReads, a.AdmitFrontEnd, limitFileTime))
}

// limitFileTime bounds how long a caller may take to read a file, because a slow one keeps a place among the calls.
func limitFileTime(x *pipeline.Exchange) bool {
	admission.LimitRest(x.Writer, x.Request)
	// a recorded connection has no deadlines
	_ = http.NewResponseController(x.Writer).SetWriteDeadline(time.Now().Add(admission.DefaultDeadline))
	return true
}
