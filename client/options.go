package client

import (
	"context"
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
	once           bool
	knownHosts     bool // unknown hosts are final until a server has answered
	tokenSource    func(context.Context) (string, error)
	tokenFile      string
	insecureToken  bool
	batches        int // calls or batches of one method under way at a time; 0 if calls are not joined
	clock          leaseTime
	namespace      string // of ids that a request names without one; empty for that of the caller
}

func defaultSettings() settings {
	return settings{
		attemptTimeout: 5 * time.Second,
		patience:       30 * time.Second,
		notice:         func(error) {},
		batches:        defaultBatches,
		clock:          leaseTime{suspendedTime},
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

// WithoutRetries makes one attempt at each call, for callers with retries of their own. A call that fails moves the
// client on to the next server as usual. Renewals of leases are retried nevertheless.
func WithoutRetries() Option {
	return func(s *settings) { s.once = true }
}

// WithoutUnknownHosts ends a call at once if the names of all servers do not exist, for callers at a terminal who have
// mistyped one. Without it a call tries again, because names of servers that are being started may not exist yet. Once
// a server has answered, the name service is assumed to be at fault, and calls try again too.
func WithoutUnknownHosts() Option {
	return func(s *settings) { s.knownHosts = true }
}

// WithTLS sets which servers the client trusts and which certificate it presents. Addresses without a scheme then use
// https. The configuration must not be changed afterwards; set its GetClientCertificate to follow renewed certificates.
// Without this option, https addresses are verified with the authorities of the system.
func WithTLS(config *tls.Config) Option {
	return func(s *settings) { s.tls = config }
}

// WithHTTPClient replaces the HTTP client. It has its own certificates: WithTLS then only sets the scheme of addresses.
// The default client keeps connections open and uses HTTP/1.1, which is faster than HTTP/2 for unary calls. Redirects
// are not followed: an *http.Client is copied with that change, and any other client must not follow them.
func WithHTTPClient(c connect.HTTPClient) Option {
	return func(s *settings) { s.http = c }
}

// WithNotice sets a function that is called with the error of every failed attempt that will be retried, before the
// pause. It is called in the goroutine of the call, so concurrent calls may call it concurrently.
func WithNotice(notice func(failure error)) Option {
	return func(s *settings) { s.notice = notice }
}

// WithInterceptors adds interceptors to every call, the first one outermost. They see one call, not its attempts and
// not the batch that it is joined into. Only calls for which they set the same headers are joined, except for the
// headers of traces. The interceptor of connectrpc.com/otelconnect continues the trace of the caller in the servers; a
// batch continues that of its first call.
func WithInterceptors(interceptors ...connect.Interceptor) Option {
	return func(s *settings) { s.interceptors = append(s.interceptors, interceptors...) }
}

// WithNamespace sets the namespace of the ids in requests that have none, of all methods but AllocateStream. The
// default
// is that of the caller: its user, or "default" without a credential. Lists and watches without ids select all.
func WithNamespace(namespace string) Option {
	return func(s *settings) { s.namespace = namespace }
}

// WithoutJoining sends every call on its own. By default, concurrent calls of Allocate, Release and Renew are joined
// into calls of BatchAllocate, BatchRelease and BatchRenew: while two calls of a method are under way, further ones
// wait and are then sent together. A call is sent on its own if none waits beside it, or if it is a dry run, has
// poll_ms, releases only some items or sets their state, or is larger than 8 KiB.
//
// A caller whose context ends stops waiting. Its call was certainly not carried out if it was not sent yet, which
// MayBeDone reports. A server that hangs holds up joined calls until the attempt times out.
func WithoutJoining() Option {
	return func(s *settings) { s.batches = 0 }
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
