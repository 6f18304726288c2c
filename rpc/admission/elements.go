package admission

import (
	"net/http"

	"github.com/quorate/quorate/rpc/codec"
	"github.com/quorate/quorate/rpc/procedures"
	"github.com/quorate/quorate/rpc/wirelimit"
)

// LimitElements counts the elements of a request before anything is built from it, on the node that the caller asked:
// what is over a bound is not relayed. The codecs count once more, because messages of streams do not pass here.
func (a *Controller) LimitElements(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		usage, err := a.scanRequest(r)
		if err != nil {
			a.hooks.WriteError(w, r, err)
			return
		}
		TicketOf(r.Context()).decodedSize = usage.Size
		next.ServeHTTP(w, r)
	})
}

// LimitDecoded charges the memory that the decoded request will take until the call ends.
func (a *Controller) LimitDecoded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		notes := TicketOf(r.Context())
		size := notes.decodedSize
		if size == 0 || a.procedures[r.URL.Path].Kind != procedures.ServesClients {
			next.ServeHTTP(w, r)
			return
		}
		if err := notes.Limiters.Decoded.TryAcquire(notes.Caller, size); err != nil {
			a.hooks.WriteError(w, r, err)
			return
		}
		defer notes.Limiters.Decoded.Release(notes.Caller, size)
		next.ServeHTTP(w, r)
	})
}

// scanRequest measures a call with one request. What it cannot read is left to the handler to refuse.
func (a *Controller) scanRequest(r *http.Request) (wirelimit.Usage, error) {
	input := a.procedures[r.URL.Path].Input
	if input == nil || !a.procedures.IsUnary(r.URL.Path) {
		return wirelimit.Usage{}, nil
	}
	return codec.Scan(a.elements, r, input)
}
