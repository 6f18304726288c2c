package rpc

import (
	"context"
	"net/http"

	"github.com/quorate/quorate/gen/quorate/v1/quoratev1connect"
)

// Services are the API as the process itself may call it: the same handlers that callers reach, without the network. A
// write is refused on a node that does not lead.
type Services struct {
	Allocations quoratev1connect.AllocationServiceHandler
	Trees       quoratev1connect.TreeServiceHandler
}

// FrontEnd serves the protocol of another system on the API's port, by calling the API
// (docs/adr/0010-front-ends-speak-the-public-api.md).
type FrontEnd struct {
	// Pattern is one of [http.ServeMux], for example "/ws/v1/".
	Pattern string
	// New makes its handler.
	New func(Services) http.Handler
}

// mount puts front ends behind what every call passes: observation, recovery, a deadline and a bound on the body.
func (s *Server) mount(mux *http.ServeMux, frontEnds []FrontEnd, services Services) {
	for _, f := range frontEnds {
		mux.Handle(f.Pattern, s.observe(s.guard(bounded(fresh(f.New(services))))))
	}
}

func bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), defaultDeadline)
		defer cancel()
		r.Body = http.MaxBytesReader(w, r.Body, MaxBody)
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}
