package rpc

import (
	"cmp"
	"context"
	"math"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Limits bound what a server takes on at once; whatever comes beyond is answered at once with unavailable and OVERLOADED. All
// callers from one address together may hold three times of what is free. A field that is 0 has its default.
type Limits struct {
	// Calls are calls that are served or relayed at one time. Default 8192.
	Calls int
	// Streams are watches, and requests that wait here for their grant. Default 8192.
	Streams int
	// Connections are open connections of clients, idle ones too. A few more of each caller get an answer and are closed; what
	// comes beyond them is closed at once. Default 16384.
	Connections int
	// SendPatience is how long a caller of a stream may take to receive one message. Default 30 s.
	SendPatience time.Duration
}

// WithDefaults fills in what is not set.
func (l Limits) WithDefaults() Limits {
	return Limits{
		Calls: cmp.Or(l.Calls, 8192), Streams: cmp.Or(l.Streams, 8192), Connections: cmp.Or(l.Connections, 16384),
		SendPatience: cmp.Or(l.SendPatience, 30*time.Second),
	}
}

// Sizes and times of every connection, the same on all servers.
const (
	// maxHeader bounds the headers of a request, with its address, in bytes.
	maxHeader = 64 << 10
	// smallBody is the largest body that is charged to the reserve for small ones, in bytes.
	smallBody = 64 << 10
	// maxSmallBodies and maxLargeBodies bound the bodies of all calls that are under way, in bytes, unpacked.
	maxSmallBodies = 128 << 20
	maxLargeBodies = 384 << 20
	// maxAllDecoded bounds what the requests of all calls under way take when they are decoded, in bytes.
	maxAllDecoded = 512 << 20
	// headerPatience is how long a caller may take to send the headers.
	headerPatience = 10 * time.Second
	// idlePatience is how long a connection may be silent between two calls.
	idlePatience = 2 * time.Minute
	// callsPerConnection is how many calls one HTTP/2 connection may carry at a time.
	callsPerConnection = 1000
	// extraConnections are those of one caller beyond the limit that still get an answer, maxExtraConnections those of all.
	extraConnections    = 64
	maxExtraConnections = 1024
	// maxPeerCalls are questions of other members, maxHealthChecks those of gRPC's health protocol.
	maxPeerCalls    = 4096
	maxHealthChecks = 1024
	// maxReflection are streams of gRPC's reflection and health.
	maxReflection = 32
	// maxExpensive are reads that cost as much as many writes, under way or waiting for their turn.
	maxExpensive = 64
	// maxBackups are those that are saved at a time: each walks over the whole state.
	maxBackups = 2
	// maxDiagnostics are requests for diagnostics, maxScrapes those for metrics.
	maxDiagnostics = 8
	maxScrapes     = 16
)

// slot is what one call holds of a gate. It belongs to the call's notes, so that admitting a call allocates nothing.
type slot struct {
	limiter *limiter
	caller  *caller
	given   atomic.Bool
}

// acquireSlot admits a call.
func (p *slot) acquireSlot(g *limiter, c *caller) error {
	if err := g.TryAcquire(c, 1); err != nil {
		return err
	}
	p.limiter, p.caller = g, c
	return nil
}

// releaseSlot is for the end of a call, or when it begins to wait elsewhere.
func (p *slot) releaseSlot() {
	if p.limiter != nil && p.given.CompareAndSwap(false, true) {
		p.limiter.Release(p.caller, 1)
	}
}

// admitCall takes a call in, or answers that there is no room. A path that nobody serves takes no place. Questions of other members,
// and health, have places of their own, so that the cluster goes on however many clients there are.
func (a *Controller) admitCall(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		notes, known := ticketOf(r.Context()), a.procedures[r.URL.Path]
		g := a.limiterFor(known, notes.limiters)
		if g == nil {
			a.notFound(w, r)
			return
		}
		if known.kind == servesClients && overLimitError(r.Context()) != nil {
			a.refuseConnection(w, r)
			return
		}
		a.serveInSlot(g, w, r, next)
	})
}

// limiterFor is the gate that a call passes; nil if nobody serves it.
func (a *Controller) limiterFor(p procedure, of *callLimiters) *limiter {
	switch {
	case p.kind == servesMembers:
		return a.limiters.peers
	case p.kind == servesHealth:
		return a.limiters.health
	case p.kind == servesTools:
		return a.limiters.reflection
	case p.kind == servesClients && p.streams:
		return of.streams
	case p.kind == servesClients:
		return of.calls
	}
	return nil
}

// serveInSlot serves a call in a place of a gate.
func (a *Controller) serveInSlot(g *limiter, w http.ResponseWriter, r *http.Request, next http.Handler) {
	notes := ticketOf(r.Context())
	if err := notes.slot.acquireSlot(g, notes.caller); err != nil {
		a.refuseCall(w, r, err)
		return
	}
	defer notes.slot.releaseSlot()
	next.ServeHTTP(w, r)
}

// admitFrontEnd is admit for calls in the words of other systems.
func (a *Controller) admitFrontEnd(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if overLimitError(r.Context()) != nil {
			a.refuseConnection(w, r)
			return
		}
		a.serveInSlot(a.limiters.clients.calls, w, r, next)
	})
}

// overLimitError is why the calls of a connection are not served; nil if they are.
func overLimitError(ctx context.Context) error {
	if c := connectionOf(ctx); c != nil {
		return c.overLimit
	}
	return nil
}

func (a *Controller) refuseConnection(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Connection", "close")
	a.refuseCall(w, r, overLimitError(r.Context()))
}

// refusalPatience is how long the body of a call that was refused may take: net/http reads some of it before it takes the next
// call of the connection.
const refusalPatience = 2 * time.Second

// refuseCall answers an error to a call whose body has not been read.
func (a *Controller) refuseCall(w http.ResponseWriter, r *http.Request, err error) {
	limitRest(w, r)
	a.hooks.WriteError(w, r, err)
}

// notFound answers a path that nobody serves.
func (a *Controller) notFound(w http.ResponseWriter, r *http.Request) {
	limitRest(w, r)
	http.NotFound(w, r)
}

// limitRest bounds the time for a body that nobody reads. HTTP/2 needs no bound: there the rest of a body holds up nobody.
func limitRest(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 && r.ProtoMajor < 2 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(refusalPatience)) // a recorded connection has no deadlines
	}
}

// waitInside moves a call from those under way to those that wait. What it answers must be called in the end.
func (g *limiters) waitInside(ctx context.Context) (leave func(), err error) {
	notes := ticketOf(ctx)
	of := notes.limiters
	if of == nil {
		of = &g.clients
	}
	if err := of.streams.TryAcquire(notes.caller, 1); err != nil {
		return nil, err
	}
	notes.releaseSlot()
	return func() { of.streams.Release(notes.caller, 1) }, nil
}

// withRetryAfter says when to try again, in the detail of gRPC's own error model and in the header of HTTP.
func withRetryAfter(err *connect.Error, after time.Duration) *connect.Error {
	err.Meta().Set("Retry-After", strconv.Itoa(int(math.Ceil(after.Seconds()))))
	return withDetail(err, &errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
}
