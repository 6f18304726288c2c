package host

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// stream carries raft's messages over TCP. Unlike raft's own it is known by the address that was advertised, which may
// be a name: the address that a name stands for may change while the node keeps its place in the configuration.
type stream struct {
	net.Listener
	advertised advertised
	dial       *tls.Config  // nil in plain text
	renewed    *connections // nil in plain text
}

// advertised is an address as it was written.
type advertised string

// Network is always "tcp".
func (advertised) Network() string { return "tcp" }

// String is the address.
func (a advertised) String() string { return string(a) }

var _ raft.StreamLayer = (*stream)(nil)

func listen(bind, advertise string) (*stream, error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", bind)
	if err != nil {
		return nil, fmt.Errorf("listen for raft on %s: %w; another process may be using the port", bind, err)
	}
	return &stream{Listener: listener, advertised: advertised(advertise)}, nil
}

// secure lets only nodes of the cluster in, and talks only to them.
func (s *stream) secure(with Security, log hclog.Logger) {
	s.dial = with.Dial
	if with.Dial != nil || with.Accept != nil {
		s.renewed = newConnections(with, log)
	}
	if with.Accept != nil {
		s.Listener = newDoor(s.Listener, with.Accept, s.renewed, log)
	}
}

// Close ends listening. Raft closes its connections itself.
func (s *stream) Close() error {
	if s.renewed != nil {
		s.renewed.close()
	}
	return s.Listener.Close()
}

// Addr is the advertised address.
func (s *stream) Addr() net.Addr { return s.advertised }

// Dial connects to a peer.
func (s *stream) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: timeout}
	if s.dial == nil {
		return dialer.DialContext(context.Background(), "tcp", string(address))
	}
	version := s.renewed.version() // before the handshake: what changes meanwhile costs one more dial
	c, err := (&tls.Dialer{NetDialer: dialer, Config: s.dial}).DialContext(context.Background(), "tcp", string(address))
	if err != nil {
		return nil, err
	}
	return s.renewed.add(c.(*tls.Conn), version), nil //nolint:errcheck,forcetypeassert // a tls.Dialer makes nothing else
}
