package host

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

const (
	// nodeProtocol is the ALPN protocol of a connection that carries HTTP/2 between nodes instead of raft.
	nodeProtocol = "quorate-node/1"
	// handshakeTimeout bounds the handshake of a caller or, in plain text, the time until its first byte.
	handshakeTimeout = 10 * time.Second
	// maxHandshakes bounds the handshakes in progress; further connections are refused.
	maxHandshakes = 256
	// maxPerNode bounds the open connections accepted from one node or, in plain text, from one IP address.
	maxPerNode = 256
	// refusalInterval is the minimum time between two log messages about refused connections.
	refusalInterval = 10 * time.Second
)

// nodeListener accepts the connections of other nodes. It identifies the calling node and the protocol, raft or HTTP/2,
// before either of them reads from the connection: raft's timeout for a message does not allow for a handshake, and
// raft does not check who sends its messages.
//
// With TLS the caller names the protocol in the handshake (ALPN). Raft connections name none, for compatibility with
// earlier versions. In plain text the first byte distinguishes them: HTTP/2 starts with "PRI", raft messages with a
// small number.
type nodeListener struct {
	listener net.Listener
	accept   *tls.Config // nil in plain text
	open     *connectionPool
	log      hclog.Logger

	raft, calls chan net.Conn
	// raftEnded is closed when raft accepts no more connections. A node in quarantine runs without raft and still answers
	// status queries of the others.
	raftEnded  chan struct{}
	endRaft    func()
	handshakes chan struct{} // one element per handshake in progress

	ctx   context.Context //nolint:containedctx // it ends with the listener
	close context.CancelFunc

	mu         sync.Mutex
	reported   time.Time
	suppressed int // refusals that were not logged since reported
}

func newNodeListener(l net.Listener, accept *tls.Config, open *connectionPool, log hclog.Logger) *nodeListener {
	n := &nodeListener{
		listener: l, accept: accept, open: open, log: log,
		raft: make(chan net.Conn), calls: make(chan net.Conn), handshakes: make(chan struct{}, maxHandshakes),
		raftEnded: make(chan struct{}),
	}
	n.endRaft = sync.OnceFunc(func() { close(n.raftEnded) })
	n.ctx, n.close = context.WithCancel(context.Background())
	go n.acceptLoop()
	return n
}

// Close closes the port, all handshakes, and the listeners of both protocols.
func (n *nodeListener) Close() error {
	n.close()
	return n.listener.Close()
}

func (n *nodeListener) acceptLoop() {
	for {
		c, err := n.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			n.close()
			return
		case err != nil: // possibly out of file descriptors, which is temporary
			n.reportRefusal(nil, err)
			select {
			case <-time.After(100 * time.Millisecond):
			case <-n.ctx.Done():
			}
			continue
		}
		select {
		case n.handshakes <- struct{}{}:
			go n.handleConn(c)
		default:
			n.reportRefusal(c, fmt.Errorf("%d handshakes are in progress already", maxHandshakes))
			_ = c.Close() // the connection is refused
		}
	}
}

func (n *nodeListener) handleConn(plain net.Conn) {
	defer func() { <-n.handshakes }()
	ctx, cancel := context.WithTimeout(n.ctx, handshakeTimeout)
	defer cancel()
	c, err := n.identifyPeer(ctx, plain)
	if err != nil {
		n.reportRefusal(plain, err)
		_ = plain.Close() // the connection is refused
		return
	}
	to, ended := n.raft, n.raftEnded
	if c.calls {
		to, ended = n.calls, nil
	}
	select {
	case to <- c:
	case <-ended:
		_ = c.Close() // raft has stopped
	case <-n.ctx.Done():
		_ = c.Close() // the listener is closed
	}
}

func (n *nodeListener) identifyPeer(ctx context.Context, plain net.Conn) (*connection, error) {
	version := n.open.version()
	c := &connection{Conn: plain, accepted: true, version: version}
	if n.accept == nil {
		if err := c.detectProtocol(ctx); err != nil {
			return nil, err
		}
		return c, n.open.trackConn(c)
	}
	secured := tls.Server(plain, n.accept)
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	state := secured.ConnectionState()
	id, err := n.open.identify(state)
	if err != nil {
		return nil, err
	}
	c.Conn, c.tls, c.node, c.calls = secured, secured, id, state.NegotiatedProtocol == nodeProtocol
	if err := n.open.awaitAuthorized(ctx, c); err != nil {
		return nil, err
	}
	return c, n.open.trackConn(c)
}

const (
	// firstHTTP2Byte is the first byte of every HTTP/2 connection ("PRI * HTTP/2.0").
	firstHTTP2Byte = 'P'
	// raftKindLimit is above the message types of raft, which are the first byte of each message.
	raftKindLimit = 0x10
)

func (c *connection) detectProtocol(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = c.SetReadDeadline(time.Unix(1, 0)) })
	var first [1]byte
	_, err := c.Conn.Read(first[:])
	if !stop() && err == nil {
		err = ctx.Err() // the deadline may have been set meanwhile
	}
	switch {
	case err != nil:
		return fmt.Errorf("it did not name its protocol: %w", err)
	case first[0] == firstHTTP2Byte:
		c.calls = true
	case first[0] >= raftKindLimit:
		return fmt.Errorf("it speaks neither raft nor HTTP/2: its first byte is 0x%02x", first[0])
	}
	c.peeked = first[:]
	return nil
}

// reportRefusal logs at most once per refusalInterval.
func (n *nodeListener) reportRefusal(c net.Conn, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if now := time.Now(); n.ctx.Err() == nil && now.Sub(n.reported) >= refusalInterval {
		from := ""
		if c != nil {
			from = c.RemoteAddr().String()
		}
		n.log.Warn("refused a connection to the raft port", "from", from, "reason", err, "others-before", n.suppressed)
		n.reported, n.suppressed = now, 0
		return
	}
	n.suppressed++
}

type protocolListener struct {
	*nodeListener
	queue chan net.Conn
	ended chan struct{} // nil if it ends only with the port
}

// Accept returns the next connection of this protocol.
func (a protocolListener) Accept() (net.Conn, error) {
	select {
	case c := <-a.queue:
		return c, nil
	case <-a.ended:
		return nil, net.ErrClosed
	case <-a.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Addr returns the address of the port.
func (a protocolListener) Addr() net.Addr { return a.listener.Addr() }

// callListener is the listener for RPCs. Closing it must not affect raft's connections: the port closes with the node's
// parts.
type callListener struct{ protocolListener }

// Close does nothing.
func (callListener) Close() error { return nil }
