package admission

import (
	"fmt"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/rpc/wire"
)

// shareOfFree is how many times what is free one caller may hold. With 3, a caller alone gets three quarters of the
// places, two that want all of them get three sevenths each, and one more caller that holds nothing yet is always
// admitted.
const shareOfFree = 3

// Limiter admits a bounded number of units (calls, bytes) at a time and divides them among callers: one that holds
// more than its share is refused, and the others are not. The share is not a constant but follows what is free, as
// the dynamic thresholds of a switch that many queues share, so that a caller may have most of it while no other
// caller wants any. A user, whose calls may come from many addresses at once, has at most a fixed share besides
// (users.go).
type Limiter struct {
	// what and setting are for the text of a refusal.
	what, setting string
	kind          limiterKind
	capacity      int64
	// userPart is the share of one user, as one part in so many; 0 if it is that of every caller.
	userPart int64
	InUse    atomic.Int64
	// full, beyondShare and beyondUserShare count refusals by their reason.
	full, beyondShare, beyondUserShare prometheus.Counter
}

// limiterKind is the index of a limiter in what a caller holds.
type limiterKind int

const (
	kindCalls limiterKind = iota
	kindStreams
	kindWaits
	kindSmallBodies
	kindLargeBodies
	kindDecoded
	kindRelays
	kindRelayedStreams
	kindRelayedWaits
	kindRelayedSmallBodies
	kindRelayedLargeBodies
	kindRelayedDecoded
	kindPeers
	kindHealth
	kindReflection
	kindExpensive
	kindBackups
	kindDiagnostics
	kindScrapes
	kindConnections
	limiterKinds
)

// TryAcquire admits n more units for a caller; then give must follow. A nil caller has no share of its own.
func (g *Limiter) TryAcquire(c *Caller, n int64) error {
	inside := g.InUse.Add(n)
	if inside > g.capacity {
		g.InUse.Add(-n)
		g.full.Inc()
		return g.errFull()
	}
	if c == nil {
		return nil
	}
	held := c.held[g.kind].Add(n)
	tooMany := c.isUser && held > g.userShare()
	if !tooMany && held <= shareOfFree*(g.capacity-inside+n) {
		return nil
	}
	c.held[g.kind].Add(-n)
	g.InUse.Add(-n)
	if tooMany {
		g.beyondUserShare.Inc()
		return g.errBeyondUserShare(c, held-n)
	}
	g.beyondShare.Inc()
	return g.errBeyondShare(c, held-n)
}

// Release returns what take admitted.
func (g *Limiter) Release(c *Caller, n int64) {
	if c != nil {
		c.held[g.kind].Add(-n)
	}
	g.InUse.Add(-n)
}

// isBusy reports whether more than half of the capacity is in use.
func (g *Limiter) isBusy() bool { return g.InUse.Load() > g.capacity/2 }

func (g *Limiter) errFull() error {
	return overloadedError(
		"this server has %d %s already, as many as it takes (%s); nothing was done, try again later or "+
			"at another server",
		g.capacity, g.what, g.setting)
}

func (g *Limiter) errBeyondShare(c *Caller, held int64) error {
	return overloadedError(
		"%s has %d of the %d %s that this server takes (%s), which is its share: the rest is kept for other callers; "+
			"nothing was done, try again later or at another server", c.key, held, g.capacity, g.what, g.setting)
}

func overloadedError(format string, args ...any) error {
	return wire.NodeError(
		&cluster.Error{Reason: cluster.Overloaded, NotApplied: true, Text: fmt.Sprintf(format, args...)})
}

// Limiters are all limiters of a server.
type Limiters struct {
	// Clients count calls of clients, members those that other members relay. Neither takes from the other.
	Clients, Members CallLimiters
	// connections are open ones of clients. callers has them, and memberCallers those of other members, which have no
	// limit.
	connections            *Limiter
	Callers, memberCallers *Callers
	// peers are questions of other members, health checks are those of gRPC's protocol, reflection is for tools.
	peers, health, Reflection *Limiter
	// Expensive are reads that cost as much as many writes, under way or waiting for their turn.
	Expensive *Limiter
	// Backups are those that are saved.
	Backups *Limiter
	// Diagnostics are requests for them, scrapes those for /metrics.
	Diagnostics, scrapes *Limiter
	// users are the callers that are users, beyondRate counts their calls that came too fast.
	users      *users
	beyondRate prometheus.Counter
}

// CallLimiters are what calls take while they are under way.
type CallLimiters struct {
	// Waits are the waiting requests among the streams.
	Calls, Streams, Waits *Limiter
	// SmallBodies and LargeBodies are bytes of requests; a body is small up to SmallBody.
	SmallBodies, LargeBodies *Limiter
	// Decoded is memory of decoded requests, in bytes by estimate.
	Decoded *Limiter
}

// NewLimiters makes the limiters of a server, and registers their metrics.
func NewLimiters(l Limits, registerer prometheus.Registerer) (*Limiters, error) {
	shed := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "quorate_rpc_shed_total",
		Help: "Calls, streams, bodies and connections that were refused: the limit was full, or the caller was " +
			"beyond its share, or a user beyond the fixed share or the rate of one user.",
	}, []string{"limit", "reason"})
	make := func(kind limiterKind, limit, what, setting string, most int64) *Limiter {
		return &Limiter{
			what: what, setting: setting, kind: kind, capacity: most,
			full: shed.WithLabelValues(limit, "full"), beyondShare: shed.WithLabelValues(limit, "share"),
			beyondUserShare: shed.WithLabelValues(limit, "user"),
		}
	}
	calls, streams := int64(l.Calls), int64(l.Streams)
	g := &Limiters{
		Clients: CallLimiters{
			Calls: make(kindCalls, "calls", "calls under way", "max-calls", calls).withUserPart(UserCalls),
			Streams: make(kindStreams, "streams", "streams and waiting requests", "max-streams", streams).
				withUserPart(UserStreams),
			Waits: make(kindWaits, "waits", "waiting requests", "max-streams", streams).withUserPart(UserWaits),
			SmallBodies: make(kindSmallBodies, "bodies", "bytes of small requests", "all bodies up to 64 KiB together",
				MaxSmallBodies),
			LargeBodies: make(kindLargeBodies, "bodies", "bytes of large requests", "all bodies beyond 64 KiB together",
				MaxLargeBodies),
			Decoded: make(kindDecoded, "decoded", "bytes of decoded requests", "all calls together", MaxAllDecoded),
		},
		Members: CallLimiters{
			Calls: make(kindRelays, "relays", "calls that other members relay", "max-calls", calls).
				withUserPart(UserCalls),
			Streams: make(kindRelayedStreams, "relays", "streams and waiting requests that other members relay",
				"max-streams", streams).withUserPart(UserStreams),
			Waits: make(kindRelayedWaits, "relays", "waiting requests that other members relay",
				"max-streams", streams).withUserPart(UserWaits),
			SmallBodies: make(kindRelayedSmallBodies, "relays", "bytes of small relayed requests",
				"all bodies up to 64 KiB together", MaxSmallBodies/2),
			LargeBodies: make(kindRelayedLargeBodies, "relays", "bytes of large relayed requests",
				"all bodies beyond 64 KiB together", MaxLargeBodies/2),
			Decoded: make(kindRelayedDecoded, "relays", "bytes of decoded relayed requests", "all calls together",
				MaxAllDecoded/2),
		},
		Callers: newCallers(), memberCallers: newCallers(),
		connections: make(kindConnections, "connections", "connections", "max-connections", int64(l.Connections)),
		peers: make(kindPeers, "peers", "questions of other members",
			"all such questions together", maxPeerCalls),
		health: make(kindHealth, "health", "health checks", "all health checks together", maxHealthChecks),
		Reflection: make(kindReflection, "reflection", "streams of gRPC's reflection and health",
			"all such streams together", MaxReflection),
		Expensive: make(kindExpensive, "expensive_reads", "plans, dry runs, explanations, long lists and large trees",
			"all such reads together", MaxExpensive).withUserPart(UserExpensive),
		Backups: make(kindBackups, "backups", "backups that are saved", "all backups together", MaxBackups),
		Diagnostics: make(kindDiagnostics, "diagnostics", "requests for diagnostics", "all such requests together",
			MaxDiagnostics),
		scrapes:    make(kindScrapes, "scrapes", "requests for metrics", "all such requests together", maxScrapes),
		users:      newUsers(l.CallsPerSecondPerUser),
		beyondRate: shed.WithLabelValues("calls", "rate"),
	}
	return g, g.registerMetrics(registerer, shed)
}

func (g *Limiters) registerMetrics(registerer prometheus.Registerer, shed prometheus.Collector) error {
	inside := func(name, help string, g *Limiter) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help},
			func() float64 { return float64(g.InUse.Load()) })
	}
	for _, c := range []prometheus.Collector{
		shed,
		inside("quorate_rpc_calls_inside", "Calls of clients that are under way.", g.Clients.Calls),
		inside("quorate_rpc_streams_inside", "Streams and requests that wait here for their grant.", g.Clients.Streams),
		inside("quorate_rpc_relays_inside", "Calls under way that other members relayed to this one.", g.Members.Calls),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "quorate_rpc_connections_inside", Help: "Open connections."},
			func() float64 { return float64(g.Callers.ConnectionCount()) }),
		inside("quorate_rpc_expensive_reads_inside",
			"Plans, dry runs, explanations, long lists and large trees, under way or waiting for their turn.",
			g.Expensive),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "quorate_rpc_body_bytes", Help: "Bytes of requests of clients in memory, unpacked.",
		}, func() float64 {
			return float64(g.Clients.SmallBodies.InUse.Load() + g.Clients.LargeBodies.InUse.Load())
		}),
	} {
		if err := registerer.Register(c); err != nil {
			return fmt.Errorf("registering the metrics of the API's limits: %w", err)
		}
	}
	return nil
}
