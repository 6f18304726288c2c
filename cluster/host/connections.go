package host

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// verifyEvery is how often open connections between nodes are verified again.
const verifyEvery = time.Second

// connectionPool are the open connections between nodes: those of raft, dialled and accepted, and accepted ones that carry calls.
// A handshake verifies once, and connections live for as long as both sides do. So every one is verified again while it is
// open, and is closed when its other side would not be let in now, because its certificate has ended or it is no member any
// more. Raft's are also closed when this node's own certificates have changed since: raft dials again at once, and both
// sides show what they have now. Callers renew the connections of their calls themselves, between two calls.
type connectionPool struct {
	version  func() uint64
	identify func(tls.ConnectionState) (string, error)
	log      hclog.Logger
	closed   chan struct{}
	close    func()

	// authorizerSet is closed when admits is set.
	authorizerSet  chan struct{}
	authorizerOnce sync.Once

	mu        sync.Mutex
	authorize func(id string) error
	open      map[*connection]struct{}
	counts    map[string]int // accepted ones, by origin
}

// connection is one of them.
type connection struct {
	net.Conn // first byte aside, what the other side sends

	tls      *tls.Conn // nil in plain text
	pool     *connectionPool
	version  uint64 // that it was made at, or an earlier one
	node     string // whose certificate the other side has; empty in plain text
	accepted bool
	calls    bool // it carries calls and not raft

	peeked    []byte // what was read of it already
	closeOnce sync.Once
}

func newConnectionPool(s Security, log hclog.Logger) *connectionPool {
	c := &connectionPool{
		version: s.Version, identify: s.Identify, log: log, closed: make(chan struct{}), authorizerSet: make(chan struct{}),
		open: map[*connection]struct{}{}, counts: map[string]int{},
	}
	if c.version == nil {
		c.version = func() uint64 { return 0 }
	}
	c.close = sync.OnceFunc(func() { close(c.closed) })
	go c.reverifyLoop()
	return c
}

// setAuthorizer sets who is admitted to raft. Until then callers wait, within the time for their handshake.
func (c *connectionPool) setAuthorizer(admits func(id string) error) {
	c.mu.Lock()
	c.authorize = admits
	c.mu.Unlock()
	c.authorizerOnce.Do(func() { close(c.authorizerSet) })
}

// awaitAuthorized is an error if the other side of an accepted connection may not send messages of raft. Whom calls are answered is
// decided for each call.
func (c *connectionPool) awaitAuthorized(ctx context.Context, conn *connection) error {
	if conn.calls {
		return nil
	}
	select {
	case <-c.authorizerSet:
	case <-ctx.Done():
		return fmt.Errorf("raft does not run here yet: %w", ctx.Err())
	}
	return c.checkAuthorized(conn)
}

func (c *connectionPool) checkAuthorized(conn *connection) error {
	c.mu.Lock()
	admits := c.authorize
	c.mu.Unlock()
	if conn.calls || !conn.accepted || conn.tls == nil || admits == nil {
		return nil
	}
	return admits(conn.node)
}

// trackConn keeps an eye on a connection.
func (c *connectionPool) trackConn(conn *connection) error {
	conn.pool = c
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn.accepted {
		origin := conn.originKey()
		if c.counts[origin] >= maxPerNode {
			return fmt.Errorf("%s has %d connections already, as many as one may have", origin, maxPerNode)
		}
		c.counts[origin]++
	}
	c.open[conn] = struct{}{}
	return nil
}

// untrackConn forgets a connection that is being closed.
func (c *connectionPool) untrackConn(conn *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, open := c.open[conn]; !open {
		return
	}
	delete(c.open, conn)
	if !conn.accepted {
		return
	}
	origin := conn.originKey()
	if c.counts[origin]--; c.counts[origin] == 0 {
		delete(c.counts, origin)
	}
}

// originKey is the node of a connection, or in plain text the IP address that it came from.
func (c *connection) originKey() string {
	if c.tls != nil {
		return c.node
	}
	host, _, err := net.SplitHostPort(c.RemoteAddr().String())
	if err != nil {
		return c.RemoteAddr().String()
	}
	return host
}

// NodeID is the node that the other side proved to be; empty in plain text.
func (c *connection) NodeID() string { return c.node }

// Read returns what the other side sends.
func (c *connection) Read(p []byte) (int, error) {
	if len(c.peeked) > 0 && len(p) > 0 {
		n := copy(p, c.peeked)
		c.peeked = c.peeked[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// Close closes the connection.
func (c *connection) Close() error {
	c.closeOnce.Do(func() { c.pool.untrackConn(c) })
	return c.Conn.Close()
}

func (c *connectionPool) reverifyLoop() {
	ticker := time.NewTicker(verifyEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			c.closeOutdated()
		case <-c.closed:
			return
		}
	}
}

// closeOutdated closes what would not be made now as it was made.
func (c *connectionPool) closeOutdated() {
	version, renewed := c.version(), 0
	for _, conn := range c.openConns() {
		if conn.tls == nil {
			continue
		}
		_, err := c.identify(conn.tls.ConnectionState())
		if err == nil {
			err = c.checkAuthorized(conn)
		}
		switch {
		case err != nil:
			c.log.Warn("closed a connection whose other side is not let in any more", "peer", conn.RemoteAddr(), "node", conn.node, "reason", err)
		case conn.version != version && !conn.calls:
			renewed++
		default:
			continue
		}
		go func() { _ = conn.Close() }() // it says goodbye first, which may take a while; that it failed changes nothing
	}
	if renewed > 0 {
		c.log.Info("closed connections of raft that were made with earlier certificates", "connections", renewed)
	}
}

func (c *connectionPool) openConns() []*connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]*connection, 0, len(c.open))
	for conn := range c.open {
		list = append(list, conn)
	}
	return list
}
