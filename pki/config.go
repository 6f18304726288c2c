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

// ClientAuth is what callers of the API must show.
type ClientAuth string

// What callers of the API must show. Nodes always show theirs, and prove by it that they are nodes.
const (
	// AuthNone: nothing; what is shown is not looked at.
	AuthNone ClientAuth = "none"
	// AuthRequest: what is shown must be a certificate of the authority.
	AuthRequest ClientAuth = "request"
	// AuthRequire: a certificate of the authority.
	AuthRequire ClientAuth = "require"
)

// handshakes are what Go's TLS calls them. Those who show nothing are asked all the same, since nodes are among them.
var handshakes = map[ClientAuth]tls.ClientAuthType{
	AuthNone: tls.RequestClientCert, AuthRequest: tls.VerifyClientCertIfGiven, AuthRequire: tls.RequireAndVerifyClientCert,
}

// Check is an error for anything else.
func (a ClientAuth) Check() error {
	if _, known := handshakes[a]; known {
		return nil
	}
	return fmt.Errorf("tls-client-auth is %q: allowed are %s, %s and %s", string(a), AuthNone, AuthRequest, AuthRequire)
}

// PeerError is a peer that did not prove to be a node of this cluster, or not the one that was called. Nothing was
// said to it.
type PeerError struct{ cause error }

// Error says why.
func (e *PeerError) Error() string {
	return "it did not prove which node of this cluster it is: " + e.cause.Error()
}

// Unwrap is what was wrong with its certificate.
func (e *PeerError) Unwrap() error { return e.cause }

// API is for the listener of the API and of front ends: HTTP/2 and HTTP/1.1. Every connection gets the certificates
// of its moment; none is resumed, because resumption would accept a certificate that is refused now.
func (s *Store) API(auth ClientAuth) *tls.Config {
	protocols := []string{"h2", "http/1.1"}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: protocols,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			m := s.current.Load()
			return &tls.Config{
				MinVersion: tls.VersionTLS12, NextProtos: protocols, SessionTicketsDisabled: true,
				Certificates: []tls.Certificate{m.own}, ClientCAs: m.roots, ClientAuth: handshakes[auth],
			}, nil
		},
	}
}

// NodeProtocol is how nodes name HTTP/2 between them when they make a connection (ALPN). A connection to the same
// port that names no protocol carries raft.
const NodeProtocol = "quorate-node/1"

// Accept is for listeners that only nodes of this cluster may connect to.
func (s *Store) Accept() *tls.Config {
	protocols := []string{NodeProtocol}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: protocols,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			m := s.current.Load()
			return &tls.Config{
				MinVersion: tls.VersionTLS13, NextProtos: protocols, SessionTicketsDisabled: true, Certificates: []tls.Certificate{m.own},
				ClientCAs: m.roots, ClientAuth: tls.RequireAnyClientCert, // VerifyConnection looks closer
				VerifyConnection: func(c tls.ConnectionState) error {
					_, err := m.verifyNode(c.PeerCertificates, s.me.Cluster, x509.ExtKeyUsageClientAuth)
					return err
				},
			}, nil
		},
	}
}

// Dial is for a connection to one other node, or to any node of this cluster if the id is empty. It asks whether the
// other side is that node, and not at which address it is: addresses come and go, and the certificate of a node is
// worth the same at all of them. A server that answers at the address of one node with the
// certificate of another one is refused.
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

// NodeOf tells which node of this cluster made a connection; a *PeerError if none did.
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

// Identify tells which node of this cluster is the other side of an open connection, dialled or accepted. It is a
// *PeerError if none would be taken for one now: its certificate has ended, or its authority is not trusted any more.
func (s *Store) Identify(c tls.ConnectionState) (id string, err error) {
	role, err := s.current.Load().verifyNode(c.PeerCertificates, s.me.Cluster, x509.ExtKeyUsageAny)
	return role.Name, err
}

// maxKnownClients bounds how many certificates of clients are remembered as verified; beyond it all are verified anew.
const maxKnownClients = 4096

// CheckClient asks of a connection again what its handshake asked, with the authorities and the time of now: a
// connection may outlive both. A certificate that says whom it stands for must be of this cluster; one that does not
// say is taken for what its authority says it is. It is nil where nothing is asked of clients.
func (s *Store) CheckClient(auth ClientAuth) func(*tls.ConnectionState) error {
	if auth == AuthNone {
		return nil
	}
	return func(c *tls.ConnectionState) error {
		if len(c.PeerCertificates) == 0 {
			if auth == AuthRequest {
				return nil
			}
			return errors.New("there is none, and this server wants one")
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
	if err := m.verifyChain(chain, x509.ExtKeyUsageClientAuth); err != nil {
		return err
	}
	role, err := RoleOf(chain[0])
	if err != nil && !errors.Is(err, ErrNoRole) {
		return err
	}
	if err == nil && role.Cluster != cluster {
		return fmt.Errorf("it is that of %s, and this is cluster %s", role, cluster)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.clients) >= maxKnownClients {
		clear(m.clients)
	}
	m.clients[fingerprint] = firstEnd(chain)
	return nil
}

// firstEnd is when the first of some certificates ends.
func firstEnd(list []*x509.Certificate) time.Time {
	return slices.MinFunc(list, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) }).NotAfter
}

// knownNode is the node whose certificate was verified before, with the same authorities, and has not ended since.
func (m *material) knownNode(chain []*x509.Certificate) (id string, known bool) {
	if len(chain) == 0 || time.Now().After(chain[0].NotAfter) {
		return "", false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	id, known = m.nodes[string(chain[0].Raw)]
	return id, known
}

// verifyNode verifies that a chain is that of a node of a cluster.
func (m *material) verifyNode(chain []*x509.Certificate, cluster string, usage x509.ExtKeyUsage) (Role, error) {
	if len(chain) == 0 {
		return Role{}, &PeerError{errors.New("it showed no certificate")}
	}
	if err := m.verifyChain(chain, usage); err != nil {
		return Role{}, &PeerError{fmt.Errorf("the certificate of %q: %w", chain[0].Subject.CommonName, err)}
	}
	role, err := RoleOf(chain[0])
	if err != nil {
		return Role{}, &PeerError{fmt.Errorf("the certificate of %q: %w", chain[0].Subject.CommonName, err)}
	}
	if role.Kind != Node || role.Cluster != cluster {
		return Role{}, &PeerError{fmt.Errorf("the certificate is that of %s, and only nodes of cluster %s are let in", role, cluster)}
	}
	return role, nil
}

// ClientConfig is for callers of the API. All files may be left out: without CA the authorities of the system are
// trusted, without Cert and Key the caller shows nothing. A serverName is what the server's certificate must be for,
// if not the host that is called.
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
