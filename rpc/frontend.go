package rpc

import (
	"context"
	"net/http"

	"github.com/quorate/quorate/gen/quorate/v1/quoratev1connect"
)

// Services are the API as the process itself may call it: the same handlers that callers reach, without the network. Reads
// are of this node; a write that this node cannot carry out goes to the leader, and is repeated while leaders change.
type Services struct {
	Allocations quoratev1connect.AllocationServiceHandler
	Trees       quoratev1connect.TreeServiceHandler
	Items       quoratev1connect.ItemServiceHandler
}

// FrontEnd serves the protocol of another system on the API's port, by calling the API
// (docs/adr/0010-front-ends-speak-the-public-api.md).
type FrontEnd struct {
	// Pattern is one of [http.ServeMux], for example "/ws/v1/".
	Pattern string
	// New makes its handler.
	New func(Services) http.Handler
}

// FrontEnd is the handler of a front end behind what every call passes: a look at what carries it, observation, recovery, a
// place, a deadline, and the bounds of bodies. It is for those that own an address; those of Config are on the API's port already.
func (s *Server) FrontEnd(make func(Services) http.Handler) http.Handler {
	return s.screen(s.observe(s.guard(s.refuseInternal(s.limitAsked(s.traces.frontEnd(s.admitFrontEnd(bounded(s.limitFrontEndBody(fresh(make(s.services)))))))))))
}

func (s *Server) mount(mux *http.ServeMux, frontEnds []FrontEnd) {
	for _, f := range frontEnds {
		mux.Handle(f.Pattern, s.FrontEnd(f.New))
	}
}

func bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), defaultDeadline)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}
