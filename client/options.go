package client

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"connectrpc.com/connect"
)

// Option changes how a Client works.
type Option func(*settings)

type settings struct {
	notice         func(error)
	http           connect.HTTPClient // nil for one of ours
	tls            *tls.Config
	attemptTimeout time.Duration
	patience       time.Duration
	interceptors   []connect.Interceptor
}

func defaultSettings() settings {
	return settings{
		attemptTimeout: 5 * time.Second,
		patience:       30 * time.Second,
		notice:         func(error) {},
	}
}

// WithPatience bounds a call whose context has no deadline, all attempts and pauses together. The default is 30
// seconds. A context with a deadline is kept to the deadline instead.
func WithPatience(d time.Duration) Option {
	return func(s *settings) { s.patience = d }
}

// WithAttemptTimeout bounds one attempt at one server, so that a server that neither answers nor refuses does not use
// up the whole call. The default is 5 seconds.
func WithAttemptTimeout(d time.Duration) Option {
	return func(s *settings) { s.attemptTimeout = d }
}

// WithTLS says which servers are trusted and what the client shows them. Addresses without a scheme are then https. The
// configuration must not be changed afterwards; to follow certificates that are renewed, give it GetClientCertificate.
// Without this option the authorities of the system are trusted, for the addresses that say https.
func WithTLS(config *tls.Config) Option {
	return func(s *settings) { s.tls = config }
}

// WithHTTPClient sends through another HTTP client, which knows its certificates itself: only the scheme of addresses
// is left to WithTLS. The default keeps connections open and speaks HTTP/1.1, which is quicker than HTTP/2 for calls
// with one answer each.
func WithHTTPClient(c connect.HTTPClient) Option {
	return func(s *settings) { s.http = c }
}

// WithNotice tells of every failed attempt that will be repeated, before the pause. The function is called by the
// goroutine that makes the call, so several calls may use it at once.
func WithNotice(notice func(failure error)) Option {
	return func(s *settings) { s.notice = notice }
}

// WithInterceptors puts interceptors around every call, the first outermost: one call of the client is one call for
// them, whatever it takes to get through. With the one of connectrpc.com/otelconnect the trace of the caller goes on
// in the servers.
func WithInterceptors(interceptors ...connect.Interceptor) Option {
	return func(s *settings) { s.interceptors = append(s.interceptors, interceptors...) }
}

func newHTTPClient(secure *tls.Config) *http.Client {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Client{Transport: &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         newDialer().DialContext,
		DialTLSContext:      dialTLS(secure),
		Protocols:           protocols,
		TLSClientConfig:     secure,
		MaxIdleConns:        1024,
		MaxIdleConnsPerHost: 256,
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: handshakePatience,
	}}
}

// handshakePatience is how long a server may take to agree on keys.
const handshakePatience = 5 * time.Second

func newDialer() *net.Dialer {
	return &net.Dialer{Timeout: 2 * time.Second, KeepAlive: 15 * time.Second}
}
