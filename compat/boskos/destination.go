package boskos

import (
	"context"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// allocateOrJoin allocates an item, or joins the allocation that an earlier call of the same request has begun. The
// item has the state then that the present call asks for. The error of an allocation that has ended is
// failed_precondition.
func (s *server) allocateOrJoin(
	ctx context.Context, r *quoratev1.AllocateRequest,
) (*quoratev1.AllocateResponse, error) {
	granted, err := s.api.Allocations.Allocate(ctx, r)
	if connect.CodeOf(err) == connect.CodeAlreadyExists {
		granted, err = s.repeatAsBegun(ctx, r, err)
	}
	if err != nil {
		return nil, err
	}
	return s.setDestination(ctx, itemPickOf(r).GetHeldState(), granted)
}

// repeatAsBegun repeats a request with the state for the item that its first call has asked for: to the ledger, a
// request with another one is another request, and would not keep the place in the queue. cause is the error of the
// request with the present state; it is returned if that is not the difference.
func (s *server) repeatAsBegun(
	ctx context.Context, r *quoratev1.AllocateRequest, cause error,
) (*quoratev1.AllocateResponse, error) {
	found, err := s.api.Allocations.GetAllocation(ctx, &quoratev1.GetAllocationRequest{
		Namespace: r.GetNamespace(), Id: r.GetId(),
	})
	if isUnknown(err) {
		return nil, cause // another caller of the API has the id, and this one may not know its allocation
	}
	if err != nil {
		return nil, err
	}
	begun := heldStateOf(found.GetAllocation())
	if begun == "" || begun == itemPickOf(r).GetHeldState() {
		return nil, cause
	}
	repeated := proto.CloneOf(r)
	itemPickOf(repeated).HeldState = begun
	return s.api.Allocations.Allocate(ctx, repeated)
}

// setDestination changes the state of a granted item, unless it has it already or still waits. Clients see one step,
// because the answer to the acquisition comes after it.
func (s *server) setDestination(
	ctx context.Context, dest string, granted *quoratev1.AllocateResponse,
) (*quoratev1.AllocateResponse, error) {
	allocation := granted.GetAllocation()
	var updates []*quoratev1.ItemUpdate
	for _, claim := range allocation.GetClaims() {
		for _, item := range claim.GetItems() {
			if item.GetState() != dest {
				name := &quoratev1.ItemName{Tree: claim.GetTree(), Resource: item.GetResource(), Name: item.GetName()}
				updates = append(updates, &quoratev1.ItemUpdate{Item: name, State: dest})
			}
		}
	}
	if len(updates) == 0 {
		return granted, nil
	}
	renewed, err := s.api.Allocations.Renew(ctx, &quoratev1.RenewRequest{
		Namespace: allocation.GetNamespace(), Id: allocation.GetId(), Fence: allocation.GetFence(), Items: updates,
	})
	if err != nil {
		return nil, err
	}
	return &quoratev1.AllocateResponse{Allocation: renewed.GetAllocation()}, nil
}

// itemPickOf relies on the single item that an acquisition asks for, in one of its claims.
func itemPickOf(r *quoratev1.AllocateRequest) *quoratev1.ItemPick {
	for _, claim := range r.GetClaims() {
		if picks := claim.GetItems(); len(picks) > 0 {
			return picks[0]
		}
	}
	return nil
}

// heldStateOf is the state that the first call of an allocation asked for; empty if it asked for no item.
func heldStateOf(a *quoratev1.Allocation) string {
	for _, claim := range a.GetClaims() {
		if picks := claim.GetPicks(); len(picks) > 0 {
			return picks[0].GetHeldState()
		}
	}
	return ""
}
