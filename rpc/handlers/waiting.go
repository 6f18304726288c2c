package handlers

import (
	"cmp"
	"context"
	"time"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/rpc/identify"
	"github.com/quorate/quorate/rpc/notify"
	"github.com/quorate/quorate/rpc/wire"
)

// pollMargin is kept at most from the time that a call has, to look what has become of the request and to say so.
const pollMargin = 300 * time.Millisecond

// rightsInterval is how often a waiting call looks whether its caller may still hold.
const rightsInterval = time.Second

// awaitGrant waits for the grant of a queued request for as long as its caller requested, and returns the state of the
// request then. It uses only the state of this node, so it continues while the cluster has no leader. It ends within a
// second with an error when the credential of the call no longer holds, or when the caller may no longer hold; the
// request then stays in the queue for as long as one whose caller has gone.
func (s AllocationService) awaitGrant(
	ctx context.Context, r *quoratev1.AllocateRequest, first ledger.Outcome, index uint64,
) (*quoratev1.AllocateResponse, error) {
	followed, stop := s.FollowCredential(ctx)
	defer stop()
	keep := time.Duration(cmp.Or(r.GetKeepMs(), int64(quota.DefaultKeep))) * time.Millisecond
	within, cancel := context.WithTimeout(followed, pollTime(ctx, min(pollSpan(r), keep*2/3)))
	defer cancel()
	id := wire.ToID(r, namespaceOf(ctx))
	for ended := false; !ended && within.Err() == nil; {
		part, end := context.WithTimeout(within, rightsInterval)
		s.Notifier.WaitFor(part, notify.AllocationKey(id), func() bool {
			ended = !s.isWaiting(ctx, id)
			return ended
		})
		end()
		if err := cmp.Or(identify.EndOfCredential(followed), s.checkWaiter(ctx, r)); err != nil {
			return nil, err
		}
	}
	last, at, err := s.currentOutcome(ctx, r)
	if err != nil {
		return s.fromAllocateOutcome(ctx, first, index)
	}
	last.Repeated = first.Repeated
	return s.fromAllocateOutcome(ctx, last, at)
}

// checkWaiter returns why the caller of a waiting request may no longer hold at its nodes, or nil.
func (s AllocationService) checkWaiter(ctx context.Context, r *quoratev1.AllocateRequest) error {
	if s.Node.Book().Mode() != access.Guarded {
		return nil
	}
	var lost error
	_, err := s.Node.Read(ctx, cluster.ReadOptions{Stale: true}, func(v ledger.Reader) {
		if lost = unprovedUnder(ctx, v.Book()); lost != nil {
			return
		}
		reader, refused := v.ReaderOf(identify.CallerOf(ctx))
		if refused != nil {
			lost = wire.ToError(refused)
			return
		}
		claims := r.GetClaims()
		for _, alternative := range r.GetAnyOf() {
			claims = append(claims[:len(claims):len(claims)], alternative.GetClaims()...)
		}
		for _, c := range claims {
			if refused := reader.Require(access.Hold, c.GetTree(), c.GetNode()); refused != nil {
				lost = wire.ToError(refused)
				return
			}
		}
	})
	if err != nil {
		return nil //nolint:nilerr // what cannot be read now is looked at again
	}
	return lost
}

// awaitResize waits until a queued resize is carried out or has ended, for as long as its caller requested, as
// awaitGrant does for a request. It returns the outcome that repeating the resize would have then.
func (s AllocationService) awaitResize(
	ctx context.Context, r *quoratev1.ResizeRequest, first ledger.Outcome, index uint64,
) (ledger.Outcome, uint64, error) {
	followed, stop := s.FollowCredential(ctx)
	defer stop()
	within, cancel := context.WithTimeout(followed, pollTime(ctx, pollSpan(r)))
	defer cancel()
	for waits := true; waits && within.Err() == nil; {
		part, end := context.WithTimeout(within, rightsInterval)
		key := notify.AllocationKey(wire.ToID(r, namespaceOf(ctx)))
		s.Notifier.WaitFor(part, key, func() bool { return !s.isResizeWaiting(ctx, r) })
		end()
		if err := identify.EndOfCredential(followed); err != nil {
			return ledger.Outcome{}, 0, err
		}
		waits = s.isResizeWaiting(ctx, r)
		if !waits || s.Node.Book().Mode() == access.Guarded || within.Err() != nil {
			now, at, err := s.tryStale(ctx, wire.ToResize(r, namespaceOf(ctx)))
			switch {
			case err != nil: // what cannot be read now is looked at again
			case now.Refused != nil:
				return ledger.Outcome{}, 0, wire.RefusalError(now.Refused)
			case !now.Repeated:
				return ledger.Outcome{}, 0, wire.RefusalError(quota.Errorf(quota.Ended, "id",
					"the resize of allocation %q waits no more and the allocation holds other amounts: it was not carried out, or "+
						"what it holds was changed again; look at it, and ask again", r.GetId()))
			default:
				now.Repeated = first.Repeated
				first, index = now, at
			}
		}
	}
	return first, index, nil
}

// isResizeWaiting reports whether the resize is in the queue in the state of this node.
func (s AllocationService) isResizeWaiting(ctx context.Context, r *quoratev1.ResizeRequest) bool {
	waits := false
	_, err := s.Node.Read(ctx, cluster.ReadOptions{Stale: true}, func(v ledger.Reader) {
		info, unknown := v.Allocation(wire.ToID(r, namespaceOf(ctx)))
		waits = unknown == nil && info.Resize != nil && info.Resize.Generation == r.GetGeneration()
	})
	return err == nil && waits
}

// pollSpan is how long a call asks to wait inside the server.
func pollSpan(r interface{ GetPollMs() int64 }) time.Duration {
	return time.Duration(r.GetPollMs()) * time.Millisecond
}

// pollTime is the wait that the caller requested, but it ends before the caller's deadline, and a request asks for less
// than the span in which it must be repeated, so that the caller can repeat it in time.
func pollTime(ctx context.Context, most time.Duration) time.Duration {
	if deadline, limited := ctx.Deadline(); limited {
		left := time.Until(deadline)
		most = min(most, left-min(left/5, pollMargin))
	}
	return most
}

// isWaiting reports whether a request is in the queue in the state of this node.
func (s AllocationService) isWaiting(ctx context.Context, id string) bool {
	waits := false
	_, err := s.Node.Read(ctx, cluster.ReadOptions{Stale: true}, func(v ledger.Reader) {
		info, unknown := v.Allocation(id)
		waits = unknown == nil && info.State == quota.Waiting
	})
	return err == nil && waits
}

// currentOutcome returns the outcome that repeating a request would have in the state of this node. If it was granted a
// lease, the request is really repeated, because that claims the lease; without a leader, the first renewal claims it.
func (s AllocationService) currentOutcome(
	ctx context.Context, r *quoratev1.AllocateRequest,
) (ledger.Outcome, uint64, error) {
	command := wire.ToAllocate(r, namespaceOf(ctx))
	outcome, at, err := s.tryStale(ctx, command)
	if err != nil {
		return ledger.Outcome{}, 0, err
	}
	if outcome.Allocation != nil && outcome.Allocation.Info().Unclaimed {
		claimed, index, err := s.proposeOne(ctx, command)
		if err == nil || outcome.Allocation.Info().TTL == 0 {
			// A holder without a TTL renews nothing, so it must not hear of a grant that may end.
			return claimed, index, err
		}
	}
	return outcome, at, nil
}

// tryStale uses the state of this node, and changes nothing.
func (s AllocationService) tryStale(ctx context.Context, command quota.Command) (ledger.Outcome, uint64, error) {
	var outcome ledger.Outcome
	from := ledger.Origin{Caller: identify.CallerOf(ctx)}
	info, err := lendState(ctx, s.Service, cluster.ReadOptions{Stale: true}, s.Node.Sandbox,
		func(v ledger.Sandbox) error {
			if err := unprovedUnder(ctx, v.Book()); err != nil {
				return err
			}
			outcome = v.DryRunFrom(from, command)
			outcome.Now = v.Now()
			return nil
		})
	return outcome, info.GetIndex(), err
}

// withQueuePlace returns the record of an outcome for an answer. A waiting request or resize gets its position in the
// queue, which only the state has.
func (s AllocationService) withQueuePlace(ctx context.Context, a *ledger.Allocation) quota.AllocationInfo {
	info := a.Info()
	if info.Waiting == nil && info.Resize == nil {
		return info
	}
	_, err := s.Node.Read(ctx, cluster.ReadOptions{Stale: true}, func(v ledger.Reader) {
		now, unknown := v.Allocation(info.ID)
		switch {
		case unknown != nil:
		case now.Waiting != nil && info.Waiting != nil:
			info = now
		case now.Resize != nil && info.Resize != nil:
			info.Resize = now.Resize
		}
	})
	if err != nil {
		return a.Info() // the place is a courtesy
	}
	return info
}

// predictGrants sets the latest time of the grant of waiting requests. It uses the state that is lent up.
func predictGrants(v ledger.Sandbox, list []quota.QueuedInfo) *quota.Error {
	granted, refused := v.Forecast()
	for i := range list {
		setCertainBy(&list[i].Allocation, granted)
	}
	return refused
}

func setCertainBy(a *quota.AllocationInfo, granted map[string]quota.Instant) {
	waiting := a.Waiting
	if a.Resize != nil {
		waiting = &a.Resize.Waiting
	}
	if waiting != nil {
		waiting.CertainBy = granted[a.ID]
	}
}

// ListWaiting pages through the queue.
func (s AllocationService) ListWaiting(
	ctx context.Context, r *quoratev1.ListWaitingRequest,
) (*quoratev1.ListWaitingResponse, error) {
	asked, err := wire.OpenPage(r, wire.DefaultWaitingPage)
	if err != nil {
		return nil, wire.ToError(err)
	}
	after, err := asked.QueuePosition()
	if err != nil {
		return nil, wire.ToError(err)
	}
	filter := quota.QueueFilter{
		Tree: r.GetTree(), Node: r.GetNode(), Resource: r.GetResource(), Owner: r.GetOwner(),
		Namespace: r.GetNamespace(),
	}
	var page quota.QueuePage
	filtered := false
	options := toReadOptions(r.GetRead())
	options.WhatIf = r.GetCertainBy() // in a copy, if any request waits
	read, err := s.lendSandbox(ctx, options, func(v ledger.Sandbox) error {
		var refused *quota.Error
		list := v.Waiting
		if r.GetNameBlockers() {
			list = v.WaitingWithBlockers
		}
		page, refused = list(filter, after, asked.Max)
		filtered = v.FiltersHolders()
		if refused == nil && r.GetCertainBy() {
			refused = predictGrants(v, page.Requests)
		}
		if refused != nil {
			return refused
		}
		return requirePlace(v.Reader, asked, len(page.Requests), r)
	})
	if err != nil {
		return nil, err
	}
	answer := &quoratev1.ListWaitingResponse{
		NextPageToken: asked.TokenAfterQueued(page.Next), Read: read, Filtered: filtered,
	}
	for _, q := range page.Requests {
		answer.Requests = append(answer.Requests, &quoratev1.WaitingRequest{
			Allocation: wire.FromAllocation(q.Allocation), Decision: wire.FromDecision(q.Decision, nil),
		})
	}
	return answer, nil
}
