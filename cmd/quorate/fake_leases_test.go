package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// fakeNow is the ledger time of the fake, in milliseconds.
const fakeNow = 3_600_000

// itemsFor returns the named items, or the first ones.
func itemsFor(picks []*quoratev1.ItemPick) []*quoratev1.HeldItem {
	var held []*quoratev1.HeldItem
	for _, pick := range picks {
		for i := range max(pick.GetCount(), 1) {
			item := &quoratev1.HeldItem{
				Resource: pick.GetResource(),
				Name:     fmt.Sprintf("%s-%d", pick.GetResource(), i+1), State: "leased",
			}
			if len(pick.GetNames()) > 0 {
				item.Name = pick.GetNames()[i]
			}
			held = append(held, item)
		}
	}
	return held
}

func accountClaim(node string, names ...string) *quoratev1.Claim {
	return &quoratev1.Claim{Tree: "ci", Node: node, Items: []*quoratev1.ItemPick{
		{Resource: "aws-account", Count: int64(len(names)), Names: names},
	}}
}

func heldLease() *quoratev1.Allocation {
	held := heldAllocation("lease-1", 7, nil, accountClaim("tenants/web", "account-1"))
	held.TtlMs, held.ExpiresLedgerMs, held.Principal = 1_800_000, fakeNow+1_799_900, &quoratev1.Principal{User: "ann"}
	return held
}

func revokedLease() *quoratev1.Allocation {
	held := heldAllocation("lease-2", 8, nil, accountClaim("tenants/data", "account-2"))
	held.TtlMs, held.ExpiresLedgerMs, held.RevokedBy = 86_400_000, fakeNow+29_950, refTo("urgent")
	held.Reason = &quoratev1.EndReason{
		Kind: quoratev1.EndReasonKind_END_REASON_KIND_SHARE, Tree: "ci", Share: "tenants/web", Borrower: "tenants/data",
	}
	return held
}

// mustWait reports whether a request must wait: ids that begin with "soon" on their first two calls, "queued" and ids
// that begin with "late" always.
func (f *fake) mustWait(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked[id]++
	return id == "queued" || strings.HasPrefix(id, "late") || strings.HasPrefix(id, "soon") && f.asked[id] <= 2
}

func (f *fake) waitInQueue(r *quoratev1.AllocateRequest) (*quoratev1.AllocateResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if strings.HasPrefix(r.GetId(), "late") && f.asked[r.GetId()] > 2 {
		return nil, withDetail(connectError(connect.CodeFailedPrecondition, "the request %q has ended", r.GetId()),
			&quoratev1.Problem{Reason: "ENDED"})
	}
	q := waitingRequest(r.GetId(), 2, r.GetClaims()...)
	return &quoratev1.AllocateResponse{
			Allocation: q.GetAllocation(), Decision: q.GetDecision(),
			Write: &quoratev1.WriteInfo{LedgerTimeMs: fakeNow},
		},
		nil
}

// waitingRequest returns requests that wait for a limit, for an item and for another request.
func waitingRequest(id string, position int64, claims ...*quoratev1.Claim) *quoratev1.WaitingRequest {
	waits := heldAllocation(id, 0, nil, claims...)
	waits.State, waits.GrantedAt = quoratev1.AllocationState_ALLOCATION_STATE_WAITING, nil
	for _, c := range waits.GetClaims() {
		c.Items = nil
	}
	waits.Waiting = &quoratev1.Waiting{ArrivedAt: someDay, Position: position, Line: "aws-account at ci:tenants/web"}
	return &quoratev1.WaitingRequest{Allocation: waits, Decision: &quoratev1.Decision{
		Outcome: quoratev1.Outcome_OUTCOME_WAITING, Explanation: "waiting: 3 things are in the way",
		Violations: []*quoratev1.Violation{
			{Tree: "ci", Node: "tenants/web", Resource: "aws-account", Limit: 1, Used: 1, Requested: 1, Missing: 1},
			{
				Tree: "ci", Resource: "aws-account", Limit: 2, Used: 2, Requested: 1, Missing: 1,
				Kind: quoratev1.ViolationKind_VIOLATION_KIND_ITEMS, Item: "free",
			},
			{
				Tree: "ci", Node: "tenants/web", Resource: "aws-account", Used: position - 1, Missing: position - 1,
				Kind: quoratev1.ViolationKind_VIOLATION_KIND_QUEUE,
			},
		},
	}}
}

func (f *fake) Renew(_ context.Context, r *quoratev1.RenewRequest) (*quoratev1.RenewResponse, error) {
	f.keepRequest(r)
	held, err := f.findAllocation(r.GetId())
	if err != nil {
		return nil, err
	}
	if r.GetFence() != 0 && r.GetFence() != held.GetFence() {
		return nil, withDetail(
			connectError(connect.CodeAborted, "%q has the fence %d, not %d", r.GetId(), held.GetFence(), r.GetFence()),
			&quoratev1.Problem{Reason: "FENCE_MISMATCH"})
	}
	held.TtlMs = cmp.Or(r.GetTtlMs(), held.GetTtlMs())
	held.ExpiresLedgerMs = fakeNow + held.GetTtlMs()
	return &quoratev1.RenewResponse{Allocation: held, Write: &quoratev1.WriteInfo{Index: 20, LedgerTimeMs: fakeNow}}, nil
}

// ListWaiting returns one request per page.
func (f *fake) ListWaiting(_ context.Context, r *quoratev1.ListWaitingRequest) (*quoratev1.ListWaitingResponse, error) {
	f.keepRequest(r)
	answer := &quoratev1.ListWaitingResponse{Read: readInfo(r.GetRead())}
	switch {
	case r.GetTree() == "cern":
	case r.GetPageToken() == "":
		first := waitingRequest("first", 1, accountClaim("tenants/web", "account-1"))
		first.Allocation.Priority = 5
		first.Decision.Violations = first.GetDecision().GetViolations()[:1]
		answer.Requests, answer.NextPageToken = []*quoratev1.WaitingRequest{first}, "more"
	default:
		answer.Requests = []*quoratev1.WaitingRequest{
			waitingRequest("second", 2, accountClaim("tenants/web", "account-1")),
		}
	}
	return answer, nil
}

// WatchEvents sends five messages and ends.
func (f *fake) WatchEvents(
	_ context.Context, r *quoratev1.WatchEventsRequest,
	stream *connect.ServerStream[quoratev1.WatchEventsResponse],
) error {
	f.keepRequest(r)
	if r.GetAfterIndex() == 1 {
		return connectError(connect.CodeOutOfRange, "the changes after index 1 are forgotten")
	}
	ended := proto.CloneOf(heldLease())
	ended.State = quoratev1.AllocationState_ALLOCATION_STATE_EXPIRED
	for i, m := range []*quoratev1.AllocationChange{
		nil,
		{
			Kind:       quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_WAITING,
			Allocation: waitingRequest("second", 2, accountClaim("tenants/web", "account-1")).GetAllocation(),
		},
		{Kind: quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_GRANTED, Allocation: heldLease()},
		{Kind: quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_REVOKED, Allocation: revokedLease()},
		{Kind: quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_ENDED, Allocation: ended},
		{Kind: quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_ENDED, Allocation: preemptedAllocation()},
	} {
		sent := &quoratev1.WatchEventsResponse{Index: 17, Number: uint32(i), LedgerTimeMs: fakeNow}
		if m != nil {
			sent.Payload = &quoratev1.WatchEventsResponse_Change{Change: m}
		}
		if err := stream.Send(sent); err != nil {
			return err
		}
	}
	return nil
}

func fakeItem(name, state string) *quoratev1.Item {
	return &quoratev1.Item{
		Name: &quoratev1.ItemName{Tree: "ci", Resource: "aws-account", Name: name}, State: state,
		UpdatedAt: someDay,
	}
}

// ListItems returns two items per page.
func (f *fake) ListItems(_ context.Context, r *quoratev1.ListItemsRequest) (*quoratev1.ListItemsResponse, error) {
	f.keepRequest(r)
	if r.GetTree() != "ci" {
		return nil, connectError(connect.CodeNotFound, "there is no tree %q", r.GetTree())
	}
	if r.GetPageToken() == "more" {
		going := fakeItem("account-3", "free")
		going.ExpiresLedgerMs = fakeNow + 7_199_000
		return &quoratev1.ListItemsResponse{Read: readInfo(r.GetRead()), Items: []*quoratev1.Item{going}}, nil
	}
	held, leaving := fakeItem("account-1", "leased"), fakeItem("account-2", "leased")
	held.Owner, held.Allocation, held.Fence = "ann", refTo("lease-1"), 7
	leaving.Allocation, leaving.Fence, leaving.Leaving = refTo("lease-2"), 8, true
	answer := &quoratev1.ListItemsResponse{
		Read: readInfo(r.GetRead()), Items: []*quoratev1.Item{held, leaving},
		NextPageToken: "more",
	}
	answer.Items = answer.GetItems()[:min(2, int(r.GetPageSize()))]
	return answer, nil
}

func (f *fake) CountItems(_ context.Context, r *quoratev1.CountItemsRequest) (*quoratev1.CountItemsResponse, error) {
	f.keepRequest(r)
	return &quoratev1.CountItemsResponse{Read: readInfo(r.GetRead()), Counts: []*quoratev1.ItemCount{
		{
			Tree: "ci", Resource: "aws-account", States: map[string]int64{"leased": 2, "free": 1},
			Owners: map[string]int64{"": 2, "ann": 1}, Waiting: 2,
		},
		{Tree: "ci", Resource: "cluster"},
	}}, nil
}

func (f *fake) UpdateItems(_ context.Context, r *quoratev1.UpdateItemsRequest) (*quoratev1.UpdateItemsResponse, error) {
	f.keepRequest(r)
	answer := &quoratev1.UpdateItemsResponse{Write: &quoratev1.WriteInfo{Index: 21}}
	for _, u := range r.GetUpdates() {
		if u.GetItem().GetName() == "account-1" {
			return nil, connectError(connect.CodeFailedPrecondition, "item account-1 is held by lease-1")
		}
		answer.Items = append(answer.Items, fakeItem(u.GetItem().GetName(), cmp.Or(u.GetState(), "free")))
	}
	return answer, nil
}

func (f *fake) ResetItems(_ context.Context, r *quoratev1.ResetItemsRequest) (*quoratev1.ResetItemsResponse, error) {
	f.keepRequest(r)
	return &quoratev1.ResetItemsResponse{Write: &quoratev1.WriteInfo{Index: 21}, Items: []*quoratev1.ResetItem{
		{Name: "account-1", Owner: "ann", Allocation: refTo("lease-1")}, {Name: "account-2", Allocation: refTo("lease-2")},
	}}, nil
}
