package main

import (
	"context"
	"strconv"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

func addDetails(held *quoratev1.Allocation, r *quoratev1.AllocateRequest) {
	held.Principal = r.GetPrincipal()
	if held.TtlMs = r.GetTtlMs(); held.GetTtlMs() > 0 {
		held.ExpiresLedgerMs = fakeNow + held.GetTtlMs()
	}
	held.Forced = r.GetMode() == quoratev1.Mode_MODE_FORCE
	if r.GetMode() == quoratev1.Mode_MODE_RESERVE {
		held.State = quoratev1.AllocationState_ALLOCATION_STATE_RESERVED
		held.GrantedLedgerMs, held.ReservedUntilLedgerMs = 1000, 1000+r.GetReserveMs()
	}
	for i, c := range held.GetClaims() {
		c.Priority, c.PreemptionClass, c.Unpreemptable = r.GetPriority(), r.GetPreemptionClass(), r.GetUnpreemptable()
		if groups := r.GetPrincipal().GetGroups(); len(groups) > 0 {
			c.Group = groups[0]
		}
		if r.GetId() == "soft-1" {
			held.Preempted = []*quoratev1.Preempted{{Id: "soft-0", Tree: "cern", Node: "atlas", Reason: someReason()}}
			held.Claims[i].Placed = "atlas"
		}
	}
}

func refTo(id string) *quoratev1.AllocationRef {
	return &quoratev1.AllocationRef{Namespace: "default", Id: id}
}

func someReason() *quoratev1.EndReason {
	return &quoratev1.EndReason{
		Kind: quoratev1.EndReasonKind_END_REASON_KIND_PRIORITY, Tree: "cern", Node: "atlas", Priority: 1,
		RequestPriority: 10, Amounts: []*quoratev1.EndReasonAmount{
			{Resource: "cores", Requested: 15, Missing: 3, Given: 5},
		},
	}
}

func preemptedAllocation() *quoratev1.Allocation {
	gone := heldAllocation("soft-0", 6, nil, &quoratev1.Claim{
		Tree: "cern", Node: "atlas/physics", Amounts: map[string]int64{"cores": 5},
	})
	gone.State, gone.EndedAt = quoratev1.AllocationState_ALLOCATION_STATE_PREEMPTED, someDay
	gone.PreemptedBy = refTo("soft-1")
	gone.Reason = someReason()
	return gone
}

func (f *fake) Confirm(_ context.Context, r *quoratev1.ConfirmRequest) (*quoratev1.ConfirmResponse, error) {
	f.keepRequest(r)
	if r.GetId() == "lapsed" {
		return nil, withDetail(
			connectError(connect.CodeFailedPrecondition, "the reservation %q has lapsed", "lapsed"),
			&quoratev1.Problem{Reason: "ENDED"},
		)
	}
	held := heldAllocation(r.GetId(), 42, nil, &quoratev1.Claim{
		Tree: "cern", Node: "atlas/physics", Amounts: map[string]int64{"cores": 1},
	})
	return &quoratev1.ConfirmResponse{
		Allocation: held,
		Write:      &quoratev1.WriteInfo{Index: 20, Repetition: r.GetId() == "held"},
	}, nil
}

func (f *fake) Cancel(_ context.Context, r *quoratev1.CancelRequest) (*quoratev1.CancelResponse, error) {
	f.keepRequest(r)
	ended := heldAllocation(r.GetId(), 42, nil, &quoratev1.Claim{
		Tree: "cern", Node: "atlas/physics", Amounts: map[string]int64{"cores": 1},
	})
	ended.State, ended.EndedAt = quoratev1.AllocationState_ALLOCATION_STATE_CANCELLED, someDay
	return &quoratev1.CancelResponse{
		Allocation: ended, Write: &quoratev1.WriteInfo{Index: 20},
		Restored: []*quoratev1.AllocationRef{refTo("soft-0"), refTo("soft-9")},
	}, nil
}

func (f *fake) Explain(_ context.Context, r *quoratev1.ExplainRequest) (*quoratev1.ExplainResponse, error) {
	f.keepRequest(r)
	answer := &quoratev1.ExplainResponse{Read: readInfo(r.GetRead())}
	switch {
	case r.GetId() == "big":
		answer.Decision, answer.DecidedAt = explainedDenial(), someDay
	case r.GetId() != "":
		held, err := f.findAllocation(r.GetId())
		if err != nil {
			return nil, err
		}
		answer.Allocation, answer.Decision = held, &quoratev1.Decision{Outcome: quoratev1.Outcome_OUTCOME_GRANTED}
	case r.GetRequest().GetClaims()[0].GetAmounts()["cores"] > 20:
		answer.Decision, answer.Levels = explainedDenial(), explainedLevels()
	default:
		answer.Decision = &quoratev1.Decision{
			Outcome:    quoratev1.Outcome_OUTCOME_GRANTED,
			Placements: []*quoratev1.Placement{{Tree: "cern", Node: "atlas/physics", Placed: "atlas"}},
			Preempted:  []*quoratev1.Preempted{{Id: "soft-0", Tree: "cern", Node: "atlas"}},
		}
	}
	return answer, nil
}

// explainedLevels are levels of every verdict.
func explainedLevels() []*quoratev1.LevelCheck {
	limit := func(n int64) *int64 { return &n }
	return []*quoratev1.LevelCheck{
		{
			Tree: "cern", Node: "atlas/operations", Resource: "cores", Limit: limit(80), Used: 60, Requested: 21, Left: -1,
			Verdict: quoratev1.LevelVerdict_LEVEL_VERDICT_EXCEEDED,
		},
		{
			Tree: "cern", Node: "atlas", Resource: "cores", Limit: limit(70), Advisory: true, Used: 60, Requested: 21,
			Left: -11,
		},
		{
			Tree: "cern", Node: "atlas", Resource: "cores", Limit: limit(9), Used: 2, Requested: 1, Left: 6, Holder: "ann",
			HolderKind: quoratev1.HolderKind_HOLDER_KIND_USER,
		},
		{
			Tree: "cern", Node: "atlas", Limit: limit(2), Used: 2, Requested: 1, Left: -1, Alternative: 2,
			Kind: quoratev1.ViolationKind_VIOLATION_KIND_APPLICATIONS, Verdict: quoratev1.LevelVerdict_LEVEL_VERDICT_MAKES_ROOM,
		},
		{Tree: "cern", Resource: "cores", Used: 60, Requested: 21},
		{Tree: "cern", Node: "atlas", Resource: "cores", Requested: 21, Seen: quoratev1.TenantsSee_TENANTS_SEE_NAMES.Enum()},
		{
			Tree: "cern", Resource: "cores", Requested: 21, Seen: quoratev1.TenantsSee_TENANTS_SEE_NOTHING.Enum(),
			Verdict: quoratev1.LevelVerdict_LEVEL_VERDICT_EXCEEDED,
		},
	}
}

func explainedDenial() *quoratev1.Decision {
	return &quoratev1.Decision{
		Outcome: quoratev1.Outcome_OUTCOME_DENIED, NeverFits: true,
		Violations: []*quoratev1.Violation{
			{Tree: "cern", Node: "atlas/operations", Resource: "cores", Limit: 80, Used: 60, Requested: 21, Missing: 1},
			{
				Tree: "cern", Limit: 2, Used: 2, Requested: 1, Missing: 1,
				Kind:       quoratev1.ViolationKind_VIOLATION_KIND_APPLICATIONS,
				HolderKind: quoratev1.HolderKind_HOLDER_KIND_USER, Holder: "ann",
			},
			{
				Tree: "tenants", Node: "tenant-1", Resource: "ram", Limit: 1 << 30, Used: 0, Requested: 2 << 30,
				Missing: 1 << 30,
				Kind:    quoratev1.ViolationKind_VIOLATION_KIND_BORROWING,
			},
		},
		Holders: []*quoratev1.LevelHolders{
			{
				Tree: "cern", Node: "atlas/operations", Resource: "cores", Others: 5,
				Groups: []*quoratev1.HolderGroup{
					{Node: "atlas/operations/web", User: "sue", Owner: "account/ci", Amount: 45, Claims: 2},
					{Node: "atlas/operations", Amount: 10, Claims: 1},
				},
				Allocations: []*quoratev1.Blocker{
					{
						Id: "web-1", Node: "atlas/operations/web", User: "sue", Owner: "account/ci", Amount: 40, BeganAt: someDay,
						ExpiresLedgerMs: fakeNow + 90_000,
					},
					{Id: "web-2", Node: "atlas/operations", Application: "build", Amount: 10, BeganAt: someDay},
				},
				OtherAllocations: 3,
				Blockers: []*quoratev1.Blocker{
					{Id: "early", Node: "atlas/operations/web", Amount: 30, BeganAt: someDay, Position: 1},
				},
				OtherBlockers: 2,
			},
			{Tree: "tenants", Node: "tenant-1", Resource: "ram"},
		},
		Remedy: &quoratev1.Remedy{
			Raises: []*quoratev1.Raise{
				{Tree: "cern", Node: "atlas/operations", Resource: "cores", Limit: 80, NewLimit: 81},
				{
					Tree: "cern", Resource: "cores", Limit: 20, NewLimit: 21,
					HolderKind: quoratev1.HolderKind_HOLDER_KIND_GROUP, Holder: "*",
				},
				{
					Tree: "tenants", Node: "tenant-1", Resource: "ram", Limit: 1 << 30, NewLimit: 2 << 30,
					Kind: quoratev1.ViolationKind_VIOLATION_KIND_BORROWING,
				},
				{Tree: "tenants", Node: "new", Resource: "servers", Limit: 1, NewLimit: 2, Unconfigured: true},
				{Tree: "tenants", Node: "ruled", Resource: "servers", Limit: 1, NewLimit: 2, NeedsReason: true},
			},
			Releases: []*quoratev1.AllocationRef{refTo("workflow-1"), refTo("request-1")},
		},
	}
}

// ListEvents returns two events per page.
func (f *fake) ListEvents(_ context.Context, r *quoratev1.ListEventsRequest) (*quoratev1.ListEventsResponse, error) {
	f.keepRequest(r)
	answer := &quoratev1.ListEventsResponse{Read: readInfo(r.GetRead())}
	all := []*quoratev1.Event{
		{
			Number: 1, Kind: quoratev1.EventKind_EVENT_KIND_DENIED, Id: "big", HappenedAt: someDay,
			Detail: &quoratev1.Event_Decision{Decision: explainedDenial()},
		},
		{
			Number: 2, Kind: quoratev1.EventKind_EVENT_KIND_PREEMPTED, Id: "soft-0", By: refTo("soft-1"), HappenedAt: someDay,
			Detail: &quoratev1.Event_Reason{Reason: someReason()},
		},
		{Number: 3, Kind: quoratev1.EventKind_EVENT_KIND_EXPIRED, Id: "lapsed", HappenedAt: someDay},
		{Number: 4, Kind: quoratev1.EventKind_EVENT_KIND_RESTORED, Id: "soft-9", By: refTo("lapsed"), HappenedAt: someDay},
	}
	shown, _ := strconv.ParseUint(r.GetPageToken(), 10, 64)
	for _, e := range all {
		if e.GetNumber() <= max(shown, r.GetAfterEvent()) || r.GetKind() != 0 && e.GetKind() != r.GetKind() ||
			r.GetId() != "" && e.GetId() != r.GetId() {
			continue
		}
		if len(answer.GetEvents()) == min(2, int(r.GetPageSize())) {
			answer.NextPageToken = strconv.FormatUint(answer.GetEvents()[len(answer.GetEvents())-1].GetNumber(), 10)
			break
		}
		answer.Events = append(answer.Events, e)
	}
	return answer, nil
}

// ListPrincipals returns one principal per page.
func (f *fake) ListPrincipals(_ context.Context,
	r *quoratev1.ListPrincipalsRequest,
) (*quoratev1.ListPrincipalsResponse, error) {
	f.keepRequest(r)
	answer := &quoratev1.ListPrincipalsResponse{Read: readInfo(r.GetRead())}
	switch {
	case r.GetKind() == quoratev1.HolderKind_HOLDER_KIND_GROUP && r.GetName() != "":
		answer.Principals = []*quoratev1.PrincipalUsage{{Name: "*", Users: []string{"bob"}, Nodes: []*quoratev1.PrincipalNode{
			{
				Used: map[string]int64{"cores": 2}, Limits: map[string]*quoratev1.Limit{"cores": amountLimit(4)},
				Wildcard: true, MoreMembers: 3,
				Members: []*quoratev1.GroupMember{
					{User: "bob", Used: map[string]int64{"cores": 1}, Applications: []string{"fit"}},
					{User: "eve", Used: map[string]int64{"cores": 1}},
				},
			},
		}}}
	case r.GetKind() == quoratev1.HolderKind_HOLDER_KIND_GROUP:
		answer.Principals = []*quoratev1.PrincipalUsage{{Name: "*", Users: []string{"bob"}, Nodes: []*quoratev1.PrincipalNode{
			{Used: map[string]int64{"cores": 2}, Limits: map[string]*quoratev1.Limit{"cores": amountLimit(4)}, Wildcard: true},
		}}}
	case r.GetPageToken() == "":
		answer.Principals = []*quoratev1.PrincipalUsage{
			{Name: "ann", Groups: map[string]string{"fit": "physics"}, Nodes: []*quoratev1.PrincipalNode{
				{Used: map[string]int64{"cores": 3}, Applications: []string{"fit", "plot"}, MaxApplications: amountLimit(2)},
				{Node: "atlas", Used: map[string]int64{"cores": 3}, Limits: map[string]*quoratev1.Limit{"cores": amountLimit(5)}},
			}},
		}
		answer.NextPageToken = "more"
	default:
		answer.Principals = []*quoratev1.PrincipalUsage{
			{Name: "bob", Nodes: []*quoratev1.PrincipalNode{{MaxApplications: amountLimit(1), Wildcard: true}}},
		}
	}
	if r.GetName() != "" {
		answer.NextPageToken = ""
	}
	return answer, nil
}
