package relay

import (
	"net/http"
	"sync"
	"time"

	"github.com/quorate/quorate/rpc/admission"
)

const (
	// connectionSpan bounds for how long a connection to another node takes new calls. The other side's certificate is
	// verified when a connection is made, so this is also how long one that has ended may go unnoticed.
	connectionSpan = 15 * time.Minute
	// drainEvery is how often connections that take no new calls are looked at and closed if they carry none, and
	// drainSpan for how long: calls end within LongestDeadline. What is left then closes when it was idle for long
	// enough.
	drainEvery = time.Second
	drainSpan  = 2 * admission.LongestDeadline
)

// RenewingTransport carries calls to other nodes over connections that were made with the certificates of the present.
// When those change, it takes new connections for new calls, and the old ones close after the calls that they carry.
// A connection that was kept instead would show a certificate that ends, and the other node, which verifies it for each
// call, would refuse every call from then on.
type RenewingTransport struct {
	openTransport func() *http.Transport
	// version rises when certificates change; nil in plain text, where one transport serves until the end.
	version func() uint64

	mu      sync.Mutex
	current *http.Transport
	made    uint64 // the version that current was made at
	opened  time.Time
}

// NewRenewingTransport makes the transport for all calls to other nodes.
func NewRenewingTransport(c TransportConfig) *RenewingTransport {
	t := &RenewingTransport{version: c.Security.Version, openTransport: func() *http.Transport {
		transport := NewPeerTransport(c)
		if c.Peers != nil {
			transport.RegisterProtocol("http", c.Peers)
		}
		return transport
	}}
	t.current, t.opened = t.openTransport(), time.Now()
	if t.version != nil {
		t.made = t.version()
	}
	return t
}

// RoundTrip sends a call over connections of the present.
func (t *RenewingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	return t.currentTransport().RoundTrip(WithHostAddress(r))
}

// CloseIdleConnections closes the connections that carry no call.
func (t *RenewingTransport) CloseIdleConnections() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.current.CloseIdleConnections()
}

func (t *RenewingTransport) currentTransport() *http.Transport {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.version == nil {
		return t.current
	}
	// The version is read before a connection is made: one that changes in between costs another renewal, and no more.
	if version := t.version(); version != t.made || time.Since(t.opened) > connectionSpan {
		drainTransport(t.current, time.Now().Add(drainSpan))
		t.current, t.made, t.opened = t.openTransport(), version, time.Now()
	}
	return t.current
}

// drainTransport closes the connections of a transport that takes no new calls, each when the calls on it have ended.
func drainTransport(t *http.Transport, until time.Time) {
	t.CloseIdleConnections()
	if time.Now().Before(until) {
		time.AfterFunc(drainEvery, func() { drainTransport(t, until) })
	}
}
