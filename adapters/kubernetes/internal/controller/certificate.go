package controller

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	certificateLife  = 365 * 24 * time.Hour
	certificateRenew = 90 * 24 * time.Hour
	certificateCheck = 10 * time.Minute
	// authorityKey has the certificates that the API server trusts: the present one and the one before, which another
	// replica may still serve.
	authorityKey = "ca.crt"
)

// certificate keeps the webhook's certificate in a secret that all replicas share, renews it, and tells the API server
// to trust it. It is its own authority: nothing else has to trust it.
type certificate struct {
	api    client.Client // without a cache
	secret types.NamespacedName
	// webhook is the name of the MutatingWebhookConfiguration.
	webhook string
	names   []string
	current atomic.Pointer[tls.Certificate]
	now     func() time.Time
}

// get has the signature that tls.Config wants.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if current := c.current.Load(); current != nil {
		return current, nil
	}
	return nil, errors.New("the webhook has no certificate yet")
}

// Start checks the certificate again and again.
func (c *certificate) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(certificateCheck):
		}
		if err := c.ensure(ctx); err != nil {
			slog.Warn("the certificate of the webhook could not be checked", "error", err)
		}
	}
}

// NeedLeaderElection is false: each replica serves the webhook.
func (c *certificate) NeedLeaderElection() bool { return false }

// ensure also makes the API server trust the certificate.
func (c *certificate) ensure(ctx context.Context) error {
	for range 5 { // another replica may be faster
		var secret corev1.Secret
		err := c.api.Get(ctx, c.secret, &secret)
		found := err == nil
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading the secret %s: %w", c.secret, err)
		}
		if pair, valid := c.load(&secret); found && valid {
			if err := c.trust(ctx, secret.Data[authorityKey]); err != nil {
				return err
			}
			c.current.Store(pair)
			return nil
		}
		if err := c.renew(&secret); err != nil {
			return err
		}
		if found {
			err = c.api.Update(ctx, &secret)
		} else {
			secret.ObjectMeta = metav1.ObjectMeta{Namespace: c.secret.Namespace, Name: c.secret.Name}
			secret.Type = corev1.SecretTypeTLS
			err = c.api.Create(ctx, &secret)
		}
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("writing the secret %s: %w", c.secret, err)
		}
	}
	return fmt.Errorf("the secret %s changes all the time", c.secret)
}

// load returns false if the certificate in the secret must be renewed.
func (c *certificate) load(secret *corev1.Secret) (*tls.Certificate, bool) {
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil || pair.Leaf.NotAfter.Sub(c.now()) < certificateRenew ||
		!bytes.Contains(secret.Data[authorityKey], bytes.TrimSpace(secret.Data[corev1.TLSCertKey])) {
		return nil, false
	}
	for _, name := range c.names {
		if pair.Leaf.VerifyHostname(name) != nil {
			return nil, false
		}
	}
	return &pair, true
}

func (c *certificate) renew(secret *corev1.Secret) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return fmt.Errorf("making a serial number: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "quorate-kubernetes"},
		NotBefore: c.now().Add(-time.Hour), NotAfter: c.now().Add(certificateLife), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, name := range c.names {
		if address := net.ParseIP(name); address != nil {
			template.IPAddresses = append(template.IPAddresses, address)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return fmt.Errorf("making a certificate: %w", err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("writing the key: %w", err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})
	secret.Data = map[string][]byte{
		authorityKey:            append(bytes.Clone(text), secret.Data[corev1.TLSCertKey]...),
		corev1.TLSCertKey:       text,
		corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}
	return nil
}

// trust sets the authority in the configuration of the webhook.
func (c *certificate) trust(ctx context.Context, authority []byte) error {
	var config admissionv1.MutatingWebhookConfiguration
	if err := c.api.Get(ctx, types.NamespacedName{Name: c.webhook}, &config); err != nil {
		return fmt.Errorf("reading the webhook configuration %s: %w", c.webhook, err)
	}
	patched, changed := config.DeepCopy(), false
	for i := range patched.Webhooks {
		changed = changed || !bytes.Equal(patched.Webhooks[i].ClientConfig.CABundle, authority)
		patched.Webhooks[i].ClientConfig.CABundle = authority
	}
	if !changed {
		return nil
	}
	if err := c.api.Patch(ctx, patched, client.MergeFrom(&config)); err != nil {
		return fmt.Errorf("changing the webhook configuration %s: %w", c.webhook, err)
	}
	return nil
}
