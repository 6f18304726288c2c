package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"
)

const (
	pemCertificate = "CERTIFICATE"
	pemKey         = "PRIVATE KEY"
	// clockTolerance is how far a certificate is backdated, for machines whose clocks are behind.
	clockTolerance = 5 * time.Minute
)

// Authority signs the certificates of one cluster.
type Authority struct {
	// Cluster is the name of the cluster.
	Cluster string
	cert    *x509.Certificate
	key     crypto.Signer
}

// Pair is a certificate and its key, both as PEM.
type Pair struct{ Cert, Key []byte }

// NewAuthority makes an authority with a key on the curve P-256, which is valid for span from now on.
func NewAuthority(cluster string, span time.Duration) (*Authority, Pair, error) {
	if err := checkName("the name of the cluster is", cluster); err != nil {
		return nil, Pair{}, err
	}
	template := newTemplate("Quorate authority of "+cluster, span)
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	template.URIs = []*url.URL{{Scheme: roleScheme, Host: roleHost, Path: "/" + cluster}}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, Pair{}, fmt.Errorf("make the key of the authority: %w", err)
	}
	a := &Authority{Cluster: cluster, cert: template, key: key}
	pair, err := a.signPair(template, key)
	if err != nil {
		return nil, Pair{}, err
	}
	a, err = OpenAuthority(pair)
	return a, pair, err
}

// OpenAuthority returns the authority of a pair that NewAuthority made.
func OpenAuthority(p Pair) (*Authority, error) {
	pair, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		return nil, fmt.Errorf("the authority: %w", err)
	}
	cert, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return nil, fmt.Errorf("the authority: %w", err)
	}
	key, signs := pair.PrivateKey.(crypto.Signer)
	if !cert.IsCA || !signs {
		return nil, fmt.Errorf("the certificate of %q is not an authority", cert.Subject)
	}
	for _, uri := range cert.URIs {
		if cluster := strings.TrimPrefix(uri.Path, "/"); uri.Scheme == roleScheme && allowedName().MatchString(cluster) {
			return &Authority{Cluster: cluster, cert: cert, key: key}, nil
		}
	}
	return nil, errors.New("the authority does not name its cluster: it was not made by \"quorate tls create\"")
}

// Node makes the certificate of a node, for use as a server and as a client. Hosts are the names and addresses at which
// clients reach the node; its id is added to them.
func (a *Authority) Node(id string, hosts []string, span time.Duration) (Pair, error) {
	return a.issuePair(
		Role{a.Cluster, Node, id},
		append([]string{id}, hosts...),
		span,
		x509.ExtKeyUsageServerAuth,
		x509.ExtKeyUsageClientAuth,
	)
}

// Client makes the certificate of a client.
func (a *Authority) Client(name string, span time.Duration) (Pair, error) {
	return a.issuePair(Role{a.Cluster, Client, name}, nil, span, x509.ExtKeyUsageClientAuth)
}

func (a *Authority) issuePair(role Role, hosts []string, span time.Duration, usages ...x509.ExtKeyUsage) (Pair, error) {
	if err := role.checkNames(); err != nil {
		return Pair{}, err
	}
	template := newTemplate(role.Name, span)
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, usages
	template.URIs = []*url.URL{role.URI()}
	for _, host := range hosts {
		switch ip := net.ParseIP(host); {
		case ip != nil:
			template.IPAddresses = append(template.IPAddresses, ip)
		case host == "" || strings.ContainsAny(host, "/: "):
			return Pair{}, fmt.Errorf("host %q: allowed are names and addresses without a port", host)
		default:
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	if template.NotAfter.After(a.cert.NotAfter) {
		template.NotAfter = a.cert.NotAfter // it would not be accepted for longer
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("make the key of %s: %w", role, err)
	}
	return a.signPair(template, key)
}

func newTemplate(name string, span time.Duration) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-clockTolerance), NotAfter: now.Add(span),
	}
}

func (a *Authority) signPair(template *x509.Certificate, key crypto.Signer) (Pair, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("sign the certificate of %q: %w", template.Subject.CommonName, err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, fmt.Errorf("write the key of %q: %w", template.Subject.CommonName, err)
	}
	return Pair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: der}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: pemKey, Bytes: secret}),
	}, nil
}
