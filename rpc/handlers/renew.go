package handlers

import (
	"context"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/rpc/wire"
)

// Renewals come from every holder all the time, and are not urgent: they wait a moment to share a log entry.

// Renew extends a lease, or keeps a waiting request.
func (s AllocationService) Renew(ctx context.Context, r *quoratev1.RenewRequest) (*quoratev1.RenewResponse, error) {
	outcomes, index, err := s.proposeSoon(ctx, wire.ToRenew(r, namespaceOf(ctx)))
	if err != nil {
		return nil, err
	}
	return s.fromRenewOutcome(ctx, outcomes[0], index)
}

func (s AllocationService) fromRenewOutcome(
	ctx context.Context, o ledger.Outcome, index uint64,
) (*quoratev1.RenewResponse, error) {
	if o.Refused != nil {
		return nil, wire.RefusalError(o.Refused)
	}
	return &quoratev1.RenewResponse{
		Allocation: wire.FromAllocation(s.withQueuePlace(ctx, o.Allocation)), Write: fromWrite(o, index),
	}, nil
}

// BatchRenew renews allocations, each on its own.
func (s AllocationService) BatchRenew(
	ctx context.Context, r *quoratev1.BatchRenewRequest,
) (*quoratev1.BatchRenewResponse, error) {
	answer := &quoratev1.BatchRenewResponse{Outcomes: make([]*quoratev1.RenewOutcome, len(r.GetRenewals()))}
	var valid batchPart
	for i, renewal := range r.GetRenewals() {
		if err := s.Validator.Validate(renewal); err != nil {
			answer.Outcomes[i] = renewOutcome(nil, wire.InvalidRequestError(err))
			continue
		}
		valid.commands, valid.places = append(valid.commands, wire.ToRenew(renewal, namespaceOf(ctx))),
			append(valid.places, i)
	}
	if len(valid.commands) == 0 {
		return answer, nil
	}
	decided, index, err := s.proposeSoon(ctx, valid.commands...)
	if err != nil {
		return nil, err
	}
	for i, place := range valid.places {
		answer.Outcomes[place] = renewOutcome(s.fromRenewOutcome(ctx, decided[i], index))
	}
	return answer, nil
}

func renewOutcome(renewed *quoratev1.RenewResponse, err error) *quoratev1.RenewOutcome {
	if err != nil {
		return &quoratev1.RenewOutcome{
			Outcome: &quoratev1.RenewOutcome_Failure{Failure: wire.ToFailure(wire.ToError(err))},
		}
	}
	return &quoratev1.RenewOutcome{Outcome: &quoratev1.RenewOutcome_Renewed{Renewed: renewed}}
}
