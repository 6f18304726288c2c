package handlers

import (
	"context"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/rpc/wire"
)

// Resize changes amounts of an allocation.
func (s AllocationService) Resize(ctx context.Context, r *quoratev1.ResizeRequest) (*quoratev1.ResizeResponse, error) {
	polls := r.GetPollMs() > 0 && !r.GetDryRun()
	if polls { // before anything is done
		leave, err := s.Limiters.WaitInside(ctx)
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	o, index, err := s.changeHolding(ctx, wire.ToResize(r, namespaceOf(ctx)), r.GetDryRun())
	if err == nil && o.Decision.Waiting && polls {
		o, index, err = s.awaitResize(ctx, r, o, index)
	}
	if err != nil {
		return nil, err
	}
	return &quoratev1.ResizeResponse{
		Allocation: wire.FromAllocation(s.withQueuePlace(ctx, o.Allocation)), Decision: changeDecision(o),
		Write: fromWrite(o, index),
	}, nil
}

// Transfer moves claims of an allocation to other nodes.
func (s AllocationService) Transfer(
	ctx context.Context, r *quoratev1.TransferRequest,
) (*quoratev1.TransferResponse, error) {
	o, index, err := s.changeHolding(ctx, wire.ToTransfer(r, namespaceOf(ctx)), r.GetDryRun())
	if err != nil {
		return nil, err
	}
	return &quoratev1.TransferResponse{
		Allocation: wire.FromAllocation(o.Allocation.Info()), Decision: changeDecision(o), Write: fromWrite(o, index),
	}, nil
}

// Split moves amounts of an allocation to new ones.
func (s AllocationService) Split(ctx context.Context, r *quoratev1.SplitRequest) (*quoratev1.SplitResponse, error) {
	o, index, err := s.changeHolding(ctx, wire.ToSplit(r, namespaceOf(ctx)), r.GetDryRun())
	if err != nil {
		return nil, err
	}
	answer := &quoratev1.SplitResponse{
		Allocation: wire.FromAllocation(o.Allocation.Info()), Decision: changeDecision(o), Write: fromWrite(o, index),
	}
	for _, part := range o.Parts {
		answer.Parts = append(answer.Parts, wire.FromAllocation(part.Info()))
	}
	return answer, nil
}

// changeHolding returns an outcome with the allocation unless there is an error.
func (s AllocationService) changeHolding(
	ctx context.Context, command quota.Command, dryRun bool,
) (ledger.Outcome, uint64, error) {
	decide := s.proposeOne
	if dryRun {
		decide = s.tryCommand
	}
	o, index, err := decide(ctx, command)
	switch {
	case err != nil:
		return ledger.Outcome{}, 0, err
	case o.Refused != nil:
		return ledger.Outcome{}, 0, wire.RefusalError(o.Refused)
	case !o.Decision.Granted && !o.Decision.Waiting:
		return ledger.Outcome{}, 0, wire.DenialError(*o.Decision, index)
	}
	return o, index, nil
}

// changeDecision is the decision of a granted change, with the nodes where the claims are counted, or of one that
// waits.
func changeDecision(o ledger.Outcome) *quoratev1.Decision {
	if o.Decision.Waiting {
		return wire.FromDecision(*o.Decision, nil)
	}
	if o.Decision.Placements != nil {
		return wire.FromDecision(*o.Decision, o.Decision.Placements)
	}
	return wire.FromDecision(*o.Decision, o.Allocation.Info().Claims)
}
