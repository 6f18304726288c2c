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

// place is what one call holds of a gate. It belongs to the call's notes, so that admitting a call allocates nothing.
type place struct {
	gate   *gate
	caller *caller
	given  atomic.Bool
}

// take admits a call.
func (p *place) take(g *gate, c *caller) error {
	if err := g.take(c, 1); err != nil {
		return err
	}
	p.gate, p.caller = g, c
	return nil
}

// giveBack is for the end of a call, or when it begins to wait elsewhere.
func (p *place) giveBack() {
	if p.gate != nil && p.given.CompareAndSwap(false, true) {
		p.gate.give(p.caller, 1)
	}
}

// admit takes a call in, or answers that there is no room. A path that nobody serves takes no place. Questions of other members,
// and health, have places of their own, so that the cluster goes on however many clients there are.
func (s *Server) admit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		notes, known := note(r.Context()), s.procedures[r.URL.Path]
		g := s.gateOf(known, notes.places)
		if g == nil {
			s.notFound(w, r)
			return
		}
		if known.kind == servesClients && beyond(r.Context()) != nil {
			s.refuseConnection(w, r)
			return
		}
		s.within(g, w, r, next)
	})
}

// gateOf is the gate that a call passes; nil if nobody serves it.
func (s *Server) gateOf(p procedure, of *places) *gate {
	switch {
	case p.kind == servesMembers:
		return s.gates.peers
	case p.kind == servesHealth:
		return s.gates.health
	case p.kind == servesTools:
		return s.gates.reflection
	case p.kind == servesClients && p.streams:
		return of.streams
	case p.kind == servesClients:
		return of.calls
	}
	return nil
}

// within serves a call in a place of a gate.
func (s *Server) within(g *gate, w http.ResponseWriter, r *http.Request, next http.Handler) {
	notes := note(r.Context())
	if err := notes.place.take(g, notes.caller); err != nil {
		s.refuse(w, r, err)
		return
	}
	defer notes.place.giveBack()
	next.ServeHTTP(w, r)
}

// admitFrontEnd is admit for calls in the words of other systems.
func (s *Server) admitFrontEnd(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if beyond(r.Context()) != nil {
			s.refuseConnection(w, r)
			return
		}
		s.within(s.gates.clients.calls, w, r, next)
	})
}

// beyond is why the calls of a connection are not served; nil if they are.
func beyond(ctx context.Context) error {
	if c := connectionOf(ctx); c != nil {
		return c.beyond
	}
	return nil
}

func (s *Server) refuseConnection(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Connection", "close")
	s.refuse(w, r, beyond(r.Context()))
}

// refusalPatience is how long the body of a call that was refused may take: net/http reads some of it before it takes the next
// call of the connection.
const refusalPatience = 2 * time.Second

// refuse answers an error to a call whose body has not been read.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	limitRest(w, r)
	s.fail(w, r, err)
}

// notFound answers a path that nobody serves.
func (s *Server) notFound(w http.ResponseWriter, r *http.Request) {
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
func (g *gates) waitInside(ctx context.Context) (leave func(), err error) {
	notes := note(ctx)
	of := notes.places
	if of == nil {
		of = &g.clients
	}
	if err := of.streams.take(notes.caller, 1); err != nil {
		return nil, err
	}
	notes.givePlaceBack()
	return func() { of.streams.give(notes.caller, 1) }, nil
}

// withHint says when to try again, in the detail of gRPC's own error model and in the header of HTTP.
func withHint(err *connect.Error, after time.Duration) *connect.Error {
	err.Meta().Set("Retry-After", strconv.Itoa(int(math.Ceil(after.Seconds()))))
	return withDetail(err, &errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
}
