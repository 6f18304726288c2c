package rpc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"

	"github.com/quorate/quorate/rpc/admission"
	"github.com/quorate/quorate/rpc/procedures"
)

// checkReady is nil if this node should get calls.
func (s *Server) checkReady() error {
	if s.draining.Load() {
		return errors.New("this node is shutting down")
	}
	return s.node.Ready()
}

// serveLivez answers 200 while the process runs.
func serveLivez(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "ok\n") }

// serveReadyz answers 200 if this node knows a leader and has caught up with it, and otherwise 503 and the reason.
// What else is wrong with a node that serves, such as its disk, follows as a warning.
func (s *Server) serveReadyz(w http.ResponseWriter, _ *http.Request) {
	if err := s.checkReady(); err != nil {
		writeText(w, http.StatusServiceUnavailable, err.Error()+"\n")
		return
	}
	text := "ok\n"
	if warning := s.node.Status().Warning; warning != "" {
		text += "warning: " + warning + "\n"
	}
	writeText(w, http.StatusOK, text)
}

// MonitoringHandler serves /metrics, /livez and /readyz and nothing else, to callers without a credential. It is for an
// address of its own, whose HTTP server must bound its connections; it takes nothing from the limits of the API.
func (s *Server) MonitoringHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", withoutBody(serveLivez))
	mux.HandleFunc("GET /readyz", withoutBody(s.serveReadyz))
	mux.HandleFunc("GET /metrics", withoutBody(s.pages.ServeHTTP))
	return mux
}

// withoutBody bounds the time for a body that is announced but not read.
func withoutBody(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		admission.LimitRest(w, r)
		next(w, r)
	}
}

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // the caller has gone
}

// healthChecker serves the health protocol of gRPC.
type healthChecker struct{ server *Server }

// Check returns the health of the whole process or of one of its public services.
func (c healthChecker) Check(_ context.Context, r *grpchealth.CheckRequest) (*grpchealth.CheckResponse, error) {
	if r.Service != "" && !slices.Contains(procedures.PublicServices(), r.Service) {
		return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("there is no service %q here", r.Service))
	}
	status := grpchealth.StatusServing
	if c.server.checkReady() != nil {
		status = grpchealth.StatusNotServing
	}
	return &grpchealth.CheckResponse{Status: status}, nil
}
