package rpc

import (
	"context"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// Renewals come from every holder all the time, and are in no hurry: they wait a moment for company.

// Renew extends a lease, or keeps a waiting request.
func (s allocationService) Renew(ctx context.Context, r *quoratev1.RenewRequest) (*quoratev1.RenewResponse, error) {
	outcomes, index, err := s.proposeSoon(ctx, toRenew(r))
	if err != nil {
		return nil, err
	}
	return s.fromRenewOutcome(ctx, outcomes[0], index)
}

func toRenew(r *quoratev1.RenewRequest) quota.Renew {
	return quota.Renew{
		ID: r.GetId(), Fence: r.GetFence(), TTL: quota.Span(r.GetTtlMs()), Data: toLabels(r.GetUserData()), Items: toItemUpdates(r.GetItems()),
	}
}

func (s allocationService) fromRenewOutcome(ctx context.Context, o ledger.Outcome, index uint64) (*quoratev1.RenewResponse, error) {
	if o.Refused != nil {
		return nil, refusalError(o.Refused)
	}
	return &quoratev1.RenewResponse{Allocation: fromAllocation(s.withQueuePlace(ctx, o.Allocation)), Index: index, LedgerTimeMs: int64(o.Now)}, nil
}

// BatchRenew renews allocations, each on its own.
func (s allocationService) BatchRenew(ctx context.Context, r *quoratev1.BatchRenewRequest) (*quoratev1.BatchRenewResponse, error) {
	answer := &quoratev1.BatchRenewResponse{Outcomes: make([]*quoratev1.RenewOutcome, len(r.GetRenewals()))}
	var valid batchPart
	for i, renewal := range r.GetRenewals() {
		if err := s.validator.Validate(renewal); err != nil {
			answer.Outcomes[i] = renewOutcome(nil, invalidRequestError(err))
			continue
		}
		valid.commands, valid.places = append(valid.commands, toRenew(renewal)), append(valid.places, i)
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

// renewOutcome is one element of a batch.
func renewOutcome(renewed *quoratev1.RenewResponse, err error) *quoratev1.RenewOutcome {
	if err != nil {
		return &quoratev1.RenewOutcome{Outcome: &quoratev1.RenewOutcome_Failure{Failure: toFailure(toError(err))}}
	}
	return &quoratev1.RenewOutcome{Outcome: &quoratev1.RenewOutcome_Renewed{Renewed: renewed}}
}
