//go:build unix

package bench

import (
	"context"
	"fmt"
	"time"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/load"
)

const (
	// leaseTTL is long enough that no lease of a measurement expires, and ends what a killed command leaves behind.
	leaseTTL = time.Minute
	// waitPoll is how long one call waits for a grant. It is shorter than an attempt of the client.
	waitPoll = 4 * time.Second
)

// beginLeases takes a lease, renews it and releases it.
func beginLeases(_ context.Context, m *measurement) (load.Work, error) {
	return func(ctx context.Context, it *load.Iteration) error {
		id := m.iterationID(it)
		request := m.newRequest(id, it.Caller)
		request.TtlMs = leaseTTL.Milliseconds()
		var fence uint64
		err := it.Measure("allocate", 1, func() error {
			answer, err := m.quorate.Allocations.Allocate(ctx, request)
			fence = answer.GetAllocation().GetFence()
			return err
		})
		for n := 0; n < m.options.renewals && err == nil; n++ {
			err = it.Measure("renew", 1, func() error {
				_, err := m.quorate.Allocations.Renew(ctx, &quoratev1.RenewRequest{Id: id, Fence: fence})
				return err
			})
		}
		if err != nil {
			return err
		}
		return it.Measure("release", 1, func() error { return m.releaseOne(ctx, id) })
	}, nil
}

// beginItems takes an item and returns it.
func beginItems(_ context.Context, m *measurement) (load.Work, error) {
	return func(ctx context.Context, it *load.Iteration) error {
		id := m.iterationID(it)
		request := &quoratev1.AllocateRequest{Id: id, TtlMs: leaseTTL.Milliseconds(), Claims: []*quoratev1.Claim{{
			Tree: m.tree, Node: leafOfOne, Items: []*quoratev1.ItemPick{{Resource: resourceItem}},
		}}}
		err := it.Measure("allocate", 1, func() error {
			_, err := m.quorate.Allocations.Allocate(ctx, request)
			return err
		})
		if err != nil {
			return err
		}
		return it.Measure("release", 1, func() error { return m.releaseOne(ctx, id) })
	}, nil
}

// beginWaiting waits in the queue for a grant and releases it, which grants the next one.
func beginWaiting(_ context.Context, m *measurement) (load.Work, error) {
	return func(ctx context.Context, it *load.Iteration) error {
		id := m.iterationID(it)
		request := &quoratev1.AllocateRequest{
			Id: id, Mode: quoratev1.Mode_MODE_WAIT, TtlMs: leaseTTL.Milliseconds(), PollMs: waitPoll.Milliseconds(),
			Claims: []*quoratev1.Claim{{
				Tree: m.tree, Node: waitingLeaf(m.callers), Amounts: map[string]int64{resourceCPU: 1, resourceMemory: 1},
			}},
		}
		if err := it.Measure("wait", 1, func() error { return m.awaitGrant(ctx, request) }); err != nil {
			return err
		}
		return it.Measure("release", 1, func() error { return m.releaseOne(ctx, id) })
	}, nil
}

// awaitGrant repeats a request until it is granted.
func (s *session) awaitGrant(ctx context.Context, request *quoratev1.AllocateRequest) error {
	for {
		answer, err := s.quorate.Allocations.Allocate(ctx, request)
		if err != nil {
			return err
		}
		state := answer.GetAllocation().GetState()
		if state == quoratev1.AllocationState_ALLOCATION_STATE_HELD {
			return nil
		}
		if state != quoratev1.AllocationState_ALLOCATION_STATE_WAITING {
			return fmt.Errorf("the request is in state %v", state)
		}
	}
}
