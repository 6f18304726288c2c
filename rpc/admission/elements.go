package admission

import (
	"net/http"

	"github.com/quorate/quorate/rpc/codec"
	"github.com/quorate/quorate/rpc/pipeline"
	"github.com/quorate/quorate/rpc/procedures"
	"github.com/quorate/quorate/rpc/wirelimit"
)

// LimitElements counts the elements of a request before anything is built from it, on the node that the caller asked:
// what is over a bound is not relayed. The codecs count once more, because messages of streams do not pass here.
func (a *Controller) LimitElements(x *pipeline.Exchange) bool {
	usage, err := a.scanRequest(x.Request)
	if err != nil {
		a.hooks.WriteError(x.Writer, x.Request, err)
		return false
	}
	TicketOf(x.Request.Context()).decodedSize = usage.Size
	return true
}

// LimitDecoded charges the memory that the decoded request will take until the call ends.
func (a *Controller) LimitDecoded(x *pipeline.Exchange) bool {
	notes := TicketOf(x.Request.Context())
	size := notes.decodedSize
	if size == 0 || a.procedures[x.Request.URL.Path].Kind != procedures.ServesClients {
		return true
	}
	if err := notes.Limiters.Decoded.TryAcquire(notes.Caller, size); err != nil {
		a.hooks.WriteError(x.Writer, x.Request, err)
		return false
	}
	notes.charged = size
	return true
}

// scanRequest measures a call with one request. What it cannot read is left to the handler to refuse.
func (a *Controller) scanRequest(r *http.Request) (wirelimit.Usage, error) {
	input := a.procedures[r.URL.Path].Input
	if input == nil || !a.procedures.IsUnary(r.URL.Path) {
		return wirelimit.Usage{}, nil
	}
	return codec.Scan(a.elements, r, input)
}
