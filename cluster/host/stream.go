package host

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// streamLayer carries raft's messages over TCP. Unlike raft's own stream layer it is identified by the advertised
// address, which may be a host name: the address that a name resolves to may change while the node keeps its place in
// the configuration.
type streamLayer struct {
	net.Listener // of raft

	port       *nodeListener
	advertised advertised
	dial       func(id string) *tls.Config // nil in plain text
	open       *connectionPool
}

// advertised is an address as it was configured.
type advertised string

// Network returns "tcp".
func (advertised) Network() string { return "tcp" }

// String returns the address.
func (a advertised) String() string { return string(a) }

var _ raft.StreamLayer = (*streamLayer)(nil)

// listenRaft admits only nodes of the cluster if there is security.
func listenRaft(bind, advertise string, with Security, log hclog.Logger) (*streamLayer, error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", bind)
	if err != nil {
		return nil, fmt.Errorf("listen for raft on %s: %w; another process may be using the port", bind, err)
	}
	s := &streamLayer{advertised: advertised(advertise), dial: with.Dial, open: newConnectionPool(with, log)}
	s.port = newNodeListener(listener, with.Accept, s.open, log)
	s.Listener = protocolListener{s.port, s.port.raft, s.port.raftEnded}
	return s, nil
}

// Close stops accepting raft connections; raft closes its connections itself. RPC connections are accepted until
// closePort.
func (s *streamLayer) Close() error {
	s.port.endRaft()
	return nil
}

func (s *streamLayer) closePort() error {
	s.open.close()
	return s.port.Close()
}

// Addr returns the advertised address.
func (s *streamLayer) Addr() net.Addr { return s.advertised }

// withID returns a raft address that names the node that must answer there. Ids do not contain '@'.
func withID(id raft.ServerID, address raft.ServerAddress) raft.ServerAddress {
	return raft.ServerAddress(string(id) + "@" + string(address))
}

// Dial connects to a peer at an address of withID. With certificates it verifies that this peer answers.
func (s *streamLayer) Dial(target raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	id, address, _ := strings.Cut(string(target), "@")
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	version := s.open.version() // before the handshake: a change meanwhile only causes another dial
	plain, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	c := &connection{Conn: plain, version: version, node: id}
	if s.dial != nil {
		if c.tls, err = tlsHandshake(ctx, plain, s.dial(id)); err != nil {
			return nil, fmt.Errorf("%s at %s: %w", id, address, err)
		}
		c.Conn = c.tls
	}
	return c, s.open.trackConn(c)
}

// tlsHandshake closes the connection on failure.
func tlsHandshake(ctx context.Context, plain net.Conn, config *tls.Config) (*tls.Conn, error) {
	c := tls.Client(plain, config)
	if err := c.HandshakeContext(ctx); err != nil {
		_ = plain.Close() // report the error of the handshake
		return nil, err
	}
	return c, nil
}
