package wire

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
)

func TestRequestsSayWhoHoldsAndHow(t *testing.T) {
	got := ToAllocate(&quoratev1.AllocateRequest{
		Id: "a", Mode: quoratev1.Mode_MODE_RESERVE, Priority: 5, PreemptionClass: 2, Unpreemptable: true,
		Principal: &quoratev1.Principal{User: "ann", Groups: []string{"dev", "all", "dev"}, Application: "app-1"},
		Claims: []*quoratev1.Claim{
			{Tree: "t"}, {Tree: "u", Priority: new(int64(-1)), PreemptionClass: new(int64(0)), Unpreemptable: new(false)},
		},
	}, quota.DefaultNamespace)
	want := quota.Allocate{
		ID: "a", Mode: quota.Reserve, ReserveFor: 60_000, Priority: 5,
		Principal: quota.Principal{User: "ann", Groups: []string{"all", "dev"}, Application: "app-1"},
		Claims: []quota.Claim{
			{Tree: "t", Standing: quota.Standing{Priority: 5, Type: 2, Unpreemptable: true}},
			{Tree: "u", Standing: quota.Standing{Priority: -1}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestModes(t *testing.T) {
	for mode := range quoratev1.Mode_name {
		if _, known := modes[quoratev1.Mode(mode)]; !known {
			t.Errorf("no mode of the ledger for %v", quoratev1.Mode(mode))
		}
	}
	for mode, span := range map[quoratev1.Mode]quota.Span{
		quoratev1.Mode_MODE_RESERVE: 7, quoratev1.Mode_MODE_REJECT: 7, // the ledger must refuse the second
	} {
		if got := ToAllocate(&quoratev1.AllocateRequest{Mode: mode, ReserveMs: 7},
			quota.DefaultNamespace).ReserveFor; got != span {
			t.Errorf("%v for 7 ms became %d", mode, got)
		}
	}
	if got := ToAllocate(&quoratev1.AllocateRequest{Mode: quoratev1.Mode_MODE_FORCE},
		quota.DefaultNamespace); got.Mode != quota.Force ||
		got.ReserveFor != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestDecisionsSayEverything(t *testing.T) {
	denied := quota.Decision{
		Violations: []quota.Violation{
			{Tree: "t", Node: "a", Resource: "cpu", Limit: 5, Used: 3, Requested: 6},
			{
				Tree: "t", Limit: 1, Used: 1, Requested: 1, Kind: quota.OfApplications,
				Holder: quota.Holder{Kind: quota.AUser, Name: "ann"},
			},
			{Tree: "t", Node: "b", Resource: "cpu", Requested: 1, Kind: quota.OfBorrowing},
		},
		Holders: []quota.LevelHolders{{
			Tree: "t", Node: "a", Resource: "cpu", Holder: quota.Holder{Kind: quota.AUser, Name: "ann"}, Others: 3,
			Groups:      []quota.HolderGroup{{Node: "a/b", User: "ann", Owner: "account/ci", Amount: 4, Claims: 2}},
			Allocations: []quota.Blocker{{ID: "j", Node: "a/b", User: "ann", Owner: "o", Amount: 4, ExpiresAt: 9}},
			Ahead: []quota.Blocker{{
				ID: "w", Application: "app", Since: 7, SinceWall: 1000, Position: 2, Alternative: 3,
			}},
			OtherAllocations: 5, OtherAhead: 6, Alternative: 7,
		}},
		Remedy: &quota.Remedy{
			Releases: []string{"x"},
			Raises: []quota.Raise{
				{
					Tree: "t", Node: "a", Resource: "cpu", From: 5, To: 7,
					Holder: quota.Holder{Kind: quota.AGroup, Name: "*"}, Unconfigured: true, NeedsReason: true,
				},
			},
		},
	}
	want := &quoratev1.Decision{
		Outcome: quoratev1.Outcome_OUTCOME_DENIED, NeverFits: true, Explanation: denied.Explain(),
		Violations: []*quoratev1.Violation{
			{
				Tree: "t", Node: "a", Resource: "cpu", Limit: 5, Used: 3, Requested: 6, Missing: 4, NeverFits: true, Excess: 1,
				Kind:       quoratev1.ViolationKind_VIOLATION_KIND_RESOURCE,
				HolderKind: quoratev1.HolderKind_HOLDER_KIND_NODE,
			},
			{
				Tree: "t", Limit: 1, Used: 1, Requested: 1, Missing: 1,
				Kind:       quoratev1.ViolationKind_VIOLATION_KIND_APPLICATIONS,
				HolderKind: quoratev1.HolderKind_HOLDER_KIND_USER, Holder: "ann",
			},
			{
				Tree: "t", Node: "b", Resource: "cpu", Requested: 1, Missing: 1,
				Kind:       quoratev1.ViolationKind_VIOLATION_KIND_BORROWING,
				HolderKind: quoratev1.HolderKind_HOLDER_KIND_NODE,
			},
		},
		Holders: []*quoratev1.LevelHolders{{
			Tree: "t", Node: "a", Resource: "cpu", HolderKind: quoratev1.HolderKind_HOLDER_KIND_USER, Holder: "ann",
			Kind:   quoratev1.ViolationKind_VIOLATION_KIND_RESOURCE,
			Others: 3, Groups: []*quoratev1.HolderGroup{{Node: "a/b", User: "ann", Owner: "account/ci", Amount: 4, Claims: 2}},
			Allocations: []*quoratev1.Blocker{{
				Namespace: "default", Id: "j", Node: "a/b", User: "ann", Owner: "o", Amount: 4, ExpiresLedgerMs: 9,
				BeganAt: FromWall(0),
			}},
			Blockers: []*quoratev1.Blocker{{
				Namespace: "default", Id: "w", Application: "app", BeganLedgerMs: 7, BeganAt: FromWall(1000), Position: 2,
				Alternative: 3,
			}},
			OtherAllocations: 5, OtherBlockers: 6, Alternative: 7,
		}},
		Remedy: &quoratev1.Remedy{
			Releases: []*quoratev1.AllocationRef{ref("x")},
			Raises: []*quoratev1.Raise{{
				Tree: "t", Node: "a", Resource: "cpu", Limit: 5, NewLimit: 7,
				Kind:       quoratev1.ViolationKind_VIOLATION_KIND_RESOURCE,
				HolderKind: quoratev1.HolderKind_HOLDER_KIND_GROUP, Holder: "*",
				Unconfigured: true, NeedsReason: true,
			}},
		},
	}
	if diff := cmp.Diff(want, FromDecision(denied, nil), protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	granted := FromDecision(
		quota.Decision{Granted: true, Preempted: []quota.Preempted{{ID: "x", Tree: "t", Node: "a"}}},
		[]quota.ClaimInfo{{Tree: "t", Node: "a/b", Placed: "a"}},
	)
	want = &quoratev1.Decision{
		Outcome: quoratev1.Outcome_OUTCOME_GRANTED, Explanation: "granted",
		Preempted:  []*quoratev1.Preempted{{Namespace: "default", Id: "x", Tree: "t", Node: "a"}},
		Placements: []*quoratev1.Placement{{Tree: "t", Node: "a/b", Placed: "a"}},
	}
	if diff := cmp.Diff(want, granted, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

func TestAllocationsSayEverything(t *testing.T) {
	got := FromAllocation(quota.AllocationInfo{
		ID: "a", Fence: 3, GrantedAt: 10, GrantedWall: 1000, State: quota.WasPreempted, Forced: true, ReservedUntil: 20,
		Principal: quota.Principal{User: "ann", Groups: []string{"dev"}, Application: "app-1"},
		Preempted: []quota.Preempted{{ID: "x", Tree: "t", Node: "a"}}, PreemptedBy: "z", Ended: true, EndedWall: 2000,
		MadeRoom: &quota.MadeRoom{Count: 1, Totals: []quota.RoomTotal{{Tree: "t", Resource: "cpu", Amount: 2}}},
		Reason: &quota.Reason{
			Kind: quota.ByShare, Tree: "t", Node: "a", Share: "a/c", Borrower: "a/b", Priority: -1, RequestPriority: 3,
			Amounts: []quota.ReasonAmount{{Resource: "cpu", Requested: 4, Missing: 1, Given: 2}}, Actor: "eva",
			Text: "cables", Grace: 5,
		},
		Claims: []quota.ClaimInfo{{
			Tree: "t", Node: "a/b", Placed: "a", Amounts: quota.Vector{{Resource: "cpu", Amount: 2}}, Group: "dev",
			Standing: quota.Standing{Priority: -1, Type: 2, Unpreemptable: true},
		}},
	})
	want := &quoratev1.Allocation{
		Namespace: "default", Id: "a", Fence: 3, GrantedLedgerMs: 10, GrantedAt: FromWall(1000),
		State:  quoratev1.AllocationState_ALLOCATION_STATE_PREEMPTED,
		Forced: true, ReservedUntilLedgerMs: 20, PreemptedBy: ref("z"), EndedAt: FromWall(2000),
		Principal: &quoratev1.Principal{User: "ann", Groups: []string{"dev"}, Application: "app-1"},
		Preempted: []*quoratev1.Preempted{{Namespace: "default", Id: "x", Tree: "t", Node: "a"}},
		MadeRoom: &quoratev1.MadeRoom{
			Count: 1, Totals: []*quoratev1.RoomTotal{{Tree: "t", Resource: "cpu", Amount: 2}},
		},
		Reason: &quoratev1.EndReason{
			Kind: quoratev1.EndReasonKind_END_REASON_KIND_SHARE, Tree: "t", Node: "a", Share: "a/c", Borrower: "a/b",
			Priority: -1, RequestPriority: 3, Actor: "eva", Text: "cables", GraceMs: 5,
			Amounts: []*quoratev1.EndReasonAmount{{Resource: "cpu", Requested: 4, Missing: 1, Given: 2}},
		},
		Claims: []*quoratev1.HeldClaim{{
			Tree: "t", Node: "a/b", Placed: "a", Amounts: map[string]int64{"cpu": 2}, Group: "dev", Priority: -1,
			PreemptionClass: 2, Unpreemptable: true,
		}},
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

// TestClosedListsAreComplete: every constant of the ledger has a value in the API, and no two share one.
func TestClosedListsAreComplete(t *testing.T) {
	seen := map[quoratev1.AllocationState]bool{quoratev1.AllocationState_ALLOCATION_STATE_UNSPECIFIED: true}
	for _, state := range states {
		if seen[state] {
			t.Errorf("%v is said of two states", state)
		}
		seen[state] = true
	}
	if len(seen) != len(quoratev1.AllocationState_name) {
		t.Errorf("%d states of %d", len(seen), len(quoratev1.AllocationState_name))
	}
	for kind := quota.EventDenied; kind <= quota.EventDropped; kind++ {
		if wire := fromEventKind(kind); EventKinds[wire] != kind {
			t.Errorf("event kind %d became %v", kind, wire)
		}
	}
	if wire := fromEventKind(quota.EventDrained); EventKinds[wire] != quota.EventDrained {
		t.Errorf("a drain became %v", wire)
	}
	if len(EventKinds) != len(quoratev1.EventKind_name) || len(violationKinds)+1 != len(quoratev1.ViolationKind_name) ||
		len(holderKinds)+1 != len(quoratev1.HolderKind_name) || len(queueings) != len(quoratev1.Queueing_name) ||
		len(units) != len(quoratev1.Unit_name) || len(reasonKinds)+1 != len(quoratev1.EndReasonKind_name) {
		t.Error("a kind is missing")
	}
}

func TestEvents(t *testing.T) {
	got := FromEvent(quota.Event{
		Number: 7, Kind: quota.EventDenied, ID: "a", By: "b", Stamp: quota.Stamp{At: 5, Wall: 1000},
		Decision: &quota.Decision{Violations: []quota.Violation{{Tree: "t", Resource: "cpu", Limit: 1, Requested: 2}}},
	})
	if got.GetNumber() != 7 || got.GetId() != "a" || got.GetActor() != "b" ||
		got.GetNamespace() != "default" || got.GetHappenedLedgerMs() != 5 ||
		!proto.Equal(got.GetHappenedAt(), FromWall(1000)) ||
		got.GetDecision().GetViolations()[0].GetMissing() != 1 {
		t.Errorf("got %v", got)
	}
}

func TestEffectsOfAChange(t *testing.T) {
	got := FromConfiguration(quota.Configuration{Revision: 3, Effects: &quota.Effects{
		Admitted: []string{"job"},
		Rooms:    []quota.RoomChange{{Tree: "t", Node: "a", Resource: "cpu", Before: 0, BeforeBounded: true, After: 9}},
		Unjudged: true,
		Queue: &quota.QueueEffects{
			Granted:   quota.Affected{List: []quota.AffectedRequest{{ID: "b"}}, Total: 200},
			Preempted: quota.Affected{List: []quota.AffectedRequest{{ID: "c", By: "b"}}, Total: 1},
			Revoked:   quota.Affected{List: []quota.AffectedRequest{{ID: "d", By: "e"}}, Total: 1},
			SetAside:  quota.Affected{List: []quota.AffectedRequest{{ID: "f"}}, Total: 1},
		},
	}})
	want := &quoratev1.ConfigurationResult{
		Revision: 3, Admitted: []*quoratev1.AllocationRef{ref("job")}, Changes: []*quoratev1.Change{},
		Rooms: []*quoratev1.RoomChange{{Tree: "t", Node: "a", Resource: "cpu", Before: new(int64(0))}},
		Queue: &quoratev1.QueueEffects{
			Granted: &quoratev1.AffectedRequests{
				Requests: []*quoratev1.AffectedRequest{{Namespace: "default", Id: "b"}},
				Total:    200,
			},
			Preempted: &quoratev1.AffectedRequests{
				Requests: []*quoratev1.AffectedRequest{{Namespace: "default", Id: "c", By: ref("b")}}, Total: 1,
			},
			Revoked: &quoratev1.AffectedRequests{Requests: []*quoratev1.AffectedRequest{{
				Namespace: "default", Id: "d",
				By: ref("e"),
			}}, Total: 1},
			SetAside: &quoratev1.AffectedRequests{
				Requests: []*quoratev1.AffectedRequest{{Namespace: "default", Id: "f"}},
				Total:    1,
			},
		},
		QueueNotEvaluated: true,
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

func TestPrincipalsSayWhatTheyHold(t *testing.T) {
	got := FromPrincipalUsage(quota.PrincipalUsage{
		Name: "ann", Groups: []quota.Label{{Key: "app-1", Value: "dev"}}, Users: []string{"ann", "bob"},
		Nodes: []quota.PrincipalNode{{
			Path: "a", Used: quota.Vector{{Resource: "cpu", Amount: 3}}, Applications: []string{"app-1"},
			Limits: quota.Vector{{Resource: "cpu", Amount: 5}}, MaxApplications: quota.AtMost(2), Wildcard: true,
			Members: []quota.GroupMember{
				{User: "bob", Used: quota.Vector{{Resource: "cpu", Amount: 1}}, Applications: []string{"app-2"}},
			},
			MoreMembers: 4,
		}},
	})
	want := &quoratev1.PrincipalUsage{
		Name: "ann", Groups: map[string]string{"app-1": "dev"}, Users: []string{"ann", "bob"},
		Nodes: []*quoratev1.PrincipalNode{{
			Node: "a", Used: map[string]int64{"cpu": 3}, Applications: []string{"app-1"},
			Limits: map[string]*quoratev1.Limit{"cpu": atMost(5)}, MaxApplications: atMost(2), Wildcard: true,
			Members: []*quoratev1.GroupMember{
				{User: "bob", Used: map[string]int64{"cpu": 1}, Applications: []string{"app-2"}},
			},
			MoreMembers: 4,
		}},
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

func ref(id string) *quoratev1.AllocationRef {
	return &quoratev1.AllocationRef{Namespace: quota.DefaultNamespace, Id: id}
}

// TestReferencesHaveNamespaces: each text that stands for an allocation in the ledger becomes a reference that says so.
func TestReferencesHaveNamespaces(t *testing.T) {
	for qualified, want := range map[string]*quoratev1.AllocationRef{
		"":                            nil,
		"job-1":                       {Namespace: "default", Id: "job-1"},
		"account/hans job-1":          {Namespace: "account/hans", Id: "job-1"},
		quota.DrainedBy:               {},
		quota.HiddenAllocation:        {},
		quota.QualifiedID("", "x"):    {Namespace: "default", Id: "x"},
		quota.QualifiedID("a", "b"):   {Namespace: "a", Id: "b"},
		quota.QualifiedID("a", "a"):   {Namespace: "a", Id: "a"},
		quota.QualifiedID("a/b", "d"): {Namespace: "a/b", Id: "d"},
	} {
		got := FromID(qualified)
		if !proto.Equal(got, want) || (got == nil) != (want == nil) {
			t.Errorf("%q: %v, want %v", qualified, got, want)
		}
		if want.GetId() != "" && ToID(want, "other") != qualified {
			t.Errorf("%v is %q, want %q", want, ToID(want, "other"), qualified)
		}
	}
	if got := ToID(&quoratev1.ReleaseRequest{Id: "x"}, "account/hans"); got != "account/hans x" {
		t.Errorf("without a namespace: %q", got)
	}
	if got := FromEvent(quota.Event{Kind: quota.EventPreempted, ID: "n a", By: "m b"}); got.GetNamespace() != "n" ||
		got.GetId() != "a" || got.GetBy().GetNamespace() != "m" || got.GetBy().GetId() != "b" || got.GetActor() != "" {
		t.Errorf("an event: %v", got)
	}
}

// TestRefusalsNameForeignNamespacesOnly: callers need not read their own namespace in each refusal.
func TestRefusalsNameForeignNamespacesOnly(t *testing.T) {
	e := &quota.Error{Kind: quota.NotFound, Text: `"account/hans a" and "cert/zuul b" and "account/hansel c" and "d"`}
	if got := ToReader(e, "account/hans").Text; got != `"a" and "cert/zuul b" and "account/hansel c" and "d"` {
		t.Errorf("got %s", got)
	}
	if ToReader(e, quota.DefaultNamespace) != e || ToReader(nil, "x") != nil {
		t.Error("a refusal without the reader's namespace was copied")
	}
}
