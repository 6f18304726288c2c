package rpc

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/gen/quorate/peer/v1/peerv1connect"
)

// Limits bound what a server takes on at once; whatever comes beyond is answered at once with unavailable and OVERLOADED.
// A field that is 0 has its default.
type Limits struct {
	// Calls are calls that are served or relayed at one time. Default 8192.
	Calls int
	// Streams are watches, and requests that wait here for their grant. Default 8192.
	Streams int
	// Connections are open connections of clients, idle ones too. A few more get an answer and are closed; what comes beyond
	// them is closed at once. Default 16384.
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
	// maxBodies bounds the bodies of all calls that are under way, in bytes.
	maxBodies = 512 << 20
	// maxAllDecoded bounds what the requests of all calls under way take when they are decoded, in bytes.
	maxAllDecoded = 512 << 20
	// headerPatience is how long a caller may take to send them.
	headerPatience = 10 * time.Second
	// idlePatience is how long a connection may be silent between two calls.
	idlePatience = 2 * time.Minute
	// callsPerConnection is how many calls one HTTP/2 connection may carry at a time.
	callsPerConnection = 1000
	// extraConnections are those beyond the limit that still get an answer.
	extraConnections = 64
)

// gate lets in a bounded number at a time.
type gate struct {
	what, setting string
	most          int64
	inside        atomic.Int64
	shed          prometheus.Counter
}

// enter is nil if there is room; then leave must follow.
func (g *gate) enter() error { return g.take(1) }

// take is enter for what counts for more than one.
func (g *gate) take(n int64) error {
	if g.inside.Add(n) <= g.most {
		return nil
	}
	g.inside.Add(-n)
	return g.overloaded()
}

func (g *gate) leave() { g.inside.Add(-1) }

// overloaded counts and answers what finds no room.
func (g *gate) overloaded() error {
	g.shed.Inc()
	return accident(&cluster.Error{
		Reason: cluster.Overloaded, NotApplied: true,
		Text: fmt.Sprintf("this server has %d %s already, as many as it takes (%s); nothing was done, try again later or at another server",
			g.most, g.what, g.setting),
	})
}

// gates are those of a server.
type gates struct{ calls, streams, connections, bodies, decoded *gate }

func newGates(l Limits, registerer prometheus.Registerer) (gates, error) {
	shed := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "quorate_rpc_shed_total", Help: "Calls, streams and connections that were refused because there were too many.",
	}, []string{"limit"})
	inside := func(name, help string, g *gate) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(g.inside.Load()) })
	}
	g := gates{
		calls:       &gate{what: "calls under way", setting: "max-calls", most: int64(l.Calls), shed: shed.WithLabelValues("calls")},
		streams:     &gate{what: "streams and waiting requests", setting: "max-streams", most: int64(l.Streams), shed: shed.WithLabelValues("streams")},
		bodies:      &gate{what: "bytes of requests", setting: "all bodies together", most: maxBodies, shed: shed.WithLabelValues("bodies")},
		decoded:     &gate{what: "bytes of decoded requests", setting: "all calls together", most: maxAllDecoded, shed: shed.WithLabelValues("decoded")},
		connections: &gate{what: "connections", setting: "max-connections", most: int64(l.Connections), shed: shed.WithLabelValues("connections")},
	}
	for _, c := range []prometheus.Collector{
		shed,
		inside("quorate_rpc_calls_inside", "Calls that are under way.", g.calls),
		inside("quorate_rpc_streams_inside", "Streams and requests that wait here for their grant.", g.streams),
		inside("quorate_rpc_connections_inside", "Open connections.", g.connections),
	} {
		if err := registerer.Register(c); err != nil {
			return gates{}, fmt.Errorf("registering the metrics of the API's limits: %w", err)
		}
	}
	return g, nil
}

type slotKey struct{}

// slot is the place of one call among those under way.
type slot struct{ giveBack func() }

// admit takes a call in, or answers that there is no room. What keeps the cluster going is let in always: questions of the
// other members, and health.
func (s *Server) admit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if vital(r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		if crowded(r.Context()) {
			w.Header().Set("Connection", "close")
			s.fail(w, r, s.gates.connections.overloaded())
			return
		}
		g := s.gates.calls
		if s.procedures.streams(r.URL.Path) {
			g = s.gates.streams
		}
		if err := g.enter(); err != nil {
			s.fail(w, r, err)
			return
		}
		place := &slot{giveBack: sync.OnceFunc(g.leave)}
		defer place.giveBack()
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), slotKey{}, place)))
	})
}

func vital(path string) bool {
	return strings.HasPrefix(path, "/"+peerv1connect.PeerServiceName+"/") || path == "/"+grpchealth.HealthV1ServiceName+"/Check"
}

// waitInside moves a call from those under way to those that wait. What it answers must be called in the end.
func (g gates) waitInside(ctx context.Context) (leave func(), err error) {
	if err := g.streams.enter(); err != nil {
		return nil, err
	}
	if place, counted := ctx.Value(slotKey{}).(*slot); counted {
		place.giveBack()
	}
	return g.streams.leave, nil
}

type crowdedKey struct{}

// crowded tells whether a call came on a connection beyond the limit.
func crowded(ctx context.Context) bool { return ctx.Value(crowdedKey{}) != nil }

// Bound makes an HTTP server keep to this server's limits for connections, together with all others that it bounds.
func (s *Server) Bound(server *http.Server) {
	server.MaxHeaderBytes, server.ReadHeaderTimeout, server.IdleTimeout = maxHeader, headerPatience, idlePatience
	g := s.gates.connections
	server.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		inside := g.inside.Add(1)
		if inside > g.most+extraConnections {
			g.shed.Inc()
			_ = c.Close() // nobody listens yet
		}
		if inside > g.most {
			return context.WithValue(ctx, crowdedKey{}, true)
		}
		return ctx
	}
	server.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed || state == http.StateHijacked {
			g.leave()
		}
	}
}

// withHint says when to try again, in the detail of gRPC's own error model and in the header of HTTP.
func withHint(err *connect.Error, after time.Duration) *connect.Error {
	err.Meta().Set("Retry-After", strconv.Itoa(int(math.Ceil(after.Seconds()))))
	return withDetail(err, &errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
}
