package handlers

import (
	"context"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/rpc/wire"
)

// Confirm makes a reservation a held allocation for good.
func (s AllocationService) Confirm(
	ctx context.Context, r *quoratev1.ConfirmRequest,
) (*quoratev1.ConfirmResponse, error) {
	o, index, err := s.endReservation(ctx, quota.Confirm{ID: wire.ToID(r, namespaceOf(ctx)), Fence: r.GetFence()})
	if err != nil {
		return nil, err
	}
	return &quoratev1.ConfirmResponse{
		Allocation: wire.FromAllocation(o.Allocation.Info()), Write: fromWrite(o, index),
	}, nil
}

// Cancel ends a reservation and puts back what it had preempted, if it can.
func (s AllocationService) Cancel(ctx context.Context, r *quoratev1.CancelRequest) (*quoratev1.CancelResponse, error) {
	o, index, err := s.endReservation(ctx, quota.Cancel{ID: wire.ToID(r, namespaceOf(ctx)), Fence: r.GetFence()})
	if err != nil {
		return nil, err
	}
	return &quoratev1.CancelResponse{
		Allocation: wire.FromAllocation(o.Allocation.Info()), Write: fromWrite(o, index),
		Restored: wire.FromIDs(o.Restored),
	}, nil
}

// endReservation returns an outcome with the allocation unless there is an error.
func (s AllocationService) endReservation(ctx context.Context, command quota.Command) (ledger.Outcome, uint64, error) {
	outcome, index, err := s.proposeOne(ctx, command)
	switch {
	case err != nil:
		return ledger.Outcome{}, 0, err
	case outcome.Refused != nil:
		return ledger.Outcome{}, 0, wire.RefusalError(outcome.Refused)
	}
	return outcome, index, nil
}
