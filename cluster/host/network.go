package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// dialTimeout is how long the machine of another node may take to accept a connection: one that is gone does not even do that.
const dialTimeout = time.Second

// handshakeWait is how long a node may take to prove which one it is: one that is busy takes its time.
const handshakeWait = 5 * time.Second

// Network is how nodes call each other beside raft: HTTP/2, without another handshake, on connections of either kind.
type Network struct{ stream *streamLayer }

// Calls is the listener for calls of other nodes, on the port of raft. Its connections have a method NodeID, which is the node that
// the other side proved to be, or empty in plain text. They are closed when that would not be believed any more. It closes with
// the node.
func (n *Network) Calls() net.Listener {
	return callListener{protocolListener{n.stream.port, n.stream.port.calls, nil}}
}

// DialNode connects to the port of raft of another node for calls. With certificates it must be that node that answers.
func (n *Network) DialNode(ctx context.Context, id, raftAddress string) (net.Conn, error) {
	if n.stream.dial == nil {
		return dialTCP(ctx, raftAddress)
	}
	return n.dialTLS(ctx, id, raftAddress, nodeProtocol)
}

// DialAPI connects to the API of another node, as nodes did before they had a listener of their own. With certificates it must be
// that node that answers.
func (n *Network) DialAPI(ctx context.Context, id, address string) (net.Conn, error) {
	if n.stream.dial == nil {
		return dialTCP(ctx, address)
	}
	return n.dialTLS(ctx, id, address, "h2")
}

func (n *Network) dialTLS(ctx context.Context, id, address, protocol string) (net.Conn, error) {
	plain, err := dialTCP(ctx, address)
	if err != nil {
		return nil, err
	}
	config := n.stream.dial(id)
	config.NextProtos = []string{protocol}
	ctx, cancel := context.WithTimeout(ctx, handshakeWait)
	defer cancel()
	c, err := tlsHandshake(ctx, plain, config)
	if err != nil { // nothing was said, so it is no worse than a connection that is not made
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: plain.RemoteAddr(), Err: fmt.Errorf("node %s: %w", id, err)}
	}
	if got := c.ConnectionState().NegotiatedProtocol; got != protocol {
		_ = c.Close() // nothing was said
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: c.RemoteAddr(), Err: errors.New(id + " does not speak " + protocol +
			" there; versions below feature level 5 do not")}
	}
	return struct{ net.Conn }{c}, nil // a *tls.Conn would be taken for one whose handshake chose the version of HTTP
}

func dialTCP(ctx context.Context, address string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}
	return dialer.DialContext(ctx, "tcp", address)
}
