package authn

import (
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/pki"
)

const (
	// MaxCertificateRules bounds the rules for certificates.
	MaxCertificateRules = 1000
	// maxKnownCertificates bounds the verified certificates that are remembered; beyond it all are forgotten.
	maxKnownCertificates = 4096
	maxChain             = 10
)

// CertificateRule maps certificates to a user: those with the role URI of a client by its name, those without a role
// by a DNS name among their alternative names. Name or DNS is set. A client without a rule is the user cert/<name>.
type CertificateRule struct {
	// Name is the name of a client in the role URI of this cluster, compared whole.
	Name string
	// DNS is compared whole and without regard to case. A wildcard in a certificate matches only the same text here.
	DNS string
	// User is the name without its source: the user is cert/<User>.
	User string
}

const certificateSource = "cert/"

// certificateUsers are the users of rules, with their source: by the name of a client, and by DNS name in lower case.
type certificateUsers struct{ clients, hosts map[string]string }

// CertificateVerifier verifies client certificates. It is safe for concurrent use.
type CertificateVerifier struct {
	cluster string
	roots   func() *x509.CertPool
	now     func() time.Time
	rules   atomic.Pointer[certificateUsers]

	mu       sync.Mutex
	knownFor *x509.CertPool // the authorities that the remembered certificates were verified with
	known    map[[sha256.Size]byte]time.Time
}

// NewCertificateVerifier returns a verifier for the clients of a cluster, without rules. The function roots returns the
// authorities of clients; it is asked for each call. Another pool than before, which it must return when the
// authorities change, makes the verifier forget what it verified. A nil pool, or a nil function, trusts no one. A nil
// clock means time.Now.
func NewCertificateVerifier(cluster string, roots func() *x509.CertPool, now func() time.Time) *CertificateVerifier {
	if roots == nil {
		roots = func() *x509.CertPool { return nil }
	}
	if now == nil {
		now = time.Now
	}
	v := &CertificateVerifier{cluster: cluster, roots: roots, now: now}
	v.rules.Store(&certificateUsers{})
	return v
}

// Configure replaces the rules. If one is not valid, it returns an error, and the rules in use stay.
func (v *CertificateVerifier) Configure(rules []CertificateRule) error {
	compiled, err := compileCertificateRules(rules)
	if err == nil {
		v.rules.Store(&compiled)
	}
	return err
}

// CheckCertificateRules returns an error that names every problem of some rules.
func CheckCertificateRules(rules []CertificateRule) error {
	_, err := compileCertificateRules(rules)
	return err
}

func compileCertificateRules(rules []CertificateRule) (certificateUsers, error) {
	compiled := certificateUsers{clients: map[string]string{}, hosts: map[string]string{}}
	if len(rules) > MaxCertificateRules {
		return compiled, fmt.Errorf("there are %d rules for certificates, %d are allowed", len(rules), MaxCertificateRules)
	}
	var problems []error
	for _, rule := range rules {
		if err := compiled.add(rule); err != nil {
			problems = append(problems, fmt.Errorf("certificate rule %q: %w", rule.Name+rule.DNS, err))
		}
	}
	return compiled, errors.Join(problems...)
}

func (u certificateUsers) add(rule CertificateRule) error {
	user, names, name := certificateSource+rule.User, u.hosts, strings.ToLower(rule.DNS)
	if rule.Name != "" {
		names, name = u.clients, rule.Name
	}
	switch _, twice := names[name]; {
	case rule.Name != "" && rule.DNS != "":
		return errors.New("name and dns: one of them is allowed")
	case rule.Name == "" && (!isName(name) || strings.ContainsAny(name, "/:")):
		return errors.New("dns is not the name of a host")
	case rule.Name != "" && !isName(name):
		return errors.New("name is not the name of a client")
	case rule.User == "" || !isName(user):
		return fmt.Errorf("user has 1 to %d visible ASCII characters without '*'", MaxUserLength-len(certificateSource))
	case twice:
		return errors.New("there are two")
	}
	names[name] = user
	return nil
}

// Verify returns the identity that a chain of certificates proves now, its leaf first. The caller vouches that the
// other side of the connection has the key of the leaf. The error is a *CredentialError.
//
// Chains are verified for each call, because a connection may outlive its certificate or the authority. A certificate
// that was verified is remembered until it, or an authority above it, ends.
func (v *CertificateVerifier) Verify(chain []*x509.Certificate) (Identity, error) {
	if len(chain) == 0 {
		return Identity{}, refuse(NoCredential, "there is no client certificate")
	}
	if len(chain) > maxChain {
		return Identity{}, refuse(TooLarge, "the chain has %d certificates, %d are allowed", len(chain), maxChain)
	}
	leaf := chain[0]
	fingerprint, roots := sha256.Sum256(leaf.Raw), v.roots()
	ends, known := v.recall(fingerprint, roots)
	if !known {
		var err error
		if ends, err = verifyChain(chain, roots, v.now()); err != nil {
			return Identity{}, err
		}
		v.remember(fingerprint, roots, ends)
	}
	user, err := v.userOf(leaf)
	if err != nil {
		return Identity{}, err
	}
	identity := Identity{Kind: CertificateKind, User: user, Ends: ends}
	copy(identity.CredentialID[:], fingerprint[:])
	return identity, nil
}

func (v *CertificateVerifier) recall(fingerprint [sha256.Size]byte, roots *x509.CertPool) (ends time.Time, known bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.knownFor != roots {
		return time.Time{}, false
	}
	ends, known = v.known[fingerprint]
	return ends, known && v.now().Before(ends)
}

func (v *CertificateVerifier) remember(fingerprint [sha256.Size]byte, roots *x509.CertPool, ends time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.knownFor != roots || len(v.known) >= maxKnownCertificates || v.known == nil {
		v.knownFor, v.known = roots, map[[sha256.Size]byte]time.Time{}
	}
	v.known[fingerprint] = ends
}

// verifyChain returns when the chain ends to be valid.
func verifyChain(chain []*x509.Certificate, roots *x509.CertPool, now time.Time) (ends time.Time, err error) {
	leaf := chain[0]
	if roots == nil {
		return time.Time{}, refuse(CertificateUntrusted, "this server trusts no authority of client certificates")
	}
	// A certificate without any use is valid for every use to package x509, an authority among them.
	allowed := slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageClientAuth) ||
		slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageAny)
	if leaf.IsCA || !allowed {
		return time.Time{}, refuse(CertificateUsage, "the certificate is not for use as a client (clientAuth)")
	}
	intermediates := x509.NewCertPool()
	for _, c := range chain[1:] {
		intermediates.AddCert(c)
	}
	verified, err := leaf.Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: intermediates, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return time.Time{}, chainError(err)
	}
	for _, c := range verified {
		if end := firstEnd(c); end.After(ends) {
			ends = end
		}
	}
	return ends, nil
}

func firstEnd(chain []*x509.Certificate) time.Time {
	first := chain[0].NotAfter
	for _, c := range chain[1:] {
		if c.NotAfter.Before(first) {
			first = c.NotAfter
		}
	}
	return first
}

func chainError(err error) error {
	if invalid := (x509.CertificateInvalidError{}); errors.As(err, &invalid) {
		if invalid.Reason == x509.Expired {
			return refuse(CertificateExpired, "the certificate, or one above it, is not valid now")
		}
		if invalid.Reason == x509.IncompatibleUsage {
			return refuse(CertificateUsage, "an authority above the certificate does not allow use as a client")
		}
	}
	return refuse(CertificateUntrusted, "the certificate was not signed by an authority of clients of this cluster")
}

func (v *CertificateVerifier) userOf(leaf *x509.Certificate) (string, error) {
	role, err := pki.RoleOf(leaf)
	switch {
	case errors.Is(err, pki.ErrNoRole):
		return v.mappedUser(leaf)
	case err != nil:
		return "", refuse(CertificateRole, "the role of the certificate: %v", err)
	case role.Cluster != v.cluster:
		return "", refuse(CertificateRole, "the certificate is that of %s, and this is cluster %s", role, v.cluster)
	case role.Kind != pki.Client:
		return "", refuse(CertificateNode, "the certificate is that of %s, and nodes are not users", role)
	}
	if user, mapped := v.rules.Load().clients[role.Name]; mapped {
		return user, nil
	}
	return certificateSource + role.Name, nil
}

func (v *CertificateVerifier) mappedUser(leaf *x509.Certificate) (string, error) {
	rules, found := v.rules.Load().hosts, ""
	for _, name := range leaf.DNSNames {
		user, mapped := rules[strings.ToLower(name)]
		if mapped && found != "" && found != user {
			return "", refuse(CertificateUnmapped, "the certificate has names of two users, %s and %s", found, user)
		}
		if mapped {
			found = user
		}
	}
	if found == "" {
		return "", refuse(CertificateUnmapped, "neither a role URI nor a rule names the user of the certificate")
	}
	return found, nil
}
