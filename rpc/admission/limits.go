package admission

import (
	"cmp"
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/rpc/pipeline"
	"github.com/quorate/quorate/rpc/procedures"
)

// Limits bound what a server admits at a time. Calls beyond a limit get unavailable with OVERLOADED at once. All
// callers from one address together may hold three times what is free, and so may one user, who has at most a fixed
// share of some limits besides (users.go). A field that is 0 has its default.
type Limits struct {
	// Calls are calls that are served or relayed at one time. Default 8192.
	Calls int
	// Streams are watches, and requests that wait here for their grant. Default 8192.
	Streams int
	// Connections are open connections of clients, idle ones too. A few more of each caller get an answer and are closed;
	// further ones are closed at once. Default 16384.
	Connections int
	// CallsPerSecondPerUser is how many calls one user may begin in a second, and at once if it was silent; 0 for any
	// number.
	CallsPerSecondPerUser int
	// SendPatience is how long a caller of a stream may take to receive one message. Default 30 s.
	SendPatience time.Duration
}

// WithDefaults fills in what is not set.
func (l Limits) WithDefaults() Limits {
	return Limits{
		Calls: cmp.Or(l.Calls, 8192), Streams: cmp.Or(l.Streams, 8192), Connections: cmp.Or(l.Connections, 16384),
		CallsPerSecondPerUser: l.CallsPerSecondPerUser, SendPatience: cmp.Or(l.SendPatience, 30*time.Second),
	}
}

// Sizes and times of every connection, the same on all servers.
const (
	// MaxHeader bounds the headers of a request, with its address, in bytes.
	MaxHeader = 64 << 10
	// SmallBody is the largest body that is charged to the reserve for small ones, in bytes.
	SmallBody = 64 << 10
	// MaxSmallBodies and MaxLargeBodies bound the bodies of all calls that are under way, in bytes, unpacked.
	MaxSmallBodies = 128 << 20
	MaxLargeBodies = 384 << 20
	// MaxAllDecoded bounds what the requests of all calls under way take when they are decoded, in bytes.
	MaxAllDecoded = 512 << 20
	// HeaderPatience is how long a caller may take to send the headers.
	HeaderPatience = 10 * time.Second
	// IdlePatience is how long a connection may be silent between two calls.
	IdlePatience = 2 * time.Minute
	// CallsPerConnection is how many calls one HTTP/2 connection may carry at a time.
	CallsPerConnection = 1000
	// ExtraConnections are those of one caller beyond the limit that still get an answer, maxExtraConnections those
	// of all.
	ExtraConnections    = 64
	maxExtraConnections = 1024
	// maxPeerCalls are questions of other members, maxHealthChecks those of gRPC's health protocol.
	maxPeerCalls    = 4096
	maxHealthChecks = 1024
	// MaxReflection are streams of gRPC's reflection and health.
	MaxReflection = 32
	// MaxExpensive are reads that cost as much as many writes, under way or waiting for their turn.
	MaxExpensive = 64
	// MaxBackups are those that are saved at a time: each walks over the whole state.
	MaxBackups = 2
	// MaxDiagnostics are requests for diagnostics, maxScrapes those for metrics.
	MaxDiagnostics = 8
	maxScrapes     = 16
)

// slot is what one call holds of a limiter. It is a part of the ticket, so that admitting a call allocates nothing.
type slot struct {
	limiter *Limiter
	caller  *Caller
	given   atomic.Bool
}

func (p *slot) acquireSlot(g *Limiter, c *Caller) error {
	if err := g.TryAcquire(c, 1); err != nil {
		return err
	}
	p.limiter, p.caller = g, c
	return nil
}

// releaseSlot is called at the end of a call, or when it begins to wait elsewhere.
func (p *slot) releaseSlot() {
	if p.limiter != nil && p.given.CompareAndSwap(false, true) {
		p.limiter.Release(p.caller, 1)
	}
}

// AdmitCall admits a call, or answers that the server is overloaded. A path that does not exist takes no slot. Calls
// of other members and health checks have slots of their own, so that clients cannot keep them out.
func (a *Controller) AdmitCall(x *pipeline.Exchange) bool {
	r := x.Request
	known := a.procedures[r.URL.Path]
	g := a.limiterFor(known, TicketOf(r.Context()).Limiters)
	if g == nil {
		a.NotFound(x.Writer, r)
		return false
	}
	if known.Kind == procedures.ServesClients && overLimitError(r.Context()) != nil {
		a.refuseConnection(x.Writer, r)
		return false
	}
	return a.takeSlot(x, g)
}

// limiterFor returns nil for a path that does not exist.
func (a *Controller) limiterFor(p procedures.Info, limiters *CallLimiters) *Limiter {
	switch {
	case p.Kind == procedures.ServesMembers:
		return a.Limiters.peers
	case p.Kind == procedures.ServesHealth:
		return a.Limiters.health
	case p.Kind == procedures.ServesTools:
		return a.Limiters.Reflection
	case p.Kind == procedures.ServesClients && p.Streams:
		return limiters.Streams
	case p.Kind == procedures.ServesClients:
		return limiters.Calls
	}
	return nil
}

// AdmitMemberCall admits a call of another member, whose path exists.
func (a *Controller) AdmitMemberCall(x *pipeline.Exchange) bool {
	return a.takeSlot(x, a.limiterFor(a.procedures[x.Request.URL.Path], TicketOf(x.Request.Context()).Limiters))
}

func (a *Controller) takeSlot(x *pipeline.Exchange, g *Limiter) bool {
	notes := TicketOf(x.Request.Context())
	if err := notes.slot.acquireSlot(g, notes.Caller); err != nil {
		a.RefuseCall(x.Writer, x.Request, err)
		return false
	}
	return true
}

// AdmitFrontEnd is AdmitCall for calls in the protocols of other systems.
func (a *Controller) AdmitFrontEnd(x *pipeline.Exchange) bool {
	if overLimitError(x.Request.Context()) != nil {
		a.refuseConnection(x.Writer, x.Request)
		return false
	}
	return a.takeSlot(x, a.Limiters.Clients.Calls)
}

// overLimitError is nil for a connection whose calls are served.
func overLimitError(ctx context.Context) error {
	if c := connectionOf(ctx); c != nil {
		return c.overLimit
	}
	return nil
}

func (a *Controller) refuseConnection(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Connection", "close")
	a.RefuseCall(w, r, overLimitError(r.Context()))
}

// refusalPatience is how long the body of a call that was refused may take: net/http reads some of it before it takes
// the next call of the connection.
const refusalPatience = 2 * time.Second

// RefuseCall writes an error for a call whose body has not been read.
func (a *Controller) RefuseCall(w http.ResponseWriter, r *http.Request, err error) {
	LimitRest(w, r)
	a.hooks.WriteError(w, r, err)
}

// NotFound writes the answer for a path that does not exist.
func (a *Controller) NotFound(w http.ResponseWriter, r *http.Request) {
	LimitRest(w, r)
	http.NotFound(w, r)
}

// LimitRest bounds the time for a body that is not read. HTTP/2 needs no bound: there an unread body does not hold up
// other calls.
func LimitRest(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 && r.ProtoMajor < 2 {
		// a recorded connection has no deadlines
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(refusalPatience))
	}
}

// WaitInside moves a call from the limit for calls under way to that for waiting requests. The caller must call leave
// in the end.
func (g *Limiters) WaitInside(ctx context.Context) (leave func(), err error) {
	notes := TicketOf(ctx)
	limiters := notes.Limiters
	if limiters == nil {
		limiters = &g.Clients
	}
	if err := limiters.Waits.TryAcquire(notes.Caller, 1); err != nil {
		return nil, err
	}
	if err := limiters.Streams.TryAcquire(notes.Caller, 1); err != nil {
		limiters.Waits.Release(notes.Caller, 1)
		return nil, err
	}
	notes.releaseSlot()
	return func() {
		limiters.Streams.Release(notes.Caller, 1)
		limiters.Waits.Release(notes.Caller, 1)
	}, nil
}
