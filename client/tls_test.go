package client_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
)

func tlsServer(t *testing.T, auth tls.ClientAuthType) (*httptest.Server, *tls.Config) {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle(quoratev1connect.NewAllocationServiceHandler(newFakeCluster()))
	mux.Handle(quoratev1connect.NewEventServiceHandler(newFakeCluster()))
	server := httptest.NewUnstartedServer(mux)
	server.TLS = &tls.Config{ClientAuth: auth, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	trusted := x509.NewCertPool()
	trusted.AddCert(server.Certificate())
	return server, &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	server, trusting := tlsServer(t, tls.NoClientCert)
	strict, trustingStrict := tlsServer(t, tls.RequireAnyClientCert)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	host := func(s *httptest.Server) string { return s.Listener.Addr().String() }
	elsewhere := trusting.Clone()
	elsewhere.ServerName = "elsewhere.test"
	late := trusting.Clone()
	late.Time = func() time.Time { return time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC) }
	for name, tc := range map[string]struct {
		servers []string
		tls     *tls.Config
		says    string
	}{
		"an address without a scheme": {[]string{host(server)}, trusting, ""},
		"the second server gets on":   {[]string{host(strict), "https://" + host(server)}, trusting, ""},
		"plain text to TLS": {
			[]string{"http://" + host(server)},
			nil,
			"the server uses TLS: use https://" + host(server),
		},
		"TLS to plain text": {
			[]string{"https://" + host(plain)},
			trusting,
			"the server does not use TLS: use http://",
		},
		"an authority that is unknown": {
			[]string{"https://" + host(server)},
			nil,
			"is not trusted here: name the authority",
		},
		"another host":           {[]string{host(server)}, elsewhere, "is for other hosts"},
		"expired":                {[]string{host(server)}, late, "is not valid at this time"},
		"no certificate to show": {[]string{host(strict)}, trustingStrict, "requires a client certificate"},
	} {
		options := []client.Option{client.WithPatience(time.Minute)}
		if tc.tls != nil {
			options = append(options, client.WithTLS(tc.tls))
		}
		c, err := client.New(tc.servers, options...)
		if err != nil {
			t.Fatal(err)
		}
		good := func() bool {
			_, err = c.Allocations.Allocate(t.Context(), &quoratev1.AllocateRequest{Id: "a"})
			if tc.says == "" {
				return err == nil
			}
			return err != nil && strings.Contains(err.Error(), tc.says) &&
				connect.CodeOf(err) == connect.CodeUnavailable &&
				!client.MayBeDone(err)
		}
		// The connection may be closed before the client has read the server's alert.
		for deadline := time.Now().Add(time.Minute); !good() && time.Now().Before(deadline); {
			time.Sleep(10 * time.Millisecond)
		}
		if tc.says == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tc.says) || connect.CodeOf(err) != connect.CodeUnavailable ||
			client.MayBeDone(err) ||
			errors.Is(err, client.ErrCertificate) != (name == "no certificate to show") {
			t.Errorf("%s: got %v (may be done: %v), want an error with %q", name, err, client.MayBeDone(err), tc.says)
		}
	}
}
