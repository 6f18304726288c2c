package workload

import (
	"context"
	"maps"
	"slices"

	"github.com/quorate/quorate/chaos/history"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

type requestSpec struct {
	id     string
	claims []history.Claim
	// anyOf are alternatives, of which claims is the first; none if there is one list.
	anyOf    [][]history.Claim
	mode     string
	priority int64
	ttl      int64
	poll     int64
	keep     int64
	// declared is how long it is held at most; 0 if it declares no end.
	declared int64
}

func claimAt(tree, node string, amount int64) history.Claim {
	return history.Claim{Tree: tree, Node: node, Amounts: map[string]int64{countedResource: amount}}
}

func (w requestSpec) toProto() *quoratev1.AllocateRequest {
	namespace, id := splitName(w.id)
	r := &quoratev1.AllocateRequest{
		Namespace: namespace, Id: id, Priority: w.priority, Claims: toClaims(w.claims), PollMs: w.poll,
		KeepMs: w.keep, ForMs: w.declared,
	}
	for _, claims := range w.anyOf {
		r.Claims, r.AnyOf = nil, append(r.AnyOf, &quoratev1.Alternative{Claims: toClaims(claims)})
	}
	switch w.mode {
	case history.Reserve:
		r.Mode, r.ReserveMs = quoratev1.Mode_MODE_RESERVE, w.ttl
	case history.Wait:
		r.Mode, r.TtlMs = quoratev1.Mode_MODE_WAIT, w.ttl
	default:
		r.TtlMs = w.ttl
	}
	return r
}

func toClaims(claims []history.Claim) []*quoratev1.Claim {
	var all []*quoratev1.Claim
	for _, claim := range claims {
		one := &quoratev1.Claim{Tree: claim.Tree, Node: claim.Node, Amounts: claim.Amounts}
		if claim.Steps > 0 {
			one.Amounts = nil
			for _, resource := range slices.Sorted(maps.Keys(claim.Amounts)) {
				least := claim.Amounts[resource]
				one.Ranges = append(one.Ranges, &quoratev1.AmountRange{
					Resource: resource, Least: least, Most: least + claim.Steps*claim.Step, Step: claim.Step,
				})
			}
		}
		if claim.Pick != "" {
			one.Items = []*quoratev1.ItemPick{{Resource: claim.Pick, Count: 1}}
		}
		all = append(all, one)
	}
	return all
}

func (w requestSpec) fillIn(o *history.Op) {
	o.ID, o.Claims, o.Mode, o.Priority, o.TTL = w.id, w.claims, w.mode, w.priority, w.ttl
	o.AnyOf, o.For = w.anyOf, w.declared
}

func (c *caller) callAllocate(ctx context.Context, w requestSpec) history.Op {
	s := c.randomServer()
	o := c.beginOp(history.Allocate, s)
	w.fillIn(o)
	var answer *quoratev1.AllocateResponse
	err := c.withTimeout(ctx, func(ctx context.Context) (err error) {
		answer, err = s.allocations.Allocate(ctx, w.toProto())
		return err
	})
	setGrant(o, answer)
	return c.endOp(o, err)
}

func setGrant(o *history.Op, answer *quoratev1.AllocateResponse) {
	o.Index, o.Repeated = answer.GetWrite().GetIndex(), answer.GetWrite().GetRepetition()
	o.Fence = answer.GetAllocation().GetFence()
	o.Ledger = answer.GetWrite().GetLedgerTimeMs()
	setAllocation(o, answer.GetAllocation())
}

func setAllocation(o *history.Op, a *quoratev1.Allocation) {
	if a == nil {
		return
	}
	r := RecordOf(a)
	o.Fence, o.State, o.Expires, o.Granted, o.Generation = r.Fence, r.State, r.Expires, r.Claims, r.Generation
	o.Alternative = r.Alternative
}

func (c *caller) callRelease(ctx context.Context, name string) history.Op {
	s := c.randomServer()
	o := c.beginOp(history.Release, s)
	o.ID = name
	namespace, id := splitName(name)
	var answer *quoratev1.ReleaseResponse
	err := c.withTimeout(ctx, func(ctx context.Context) (err error) {
		answer, err = s.allocations.Release(ctx, &quoratev1.ReleaseRequest{Namespace: namespace, Id: id})
		return err
	})
	o.Index, o.Repeated = answer.GetWrite().GetIndex(), answer.GetWrite().GetRepetition()
	setAllocation(o, answer.GetAllocation())
	return c.endOp(o, err)
}

func (c *caller) callRenew(ctx context.Context, name string, fence uint64, ttl int64) history.Op {
	s := c.randomServer()
	o := c.beginOp(history.Renew, s)
	o.ID, o.TTL = name, ttl
	namespace, id := splitName(name)
	var answer *quoratev1.RenewResponse
	err := c.withTimeout(ctx, func(ctx context.Context) (err error) {
		answer, err = s.allocations.Renew(ctx, &quoratev1.RenewRequest{
			Namespace: namespace, Id: id, Fence: fence, TtlMs: ttl,
		})
		return err
	})
	o.Index, o.Ledger = answer.GetWrite().GetIndex(), answer.GetWrite().GetLedgerTimeMs()
	setAllocation(o, answer.GetAllocation())
	return c.endOp(o, err)
}

func (c *caller) callConfirm(ctx context.Context, name string) history.Op {
	s := c.randomServer()
	o := c.beginOp(history.Confirm, s)
	o.ID = name
	namespace, id := splitName(name)
	var answer *quoratev1.ConfirmResponse
	err := c.withTimeout(ctx, func(ctx context.Context) (err error) {
		answer, err = s.allocations.Confirm(ctx, &quoratev1.ConfirmRequest{Namespace: namespace, Id: id})
		return err
	})
	o.Index, o.Repeated = answer.GetWrite().GetIndex(), answer.GetWrite().GetRepetition()
	setAllocation(o, answer.GetAllocation())
	return c.endOp(o, err)
}

func (c *caller) callCancel(ctx context.Context, name string) history.Op {
	s := c.randomServer()
	o := c.beginOp(history.Cancel, s)
	o.ID = name
	namespace, id := splitName(name)
	var answer *quoratev1.CancelResponse
	err := c.withTimeout(ctx, func(ctx context.Context) (err error) {
		answer, err = s.allocations.Cancel(ctx, &quoratev1.CancelRequest{Namespace: namespace, Id: id})
		return err
	})
	o.Index, o.Repeated = answer.GetWrite().GetIndex(), answer.GetWrite().GetRepetition()
	setAllocation(o, answer.GetAllocation())
	return c.endOp(o, err)
}

// RecordOf converts an allocation.
func RecordOf(a *quoratev1.Allocation) history.Record {
	r := history.Record{
		ID: joinName(a.GetNamespace(), a.GetId()), State: enumName(a.GetState().String(), "ALLOCATION_STATE_"),
		Fence: a.GetFence(), Priority: a.GetPriority(), Generation: a.GetGeneration(),
		Alternative: int(a.GetAlternative()),
		Expires:     max(a.GetExpiresLedgerMs(), a.GetReservedUntilLedgerMs()), Place: a.GetWaiting().GetPosition(),
	}
	if a.GetWaiting() != nil {
		r.Expires = a.GetWaiting().GetUntilLedgerMs()
	}
	for _, claim := range a.GetClaims() {
		one := history.Claim{Tree: claim.GetTree(), Node: claim.GetPlaced(), Amounts: maps.Clone(claim.GetAmounts())}
		for _, item := range claim.GetItems() {
			one.Items = append(one.Items, item.GetResource()+"/"+item.GetName())
		}
		slices.Sort(one.Items)
		r.Claims = append(r.Claims, one)
	}
	return r
}
