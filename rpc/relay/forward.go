// Package relay carries calls from one node to another: writes to the leader ([Forwarder]), and what nodes ask each
// other ([Peers]).
//
// A whole HTTP exchange is relayed, not a message, so every protocol and every method passes alike, and a new method
// needs nothing here. Connections are renewed when certificates change (transport.go). From feature level 5 on nodes
// call each other on a listener of their own (network.go).
package relay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/pki"
	"github.com/quorate/quorate/rpc/observe"
	"github.com/quorate/quorate/rpc/procedures"
	"github.com/quorate/quorate/rpc/wire"
)

// RelayPause is kept between two attempts to reach a leader that refuses connections: it has died, and the others have
// not noticed yet.
const RelayPause = 50 * time.Millisecond

// LeaderPatience is how long a call waits for a leader to appear.
const LeaderPatience = 5 * time.Second

// MaxAnswer is the largest answer that is relayed, in bytes. The largest there are show what a thousand requests of a
// batch were denied for.
const MaxAnswer = 64 << 20

// errNotLeader: the node that was taken for the leader says that another should be asked, and has done nothing.
var errNotLeader = errors.New("it does not lead any more")

// ErrNoAddress is the error of a call to a leader whose address is not known yet.
var ErrNoAddress = errors.New("its address is not known yet")

// Forwarder relays calls to the leader.
type Forwarder struct {
	ID        string
	Node      leaderNode
	Peers     Peers
	Transport http.RoundTripper
	Table     procedures.Table
	Traces    observe.Traces
	Metrics   *observe.Metrics
	// Proxy is what all relayed calls share.
	Proxy httputil.ReverseProxy
	// WriteError answers an error in the caller's protocol.
	WriteError func(http.ResponseWriter, *http.Request, error)
}

// leaderNode is what a forwarder needs of the node.
type leaderNode interface {
	IsLeader() bool
	WaitLeader(ctx context.Context) (cluster.Member, error)
}

// ForwardWrites relays calls that only the leader can serve; all others go on. It relays the HTTP exchange, not the
// message, so every protocol and every method passes alike. One hop at most.
func (f *Forwarder) ForwardWrites(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !f.Table.NeedsLeader(r) || f.Node.IsLeader() {
			next.ServeHTTP(w, r)
			return
		}
		if by := r.Header.Get(wire.RelayedByHeader); by != "" {
			f.WriteError(w, r, wire.NodeError(&cluster.Error{
				Reason: cluster.NotLeader, NotApplied: true,
				Text: fmt.Sprintf("%s relayed this call to %s, which does not lead; nothing was done, repeat it", by, f.ID),
			}))
			return
		}
		f.relayToLeader(w, r, next)
	})
}

// relayToLeader holds a call until there is a leader that can be reached, within its deadline, and relays it once.
// What was certainly not carried out is tried again; anything else is the caller's to repeat.
func (f *Forwarder) relayToLeader(w http.ResponseWriter, r *http.Request, next http.Handler) {
	ctx, cancel := context.WithTimeout(r.Context(), LeaderPatience)
	defer cancel()
	for {
		leader, err := f.Node.WaitLeader(ctx)
		switch {
		case err != nil:
			f.WriteError(w, r, WaitFailure(err))
			return
		case leader.ID == f.ID:
			f.serveLocally(w, r, next)
			return
		}
		if err = f.relayCall(w, r, leader); err == nil {
			return
		}
		if !notSent(err) || !SleepContext(ctx, RelayPause) {
			f.WriteError(w, r, FailureOf(f.ID, leader, f.Peers.AddressOf(leader), err))
			return
		}
	}
}

// serveLocally carries out a call that was perhaps sent away in vain before, with the body that it came with.
func (f *Forwarder) serveLocally(w http.ResponseWriter, r *http.Request, next http.Handler) {
	body, err := r.GetBody()
	if err != nil {
		f.WriteError(w, r, err)
		return
	}
	r.Body = body
	next.ServeHTTP(w, r)
}

// WaitFailure says why there was no leader to relay to: this node is about to stop, or there is no leader.
func WaitFailure(err error) error {
	var failed *cluster.Error
	if errors.As(err, &failed) && (failed.Reason == cluster.ShuttingDown || failed.Reason == cluster.Halted) {
		return wire.NodeError(failed)
	}
	return wire.NodeError(wire.NoLeaderError())
}

// relayCall sends the call to the leader and copies the answer. It writes nothing if it fails.
func (f *Forwarder) relayCall(w http.ResponseWriter, r *http.Request, leader cluster.Member) (failed error) {
	target, err := url.Parse(f.Peers.URLOf(leader))
	if err != nil || target.Host == "" {
		return ErrNoAddress
	}
	body, err := r.GetBody()
	if err != nil {
		return err
	}
	r.Body = body
	traced, ended := f.Traces.StartRelay(r, leader)
	defer func() { ended(failed) }()
	proxy := f.Proxy
	proxy.Transport = f.Transport
	proxy.Rewrite = func(p *httputil.ProxyRequest) {
		p.SetURL(target)
		p.SetXForwarded()
		forgetBrowser(p.Out.Header)
		p.Out.Header.Set(wire.RelayedByHeader, f.ID)
		f.Traces.InjectHeaders(traced, p.Out.Header)
	}
	proxy.ModifyResponse = ReceiveWhole
	proxy.ErrorHandler = func(_ http.ResponseWriter, _ *http.Request, err error) { failed = err }
	proxy.ServeHTTP(w, r)
	if failed == nil {
		f.Metrics.Relayed.Inc()
		observe.CallOf(r.Context()).RelayedTo = leader.ID
		return nil
	}
	f.Metrics.Unsent.WithLabelValues(relayOutcome(failed)).Inc()
	return failed
}

// ReceiveWhole waits for the end of the answer before the first byte goes to the caller, so that a leader that dies in
// the middle of it becomes an error in the caller's protocol and not a torn answer.
func ReceiveWhole(answer *http.Response) error {
	content, err := io.ReadAll(io.LimitReader(answer.Body, MaxAnswer+1))
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		return fmt.Errorf("the answer broke off: %w", err)
	}
	if len(content) > MaxAnswer {
		return fmt.Errorf("the answer is larger than %d bytes", MaxAnswer)
	}
	if answer.Header.Get(wire.AskAnotherHeader) != "" || answer.Trailer.Get(wire.AskAnotherHeader) != "" {
		return errNotLeader
	}
	answer.Header.Del(observe.RequestIDHeader) // the caller has it from this node already
	answer.Body = io.NopCloser(bytes.NewReader(content))
	return nil
}

// notSent reports whether the call was certainly not carried out.
func notSent(err error) bool {
	var failed *net.OpError
	var stranger *pki.PeerError
	return errors.Is(err, errNotLeader) || errors.Is(err, ErrNoAddress) || errors.As(err, &stranger) || errors.As(err, &failed) && failed.Op == "dial"
}

// relayOutcome is the word for a failure in the metrics.
func relayOutcome(err error) string {
	if notSent(err) {
		return observe.RelayNotSent
	}
	return observe.RelayLost
}

// FailureOf says what became of a call that did not come back from the leader.
func FailureOf(self string, leader cluster.Member, address string, err error) error {
	if notSent(err) {
		return wire.NodeError(&cluster.Error{
			Reason: cluster.NoLeader, NotApplied: true, Leader: leader.ID,
			Text: fmt.Sprintf("%s cannot reach the leader %s at %q (%v); nothing was done; %s", self, leader.ID, address, err, wire.NoLeaderText),
		})
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return wire.ToError(err)
	}
	return wire.NodeError(&cluster.Error{
		Reason: cluster.LeadershipLost, Leader: leader.ID,
		Text: fmt.Sprintf("%s relayed this call to the leader %s, and the answer was lost (%v); it may have been carried out: repeat it under the same id",
			self, leader.ID, err),
	})
}

// SleepContext waits, and is false if the context ends first.
func SleepContext(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// forgetBrowser takes from a call that is passed on what its browser said: it was judged here.
func forgetBrowser(header http.Header) {
	for _, name := range []string{"Origin", "Sec-Fetch-Site", "Sec-Fetch-Mode", "Sec-Fetch-Dest", "Sec-Fetch-User"} {
		header.Del(name)
	}
}
