package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"
	"github.com/cenkalti/backoff/v5"
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

// attempts is how a caller in this package wants a call to be attempted, and what it learns of it.
type attempts struct {
	// only, if not 0, is how long the only attempt may take.
	only time.Duration
	// sent is when the last attempt began.
	sent time.Time
}

type attemptsKey struct{}

// by makes calls with the context be attempted so.
func by(ctx context.Context, a *attempts) context.Context {
	return context.WithValue(ctx, attemptsKey{}, a)
}

// WrapUnary makes attempts until one is answered or the time is up.
func (r *retrier) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, request connect.AnyRequest) (connect.AnyResponse, error) {
		if a, _ := ctx.Value(attemptsKey{}).(*attempts); a != nil && a.only > 0 {
			return r.attempt(ctx, next, request)
		}
		if _, bounded := ctx.Deadline(); !bounded {
			patient, cancel := context.WithTimeout(ctx, r.settings.patience)
			defer cancel()
			ctx = patient
		}
		return r.call(ctx, next, request)
	}
}

func (r *retrier) call(
	ctx context.Context, next connect.UnaryFunc, request connect.AnyRequest,
) (connect.AnyResponse, error) {
	var failure error // what the attempts met, until one is answered
	attempts, between := 0, pauses()
	strangers := map[string]bool{} // servers that do not get on with our certificates
	var hopeless *tlsError         // what the last of them said
	response, err := backoff.Retry(ctx, func() (connect.AnyResponse, error) {
		attempts++
		response, err := r.attempt(ctx, next, request)
		between.last = err
		if err != nil && !mayPass(err) {
			failure = nil
			return nil, backoff.Permanent(err)
		}
		if err == nil {
			return response, nil
		}
		failure = worse(failure, err, ctx.Err() != nil)
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
			return nil, withAdvice(failure, hopeless)
		}
		return nil, fmt.Errorf("no answer after %d attempts: %w", attempts, failure)
	}
}

// withAdvice adds what a server said of certificates to a failure of another kind, such as a connection that it closed
// before it could be heard.
func withAdvice(failure error, said *tlsError) error {
	if heard := (*tlsError)(nil); errors.As(failure, &heard) {
		return failure
	}
	return fmt.Errorf("%w; at another attempt %s", failure, said.Error())
}

// worse chooses the failure to report. One after which a write may have been carried out is never covered by one that
// says it was not; and an attempt that the caller cut short says less than the one before.
func worse(before, now error, cut bool) error {
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

// attempt asks the present server once and leaves it if it fails.
func (r *retrier) attempt(
	ctx context.Context, next connect.UnaryFunc, request connect.AnyRequest,
) (connect.AnyResponse, error) {
	index := r.servers.index()
	limited, cancel := context.WithTimeout(at(ctx, index), r.begin(ctx, request))
	defer cancel()
	response, err := next(limited, request)
	if err == nil || !mayPass(err) {
		return response, err
	}
	if ctx.Err() == nil { // it failed by itself and was not cut short
		r.servers.leave(index)
	}
	return nil, fmt.Errorf("%s: %w", r.servers.urls[index].Host, err)
}

// begin notes that an attempt is made now, and says how long it may take. A server that is asked to wait before it
// answers may take so much longer.
func (r *retrier) begin(ctx context.Context, request connect.AnyRequest) time.Duration {
	limit := r.settings.attemptTimeout
	if waits, is := request.Any().(interface{ GetPollMs() int64 }); is {
		limit += time.Duration(waits.GetPollMs()) * time.Millisecond
	}
	a, _ := ctx.Value(attemptsKey{}).(*attempts)
	if a == nil {
		return limit
	}
	a.sent = time.Now()
	return cmp.Or(a.only, limit)
}

// mayPass tells whether a failure is an accident that another attempt may not meet: no leader, no connection, a server
// that hangs or shuts down. Everything else is an answer.
func mayPass(err error) bool {
	switch connect.CodeOf(err) { //nolint:exhaustive // all other codes are answers
	case connect.CodeUnavailable, connect.CodeDeadlineExceeded, connect.CodeCanceled:
		return true
	default:
		return false
	}
}

func pauses() *hinted {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = firstPause, longestPause
	return &hinted{BackOff: b}
}

// WrapStreamingClient leaves streams alone.
func (r *retrier) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler is for servers.
func (r *retrier) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}
