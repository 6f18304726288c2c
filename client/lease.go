package client

import (
	"context"
	"sync"
	"time"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// Lease is an allocation that is renewed in the background until it is released or lost. It is safe for concurrent use.
//
// A holder that cannot renew cannot know what the servers do meanwhile. So a lease counts the time by the holder's
// own monotonic clock from the moment at which the last successful renewal was sent, less a margin: that is its safe
// moment. Until then no other allocation holds it, unless it was preempted without notice; the fence is there for what must
// not go wrong even so. A machine that is suspended does not count the time that it sleeps, which is another case for
// the fence.
type Lease struct {
	client *Client
	id     string
	fence  uint64
	margin time.Duration // at most this much of the TTL is kept as a margin; 0 for the default

	ctx     context.Context //nolint:containedctx // that it ends with the lease is what the lease is for
	cancel  context.CancelCauseFunc
	revoked chan struct{}

	mu          sync.Mutex
	record      *quoratev1.Allocation
	safe        time.Time   // zero if it has no TTL
	ends        time.Time   // a margin after safe; zero if it has no TTL
	timer       *time.Timer // fires at the safe moment; nil if it has no TTL
	over        bool
	lastFailure error // what the last attempt to renew met
}

// ID is the name of the allocation.
func (l *Lease) ID() string { return l.id }

// Fence is the token of the grant: larger than that of every grant before. Whatever the lease guards should refuse a
// smaller one than it has seen.
func (l *Lease) Fence() uint64 { return l.fence }

// Context ends when the lease does: at its safe moment, or at once when the servers say that it is lost, or at its
// release. context.Cause says which: a *LostError, or ErrReleased. It has the values of the context that was given to
// Acquire, and neither its deadline nor its end.
func (l *Lease) Context() context.Context { return l.ctx }

// Revoked is closed when the lease has to give way to another allocation after a time of grace. Allocation says to
// which one, Remaining how long it lasts. A holder that is done earlier should release it.
func (l *Lease) Revoked() <-chan struct{} { return l.revoked }

// Allocation is the record as the last answer showed it; not to be changed.
func (l *Lease) Allocation() *quoratev1.Allocation {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.record
}

// Items are the names of the items that it holds, in the order of its claims.
func (l *Lease) Items() []string {
	var names []string
	for _, claim := range l.Allocation().GetClaims() {
		for _, item := range claim.GetItems() {
			names = append(names, item.GetName())
		}
	}
	return names
}

// Remaining is how long the lease is certain to be held unless it is renewed; 0 when it is over, and the longest time
// there is if it has no TTL.
func (l *Lease) Remaining() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.over:
		return 0
	case l.timer == nil:
		return 1<<63 - 1
	}
	return max(0, time.Until(l.safe))
}

// Ends is the earliest moment at which the servers may end the lease unless it is renewed, and so the latest at which
// its holder must have stopped; zero if it has no TTL. The context ends a margin before it, or less if the lease has
// to give way within its margin.
func (l *Lease) Ends() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ends
}

// Release gives everything back. Its context ends at once, before the servers are asked, and it is not renewed any
// more. Releasing a lease that is over is not an error. If no server answers, what it holds goes when its TTL is over;
// Release may be repeated.
func (l *Lease) Release(ctx context.Context) error { return l.ReleaseAs(ctx, "") }

// ReleaseAs is Release that says in which state its items are then, for example "dirty"; empty is what their resource
// says.
func (l *Lease) ReleaseAs(ctx context.Context, state string) error {
	l.endLease(ErrReleased)
	_, err := l.client.Allocations.Release(ctx, &quoratev1.ReleaseRequest{Id: l.id, ItemState: state})
	return err
}

// endLease ends the lease for its holder, once.
func (l *Lease) endLease(cause error) {
	l.mu.Lock()
	first := !l.over
	l.over = true
	if l.timer != nil {
		l.timer.Stop()
	}
	l.mu.Unlock()
	if first {
		l.cancel(cause)
		l.client.renewer.dropLease(l)
	}
}

// applyRenewal takes the record of an answer whose question was sent at a moment, and moves the safe moment on.
func (l *Lease) applyRenewal(record *quoratev1.Allocation, sent time.Time, ledgerMs int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	l.record, l.lastFailure = record, nil
	if record.GetRevokedBy() != "" {
		select {
		case <-l.revoked:
		default:
			close(l.revoked)
		}
	}
	if record.GetExpiresLedgerMs() == 0 {
		return
	}
	lasts := time.Duration(record.GetExpiresLedgerMs()-ledgerMs) * time.Millisecond
	l.ends = sent.Add(lasts)
	l.safe = l.ends.Add(-l.marginOf(ttlOf(record)))
	if l.timer == nil {
		l.timer = time.AfterFunc(time.Until(l.safe), l.expireIfDue)
		return
	}
	l.timer.Reset(time.Until(l.safe))
}

// The margin is a tenth of the TTL, and no more than this, unless the caller wants another.
const (
	marginPart    = 10
	longestMargin = 3 * time.Second
)

// marginOf is how long before its end a lease is over for its holder.
func (l *Lease) marginOf(ttl time.Duration) time.Duration {
	if l.margin > 0 {
		return min(l.margin, ttl/renewPart)
	}
	return min(ttl/marginPart, longestMargin)
}

func ttlOf(record *quoratev1.Allocation) time.Duration {
	return time.Duration(record.GetTtlMs()) * time.Millisecond
}

// expireIfDue ends the lease if its safe moment has come: a renewal may have moved it on just now.
func (l *Lease) expireIfDue() {
	l.mu.Lock()
	early := time.Now().Before(l.safe)
	lost := &LostError{ID: l.id, How: Unrenewed, By: l.record.GetRevokedBy(), cause: l.lastFailure}
	l.mu.Unlock()
	if early {
		return
	}
	if lost.By != "" {
		lost.How, lost.cause = Preempted, nil
	}
	l.endLease(lost)
}

// noteFailure notes what an attempt to renew met.
func (l *Lease) noteFailure(fault error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastFailure = fault
}
