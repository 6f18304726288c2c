package pki

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// Files are the paths of a process's certificates and key, as PEM. In the file of the certificate, it comes before
// intermediate ones.
type Files struct {
	// CA has the certificates of the authorities that are trusted, several while one replaces the other.
	CA string
	// ClientCA has those that are trusted for clients of the API instead of CA; empty means those of CA. Nodes are never
	// verified with them.
	ClientCA string
	// Cert and Key are the process's own. The file of the key must not be world-readable.
	Cert, Key string
}

type material struct {
	own         tls.Certificate
	authorities []*x509.Certificate
	roots       *x509.CertPool
	// clientAuthorities and clientRoots are those of clients, which are the same unless another file is named. The pool
	// stays the same one until the authorities change.
	clientAuthorities []*x509.Certificate
	clientRoots       *x509.CertPool
	// accepted are the authorities of all that may connect to the listener for clients, nodes among them.
	accepted *x509.CertPool
	// version counts the changes of the files since the store was opened. It is set before the material is shared.
	version uint64

	mu sync.Mutex
	// nodes caches the ids of verified certificates, so that a certificate is not verified for each call.
	nodes map[string]string
	// clients caches until when verified certificates of clients are valid, by fingerprint.
	clients map[[sha256.Size]byte]time.Time
}

func (m *material) sameCertificates(other *material) bool {
	return slices.EqualFunc(m.own.Certificate, other.own.Certificate, bytes.Equal) &&
		slices.EqualFunc(m.authorities, other.authorities, (*x509.Certificate).Equal) && m.sameClientAuthorities(other)
}

func (m *material) sameClientAuthorities(other *material) bool {
	return slices.EqualFunc(m.clientAuthorities, other.clientAuthorities, (*x509.Certificate).Equal)
}

func (f Files) readMaterial() (*material, error) {
	authorities, roots, err := loadAuthorities(f.CA)
	if err != nil {
		return nil, err
	}
	own, err := loadPair(f.Cert, f.Key)
	if err != nil {
		return nil, err
	}
	m := &material{
		own:               own,
		authorities:       authorities,
		roots:             roots,
		clientAuthorities: authorities,
		clientRoots:       roots,
		nodes:             map[string]string{},
		clients:           map[[sha256.Size]byte]time.Time{},
	}
	if f.ClientCA != "" {
		if m.clientAuthorities, m.clientRoots, err = loadAuthorities(f.ClientCA); err != nil {
			return nil, err
		}
	}
	m.accepted = roots.Clone()
	for _, c := range m.clientAuthorities {
		m.accepted.AddCert(c)
	}
	return m, nil
}

func loadPair(cert, key string) (tls.Certificate, error) {
	if err := checkPrivate(key); err != nil {
		return tls.Certificate{}, err
	}
	own, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("the certificate %s with the key %s: %w", cert, key, err)
	}
	if own.Leaf == nil {
		if own.Leaf, err = x509.ParseCertificate(own.Certificate[0]); err != nil {
			return tls.Certificate{}, fmt.Errorf("the certificate %s: %w", cert, err)
		}
	}
	return own, nil
}

func loadAuthorities(path string) ([]*x509.Certificate, *x509.CertPool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("the certificates of the authority: %w", err)
	}
	list, err := parseCertificates(text)
	if err != nil {
		return nil, nil, fmt.Errorf("the certificates of the authority in %s: %w", path, err)
	}
	roots := x509.NewCertPool()
	for _, c := range list {
		if !c.IsCA {
			return nil, nil, fmt.Errorf("%s holds the certificate of %q, which is not an authority", path, c.Subject)
		}
		roots.AddCert(c)
	}
	return list, roots, nil
}

// parseCertificates requires at least one.
func parseCertificates(text []byte) ([]*x509.Certificate, error) {
	var list []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != pemCertificate {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", len(list)+1, err)
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		return nil, errors.New("there is none in the file (PEM, BEGIN CERTIFICATE)")
	}
	return list, nil
}

// checkPrivate refuses a world-readable secret. Its group may read it, because service managers hand secrets over so.
func checkPrivate(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o007 != 0 {
		return fmt.Errorf("%s holds secrets and is world-readable (mode %04o): chmod 0600 %s", path,
			info.Mode().Perm(), path)
	}
	return nil
}

// verifyChain expects the leaf first.
func verifyChain(chain []*x509.Certificate, roots *x509.CertPool, usage x509.ExtKeyUsage) error {
	intermediates := x509.NewCertPool()
	for _, c := range chain[1:] {
		intermediates.AddCert(c)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: intermediates, KeyUsages: []x509.ExtKeyUsage{usage}, CurrentTime: time.Now(),
	})
	return err
}

func (m *material) verifyOwn(me Role) error {
	role, err := RoleOf(m.own.Leaf)
	if err != nil {
		return fmt.Errorf("the certificate is not that of a node: %w; \"quorate tls create\" makes one", err)
	}
	if role != me {
		return fmt.Errorf("the certificate is that of %s, and this is %s", role, me)
	}
	chain := []*x509.Certificate{m.own.Leaf}
	for _, der := range m.own.Certificate[1:] {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return fmt.Errorf("an intermediate certificate: %w", err)
		}
		chain = append(chain, c)
	}
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		if err := verifyChain(chain, m.roots, usage); err != nil {
			return fmt.Errorf(
				"the certificate of %s would not be accepted (nodes need one for servers and clients): %w",
				role,
				err,
			)
		}
	}
	return nil
}

func (m *material) endTimes() (own, authority time.Time) {
	return m.own.Leaf.NotAfter, firstEnd(append(slices.Clone(m.authorities), m.clientAuthorities...))
}
