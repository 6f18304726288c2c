package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// dialTimeout bounds the TCP connect to another node. It is short: a machine that runs accepts at once.
const dialTimeout = time.Second

// handshakeWait bounds the TLS handshake. It is longer than dialTimeout, because a busy node is slow.
const handshakeWait = 5 * time.Second

// Network connects nodes for RPCs: HTTP/2 on connections whose handshake is already done, with TLS or in plain text.
type Network struct{ stream *streamLayer }

// Calls returns the listener for RPCs of other nodes on the raft port. Its connections have a method NodeID that
// returns the id proved by the other side, or "" in plain text. Connections are closed when the other side would no
// longer be accepted. The listener closes with the node.
func (n *Network) Calls() net.Listener {
	return callListener{protocolListener{n.stream.port, n.stream.port.calls, nil}}
}

// DialNode connects to the raft port of another node for RPCs. With certificates it verifies that this node answers.
func (n *Network) DialNode(ctx context.Context, id, raftAddress string) (net.Conn, error) {
	if n.stream.dial == nil {
		return dialTCP(ctx, raftAddress)
	}
	return n.dialTLS(ctx, id, raftAddress, nodeProtocol)
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
	if err != nil { // no request was sent, so it counts as a failed dial
		return nil, &net.OpError{
			Op: "dial", Net: "tcp", Addr: plain.RemoteAddr(),
			Err: fmt.Errorf("node %s: %w", id, err),
		}
	}
	if got := c.ConnectionState().NegotiatedProtocol; got != protocol {
		_ = c.Close() // no request was sent
		return nil, &net.OpError{
			Op: "dial", Net: "tcp", Addr: c.RemoteAddr(),
			Err: errors.New(id + " does not speak " + protocol + " there"),
		}
	}
	return struct{ net.Conn }{c}, nil // a *tls.Conn would be taken for one whose handshake chose the version of HTTP
}

func dialTCP(ctx context.Context, address string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}
	return dialer.DialContext(ctx, "tcp", address)
}
