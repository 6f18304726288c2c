package host

import (
	"crypto/tls"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// verifyEvery is how often open connections of raft are verified again.
const verifyEvery = time.Second

// connections are the encrypted connections of raft that are open, dialled and accepted. A handshake verifies once, and
// raft keeps a connection for as long as both sides live. So every connection is verified again while it is open, and is
// closed when its other side would not be believed now, or when this node's own certificates have changed since: raft
// dials again at once, and both sides show what they have now.
type connections struct {
	version func() uint64                   // nil: certificates never change
	verify  func(tls.ConnectionState) error // nil: nothing is verified again
	log     hclog.Logger
	closed  chan struct{}
	close   func()

	mu   sync.Mutex
	open map[*connection]struct{}
}

// connection is one of them.
type connection struct {
	*tls.Conn

	of      *connections
	version uint64 // that it was made at, or an earlier one
}

func newConnections(s Security, log hclog.Logger) *connections {
	c := &connections{version: s.Version, verify: s.Verify, log: log, closed: make(chan struct{}), open: map[*connection]struct{}{}}
	if c.version == nil {
		c.version = func() uint64 { return 0 }
	}
	if c.verify == nil {
		c.verify = func(tls.ConnectionState) error { return nil }
	}
	c.close = sync.OnceFunc(func() { close(c.closed) })
	go c.watch()
	return c
}

// add keeps an eye on a connection whose handshake began at a version.
func (c *connections) add(conn *tls.Conn, version uint64) net.Conn {
	added := &connection{Conn: conn, of: c, version: version}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[added] = struct{}{}
	return added
}

// Close closes the connection.
func (c *connection) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

func (c *connections) watch() {
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
func (c *connections) closeOutdated() {
	version, renewed := c.version(), 0
	for _, conn := range c.list() {
		switch err := c.verify(conn.ConnectionState()); {
		case err != nil:
			c.log.Warn("closed a connection of raft whose other side is not believed any more", "peer", conn.RemoteAddr(), "reason", err)
		case conn.version != version:
			renewed++
		default:
			continue
		}
		go conn.Close() // it says goodbye first, which may take a while; that it failed changes nothing
	}
	if renewed > 0 {
		c.log.Info("closed connections of raft that were made with earlier certificates", "connections", renewed)
	}
}

func (c *connections) list() []*connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]*connection, 0, len(c.open))
	for conn := range c.open {
		list = append(list, conn)
	}
	return list
}
