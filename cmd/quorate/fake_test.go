package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
	"github.com/quorate/quorate/client/gen/quorate/v1beta1/quoratev1beta1connect"
	"github.com/quorate/quorate/internal/manifest"
)

// fake is a server with a fixed state: the tree of examples/cern.yaml at revision 7, in the middle of the CERN script,
// and two trees of a CI system. It records the requests that it received.
type fake struct {
	quoratev1connect.UnimplementedTreeServiceHandler
	adminv1connect.UnimplementedConfigurationServiceHandler
	adminv1connect.UnimplementedCordonServiceHandler
	quoratev1connect.UnimplementedIdentityServiceHandler
	quoratev1connect.UnimplementedAllocationServiceHandler
	quoratev1connect.UnimplementedEventServiceHandler
	quoratev1connect.UnimplementedItemServiceHandler
	adminv1connect.UnimplementedClusterServiceHandler
	adminv1connect.UnimplementedAccessServiceHandler
	adminv1connect.UnimplementedAuditServiceHandler
	quoratev1beta1connect.UnimplementedLimitRequestServiceHandler

	mu       sync.Mutex
	requests []proto.Message
	asked    map[string]int // number of calls for each waiting id
	granted  map[string]*quoratev1.Allocation
}

func startFake(t *testing.T) (*fake, string) {
	t.Helper()
	f := &fake{asked: map[string]int{}, granted: map[string]*quoratev1.Allocation{}}
	mux := http.NewServeMux()
	mux.Handle(quoratev1connect.NewTreeServiceHandler(f))
	mux.Handle(adminv1connect.NewConfigurationServiceHandler(f))
	mux.Handle(adminv1connect.NewCordonServiceHandler(f))
	mux.Handle(quoratev1connect.NewIdentityServiceHandler(f))
	mux.Handle(quoratev1connect.NewAllocationServiceHandler(f))
	mux.Handle(quoratev1connect.NewEventServiceHandler(f))
	mux.Handle(quoratev1connect.NewItemServiceHandler(f))
	mux.Handle(adminv1connect.NewClusterServiceHandler(f))
	mux.Handle(quoratev1beta1connect.NewActivityServiceHandler(f))
	mux.Handle(adminv1connect.NewAccessServiceHandler(f))
	mux.Handle(adminv1connect.NewAuditServiceHandler(f))
	mux.Handle(quoratev1beta1connect.NewLimitRequestServiceHandler(f))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return f, server.URL
}

func (f *fake) keepRequest(request proto.Message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, request)
}

func (f *fake) lastRequest(t *testing.T) proto.Message {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.requests) == 0 {
		t.Fatal("the server got no request")
	}
	return f.requests[len(f.requests)-1]
}

func runQuorate(server, stdin string, args ...string) (code int, stdout, stderr string) {
	var out, talk bytes.Buffer
	code = execute(append([]string{"--server", server}, args...), strings.NewReader(stdin), &out, &talk)
	return code, out.String(), talk.String()
}

var someDay = timestamppb.New(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))

func connectError(code connect.Code, format string, args ...any) *connect.Error {
	return connect.NewError(code, fmt.Errorf(format, args...))
}

func readInfo(read *quoratev1.ReadOptions) *quoratev1.ReadInfo {
	info := &quoratev1.ReadInfo{
		Index: 17, LedgerTimeMs: fakeNow, ServedBy: "n2",
		Consistency: quoratev1.Consistency_CONSISTENCY_LINEARIZABLE,
	}
	if read.GetConsistency() == quoratev1.Consistency_CONSISTENCY_STALE {
		info.Consistency, info.AgeMs = quoratev1.Consistency_CONSISTENCY_STALE, 120
	}
	return info
}

func fakeTree(name string) (*quoratev1.Tree, error) {
	for _, file := range []string{
		"../../examples/cern.yaml", "../../examples/zuul.yaml", "../../examples/ci.yaml",
		"../../examples/access.yaml",
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		m, err := manifest.Parse(file, text)
		if err != nil {
			return nil, err
		}
		for _, tree := range m.Trees {
			if tree.GetName() == name {
				return tree, nil
			}
		}
	}
	return nil, connectError(connect.CodeNotFound, "there is no tree %q", name)
}

func (f *fake) ListTrees(_ context.Context, r *quoratev1.ListTreesRequest) (*quoratev1.ListTreesResponse, error) {
	answer := &quoratev1.ListTreesResponse{Revision: 7, Read: readInfo(r.GetRead()), Policies: fakePolicies()}
	for _, name := range []string{"cern", "ci", "providers", "tenants"} {
		tree, err := fakeTree(name)
		if err != nil {
			return nil, err
		}
		answer.Trees = append(answer.Trees, &quoratev1.TreeSummary{
			Name: name, Policy: tree.GetPolicy(), Resources: tree.GetResources(),
			NodeCount: int32(len(tree.GetNodes()) + 1), ClaimCount: 3,
		})
	}
	return answer, nil
}

func (f *fake) GetTree(_ context.Context, r *quoratev1.GetTreeRequest) (*quoratev1.GetTreeResponse, error) {
	tree, err := fakeTree(r.GetName())
	return &quoratev1.GetTreeResponse{Tree: tree, Revision: 7, Read: readInfo(r.GetRead())}, err
}

func (f *fake) ApplyTrees(_ context.Context, r *quoratev1.ApplyTreesRequest) (*quoratev1.ApplyTreesResponse, error) {
	f.keepRequest(r)
	if r.GetAccess() != nil {
		return f.changeAccess(r)
	}
	if len(r.GetTrees()) == 0 && r.GetSubtree() == nil {
		return f.changePolicies(r)
	}
	if r.GetSubtree() == nil && r.GetTrees()[0].GetPolicy() == "unheard-of" {
		return nil, connectError(connect.CodeInvalidArgument, "trees[0].policy: there is no policy %q", "unheard-of")
	}
	result, err := f.changeResult(r, r.ExpectedRevision)
	if err == nil && r.GetDryRun() {
		addPlanEffects(result)
	}
	if err == nil {
		result.Changes = []*quoratev1.Change{
			{Kind: quoratev1.ChangeKind_CHANGE_KIND_ADDED, Tree: "cern", Field: "tree", After: "cern"},
			{
				Kind: quoratev1.ChangeKind_CHANGE_KIND_ADDED, Tree: "cern", Node: "atlas",
				Field: "limit cores", After: "100",
			},
			{
				Kind: quoratev1.ChangeKind_CHANGE_KIND_CHANGED, Tree: "cern", Node: "atlas/physics", Field: "policy",
				Before: "open", After: "strict",
			},
			{
				Kind: quoratev1.ChangeKind_CHANGE_KIND_REMOVED, Tree: "cern", Node: "atlas/old", Field: "node",
				Before: "atlas/old",
			},
		}
	}
	return &quoratev1.ApplyTreesResponse{Result: result}, err
}

func (f *fake) SetLimits(_ context.Context, r *quoratev1.SetLimitsRequest) (*quoratev1.SetLimitsResponse, error) {
	f.keepRequest(r)
	if r.GetLimits()["cores"].GetAmount() == 21 {
		return nil, withDetail(connectError(connect.CodeFailedPrecondition, "2 rules of policies forbid it"),
			&quoratev1.Problem{
				Reason: "POLICY_BREACH", NotApplied: true, Breaches: []*quoratev1.Breach{
					{
						Tree: "cern", Node: "atlas", Policy: "strict", Resource: "cores",
						Text: "the limits of its children add up to 101, more than its limit of 100",
					},
					{
						Tree: "cern", Node: "atlas/physics", Policy: "strict", Resource: "disk",
						Text: "its child higgs is unlimited",
					},
				},
			})
	}
	result, err := f.changeResult(r, r.ExpectedRevision)
	if err == nil {
		result.Changes = []*quoratev1.Change{{
			Kind: quoratev1.ChangeKind_CHANGE_KIND_CHANGED, Tree: r.GetTree(), Node: r.GetNode(),
			Field: "limit ram", Before: "unlimited", After: "16Gi",
		}}
		result.Overuses = []*quoratev1.Overuse{{
			Tree: "cern", Node: "atlas/physics/simulation", Resource: "cores", Limit: 5, Used: 10,
		}}
	}
	return &quoratev1.SetLimitsResponse{Result: result}, err
}

func (f *fake) DeleteTree(_ context.Context, r *quoratev1.DeleteTreeRequest) (*quoratev1.DeleteTreeResponse, error) {
	f.keepRequest(r)
	result, err := f.changeResult(r, r.ExpectedRevision)
	if err == nil && r.GetName() == "cern" {
		return nil, connectError(connect.CodeFailedPrecondition, "tree %q is in use: 3 claims are held in it", "cern")
	}
	return &quoratev1.DeleteTreeResponse{Result: result}, err
}

func (f *fake) changeResult(
	r interface{ GetDryRun() bool }, expected *uint64,
) (*quoratev1.ConfigurationResult, error) {
	if expected != nil && *expected != 7 {
		return nil, connectError(connect.CodeAborted, "the configuration is at revision 7, not %d", *expected)
	}
	if r.GetDryRun() {
		return &quoratev1.ConfigurationResult{Revision: 7}, nil
	}
	return &quoratev1.ConfigurationResult{Revision: 8}, nil
}

func (f *fake) GetUsage(_ context.Context, r *quoratev1.GetUsageRequest) (*quoratev1.GetUsageResponse, error) {
	f.keepRequest(r)
	answer := &quoratev1.GetUsageResponse{Read: readInfo(r.GetRead())}
	switch {
	case r.GetTree() == "tenants":
		answer.Nodes = []*quoratev1.NodeUsage{
			{
				Node: "tenant-1", Policy: "open", RunningApplications: 3, MaxApplications: amountLimit(2),
				Resources: []*quoratev1.ResourceUsage{
					{
						Resource: "ram", Unit: quoratev1.Unit_UNIT_BYTES, Limit: amountLimit(16 << 30),
						Effective: amountLimit(16 << 30), Own: 3 << 29, Subtree: 3 << 29,
						Headroom: proto.Int64(29 << 29),
					},
					{Resource: "servers", Unit: quoratev1.Unit_UNIT_COUNT, Effective: noLimit(), Own: 2, Subtree: 2},
				},
			},
		}
	case r.GetTree() != "cern":
		return nil, connectError(connect.CodeNotFound, "there is no tree %q", r.GetTree())
	case !r.GetSubtree():
		answer.Nodes = []*quoratev1.NodeUsage{coresUsage("", noLimit(), 0, 45, nil)}
	case r.GetPageToken() == "": // the state of step 8 of the script, in two pages
		answer.NextPageToken = "more"
		answer.Nodes = []*quoratev1.NodeUsage{
			coresUsage("", noLimit(), 0, 45, nil),
			coresUsage("atlas", amountLimit(100), 0, 45, proto.Int64(55)),
			coresUsage("atlas/operations", amountLimit(80), 0, 35, proto.Int64(45)),
			coresUsage("atlas/operations/web", amountLimit(30), 5, 5, proto.Int64(25)),
			coresUsage("atlas/operations/workflow", amountLimit(50), 30, 30, proto.Int64(20)),
		}
	default:
		answer.Nodes = []*quoratev1.NodeUsage{
			coresUsage("atlas/physics", amountLimit(20), 0, 10, proto.Int64(10)),
			coresUsage("atlas/physics/higgs", nil, 0, 0, proto.Int64(0)),
			coresUsage("atlas/physics/simulation", amountLimit(5), 10, 10, proto.Int64(0)),
		}
	}
	return answer, nil
}

func amountLimit(n int64) *quoratev1.Limit {
	return &quoratev1.Limit{Value: &quoratev1.Limit_Amount{Amount: n}}
}

func noLimit() *quoratev1.Limit {
	return &quoratev1.Limit{Value: &quoratev1.Limit_Unlimited{Unlimited: true}}
}

func coresUsage(node string, limit *quoratev1.Limit, own, subtree int64, headroom *int64) *quoratev1.NodeUsage {
	usage := &quoratev1.ResourceUsage{
		Resource: "cores", Unit: quoratev1.Unit_UNIT_COUNT, Limit: limit, Effective: limit,
		Own: own, Subtree: subtree, Headroom: headroom,
	}
	if limit == nil {
		usage.Effective = amountLimit(0)
	}
	if limit.GetAmount() > 0 {
		usage.Over = max(0, subtree-limit.GetAmount())
	}
	return &quoratev1.NodeUsage{Node: node, Policy: "strict", Resources: []*quoratev1.ResourceUsage{usage}}
}

func (f *fake) ListRevisions(_ context.Context,
	r *adminv1.ListRevisionsRequest,
) (*adminv1.ListRevisionsResponse, error) {
	f.keepRequest(r)
	return &adminv1.ListRevisionsResponse{Read: readInfo(r.GetRead()), Revisions: []*quoratev1.Revision{
		{
			Revision: 7, Actor: "alice", Reason: "a new rack", AppliedAt: someDay, ChangeCount: 1,
			Changes: []*quoratev1.Change{{
				Kind: quoratev1.ChangeKind_CHANGE_KIND_CHANGED, Tree: "tenants", Node: "tenant-1",
				Field: "limit ram", Before: "8Gi", After: "16Gi",
			}},
		},
		{
			Revision: 6, Actor: "user corp/ann", Reason: "Peter leaves", AppliedAt: someDay, ChangeCount: 2,
			Changes: fakeRights()[3:], Tree: "laboratory", Node: "physics",
		},
		{
			Revision: 5, AppliedAt: someDay, ChangeCount: 300,
			Changes: []*quoratev1.Change{
				{Kind: quoratev1.ChangeKind_CHANGE_KIND_ADDED, Tree: "tenants", Field: "label owner", After: "ops"},
			},
		},
	}}, nil
}

func (f *fake) Allocate(_ context.Context, r *quoratev1.AllocateRequest) (*quoratev1.AllocateResponse, error) {
	f.keepRequest(r)
	switch {
	case r.GetId() == "taken":
		return nil, connectError(connect.CodeAlreadyExists, "the id %q is taken by another request", "taken")
	case r.GetId() == "doubtful":
		return nil, withDetail(connectError(connect.CodeDeadlineExceeded, "the answer did not come in time"),
			&quoratev1.Problem{Reason: "DEADLINE"})
	case r.GetId() == "ended":
		return nil, connectError(connect.CodeFailedPrecondition, "the allocation %q has ended already", "ended")
	case r.GetClaims()[0].GetAmounts()["cores"] > 20:
		return nil, denialError(r.GetClaims()[0])
	case r.GetMode() == quoratev1.Mode_MODE_WAIT && f.mustWait(r.GetId()):
		return f.waitInQueue(r)
	}
	decision := &quoratev1.Decision{Outcome: quoratev1.Outcome_OUTCOME_GRANTED, Explanation: "everything fits"}
	if r.GetId() == "soft-1" { // it borrows from atlas and preempts
		decision.Placements = []*quoratev1.Placement{{Tree: "cern", Node: "atlas/physics", Placed: "atlas"}}
		decision.Preempted = []*quoratev1.Preempted{{Id: "soft-0", Tree: "cern", Node: "atlas", Reason: someReason()}}
	}
	held := heldAllocation(r.GetId(), 42, r.GetLabels(), r.GetClaims()...)
	addDetails(held, r)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.granted[r.GetId()] = held
	return &quoratev1.AllocateResponse{
		Allocation: held, Decision: decision,
		Write: &quoratev1.WriteInfo{Repetition: r.GetId() == "again", Index: 18, LedgerTimeMs: fakeNow},
	}, nil
}

// denialError is the answer to step 15 of the script: the limits of workflow, operations and atlas are exceeded.
func denialError(claim *quoratev1.Claim) error {
	wanted := claim.GetAmounts()["cores"]
	violation := func(node string, limit, used int64) *quoratev1.Violation {
		return &quoratev1.Violation{
			Tree: "cern", Node: node, Resource: "cores", Limit: limit, Used: used, Requested: wanted,
			Missing: used + wanted - limit,
		}
	}
	decision := &quoratev1.Decision{
		Outcome: quoratev1.Outcome_OUTCOME_DENIED,
		Violations: []*quoratev1.Violation{
			violation("atlas/operations/workflow", 50, 30), violation("atlas/operations", 80, 60),
			violation("atlas", 100, 80),
		},
		Explanation: fmt.Sprintf(
			"%d cores do not fit at cern:atlas/operations/workflow: 3 limits are in the way", wanted),
	}
	return withDetail(connectError(connect.CodeResourceExhausted, "%s", decision.GetExplanation()), decision)
}

func withDetail(err *connect.Error, message proto.Message) error {
	detail, failed := connect.NewErrorDetail(message)
	if failed != nil {
		return failed
	}
	err.AddDetail(detail)
	return err
}

func heldAllocation(id string, fence uint64, labels map[string]string,
	claims ...*quoratev1.Claim,
) *quoratev1.Allocation {
	held := &quoratev1.Allocation{
		Namespace: "default", Id: id, Fence: fence, Labels: labels, State: quoratev1.AllocationState_ALLOCATION_STATE_HELD,
		GrantedAt: someDay,
	}
	for _, c := range claims {
		placed := c.GetNode()
		if placed == "stranger" { // the policy open counts unknown tenants at the root
			placed = ""
		}
		held.Claims = append(held.Claims, &quoratev1.HeldClaim{
			Tree: c.GetTree(), Node: c.GetNode(), Amounts: c.GetAmounts(), Placed: placed, Picks: c.GetItems(),
			Items: itemsFor(c.GetItems()),
		})
	}
	return held
}

func (f *fake) Release(_ context.Context, r *quoratev1.ReleaseRequest) (*quoratev1.ReleaseResponse, error) {
	f.keepRequest(r)
	held, err := f.findAllocation(r.GetId())
	if err != nil {
		return nil, err
	}
	if len(r.GetItems()) > 0 {
		return &quoratev1.ReleaseResponse{Allocation: held, Write: &quoratev1.WriteInfo{Index: 19}}, nil
	}
	held = proto.CloneOf(held) // the first answer may still be in transit
	held.State, held.EndedAt = quoratev1.AllocationState_ALLOCATION_STATE_RELEASED, someDay
	return &quoratev1.ReleaseResponse{Allocation: held, Write: &quoratev1.WriteInfo{Index: 19}}, nil
}

func (f *fake) GetAllocation(_ context.Context,
	r *quoratev1.GetAllocationRequest,
) (*quoratev1.GetAllocationResponse, error) {
	held, err := f.findAllocation(r.GetId())
	return &quoratev1.GetAllocationResponse{Allocation: held, Read: readInfo(r.GetRead())}, err
}

func (f *fake) findAllocation(id string) (*quoratev1.Allocation, error) {
	if strings.HasPrefix(id, "late") {
		return &quoratev1.Allocation{Id: id, State: quoratev1.AllocationState_ALLOCATION_STATE_TIMED_OUT}, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if held := f.granted[id]; held != nil {
		return held, nil
	}
	for _, held := range fakeHoldings() {
		if held.GetId() == id {
			return held, nil
		}
	}
	return nil, connectError(connect.CodeNotFound, "there is no allocation %q", id)
}

func fakeHoldings() []*quoratev1.Allocation {
	return []*quoratev1.Allocation{
		heldAllocation("simulation-1", 3, nil, &quoratev1.Claim{
			Tree: "cern", Node: "atlas/physics/simulation", Amounts: map[string]int64{"cores": 10},
		}),
		heldAllocation("request-1", 4, map[string]string{"job": "nightly", "branch": "main"},
			&quoratev1.Claim{
				Tree: "tenants", Node: "stranger",
				Amounts: map[string]int64{"servers": 2, "ram": 16 << 30},
			},
			&quoratev1.Claim{Tree: "providers", Node: "cloud-a/main", Amounts: map[string]int64{"servers": 2}},
		),
		heldAllocation("workflow-1", 5, nil, &quoratev1.Claim{
			Tree: "cern", Node: "atlas/operations/workflow", Amounts: map[string]int64{"cores": 30},
		}),
		preemptedAllocation(), heldLease(), revokedLease(),
	}
}

// ListAllocations returns two allocations per page.
func (f *fake) ListAllocations(
	_ context.Context, r *quoratev1.ListAllocationsRequest,
) (*quoratev1.ListAllocationsResponse, error) {
	f.keepRequest(r)
	all := fakeHoldings()[:3]
	if r.GetLeases() {
		answer := &quoratev1.ListAllocationsResponse{Read: readInfo(r.GetRead()), Allocations: fakeHoldings()[4:]}
		return answer, nil
	}
	answer := &quoratev1.ListAllocationsResponse{Read: readInfo(r.GetRead())}
	if r.GetPageToken() == "2" {
		answer.Allocations = all[2:]
		return answer, nil
	}
	answer.Allocations = all[:min(2, int(r.GetPageSize()))]
	answer.NextPageToken = "2"
	return answer, nil
}

func (f *fake) GetStatus(_ context.Context, r *adminv1.GetStatusRequest) (*adminv1.GetStatusResponse, error) {
	f.keepRequest(r)
	return &adminv1.GetStatusResponse{
		ServedBy: "n2", LeaderId: "n1", Term: 3, CommitIndex: 17, AppliedIndex: 17,
		LedgerTimeMs: 3_600_000, CivilTimeMs: 1_790_000_000_000, Revision: 7,
		HeldAllocations: 3, LedgerBytes: 12 << 20, LedgerBytesLimit: 704 << 20,
		TombstoneMs: (24 * time.Hour).Milliseconds(), ClusterName: "demo",
		Problem: "1 of 3 members does not answer; the cluster survives no further loss",
		Member: &adminv1.Member{
			Id: "n2", Seat: adminv1.Seat_SEAT_VOTER, Role: adminv1.Role_ROLE_FOLLOWER, Reachable: true, Version: "v0.1.0",
			FeatureLevel: 1, AppliedIndex: 17, LastIndex: 17, LogStore: "wal", TimeZones: "2026f",
		},
	}, nil
}
