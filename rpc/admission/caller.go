package admission

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"

	"golang.org/x/time/rate"
)

// Caller is all connections and calls under one key: an address, a member or a user. It counts what they hold of each
// limiter.
type Caller struct {
	key  string
	held [limiterKinds]atomic.Int64
	// isUser is true for a user, who has at most a fixed share of some limits; calls are those under way, guarded by the
	// lock of users, and rate bounds those that begin; nil if none is set.
	isUser bool
	calls  int
	rate   *rate.Limiter
	// connections, and how many of them are beyond the limit, are guarded by the lock of callers.
	connections, overLimit int
}

func (c *Caller) isIdle() bool {
	for i := range c.held {
		if c.held[i].Load() != 0 {
			return false
		}
	}
	return c.connections == 0
}

// Callers are those that have a connection or hold a place. It is asked for each connection and not for each call.
type Callers struct {
	mu          sync.Mutex
	known       map[string]*Caller
	connections map[net.Conn]*connection
	// sweepAt is how many known callers make it worth to look for those that have gone.
	sweepAt int
}

func newCallers() *Callers {
	return &Callers{known: map[string]*Caller{}, connections: map[net.Conn]*connection{}}
}

type connection struct {
	caller *Caller
	// limiter is where the connection counts; nil for one of another node.
	limiter *Limiter
	// overLimit is true if it came when the caller, or the server, had as many as allowed: its calls are answered and
	// not served.
	overLimit error
}

type connectionKey struct{}

// connectionOf returns nil if the server does not bound the connection that a call came on.
func connectionOf(ctx context.Context) *connection {
	c, _ := ctx.Value(connectionKey{}).(*connection)
	return c
}

// callerKey is what callers from one address share: the address, or of IPv6 the network of 64 bits, of which one host
// has as many addresses as it likes.
func callerKey(remote net.Addr) string {
	tcp, ok := remote.(*net.TCPAddr)
	if !ok {
		return "unknown"
	}
	address := tcp.AddrPort().Addr().Unmap().WithZone("")
	if address.Is4() {
		return address.String()
	}
	return netip.PrefixFrom(address, 64).Masked().String()
}

// openConnection admits a connection of the caller with a key. It returns nil if the connection must be closed at once.
// Without a gate there is no limit.
func (cs *Callers) openConnection(c net.Conn, key string, g *Limiter) *connection {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	caller := cs.known[key]
	if caller == nil {
		cs.forgetIdle()
		caller = &Caller{key: key}
		cs.known[key] = caller
	}
	opened := &connection{caller: caller, limiter: g}
	if g != nil {
		opened.overLimit = g.TryAcquire(caller, 1)
	}
	if opened.overLimit != nil {
		if caller.overLimit >= ExtraConnections || len(cs.connections) >= int(g.capacity)+maxExtraConnections {
			return nil
		}
		caller.overLimit++
	}
	caller.connections++
	cs.connections[c] = opened
	return opened
}

func (cs *Callers) closeConnection(c net.Conn) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	opened := cs.connections[c]
	if opened == nil {
		return // it was not taken in
	}
	delete(cs.connections, c)
	opened.caller.connections--
	switch {
	case opened.overLimit != nil:
		opened.caller.overLimit--
	case opened.limiter != nil:
		opened.limiter.Release(opened.caller, 1)
	}
	if opened.caller.isIdle() {
		delete(cs.known, opened.caller.key)
	}
}

// ConnectionCount is how many connections are open.
func (cs *Callers) ConnectionCount() int {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return len(cs.connections)
}

// CallerCount is how many callers are known.
func (cs *Callers) CallerCount() int {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return len(cs.known)
}

// forgetIdle forgets callers whose last call ended after their last connection. It looks each time that their number
// has doubled.
func (cs *Callers) forgetIdle() {
	if len(cs.known) < cs.sweepAt {
		return
	}
	for key, c := range cs.known {
		if c.isIdle() {
			delete(cs.known, key)
		}
	}
	cs.sweepAt = 2*len(cs.known) + 64
}

// LimitConnections makes an HTTP server keep to this server's limits for connections, together with all others that
// it bounds.
func (a *Controller) LimitConnections(server *http.Server) {
	server.MaxHeaderBytes, server.ReadHeaderTimeout, server.IdleTimeout = MaxHeader, HeaderPatience, IdlePatience
	// The whole of a call with one answer, and the time that its caller may take to receive it; streams have their own.
	server.WriteTimeout = LongestDeadline + a.Limits.SendPatience
	server.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		opened := a.Limiters.Callers.openConnection(c, callerKey(c.RemoteAddr()), a.Limiters.connections)
		if opened == nil {
			_ = c.Close() // it is new: no call is on it
			return ctx
		}
		return context.WithValue(ctx, connectionKey{}, opened)
	}
	server.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateClosed || state == http.StateHijacked {
			a.Limiters.Callers.closeConnection(c)
		}
	}
}

// KeyByMember lets each member have a share of what members take, by its id, or by its address if it proves none.
func (a *Controller) KeyByMember(server *http.Server, memberOf func(context.Context) string) {
	cs := a.Limiters.memberCallers
	inner := server.ConnContext
	server.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		ctx = inner(ctx, c)
		key := "the node at " + callerKey(c.RemoteAddr())
		if id := memberOf(ctx); id != "" {
			key = "node " + id
		}
		return context.WithValue(ctx, connectionKey{}, cs.openConnection(c, key, nil))
	}
	server.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateClosed || state == http.StateHijacked {
			cs.closeConnection(c)
		}
	}
}
