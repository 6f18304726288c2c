// Package relay carries calls from one node to another: writes to the leader ([Forwarder]), and what nodes ask each
// other ([Peers]).
//
// A whole HTTP exchange is relayed, not a message, so every protocol and every method passes alike, and a new method
// needs nothing here. Small calls share a stream of messages to the leader (callstream.go, ADR 0079). Connections are
// renewed when certificates change (transport.go). From feature level 5 on nodes call each other on a listener of their
// own (network.go).
package relay

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/internal/pki"
	"github.com/quorate/quorate/rpc/identify"
	"github.com/quorate/quorate/rpc/observe"
	"github.com/quorate/quorate/rpc/pipeline"
	"github.com/quorate/quorate/rpc/procedures"
	"github.com/quorate/quorate/rpc/wire"
)

// RelayPause is the pause between two attempts to reach a leader that refuses connections, which has stopped although
// no election has begun yet.
const RelayPause = 50 * time.Millisecond

// LeaderPatience is how long a call waits for a leader to appear.
const LeaderPatience = 5 * time.Second

// MaxAnswer is the largest answer that is relayed, in bytes. The largest there are show what a thousand requests of a
// batch were denied for.
const MaxAnswer = 64 << 20

// errNotLeader: the called node is not the leader and did not execute the call.
var errNotLeader = errors.New("it does not lead any more")

// ErrNoAddress is the error of a call to a leader whose address is not known yet.
var ErrNoAddress = errors.New("its address is not known yet")

// Forwarder relays calls to the leader.
type Forwarder struct {
	ID        string
	Node      leaderNode
	Peers     Peers
	Transport http.RoundTripper
	// Streams, if set, carry small calls; without a stream each call is an HTTP exchange of its own.
	Streams *CallStreams
	Table   procedures.Table
	Traces  observe.Traces
	Metrics *observe.Metrics
	// CheckLevel refuses a call that needs a feature which the leader does not have; nil asks nothing.
	CheckLevel func(*http.Request, cluster.Member) error
	// WriteError writes an error in the caller's protocol.
	WriteError func(http.ResponseWriter, *http.Request, error)
}

type leaderNode interface {
	IsLeader() bool
	WaitLeader(ctx context.Context) (cluster.Member, error)
}

// ForwardWrites relays calls that only the leader can serve; all others go on. It relays the HTTP exchange, not the
// message, so every protocol and every method passes alike. One hop at most.
func (f *Forwarder) ForwardWrites(x *pipeline.Exchange) bool {
	r := x.Request
	if !f.Table.NeedsLeader(r) || f.Node.IsLeader() {
		return true
	}
	if relay := r.Header.Get(wire.RelayedByHeader); relay != "" {
		f.WriteError(x.Writer, r, wire.NodeError(&cluster.Error{
			Reason: cluster.NotLeader, NotApplied: true,
			Text: fmt.Sprintf("%s relayed this call to %s, which does not lead; nothing was done, repeat it", relay, f.ID),
		}))
		return false
	}
	return f.relayToLeader(x.Writer, r)
}

// relayToLeader holds a call until a leader is reachable, within its deadline, and relays it. It retries only calls
// that were certainly not executed; retrying others is left to the caller. It returns true if this node has become the
// leader, and then has not answered.
func (f *Forwarder) relayToLeader(w http.ResponseWriter, r *http.Request) (leads bool) {
	ctx, cancel := context.WithTimeout(r.Context(), LeaderPatience)
	defer cancel()
	var reason error // why the last attempt failed, if not for want of time
	for {
		leader, err := f.Node.WaitLeader(ctx)
		switch {
		case err != nil:
			f.WriteError(w, r, WaitFailure(err))
			return false
		case leader.ID == f.ID:
			return f.rewindBody(w, r)
		}
		if f.CheckLevel != nil {
			if err := f.CheckLevel(r, leader); err != nil {
				f.WriteError(w, r, err)
				return false
			}
		}
		if err = f.relayCall(w, r, leader); err == nil {
			return false
		}
		if reason == nil || !notSent(err) || !errors.Is(err, context.DeadlineExceeded) {
			reason = err
		}
		if !notSent(err) || !SleepContext(ctx, RelayPause) {
			f.WriteError(w, r, FailureOf(f.ID, leader, f.Peers.AddressOf(leader), reason))
			return false
		}
	}
}

// rewindBody restores the body of a call that could not be relayed, for this node to serve it.
func (f *Forwarder) rewindBody(w http.ResponseWriter, r *http.Request) (rewound bool) {
	body, err := r.GetBody()
	if err != nil {
		f.WriteError(w, r, err)
		return false
	}
	r.Body = body
	return true
}

// WaitFailure returns why the call could not be relayed: this node is stopping, or there is no leader.
func WaitFailure(err error) error {
	var failed *cluster.Error
	if errors.As(err, &failed) && (failed.Reason == cluster.ShuttingDown || failed.Reason == cluster.Halted) {
		return wire.NodeError(failed)
	}
	return wire.NodeError(wire.NoLeaderError())
}

// relayCall writes nothing if it fails.
func (f *Forwarder) relayCall(w http.ResponseWriter, r *http.Request, leader cluster.Member) (failed error) {
	target := f.Peers.URLOf(leader)
	scheme, host, found := strings.Cut(target, "://")
	if !found || host == "" {
		return ErrNoAddress
	}
	body, err := r.GetBody()
	if err != nil {
		return err
	}
	traced, ended := f.Traces.StartRelay(r, leader)
	defer func() { ended(failed) }()
	sent := relayedRequest(r.Context(), r, scheme, host)
	if sent.Body = body; r.ContentLength == 0 {
		sent.Body = nil
	}
	sent.Header.Set(wire.RelayedByHeader, f.ID)
	identify.PassOn(r.Context(), sent.Header, isForNodes(target))
	f.Traces.InjectHeaders(traced, sent.Header)
	answer, failed := f.exchange(target, sent) //nolint:bodyclose // it is in memory
	if failed == nil {
		writeAnswer(w, answer)
		f.Metrics.Relayed.Inc()
		observe.CallOf(r.Context()).RelayedTo = leader.ID
		return nil
	}
	f.Metrics.Unsent.WithLabelValues(relayOutcome(failed)).Inc()
	return failed
}

func (f *Forwarder) exchange(target string, r *http.Request) (*http.Response, error) {
	answer, err := f.exchangeStreamed(target, r)
	if !errors.Is(err, errStreamFull) {
		return answer, err
	}
	answer, err = f.exchangeAlone(r)
	if err == nil && f.Streams != nil && isForNodes(target) {
		f.Streams.prepare(target)
	}
	return answer, err
}

// exchangeAlone sends a call in its own HTTP exchange.
func (f *Forwarder) exchangeAlone(r *http.Request) (*http.Response, error) {
	var connected atomic.Bool
	ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	answer, err := f.Transport.RoundTrip(r.WithContext(ctx))
	if err == nil {
		err = ReceiveWhole(answer)
	}
	if err != nil && !connected.Load() {
		err = unsentError{err}
	}
	return answer, err
}

// unsentError is the failure of a call for which there was no connection.
type unsentError struct{ error }

func (e unsentError) Unwrap() error { return e.error }

// notSent reports whether the call was certainly not executed.
func notSent(err error) bool {
	var unsent unsentError
	var failed *net.OpError
	var stranger *pki.PeerError
	return errors.Is(err, errNotLeader) || errors.Is(err, ErrNoAddress) || errors.As(err, &stranger) ||
		errors.As(err, &unsent) || errors.As(err, &failed) && failed.Op == "dial"
}

func relayOutcome(err error) string {
	if notSent(err) {
		return observe.RelayNotSent
	}
	return observe.RelayLost
}

// FailureOf returns the error for a relayed call without an answer: whether it was not executed, or its outcome is
// unknown.
func FailureOf(self string, leader cluster.Member, address string, err error) error {
	if notSent(err) {
		return wire.NodeError(&cluster.Error{
			Reason: cluster.NoLeader, NotApplied: true, Leader: leader.ID,
			Text: fmt.Sprintf("%s cannot reach the leader %s at %q (%v); nothing was done; %s", self, leader.ID,
				address, err, wire.NoLeaderText),
		})
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return wire.ToError(err)
	}
	return wire.NodeError(&cluster.Error{
		Reason: cluster.LeadershipLost, Leader: leader.ID,
		Text: fmt.Sprintf(
			"%s relayed this call to the leader %s, and the answer was lost (%v); it may have been carried out: "+
				"repeat it under the same id",
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
