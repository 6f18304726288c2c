package pki

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"
)

// ClientAuth is the certificate that callers of the API must present.
type ClientAuth string

// The values of ClientAuth. Nodes always present theirs, which identifies them as nodes.
const (
	// AuthNone ignores certificates.
	AuthNone ClientAuth = "none"
	// AuthRequest accepts callers without a certificate, and otherwise requires one of the authority.
	AuthRequest ClientAuth = "request"
	// AuthRequire requires a certificate of the authority.
	AuthRequire ClientAuth = "require"
)

// handshakes are the settings of crypto/tls. A certificate is always requested, because nodes are among the callers.
var handshakes = map[ClientAuth]tls.ClientAuthType{
	AuthNone: tls.RequestClientCert, AuthRequest: tls.VerifyClientCertIfGiven,
	AuthRequire: tls.RequireAndVerifyClientCert,
}

// Check returns an error for any other value.
func (a ClientAuth) Check() error {
	if _, known := handshakes[a]; known {
		return nil
	}
	return fmt.Errorf("tls-client-auth is %q: allowed are %s, %s and %s", string(a), AuthNone, AuthRequest, AuthRequire)
}

// PeerError is the error of a peer that is not a node of this cluster, or not the one that was called. Nothing was sent
// to it.
type PeerError struct{ cause error }

// Error returns the reason.
func (e *PeerError) Error() string {
	return "it did not prove which node of this cluster it is: " + e.cause.Error()
}

// Unwrap returns what is wrong with the certificate.
func (e *PeerError) Unwrap() error { return e.cause }

// API returns the configuration for listeners of the API and of front ends, with HTTP/2 and HTTP/1.1. Every connection
// uses the certificates in use when it begins. No session is resumed, because that would accept a certificate that is
// refused by now.
func (s *Store) API(auth ClientAuth) *tls.Config {
	protocols := []string{"h2", "http/1.1"}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: protocols,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			m := s.current.Load()
			return &tls.Config{
				MinVersion: tls.VersionTLS12, NextProtos: protocols, SessionTicketsDisabled: true,
				Certificates: []tls.Certificate{m.own}, ClientCAs: m.accepted, ClientAuth: handshakes[auth],
			}, nil
		},
	}
}

// NodeProtocol is the ALPN name of HTTP/2 between nodes. A connection to the same port without a name carries raft.
const NodeProtocol = "quorate-node/1"

// Accept returns the configuration for listeners to which only nodes of this cluster may connect.
func (s *Store) Accept() *tls.Config {
	protocols := []string{NodeProtocol}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: protocols,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			m := s.current.Load()
			return &tls.Config{
				MinVersion:             tls.VersionTLS13,
				NextProtos:             protocols,
				SessionTicketsDisabled: true,
				Certificates:           []tls.Certificate{m.own},
				ClientCAs:              m.roots,
				ClientAuth:             tls.RequireAnyClientCert, // VerifyConnection verifies the chain
				VerifyConnection: func(c tls.ConnectionState) error {
					_, err := m.verifyNode(c.PeerCertificates, s.me.Cluster, x509.ExtKeyUsageClientAuth)
					return err
				},
			}, nil
		},
	}
}

// Dial returns the configuration for a connection to a node, or to any node of this cluster if the id is empty. It
// verifies that the other side is that node, and not its address, because addresses of nodes change. A server that
// presents the certificate of another node is refused.
func (s *Store) Dial(id string) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection verifies everything but the name of the host
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &s.current.Load().own, nil
		},
		VerifyConnection: func(c tls.ConnectionState) error {
			role, err := s.current.Load().verifyNode(c.PeerCertificates, s.me.Cluster, x509.ExtKeyUsageServerAuth)
			if err == nil && id != "" && role.Name != id {
				err = &PeerError{fmt.Errorf("the certificate is that of %s, and node %s was called", role, id)}
			}
			return err
		},
	}
}

// NodeOf returns the id of the node of this cluster that made a connection. The error is a *PeerError if it was not a
// node.
func (s *Store) NodeOf(c *tls.ConnectionState) (id string, err error) {
	if c == nil {
		return "", &PeerError{errors.New("the connection is not encrypted")}
	}
	m := s.current.Load()
	if id, known := m.knownNode(c.PeerCertificates); known {
		return id, nil
	}
	role, err := m.verifyNode(c.PeerCertificates, s.me.Cluster, x509.ExtKeyUsageClientAuth)
	if err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.nodes[string(c.PeerCertificates[0].Raw)] = role.Name
	return role.Name, nil
}

// Identify returns the id of the node at the other side of an open connection, dialled or accepted. The error is a
// *PeerError if the node would be refused now, because its certificate has ended or its authority is no longer trusted.
func (s *Store) Identify(c tls.ConnectionState) (id string, err error) {
	role, err := s.current.Load().verifyNode(c.PeerCertificates, s.me.Cluster, x509.ExtKeyUsageAny)
	return role.Name, err
}

// maxKnownClients bounds how many verified certificates of clients are cached; beyond it the cache is cleared.
const maxKnownClients = 4096

// CheckClient returns a function that verifies the certificate of a connection again, with the authorities and the time
// of the call, because a connection may outlive its certificate. A certificate with a role must be of this cluster. The
// function is nil if clients need no certificate.
func (s *Store) CheckClient(auth ClientAuth) func(*tls.ConnectionState) error {
	if auth == AuthNone {
		return nil
	}
	return func(c *tls.ConnectionState) error {
		if len(c.PeerCertificates) == 0 {
			if auth == AuthRequest {
				return nil
			}
			return errors.New("there is none, and this server requires one")
		}
		return s.current.Load().checkClient(c.PeerCertificates, s.me.Cluster)
	}
}

func (m *material) checkClient(chain []*x509.Certificate, cluster string) error {
	fingerprint, now := sha256.Sum256(chain[0].Raw), time.Now()
	m.mu.Lock()
	until, known := m.clients[fingerprint]
	m.mu.Unlock()
	if known && now.Before(until) {
		return nil
	}
	if _, err := m.verifyNode(chain, cluster, x509.ExtKeyUsageClientAuth); err == nil {
		return m.rememberClient(fingerprint, firstEnd(chain))
	}
	if err := verifyChain(chain, m.clientRoots, x509.ExtKeyUsageClientAuth); err != nil {
		return err
	}
	role, err := RoleOf(chain[0])
	if err != nil && !errors.Is(err, ErrNoRole) {
		return err
	}
	if err == nil && role.Cluster != cluster {
		return fmt.Errorf("it is that of %s, and this is cluster %s", role, cluster)
	}
	return m.rememberClient(fingerprint, firstEnd(chain))
}

// rememberClient returns nil.
func (m *material) rememberClient(fingerprint [sha256.Size]byte, until time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.clients) >= maxKnownClients {
		clear(m.clients)
	}
	m.clients[fingerprint] = until
	return nil
}

// ProvedChain returns a function that returns the certificates of a client's connection, the leaf first. The handshake
// has proved that the client has the key of the leaf; nothing else of the chain is verified. The result is empty if the
// client presented none, and must not be changed. The function is nil if certificates are ignored.
func (s *Store) ProvedChain(auth ClientAuth) func(*tls.ConnectionState) []*x509.Certificate {
	if auth == AuthNone {
		return nil
	}
	return func(c *tls.ConnectionState) []*x509.Certificate {
		if c == nil {
			return nil
		}
		return c.PeerCertificates
	}
}

// ClientRoots returns the authorities of clients. It is the same pool until they change.
func (s *Store) ClientRoots() *x509.CertPool { return s.current.Load().clientRoots }

// firstEnd returns when the first of some certificates ends.
func firstEnd(list []*x509.Certificate) time.Time {
	return slices.MinFunc(list, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) }).NotAfter
}

// knownNode returns the id in a certificate that was verified before, with the same authorities, and has not ended.
func (m *material) knownNode(chain []*x509.Certificate) (id string, known bool) {
	if len(chain) == 0 || time.Now().After(chain[0].NotAfter) {
		return "", false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	id, known = m.nodes[string(chain[0].Raw)]
	return id, known
}

func (m *material) verifyNode(chain []*x509.Certificate, cluster string, usage x509.ExtKeyUsage) (Role, error) {
	if len(chain) == 0 {
		return Role{}, &PeerError{errors.New("it showed no certificate")}
	}
	if err := verifyChain(chain, m.roots, usage); err != nil {
		return Role{}, &PeerError{fmt.Errorf("the certificate of %q: %w", chain[0].Subject.CommonName, err)}
	}
	role, err := RoleOf(chain[0])
	if err != nil {
		return Role{}, &PeerError{fmt.Errorf("the certificate of %q: %w", chain[0].Subject.CommonName, err)}
	}
	if role.Kind != Node || role.Cluster != cluster {
		return Role{}, &PeerError{
			fmt.Errorf("the certificate is that of %s, and only nodes of cluster %s are let in", role, cluster),
		}
	}
	return role, nil
}

// ClientConfig returns the configuration for callers of the API. Without CA the authorities of the system are trusted;
// without Cert and Key the caller presents no certificate. A serverName replaces the called host as the name that the
// server's certificate must have.
func ClientConfig(f Files, serverName string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: serverName}
	if f.CA != "" {
		_, roots, err := loadAuthorities(f.CA)
		if err != nil {
			return nil, err
		}
		c.RootCAs = roots
	}
	if (f.Cert == "") != (f.Key == "") {
		return nil, errors.New("a certificate and its key belong together: name both, or none")
	}
	if f.Cert != "" {
		own, err := loadPair(f.Cert, f.Key)
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{own}
	}
	return c, nil
}
