package client

import (
	"context"
	"sync"
	"time"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// allocationName names an allocation in the whole cluster.
type allocationName struct{ namespace, id string }

// String is the id, after its namespace if that is known.
func (n allocationName) String() string {
	if n.namespace == "" {
		return n.id
	}
	return n.namespace + " " + n.id
}

func nameOf(a interface {
	GetNamespace() string
	GetId() string
},
) allocationName {
	return allocationName{a.GetNamespace(), a.GetId()}
}

// revokerOf says for whom a lease was revoked; empty if it was not.
func revokerOf(record *quoratev1.Allocation) string {
	by := record.GetRevokedBy()
	switch {
	case by == nil:
		return ""
	case by.GetId() == "" && record.GetReason().GetKind() == quoratev1.EndReasonKind_END_REASON_KIND_DRAIN:
		return "a drain"
	case by.GetId() == "":
		return "another allocation"
	case by.GetNamespace() != record.GetNamespace():
		return by.GetNamespace() + " " + by.GetId()
	}
	return by.GetId()
}

// Lease is an allocation that is renewed in the background until it is released or lost. It is safe for concurrent use.
//
// A holder that cannot renew does not know what the servers do meanwhile. A lease therefore ends for its holder by the
// holder's own monotonic clock: a TTL after the last successful renewal was sent, less a margin. Until then no other
// allocation holds the same, unless the lease was preempted without notice. On Linux the clock counts the time in which
// the machine is suspended, and the context of a lease whose time is over ends within a second after that; on other
// systems it does not. Use the fence where a late step must do no harm.
type Lease struct {
	client *Client
	name   allocationName
	fence  uint64
	margin time.Duration // the margin that the caller chose; 0 for the default

	ctx     context.Context //nolint:containedctx // the context ends with the lease
	cancel  context.CancelCauseFunc
	revoked chan struct{}

	mu          sync.Mutex
	record      *quoratev1.Allocation
	safe        time.Time   // by leaseTime, as ends is; zero if it has no TTL
	ends        time.Time   // a margin after safe; zero if it has no TTL
	timer       *time.Timer // fires at the safe moment; nil if it has no TTL
	over        bool
	lastFailure error // what the last attempt to renew met
}

// ID returns the id of the allocation.
func (l *Lease) ID() string { return l.name.id }

// Namespace returns the namespace of the id.
func (l *Lease) Namespace() string { return l.name.namespace }

// Fence returns the token of the grant. It is larger than that of every earlier grant, so a resource that the lease
// guards should reject a token smaller than the largest that it has seen.
func (l *Lease) Fence() uint64 { return l.fence }

// Context returns a context that ends with the lease: when it was not renewed in time, when the servers say that it is
// lost, or at its release. context.Cause returns a *LostError or ErrReleased. The context has the values of the context
// that was given to Acquire, but neither its deadline nor its cancellation.
func (l *Lease) Context() context.Context { return l.ctx }

// Revoked returns a channel that is closed when the lease is revoked for another allocation. The lease still lasts for
// its time of grace, see Remaining; a holder that stops earlier should release it. Allocation names the other one.
func (l *Lease) Revoked() <-chan struct{} { return l.revoked }

// Allocation returns the record of the last answer. It must not be changed.
func (l *Lease) Allocation() *quoratev1.Allocation {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.record
}

// Items returns the names of the items that the lease holds, in the order of its claims.
func (l *Lease) Items() []string {
	var names []string
	for _, claim := range l.Allocation().GetClaims() {
		for _, item := range claim.GetItems() {
			names = append(names, item.GetName())
		}
	}
	return names
}

// Remaining returns how long the lease is certain to be held without another renewal: 0 when it has ended, and the
// largest duration if it has no TTL.
func (l *Lease) Remaining() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.over:
		return 0
	case l.timer == nil:
		return 1<<63 - 1
	}
	return max(0, l.client.clock.until(l.safe))
}

// Ends returns the earliest time at which the servers may end the lease unless it is renewed, by which its holder must
// have stopped; zero if it has no TTL. The context ends a margin earlier, or less if the lease is revoked within its
// margin.
func (l *Lease) Ends() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ends.IsZero() {
		return l.ends
	}
	return l.client.clock.public(l.ends)
}

// Release releases the allocation. The context of the lease ends at once, before the servers are called, and renewals
// stop. Releasing a lease that has ended is not an error. If no server answers, the allocation ends with its TTL;
// Release may be repeated.
func (l *Lease) Release(ctx context.Context) error { return l.ReleaseAs(ctx, "") }

// ReleaseAs is like Release and sets the state of the items, for example "dirty"; empty means the state that their
// resource defines.
func (l *Lease) ReleaseAs(ctx context.Context, state string) error {
	l.endLease(ErrReleased)
	_, err := l.client.Allocations.Release(ctx,
		&quoratev1.ReleaseRequest{
			Namespace: l.name.namespace, Id: l.name.id, Fence: l.fence, ItemState: state,
		})
	if problem, found := ProblemOf(err); found && problem.GetReason() == "FENCE_MISMATCH" {
		return nil // it ended before, and another request has its id now
	}
	return err
}

// endLease has an effect only at its first call.
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

// applyRenewal takes the record of an answer, whose request was sent at a time, and extends the lease.
func (l *Lease) applyRenewal(record *quoratev1.Allocation, sent time.Time, ledgerMs int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	l.record, l.lastFailure = record, nil
	if record.GetRevokedBy() != nil {
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
		l.timer = time.AfterFunc(l.client.clock.until(l.safe), l.expireIfDue)
		return
	}
	l.timer.Reset(l.client.clock.until(l.safe))
}

// The margin is a tenth of the TTL and at most longestMargin, unless the caller chose another.
const (
	marginPart    = 10
	longestMargin = 3 * time.Second
)

// marginOf returns how long before the end of its TTL a lease ends for its holder.
func (l *Lease) marginOf(ttl time.Duration) time.Duration {
	if l.margin > 0 {
		return min(l.margin, ttl/renewPart)
	}
	return min(ttl/marginPart, longestMargin)
}

func ttlOf(record *quoratev1.Allocation) time.Duration {
	return time.Duration(record.GetTtlMs()) * time.Millisecond
}

func (l *Lease) expireIfDue() {
	l.mu.Lock()
	early := l.client.clock.until(l.safe) > 0
	lost := &LostError{
		Namespace: l.name.namespace, ID: l.name.id, How: Unrenewed, By: revokerOf(l.record),
		cause: l.lastFailure,
	}
	l.mu.Unlock()
	if early {
		return
	}
	if lost.By != "" {
		lost.How, lost.cause = Preempted, nil
	}
	l.endLease(lost)
}

func (l *Lease) isOver() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over
}

func (l *Lease) noteFailure(fault error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastFailure = fault
}
