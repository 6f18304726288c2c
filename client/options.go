package client

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"connectrpc.com/connect"
)

// Option configures a Client.
type Option func(*settings)

type settings struct {
	notice         func(error)
	http           connect.HTTPClient // nil for the default
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

// WithPatience bounds a call whose context has no deadline, with all its attempts and pauses. The default is 30
// seconds. A context with a deadline is bounded by that instead.
func WithPatience(d time.Duration) Option {
	return func(s *settings) { s.patience = d }
}

// WithAttemptTimeout bounds one attempt at one server, so that a server that hangs does not use up the time of the
// call. The default is 5 seconds.
func WithAttemptTimeout(d time.Duration) Option {
	return func(s *settings) { s.attemptTimeout = d }
}

// WithTLS sets which servers the client trusts and which certificate it presents. Addresses without a scheme then use
// https. The configuration must not be changed afterwards; set its GetClientCertificate to follow renewed certificates.
// Without this option, https addresses are verified with the authorities of the system.
func WithTLS(config *tls.Config) Option {
	return func(s *settings) { s.tls = config }
}

// WithHTTPClient replaces the HTTP client. It has its own certificates: WithTLS then only sets the scheme of addresses.
// The default client keeps connections open and uses HTTP/1.1, which is faster than HTTP/2 for unary calls.
func WithHTTPClient(c connect.HTTPClient) Option {
	return func(s *settings) { s.http = c }
}

// WithNotice sets a function that is called with the error of every failed attempt that will be retried, before the
// pause. It is called in the goroutine of the call, so concurrent calls may call it concurrently.
func WithNotice(notice func(failure error)) Option {
	return func(s *settings) { s.notice = notice }
}

// WithInterceptors adds interceptors to every call, the first one outermost. They see one call, not its attempts. The
// interceptor of connectrpc.com/otelconnect continues the trace of the caller in the servers.
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

// handshakePatience bounds a TLS handshake.
const handshakePatience = 5 * time.Second

func newDialer() *net.Dialer {
	return &net.Dialer{Timeout: 2 * time.Second, KeepAlive: 15 * time.Second}
}
