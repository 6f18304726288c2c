package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeCluster()
		p.set(func() { p.room = 1 })
		c := p.client(t)
		first := acquire(t, c, account("first", time.Minute))
		time.AfterFunc(25*time.Minute, func() { release(t, first) })
		time.AfterFunc(10*time.Minute, func() { p.set(func() { p.gone = map[string]bool{"n1": true, "n2": true} }) })
		var reported []client.Progress
		began := time.Now()
		second := acquire(
			t,
			c,
			account("second", 4*time.Second),
			client.WithProgress(func(at client.Progress) { reported = append(reported, at) }),
		)
		if took := time.Since(began); took < 25*time.Minute || took > 25*time.Minute+time.Second ||
			second.Fence() != 2 {
			t.Errorf("granted after %v with fence %d", took, second.Fence())
		}
		// the grant came while a call was in transit for longer than the TTL
		if second.Remaining() < 3*time.Second || p.holdings()["second"] == nil {
			t.Errorf("it lasts %v", second.Remaining())
		}
		if len(reported) < 100 || reported[0].Allocation.GetWaiting().GetPosition() != 1 ||
			len(reported[0].Decision.GetViolations()) != 1 ||
			reported[99].Elapsed < 15*time.Minute {
			t.Errorf("told %d times: %v", len(reported), reported[0])
		}
		time.Sleep(time.Minute)
		release(t, second)
	})
}

func TestAcquireSaysWhyNot(t *testing.T) {
	denied, timedOut := (*client.DeniedError)(nil), (*client.TimedOutError)(nil)
	full := func(p *fakeCluster) { p.room, p.held["other"] = 1, &quoratev1.Allocation{Id: "other"} }
	within := func(d time.Duration) func(context.Context) (context.Context, context.CancelFunc) {
		return func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, d) }
	}
	for name, test := range map[string]struct {
		before  func(*fakeCluster)
		request *quoratev1.AllocateRequest
		ctx     func(context.Context) (context.Context, context.CancelFunc)
		want    func(error) bool
	}{
		"never fits": {
			func(p *fakeCluster) { p.room = 0 }, account("a", time.Minute), within(time.Hour),
			func(err error) bool {
				return errors.As(err, &denied) && len(denied.Decision.GetViolations()) == 1 &&
					connect.CodeOf(err) == connect.CodeResourceExhausted
			},
		},
		"does not wait": {
			full, &quoratev1.AllocateRequest{Id: "a", Mode: quoratev1.Mode_MODE_REJECT}, within(time.Hour),
			func(err error) bool { return errors.As(err, &denied) },
		},
		"waits in vain": {
			full, account("a", time.Minute), within(time.Minute),
			func(err error) bool {
				return errors.As(err, &timedOut) && errors.Is(err, context.DeadlineExceeded) &&
					timedOut.Waited.Round(time.Second) == time.Minute &&
					strings.Contains(err.Error(), "not granted after 1m0s: waiting: ci holds 1 of 1 accounts")
			},
		},
		"is called back": {
			full, account("a", time.Minute), func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(ctx)
				time.AfterFunc(time.Minute, cancel)
				return ctx, cancel
			},
			func(err error) bool { return errors.Is(err, context.Canceled) },
		},
		"is ended by others": {
			func(p *fakeCluster) {
				full(p)
				time.AfterFunc(time.Minute, func() {
					p.set(func() { p.finish("a", quoratev1.AllocationState_ALLOCATION_STATE_CANCELLED) })
				})
			}, account("a", time.Minute), within(time.Hour),
			func(err error) bool { return errors.Is(err, client.ErrLost) },
		},
		"waits for as long as it said itself": {
			func(p *fakeCluster) {
				full(p)
				time.AfterFunc(time.Minute, func() {
					p.set(func() { p.finish("a", quoratev1.AllocationState_ALLOCATION_STATE_TIMED_OUT) })
				})
			}, account("a", time.Minute), within(time.Hour),
			func(err error) bool {
				return errors.As(err, &timedOut) && connect.CodeOf(err) == connect.CodeFailedPrecondition
			},
		},
		"no server answers": {
			func(p *fakeCluster) { p.gone = map[string]bool{"n1": true, "n2": true, "n3": true} },
			account("a", time.Minute),
			within(time.Minute), func(err error) bool { return errors.Is(err, client.ErrUnavailable) },
		},
		"no server answers, and no deadline": {
			func(p *fakeCluster) { p.halted = time.Now() }, account("a", time.Minute),
			func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithCancel(ctx) },
			func(err error) bool { return errors.Is(err, client.ErrUnavailable) },
		},
		"a reservation": {
			func(*fakeCluster) {}, &quoratev1.AllocateRequest{Mode: quoratev1.Mode_MODE_RESERVE}, within(time.Minute),
			func(err error) bool { return strings.Contains(err.Error(), "MODE_RESERVE makes no lease") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newFakeCluster()
				p.set(func() { test.before(p) })
				ctx, cancel := test.ctx(t.Context())
				defer cancel()
				l, err := p.client(t).Acquire(ctx, test.request)
				if err == nil || l != nil || !test.want(err) {
					t.Errorf("got %v, %v", l, err)
				}
				if p.holdings()["a"] != nil {
					t.Error("the request is left behind")
				}
			})
		})
	}
}

// TestAGrantAtTheLastMomentIsGivenBack: a grant is released if the caller's context ends before its answer arrives.
func TestAGrantAtTheLastMomentIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeCluster()
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Microsecond)
		defer cancel()
		if l, err := p.client(t).Acquire(ctx, account("a", time.Minute)); err == nil {
			t.Errorf("got %v", l)
		}
		if p.count("Allocate") != 1 || len(p.holdings()) != 0 {
			t.Errorf("held after %d calls: %v", p.count("Allocate"), p.holdings())
		}
	})
}
