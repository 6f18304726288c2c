package rpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/pki"
)

// relayedByHeader names the node that relayed a call. A call that has it is never relayed again.
const relayedByHeader = "Quorate-Relayed-By"

// relayPause is kept between two attempts to reach a leader that refuses connections: it has died, and the others have
// not noticed yet.
const relayPause = 50 * time.Millisecond

// maxAnswer is the largest answer that is relayed, in bytes. The largest there are show what a thousand requests of a batch were
// denied for.
const maxAnswer = 64 << 20

// errNotLeader: the node that was taken for the leader says that another should be asked, and has done nothing.
var errNotLeader = errors.New("it does not lead any more")

// errNoAddress: the leader is known, and its address is not known yet.
var errNoAddress = errors.New("its address is not known yet")

// forwarder relays calls to the leader.
type forwarder struct {
	id         string
	node       leaderNode
	peers      peers
	transport  http.RoundTripper
	procedures procedures
	traces     traces
	metrics    *metrics
	errorLog   *log.Logger
	// writeError answers an error in the caller's protocol.
	writeError func(http.ResponseWriter, *http.Request, error)
}

// leaderNode is what a forwarder needs of the node.
type leaderNode interface {
	IsLeader() bool
	WaitLeader(ctx context.Context) (cluster.Member, error)
}

// forwardWrites relays calls that only the leader can serve; all others go on. It relays the HTTP exchange, not the message,
// so every protocol and every method passes alike. One hop at most.
func (f *forwarder) forwardWrites(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !f.procedures.needsLeader(r) || f.node.IsLeader() {
			next.ServeHTTP(w, r)
			return
		}
		if by := r.Header.Get(relayedByHeader); by != "" {
			f.writeError(w, r, nodeError(&cluster.Error{
				Reason: cluster.NotLeader, NotApplied: true,
				Text: fmt.Sprintf("%s relayed this call to %s, which does not lead; nothing was done, repeat it", by, f.id),
			}))
			return
		}
		f.relayToLeader(w, r, next)
	})
}

// relayToLeader holds a call until there is a leader that can be reached, within its deadline, and relays it once. What was
// certainly not carried out is tried again; anything else is the caller's to repeat.
func (f *forwarder) relayToLeader(w http.ResponseWriter, r *http.Request, next http.Handler) {
	ctx, cancel := context.WithTimeout(r.Context(), leaderPatience)
	defer cancel()
	for {
		leader, err := f.node.WaitLeader(ctx)
		switch {
		case err != nil:
			f.writeError(w, r, waitFailure(err))
			return
		case leader.ID == f.id:
			f.serveLocally(w, r, next)
			return
		}
		if err = f.relayCall(w, r, leader); err == nil {
			return
		}
		if !notSent(err) || !sleepContext(ctx, relayPause) {
			f.writeError(w, r, relayFailure(f.id, leader, f.peers.addressOf(leader), err))
			return
		}
	}
}

// serveLocally carries out a call that was perhaps sent away in vain before, with the body that it came with.
func (f *forwarder) serveLocally(w http.ResponseWriter, r *http.Request, next http.Handler) {
	body, err := r.GetBody()
	if err != nil {
		f.writeError(w, r, err)
		return
	}
	r.Body = body
	next.ServeHTTP(w, r)
}

// waitFailure says why there was no leader to relay to: either this node is about to end, or nobody leads.
func waitFailure(err error) error {
	var failed *cluster.Error
	if errors.As(err, &failed) && (failed.Reason == cluster.ShuttingDown || failed.Reason == cluster.Halted) {
		return nodeError(failed)
	}
	return nodeError(noLeaderError())
}

// relayCall sends the call to the leader and copies the answer. It writes nothing if it fails.
func (f *forwarder) relayCall(w http.ResponseWriter, r *http.Request, leader cluster.Member) (failed error) {
	target, err := url.Parse(f.peers.urlOf(leader))
	if err != nil || target.Host == "" {
		return errNoAddress
	}
	body, err := r.GetBody()
	if err != nil {
		return err
	}
	r.Body = body
	traced, ended := f.traces.startRelay(r, leader)
	defer func() { ended(failed) }()
	proxy := httputil.ReverseProxy{
		Transport: f.transport,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(target)
			p.SetXForwarded()
			forgetBrowser(p.Out.Header)
			p.Out.Header.Set(relayedByHeader, f.id)
			f.traces.injectHeaders(traced, p.Out.Header)
		},
		ModifyResponse: receiveWhole,
		ErrorHandler:   func(_ http.ResponseWriter, _ *http.Request, err error) { failed = err },
		ErrorLog:       f.errorLog,
	}
	proxy.ServeHTTP(w, r)
	if failed == nil {
		f.metrics.relayed.Inc()
		callOf(r.Context()).relayedTo = leader.ID
		return nil
	}
	f.metrics.unsent.WithLabelValues(relayOutcome(failed)).Inc()
	return failed
}

// receiveWhole waits for the end of the answer before the first byte goes to the caller, so that a leader that dies in
// the middle of it becomes an error in the caller's protocol and not a torn answer.
func receiveWhole(answer *http.Response) error {
	content, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		return fmt.Errorf("the answer broke off: %w", err)
	}
	if len(content) > maxAnswer {
		return fmt.Errorf("the answer is larger than %d bytes", maxAnswer)
	}
	if answer.Header.Get(askAnotherHeader) != "" || answer.Trailer.Get(askAnotherHeader) != "" {
		return errNotLeader
	}
	answer.Header.Del(requestIDHeader) // the caller has it from this node already
	answer.Body = io.NopCloser(bytes.NewReader(content))
	return nil
}

// notSent tells whether the call was certainly not carried out.
func notSent(err error) bool {
	var failed *net.OpError
	var stranger *pki.PeerError
	return errors.Is(err, errNotLeader) || errors.Is(err, errNoAddress) || errors.As(err, &stranger) || errors.As(err, &failed) && failed.Op == "dial"
}

// relayOutcome is the word for a failure in the metrics.
func relayOutcome(err error) string {
	if notSent(err) {
		return notDone
	}
	return unknown
}

// relayFailure says what became of a call that did not come back from the leader.
func relayFailure(self string, leader cluster.Member, address string, err error) error {
	if notSent(err) {
		return nodeError(&cluster.Error{
			Reason: cluster.NoLeader, NotApplied: true, Leader: leader.ID,
			Text: fmt.Sprintf("%s cannot reach the leader %s at %q (%v); nothing was done; %s", self, leader.ID, address, err, noLeaderText),
		})
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return toError(err)
	}
	return nodeError(&cluster.Error{
		Reason: cluster.LeadershipLost, Leader: leader.ID,
		Text: fmt.Sprintf("%s relayed this call to the leader %s, and the answer was lost (%v); it may have been carried out: repeat it under the same id",
			self, leader.ID, err),
	})
}

// sleepContext waits, and is false if the context ends first.
func sleepContext(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
