package handlers

import (
	"cmp"
	"context"
	"time"

	"github.com/quorate/quorate/access"
	"github.com/quorate/quorate/cluster"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/rpc/identify"
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
	within, cancel := context.WithTimeout(followed, pollTime(ctx, r))
	defer cancel()
	for ended := false; !ended && within.Err() == nil; {
		part, end := context.WithTimeout(within, rightsInterval)
		s.Grants.waitFor(part, r.GetId(), func() bool {
			ended = !s.isWaiting(ctx, r.GetId())
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
	_, err := s.Node.Read(ctx, cluster.ReadOptions{Stale: true}, func(v ledger.View) {
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

// pollTime is the wait that the caller requested, but it ends before the caller's deadline, and before the request
// would leave the queue for want of a heartbeat, so that the caller can repeat it in time.
func pollTime(ctx context.Context, r *quoratev1.AllocateRequest) time.Duration {
	keep := time.Duration(cmp.Or(r.GetKeepMs(), int64(quota.DefaultKeep))) * time.Millisecond
	most := min(time.Duration(r.GetPollMs())*time.Millisecond, keep*2/3)
	if deadline, limited := ctx.Deadline(); limited {
		left := time.Until(deadline)
		most = min(most, left-min(left/5, pollMargin))
	}
	return most
}

// isWaiting reports whether a request is in the queue in the state of this node.
func (s AllocationService) isWaiting(ctx context.Context, id string) bool {
	waits := false
	_, err := s.Node.Read(ctx, cluster.ReadOptions{Stale: true}, func(v ledger.View) {
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
	command := wire.ToAllocate(r)
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
	if err != nil {
		return ledger.Outcome{}, 0, err
	}
	if outcome.Allocation != nil && outcome.Allocation.Info().Unclaimed {
		if claimed, index, err := s.proposeOne(ctx, command); err == nil {
			return claimed, index, nil
		}
	}
	return outcome, info.GetIndex(), nil
}

// withQueuePlace returns the record of an outcome for an answer. A waiting request gets its position in the queue,
// which only the state has.
func (s AllocationService) withQueuePlace(ctx context.Context, a *ledger.Allocation) quota.AllocationInfo {
	info := a.Info()
	if info.Waiting == nil {
		return info
	}
	_, err := s.Node.Read(ctx, cluster.ReadOptions{Stale: true}, func(v ledger.View) {
		if now, unknown := v.Allocation(info.ID); unknown == nil && now.Waiting != nil {
			info = now
		}
	})
	if err != nil {
		return a.Info() // the place is a courtesy
	}
	return info
}

// ListWaiting pages through the queue.
func (s AllocationService) ListWaiting(
	ctx context.Context, r *quoratev1.ListWaitingRequest,
) (*quoratev1.ListWaitingResponse, error) {
	after, err := wire.OpenWaitingToken(r.GetPageToken())
	if err != nil {
		return nil, wire.ToError(err)
	}
	filter := quota.QueueFilter{Tree: r.GetTree(), Node: r.GetNode(), Resource: r.GetResource()}
	var page quota.QueuePage
	filtered := false
	read, err := s.readSandbox(ctx, r.GetRead(), func(v ledger.SandboxReader) error {
		var unknown *quota.Error
		page, unknown = v.Waiting(filter, after, wire.PageSize(r.GetPageSize(), wire.DefaultWaitingPage))
		filtered = v.FiltersHolders()
		return refusalOrNil(unknown)
	})
	if err != nil {
		return nil, err
	}
	answer := &quoratev1.ListWaitingResponse{
		NextPageToken: wire.WaitingPageToken(page.Next), Read: read, Filtered: filtered,
	}
	for _, q := range page.Requests {
		answer.Requests = append(answer.Requests, &quoratev1.WaitingRequest{
			Allocation: wire.FromAllocation(q.Allocation), Decision: wire.FromDecision(q.Decision, nil),
		})
	}
	return answer, nil
}
