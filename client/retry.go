package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"github.com/cenkalti/backoff/v5"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// Pauses between attempts grow from the first to the longest, each randomized by half, so that the clients of a cluster
// that elects a leader do not all retry at the same moment.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = time.Second
)

type retrier struct {
	settings settings
	servers  *servers
	tokens   *tokens
	// hasAnswered is true once a server has answered.
	hasAnswered atomic.Bool
}

// attemptControl lets a caller in this package control the attempts of a call and record their times.
type attemptControl struct {
	// timeout, if not 0, allows one attempt only and bounds it.
	timeout time.Duration
	// sentAt is when the last attempt began, by leaseTime.
	sentAt time.Time
}

type attemptControlKey struct{}

func withAttempts(ctx context.Context, a *attemptControl) context.Context {
	return context.WithValue(ctx, attemptControlKey{}, a)
}

// WrapUnary makes attempts until one is answered or the context ends.
func (r *retrier) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, request connect.AnyRequest) (connect.AnyResponse, error) {
		if a, _ := ctx.Value(attemptControlKey{}).(*attemptControl); a != nil && a.timeout > 0 {
			return r.callOnce(ctx, next, request)
		}
		if _, bounded := ctx.Deadline(); !bounded {
			patient, cancel := context.WithTimeout(ctx, r.settings.patience)
			defer cancel()
			ctx = patient
		}
		if r.settings.once {
			return r.callOnce(ctx, next, request)
		}
		return r.callUntilAnswered(ctx, next, request)
	}
}

// unrepeatable are the methods that would do something else when they are repeated: make another token, or find the
// secret spent.
var unrepeatable = map[string]bool{
	adminv1connect.AccessServiceBootstrapProcedure:   true,
	adminv1connect.AccessServiceCreateTokenProcedure: true,
	adminv1connect.AccessServiceRotateTokenProcedure: true,
}

func (r *retrier) callUntilAnswered(
	ctx context.Context, next connect.UnaryFunc, request connect.AnyRequest,
) (connect.AnyResponse, error) {
	var failure error // of the attempts so far
	attempts, between := 0, newPauses()
	refusing := map[string]bool{} // servers that TLS fails with, on either side
	var hopeless *tlsError        // the last of these failures
	unknown := map[string]bool{}  // hosts that do not exist
	response, err := backoff.Retry(ctx, func() (connect.AnyResponse, error) {
		attempts++
		response, err := r.callOnce(ctx, next, request)
		between.last = err
		if err != nil && (!isTransient(err) || unrepeatable[request.Spec().Procedure] && MayBeDone(err)) {
			failure = nil
			return nil, backoff.Permanent(err)
		}
		if err == nil {
			return response, nil
		}
		failure = moreSerious(failure, err, ctx.Err() != nil)
		if errors.As(err, &hopeless) {
			refusing[hopeless.server] = true
		}
		if len(refusing) == len(r.servers.urls) || r.areUnknown(unknown, err) {
			return nil, backoff.Permanent(err) // another attempt meets the same
		}
		return nil, err
	}, backoff.WithBackOff(between), backoff.WithMaxElapsedTime(0),
		backoff.WithNotify(func(err error, _ time.Duration) {
			r.settings.notice(err)
		}))
	switch {
	case err == nil || failure == nil:
		return response, err
	case errors.Is(ctx.Err(), context.Canceled):
		return nil, connect.NewError(connect.CodeCanceled, ctx.Err())
	default:
		if len(refusing) == len(r.servers.urls) {
			return nil, addTLSAdvice(failure, hopeless)
		}
		if attempts == 1 {
			return nil, fmt.Errorf("no answer: %w", failure)
		}
		return nil, fmt.Errorf("no answer after %d attempts: %w", attempts, failure)
	}
}

// areUnknown notes the host of a failure that does not exist, and reports whether those of all servers do not.
func (r *retrier) areUnknown(unknown map[string]bool, failure error) bool {
	if missing := (*net.DNSError)(nil); errors.As(failure, &missing) && missing.IsNotFound {
		unknown[missing.Name] = true
	}
	if !r.settings.knownHosts || r.hasAnswered.Load() {
		return false
	}
	return !slices.ContainsFunc(r.servers.urls, func(u *url.URL) bool { return !unknown[u.Hostname()] })
}

// addTLSAdvice adds the advice of a TLS failure to a failure of another kind, such as a connection that a server closed
// before its alert was read.
func addTLSAdvice(failure error, said *tlsError) error {
	if heard := (*tlsError)(nil); errors.As(failure, &heard) {
		return failure
	}
	return fmt.Errorf("%w; at another attempt %s", failure, said.Error())
}

// moreSerious chooses the failure to report. A failure after which a write may have been carried out takes precedence
// over one after which it was certainly not. The failure of an attempt that the caller cancelled is less useful than
// the one before.
func moreSerious(before, now error, cut bool) error {
	switch {
	case before == nil:
		return now
	case MayBeDone(before) && (cut || !MayBeDone(now)):
		return before
	case cut && MayBeDone(now):
		return fmt.Errorf("%w (before that: %w)", now, before)
	case cut:
		return before
	}
	return now
}

// callOnce makes one attempt at the current server, and moves on to the next server if that fails.
func (r *retrier) callOnce(
	ctx context.Context, next connect.UnaryFunc, request connect.AnyRequest,
) (connect.AnyResponse, error) {
	index := r.servers.currentIndex()
	limited, cancel := context.WithTimeout(withServer(ctx, index), r.beginAttempt(ctx, request))
	defer cancel()
	response, err := r.tokens.call(limited, next, request)
	if err == nil {
		err = checkID(request.Any(), response.Any())
	}
	if err == nil || !isTransient(err) {
		r.hasAnswered.Store(true)
		return response, err
	}
	if ctx.Err() == nil { // the attempt failed and was not cut short
		r.servers.advanceFrom(index)
	}
	return nil, fmt.Errorf("%s: %w", r.servers.urls[index].Host, err)
}

// checkID makes an answer that is about another allocation than the request a broken connection: a proxy that mixes
// answers up must not look like a grant.
func checkID(request, answer any) error {
	asked, hasID := request.(interface {
		GetNamespace() string
		GetId() string
	})
	answered, hasAllocation := answer.(interface{ GetAllocation() *quoratev1.Allocation })
	if !hasID || !hasAllocation {
		return nil
	}
	want, got := nameOf(asked), nameOf(answered.GetAllocation())
	if want.namespace == "" { // that of the caller, which the client need not know
		want.namespace = got.namespace
	}
	if want.id == "" || got.id == "" || want == got {
		return nil
	}
	return connect.NewError(connect.CodeUnavailable,
		fmt.Errorf("the answer is about %q instead of %q: something mixes answers up", got, want))
}

// beginAttempt notes that an attempt begins now and returns how long it may take. A request that asks the server to
// wait before it answers extends the limit by that time.
func (r *retrier) beginAttempt(ctx context.Context, request connect.AnyRequest) time.Duration {
	limit := r.settings.attemptTimeout
	if waits, ok := request.Any().(interface{ GetPollMs() int64 }); ok {
		limit += time.Duration(waits.GetPollMs()) * time.Millisecond
	}
	a, _ := ctx.Value(attemptControlKey{}).(*attemptControl)
	if a == nil {
		return limit
	}
	a.sentAt = r.settings.clock.now()
	return cmp.Or(a.timeout, limit)
}

// isTransient reports whether another attempt may succeed: there was no leader, no connection, or the server hung or
// shut down. Every other code is an answer.
func isTransient(err error) bool {
	switch connect.CodeOf(err) { //nolint:exhaustive // all other codes are answers
	case connect.CodeUnavailable, connect.CodeDeadlineExceeded, connect.CodeCanceled:
		return true
	default:
		return false
	}
}

func newPauses() *serverPauses {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = firstPause, longestPause
	return &serverPauses{BackOff: b}
}

// WrapStreamingClient does not retry streams.
func (r *retrier) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler is for servers.
func (r *retrier) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

// longestHint bounds the pause that a server may ask for.
const longestHint = time.Minute

// RetryAfter returns how long an overloaded server, or a gateway in front of it with the header Retry-After, asked the
// caller to wait before it retries, at most a minute, and false if the error does not say. The client itself waits at
// least so long wherever it retries.
func RetryAfter(err error) (time.Duration, bool) {
	if gateway := gatewayOf(err); gateway != nil {
		return min(max(gateway.retryAfter, 0), longestHint), gateway.retryAfter >= 0
	}
	info, found := detailOf[*errdetails.RetryInfo](err)
	return min(max(info.GetRetryDelay().AsDuration(), 0), longestHint), found
}

// serverPauses are pauses that are at least as long as the last failure asked for.
type serverPauses struct {
	backoff.BackOff

	last error
}

// NextBackOff lengthens the pause that a server asked for by up to half, so that the callers that it refused do not all
// return at the same moment.
func (h *serverPauses) NextBackOff() time.Duration {
	pause := h.BackOff.NextBackOff()
	if asked, found := RetryAfter(h.last); found && asked > 0 {
		return max(pause, asked+rand.N(asked/2+1))
	}
	return pause
}
