package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"connectrpc.com/connect"
	"github.com/cenkalti/backoff/v5"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
)

// Pauses between attempts grow from the first to the longest, each spread by half, so that the clients of a cluster
// that elects a leader do not all come back at once.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = time.Second
)

// retrier repeats calls that did not get through, at the next server.
type retrier struct {
	settings settings
	servers  *servers
}

// attemptControl is how a caller in this package wants a call to be attempted, and what it learns of it.
type attemptControl struct {
	// timeout, if not 0, is how long the only attempt may take.
	timeout time.Duration
	// sentAt is when the last attempt began.
	sentAt time.Time
}

type attemptControlKey struct{}

// withAttempts makes calls with the context be attempted so.
func withAttempts(ctx context.Context, a *attemptControl) context.Context {
	return context.WithValue(ctx, attemptControlKey{}, a)
}

// WrapUnary makes attempts until one is answered or the time is up.
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
		return r.callUntilAnswered(ctx, next, request)
	}
}

func (r *retrier) callUntilAnswered(
	ctx context.Context, next connect.UnaryFunc, request connect.AnyRequest,
) (connect.AnyResponse, error) {
	var failure error // what the attempts met, until one is answered
	attempts, between := 0, newPauses()
	strangers := map[string]bool{} // servers that do not get on with our certificates
	var hopeless *tlsError         // what the last of them said
	response, err := backoff.Retry(ctx, func() (connect.AnyResponse, error) {
		attempts++
		response, err := r.callOnce(ctx, next, request)
		between.last = err
		if err != nil && !isTransient(err) {
			failure = nil
			return nil, backoff.Permanent(err)
		}
		if err == nil {
			return response, nil
		}
		failure = moreSerious(failure, err, ctx.Err() != nil)
		if errors.As(err, &hopeless) {
			strangers[hopeless.server] = true
		}
		if len(strangers) == len(r.servers.urls) {
			return nil, backoff.Permanent(err) // another attempt meets the same
		}
		return nil, err
	}, backoff.WithBackOff(between), backoff.WithMaxElapsedTime(0), backoff.WithNotify(func(err error, _ time.Duration) {
		r.settings.notice(err)
	}))
	switch {
	case err == nil || failure == nil:
		return response, err
	case errors.Is(ctx.Err(), context.Canceled):
		return nil, connect.NewError(connect.CodeCanceled, ctx.Err())
	default:
		if len(strangers) == len(r.servers.urls) {
			return nil, addTLSAdvice(failure, hopeless)
		}
		return nil, fmt.Errorf("no answer after %d attempts: %w", attempts, failure)
	}
}

// addTLSAdvice adds what a server said of certificates to a failure of another kind, such as a connection that it closed
// before it could be heard.
func addTLSAdvice(failure error, said *tlsError) error {
	if heard := (*tlsError)(nil); errors.As(failure, &heard) {
		return failure
	}
	return fmt.Errorf("%w; at another attempt %s", failure, said.Error())
}

// moreSerious chooses the failure to report. One after which a write may have been carried out is never covered by one that
// says it was not; and an attempt that the caller cut short says less than the one before.
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

// callOnce asks the present server once and leaves it if it fails.
func (r *retrier) callOnce(
	ctx context.Context, next connect.UnaryFunc, request connect.AnyRequest,
) (connect.AnyResponse, error) {
	index := r.servers.currentIndex()
	limited, cancel := context.WithTimeout(withServer(ctx, index), r.beginAttempt(ctx, request))
	defer cancel()
	response, err := next(limited, request)
	if err == nil || !isTransient(err) {
		return response, err
	}
	if ctx.Err() == nil { // it failed by itself and was not cut short
		r.servers.advanceFrom(index)
	}
	return nil, fmt.Errorf("%s: %w", r.servers.urls[index].Host, err)
}

// beginAttempt notes that an attempt is made now, and says how long it may take. A server that is asked to wait before it
// answers may take so much longer.
func (r *retrier) beginAttempt(ctx context.Context, request connect.AnyRequest) time.Duration {
	limit := r.settings.attemptTimeout
	if waits, is := request.Any().(interface{ GetPollMs() int64 }); is {
		limit += time.Duration(waits.GetPollMs()) * time.Millisecond
	}
	a, _ := ctx.Value(attemptControlKey{}).(*attemptControl)
	if a == nil {
		return limit
	}
	a.sentAt = time.Now()
	return cmp.Or(a.timeout, limit)
}

// isTransient tells whether a failure is an accident that another attempt may not meet: no leader, no connection, a server
// that hangs or shuts down. Everything else is an answer.
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

// WrapStreamingClient leaves streams alone.
func (r *retrier) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler is for servers.
func (r *retrier) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

// longestHint is how long a server may tell a caller to stay away.
const longestHint = time.Minute

// RetryAfter is how long to wait before a call is repeated, as the server said that failed it because it has too much
// to do, at most a minute. It returns false if the error does not say. The client keeps to it by itself wherever it repeats
// calls.
func RetryAfter(err error) (time.Duration, bool) {
	info, found := detailOf[*errdetails.RetryInfo](err)
	return min(max(info.GetRetryDelay().AsDuration(), 0), longestHint), found
}

// serverPauses are pauses that are no shorter than what the last failure asked for.
type serverPauses struct {
	backoff.BackOff

	last error
}

// NextBackOff spreads what a server asked for upwards by half, so that those whom it sent away do not come back
// together.
func (h *serverPauses) NextBackOff() time.Duration {
	pause := h.BackOff.NextBackOff()
	if asked, found := RetryAfter(h.last); found && asked > 0 {
		return max(pause, asked+rand.N(asked/2+1))
	}
	return pause
}
