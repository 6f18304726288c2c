package controller

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func newCertificate(api client.Client, now func() time.Time, names ...string) *certificate {
	return &certificate{
		api: api, secret: types.NamespacedName{Namespace: "n", Name: "s"}, webhook: "w", names: names, now: now,
	}
}

func fakeAPI() client.Client {
	return fake.NewFakeClient(&admissionv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "w"}, Webhooks: []admissionv1.MutatingWebhook{{Name: "a"}, {Name: "b"}},
	})
}

func bundle(t *testing.T, api client.Client) []byte {
	t.Helper()
	var config admissionv1.MutatingWebhookConfiguration
	if err := api.Get(t.Context(), types.NamespacedName{Name: "w"}, &config); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(config.Webhooks[0].ClientConfig.CABundle, config.Webhooks[1].ClientConfig.CABundle) {
		t.Error("the webhooks trust different authorities")
	}
	return config.Webhooks[0].ClientConfig.CABundle
}

// verify checks that the API server accepts what a replica serves.
func verify(t *testing.T, api client.Client, c *certificate, now time.Time) {
	t.Helper()
	served, err := c.get(nil)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(bundle(t, api))
	for _, name := range c.names {
		if _, err := served.Leaf.Verify(x509.VerifyOptions{Roots: trusted, DNSName: name, CurrentTime: now}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReplicasShareACertificate(t *testing.T) {
	api, now := fakeAPI(), time.Now()
	clock := func() time.Time { return now }
	first := newCertificate(api, clock, "web.n.svc", "127.0.0.1")
	if _, err := first.get(&tls.ClientHelloInfo{}); err == nil {
		t.Error("a certificate was served before there was one")
	}
	second := newCertificate(api, clock, "web.n.svc")
	for _, c := range []*certificate{first, second, first} {
		if err := c.ensure(t.Context()); err != nil {
			t.Fatal(err)
		}
		verify(t, api, c, now)
	}
	if !first.current.Load().Leaf.Equal(second.current.Load().Leaf) {
		t.Error("the replicas have different certificates")
	}
}

func TestARenewedCertificateAndTheOneBeforeAreTrusted(t *testing.T) {
	api, now := fakeAPI(), time.Now()
	clock := func() time.Time { return now }
	first, second := newCertificate(api, clock, "web"), newCertificate(api, clock, "web")
	for _, c := range []*certificate{first, second} {
		if err := c.ensure(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	now = now.Add(certificateLife - certificateRenew + time.Hour)
	if err := first.ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	if first.current.Load().Leaf.Equal(second.current.Load().Leaf) {
		t.Fatal("it was not renewed")
	}
	verify(t, api, first, now)
	verify(t, api, second, now)
}

func TestOtherNamesMakeANewCertificate(t *testing.T) {
	api := fakeAPI()
	for _, name := range []string{"web", "10.0.0.1"} {
		c := newCertificate(api, time.Now, name)
		if err := c.ensure(t.Context()); err != nil {
			t.Fatal(err)
		}
		verify(t, api, c, time.Now())
	}
}

func TestADamagedSecretIsReplaced(t *testing.T) {
	api := fakeAPI()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s"}, Data: map[string][]byte{
		corev1.TLSCertKey: []byte("x"), corev1.TLSPrivateKeyKey: []byte("y"),
	}}
	if err := api.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	c := newCertificate(api, time.Now, "web")
	if err := c.ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	verify(t, api, c, time.Now())
}

func TestSettingsThatAreRefused(t *testing.T) {
	good := Settings{Cluster: "prod", WebhookPort: 9443, WebhookNames: []string{"web"}}
	if err := good.check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Settings){
		"no cluster":      func(s *Settings) { s.Cluster = "" },
		"a long cluster":  func(s *Settings) { s.Cluster = string(bytes.Repeat([]byte("x"), 64)) },
		"a slash":         func(s *Settings) { s.Cluster = "a/b" },
		"a short lease":   func(s *Settings) { s.LeaseTTL = time.Second },
		"a long lease":    func(s *Settings) { s.LeaseTTL = 169 * time.Hour },
		"no port":         func(s *Settings) { s.WebhookPort = 0 },
		"no webhook name": func(s *Settings) { s.WebhookNames = nil },
	} {
		s := good
		change(&s)
		if s.check() == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}
