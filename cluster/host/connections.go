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

// connectionPool has the open connections between nodes: those of raft, dialed and accepted, and accepted ones for
// RPCs. A handshake verifies the other side only once, but a connection lives as long as both sides do. Therefore every
// connection is verified again periodically, and is closed when its other side would be refused now, because its
// certificate has expired or it is no longer a member. Connections of raft are also closed when this node's own
// certificates have changed: raft dials again at once, and both sides present their current certificates. RPC clients
// renew their connections themselves, between two calls.
type connectionPool struct {
	version  func() uint64
	identify func(tls.ConnectionState) (string, error)
	log      hclog.Logger
	closed   chan struct{}
	close    func()

	// authorizerSet is closed when authorize is set.
	authorizerSet  chan struct{}
	authorizerOnce sync.Once

	mu        sync.Mutex
	authorize func(id string) error
	open      map[*connection]struct{}
	counts    map[string]int // accepted connections by origin
}

type connection struct {
	net.Conn // without the peeked bytes

	tls      *tls.Conn // nil in plain text
	pool     *connectionPool
	version  uint64 // version of the certificates when it was made, or an earlier one
	node     string // id in the other side's certificate; empty in plain text
	accepted bool
	calls    bool // it carries RPCs instead of raft messages

	peeked    []byte // bytes that were read already
	closeOnce sync.Once
}

func newConnectionPool(s Security, log hclog.Logger) *connectionPool {
	c := &connectionPool{
		version: s.Version, identify: s.Identify, log: log, closed: make(chan struct{}),
		authorizerSet: make(chan struct{}),
		open:          map[*connection]struct{}{}, counts: map[string]int{},
	}
	if c.version == nil {
		c.version = func() uint64 { return 0 }
	}
	c.close = sync.OnceFunc(func() { close(c.closed) })
	go c.reverifyLoop()
	return c
}

// setAuthorizer sets the function that decides which nodes may send raft messages. Until it is set, raft connections
// wait within their handshake timeout.
func (c *connectionPool) setAuthorizer(admits func(id string) error) {
	c.mu.Lock()
	c.authorize = admits
	c.mu.Unlock()
	c.authorizerOnce.Do(func() { close(c.authorizerSet) })
}

// awaitAuthorized returns an error if the other side of an accepted connection may not send raft messages. RPCs are
// authorized one by one.
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

func (c *connectionPool) trackConn(conn *connection) error {
	conn.pool = c
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn.accepted {
		origin := conn.originKey()
		if c.counts[origin] >= maxPerNode {
			return fmt.Errorf("%s has %d connections already, which is the maximum", origin, maxPerNode)
		}
		c.counts[origin]++
	}
	c.open[conn] = struct{}{}
	return nil
}

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

// originKey returns the node id of a connection or, in plain text, its source IP address.
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

// NodeID returns the id that the other side proved; empty in plain text.
func (c *connection) NodeID() string { return c.node }

// Read returns the bytes that the other side sends, starting with the peeked ones.
func (c *connection) Read(p []byte) (int, error) {
	if len(c.peeked) > 0 && len(p) > 0 {
		n := copy(p, c.peeked)
		c.peeked = c.peeked[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// Close closes the connection and removes it from the pool.
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

// closeOutdated closes connections that would not be accepted, or not be dialed in the same way, now.
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
			c.log.Warn("closed a connection whose other side is no longer accepted", "peer", conn.RemoteAddr(), "node",
				conn.node, "reason", err)
		case conn.version != version && !conn.calls:
			renewed++
		default:
			continue
		}
		go func() { _ = conn.Close() }() // closing TLS may take a while; an error changes nothing
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
