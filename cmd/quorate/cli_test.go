package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
	quoratev1beta1 "github.com/quorate/quorate/client/gen/quorate/v1beta1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// TestRequests compares the request that each command line sends with the expected one.
func TestRequests(t *testing.T) {
	t.Setenv("USER", "alice")
	f, server := startFake(t)
	tests := map[string]proto.Message{
		"limit set tenants:tenant-1 ram=1.5Gi cores=0 servers=unset --dry-run --expected-revision 7 --reason why": &quoratev1.SetLimitsRequest{
			Tree: "tenants", Node: "tenant-1", DryRun: true, ExpectedRevision: proto.Uint64(7),
			Actor: "alice", Reason: "why",
			Limits: map[string]*quoratev1.Limit{
				"ram": amountLimit(3 << 29), "cores": amountLimit(0),
				"servers": {Value: &quoratev1.Limit_Unset{Unset: true}},
			},
		},
		"limit set cern cores=unlimited --actor bob": &quoratev1.SetLimitsRequest{
			Tree: "cern", Actor: "bob", Limits: map[string]*quoratev1.Limit{"cores": noLimit()},
		},
		"limit set cern:atlas/physics/higgs --applications 2 cores=1 --reason why": &quoratev1.ApplyTreesRequest{
			Actor: "alice", Reason: "why",
			ExpectedRevision: proto.Uint64(7),
			Subtree: &quoratev1.SubtreeText{Tree: "cern", Node: "atlas/physics/higgs", Text: &quoratev1.Tree{
				Name: "cern", Resources: []*quoratev1.Resource{{Name: "cores", Unit: quoratev1.Unit_UNIT_COUNT}},
				Nodes: []*quoratev1.Node{{
					Path: "atlas/physics/higgs", Applications: amountLimit(2),
					Limits: map[string]*quoratev1.Limit{"cores": amountLimit(1)},
				}},
			}},
		},
		"limit set cern:atlas/physics/higgs cores=3 --user ada --dry-run --expected-revision 7": &quoratev1.ApplyTreesRequest{
			Actor: "alice", DryRun: true,
			ExpectedRevision: proto.Uint64(7),
			Subtree: &quoratev1.SubtreeText{Tree: "cern", Node: "atlas/physics/higgs", Text: &quoratev1.Tree{
				Name: "cern", Resources: []*quoratev1.Resource{{Name: "cores", Unit: quoratev1.Unit_UNIT_COUNT}},
				Nodes: []*quoratev1.Node{{
					Path: "atlas/physics/higgs", Limits: map[string]*quoratev1.Limit{"cores": amountLimit(0)},
					Principals: []*quoratev1.PrincipalLimit{{
						Users: []string{"ada"}, Limits: map[string]*quoratev1.Limit{"cores": amountLimit(3)},
					}},
				}},
			}},
		},
		"tree delete tenants --expected-revision 7": &quoratev1.DeleteTreeRequest{
			Name: "tenants", ExpectedRevision: proto.Uint64(7), Actor: "alice",
		},
		"usage tenants:tenant-1 --stale --subtree=false": &quoratev1.GetUsageRequest{
			Tree: "tenants", Node: "tenant-1", PageSize: 1000,
			Read: &quoratev1.ReadOptions{Consistency: quoratev1.Consistency_CONSISTENCY_STALE},
		},
		"usage tenants --depth 1 --fullest --at-least 90%": &quoratev1.GetUsageRequest{
			Tree: "tenants", Subtree: true, MaxDepth: 1, AtLeastPercent: 90, FullestFirst: true, PageSize: 1000,
		},
		"usage tenants --name-contains ant-1": &quoratev1.GetUsageRequest{
			Tree: "tenants", Subtree: true, NameContains: "ant-1", PageSize: 1000,
		},
		"activity list tenants:tenant-1 --stale": &quoratev1beta1.GetActivityRequest{
			Tree: "tenants", Node: "tenant-1", LastSteps: 12,
			Read: &quoratev1.ReadOptions{Consistency: quoratev1.Consistency_CONSISTENCY_STALE},
		},
		"activity list cern --resource gpu --last 6m": &quoratev1beta1.GetActivityRequest{
			Tree: "cern", Resource: "gpu", LastSteps: 2,
		},
		"activity list cern cern:atlas --last 24h": &quoratev1beta1.GetActivityRequest{
			Tree: "cern", Nodes: []string{"", "atlas"}, LastSteps: 288,
		},
		"revision list --limit 5 --before 9": &adminv1.ListRevisionsRequest{PageSize: 5, BeforeRevision: 9},
		"revision list --one-line":           &adminv1.ListRevisionsRequest{PageSize: 1000},
		"allocate --id a --at cern --amount cores=3 --at tenants:tenant-1 --amount ram=1Ki --amount servers=0 --label k=v": &quoratev1.AllocateRequest{
			NameHolders: true,
			Id:          "a", Mode: quoratev1.Mode_MODE_REJECT, Labels: map[string]string{"k": "v"},
			Claims: []*quoratev1.Claim{
				{Tree: "cern", Amounts: map[string]int64{"cores": 3}},
				{Tree: "tenants", Node: "tenant-1", Amounts: map[string]int64{"ram": 1024, "servers": 0}},
			},
		},
		"allocate --id a --at cern --amount cores=3 --dry-run": &quoratev1.ExplainRequest{
			Question: &quoratev1.ExplainRequest_Request{Request: &quoratev1.AllocateRequest{
				Id: "a", Mode: quoratev1.Mode_MODE_REJECT,
				Claims: []*quoratev1.Claim{{Tree: "cern", Amounts: map[string]int64{"cores": 3}}},
			}},
		},
		"allocation list --at cern:atlas --label a=b --label c= --limit 2": &quoratev1.ListAllocationsRequest{
			Tree: "cern", Node: "atlas", Labels: map[string]string{"a": "b", "c": ""}, PageSize: 2,
		},
		"allocation list --at cern:atlas --user kim --application etl --owner ann --prefix job- --state reserved --limit 2": &quoratev1.ListAllocationsRequest{
			Tree: "cern", Node: "atlas", User: "kim", Application: "etl", Owner: "ann", IdPrefix: "job-",
			State: quoratev1.AllocationState_ALLOCATION_STATE_RESERVED, PageSize: 2,
		},
		"allocation list --limit 3":      &quoratev1.ListAllocationsRequest{PageSize: 1, PageToken: "2"}, // the second page
		"release simulation-1":           &quoratev1.ReleaseRequest{Id: "simulation-1"},
		"release simulation-1 --fence 7": &quoratev1.ReleaseRequest{Id: "simulation-1", Fence: 7},
		"member create 10.0.0.4:7301": &adminv1.JoinMemberRequest{
			Whom: &adminv1.JoinMemberRequest_GossipAddress{GossipAddress: "10.0.0.4:7301"},
		},
		"member create --id n4":                  &adminv1.JoinMemberRequest{Whom: &adminv1.JoinMemberRequest_Id{Id: "n4"}},
		"member set n4 --role voter --force":     &adminv1.PromoteMemberRequest{Id: "n4", Force: true},
		"member set n4 --role non-voter --force": &adminv1.DemoteMemberRequest{Id: "n4", Force: true},
		"member delete n4 --force":               &adminv1.RemoveMemberRequest{Id: "n4", Force: true},
		"member delete --self":                   &adminv1.RemoveMemberRequest{Id: "n2"},
		"member set n2 --role leader":            &adminv1.TransferLeaderRequest{Id: "n2"},
		"status --local":                         &adminv1.GetStatusRequest{},
		"access check hold cern:atlas/physics": &quoratev1.CanIRequest{
			Questions: []*quoratev1.AccessQuestion{{
				Verb: "hold", Tree: "cern", Node: "atlas/physics",
			}},
		},
		"binding list access.manage": &adminv1.WhoCanRequest{Verb: "access.manage"},
		"account create a --group g,h --description d --disable --reason r --token-file testdata/admin.token": &adminv1.CreateAccountRequest{
			Account: &adminv1.Account{Name: "a", Groups: []string{"g", "h"}, Description: "d", Disabled: true}, Reason: "r",
		},
		"account set sim-ci --disable --reason r --token-file testdata/admin.token": &adminv1.UpdateAccountRequest{
			Name: "sim-ci", Disabled: new(true), Reason: "r",
		},
		"account set old-ci --group= --description x --token-file testdata/admin.token": &adminv1.UpdateAccountRequest{
			Name: "old-ci", Description: new("x"), Groups: &adminv1.AccountGroups{},
		},
		"account delete a --reason r": &adminv1.DeleteAccountRequest{Name: "a", Reason: "r"},
		"token create a --life 36h --description d --verbs hold,usage.read --reason r": &adminv1.CreateTokenRequest{
			Account: "a", LifeMs: 129_600_000, Description: "d", Verbs: []string{"hold", "usage.read"}, Reason: "r",
		},
		"token rotate": &adminv1.RotateTokenRequest{
			OverlapMs: proto.Int64(86_400_000), LifeMs: 7_776_000_000,
		},
		"token rotate 0123456789abc --overlap 0s --life 1d --reason r": &adminv1.RotateTokenRequest{
			Id: "0123456789abc", OverlapMs: proto.Int64(0), LifeMs: 86_400_000, Reason: "r",
		},
		"token delete 0123456789abc --reason r": &adminv1.RevokeTokenRequest{Id: "0123456789abc", Reason: "r"},
		"refusal create user corp/ann --issued-before 2026-11-20T12:00:00Z --until 2126-01-01T00:00:00Z --reason r": &adminv1.RefuseCredentialRequest{
			Refused: &adminv1.RefusedCredential{
				Kind: adminv1.RefusedKind_REFUSED_KIND_USER, Name: "corp/ann", IssueCutoffAt: someDay, EndsAt: farFuture,
				Reason: "r",
			},
		},
		"refusal delete jti 6f1c --issuer github --reason r": &adminv1.AllowCredentialRequest{
			Kind: adminv1.RefusedKind_REFUSED_KIND_JTI, Issuer: "github", Name: "6f1c", Reason: "r",
		},
		"access set watching --reason r": &adminv1.SetAccessModeRequest{
			Mode: quoratev1.AccessMode_ACCESS_MODE_WATCHING, Reason: "r",
		},
		"access set guarded --token-file testdata/admin.token": &adminv1.SetAccessModeRequest{
			Mode: quoratev1.AccessMode_ACCESS_MODE_GUARDED,
		},
		"token create --secret-file testdata/bootstrap.secret a --token-file testdata/admin.token": &adminv1.BootstrapRequest{
			Secret: fakeSecret, Account: "a",
		},
		"allocate --id a --at cern --amount cores=3 --user ann --group g --group h --application app --priority -1 --type 2 --unpreemptable --reserve 5m": &quoratev1.AllocateRequest{
			NameHolders: true,
			Id:          "a", Mode: quoratev1.Mode_MODE_RESERVE, ReserveMs: 300_000, Priority: -1, PreemptionClass: 2,
			Unpreemptable: true,
			Principal:     &quoratev1.Principal{User: "ann", Groups: []string{"g", "h"}, Application: "app"},
			Claims:        []*quoratev1.Claim{{Tree: "cern", Amounts: map[string]int64{"cores": 3}}},
		},
		"allocation confirm a":           &quoratev1.ConfirmRequest{Id: "a"},
		"release a --restore":            &quoratev1.CancelRequest{Id: "a"},
		"allocation confirm a --fence 7": &quoratev1.ConfirmRequest{Id: "a", Fence: 7},
		"release a --restore --fence 7":  &quoratev1.CancelRequest{Id: "a", Fence: 7},
		"explain big --stale": &quoratev1.ExplainRequest{
			Question: &quoratev1.ExplainRequest_Id{Id: "big"},
			Read:     &quoratev1.ReadOptions{Consistency: quoratev1.Consistency_CONSISTENCY_STALE},
		},
		"explain --id a --at cern --amount cores=3 --force": &quoratev1.ExplainRequest{
			Question: &quoratev1.ExplainRequest_Request{Request: &quoratev1.AllocateRequest{
				Id: "a", Mode: quoratev1.Mode_MODE_FORCE,
				Claims: []*quoratev1.Claim{{Tree: "cern", Amounts: map[string]int64{"cores": 3}}},
			}},
		},
		"event list --after-event 1 --kind denied --id x --limit 7": &quoratev1.ListEventsRequest{
			AfterEvent: 1, Kind: quoratev1.EventKind_EVENT_KIND_DENIED, Id: "x", PageSize: 7,
		},
		"event list --limit 3": &quoratev1.ListEventsRequest{PageToken: "2", PageSize: 1}, // the second page
		"principal list cern ann": &quoratev1.ListPrincipalsRequest{
			Tree: "cern", PageSize: 1000,
			Kind: quoratev1.HolderKind_HOLDER_KIND_USER, Name: "ann",
		},
		"principal list cern": &quoratev1.ListPrincipalsRequest{
			Tree: "cern", PageSize: 1000,
			Kind: quoratev1.HolderKind_HOLDER_KIND_USER, PageToken: "more",
		},
		"revision rollback 6 --dry-run": &adminv1.RollBackRequest{Revision: 6, DryRun: true, Actor: "alice"},
		"node move cern:atlas/higgs atlas/bosons --reason why --expected-revision 7": &quoratev1.MoveNodeRequest{
			Tree: "cern", Node: "atlas/higgs", NewNode: "atlas/bosons", Reason: "why", Actor: "alice",
			ExpectedRevision: proto.Uint64(7),
		},
		"allocate --id a --at ci:tenants/web --item aws-account --item cluster@dirty=2 --at ci --item aws-account:a,b --ttl 1m --wait 1h --keep 10s --priority 3 --data k=v --async": &quoratev1.AllocateRequest{
			NameHolders: true,
			Id:          "a", Mode: quoratev1.Mode_MODE_WAIT, TtlMs: 60_000,
			WaitMs: new(int64(3_600_000)), KeepMs: 10_000, Priority: 3,
			UserData: map[string]string{"k": "v"},
			Claims: []*quoratev1.Claim{
				{Tree: "ci", Node: "tenants/web", Items: []*quoratev1.ItemPick{
					{Resource: "aws-account", Count: 1}, {Resource: "cluster", State: "dirty", Count: 2},
				}},
				{Tree: "ci", Items: []*quoratev1.ItemPick{
					{Resource: "aws-account", Names: []string{"a", "b"}, Count: 2},
				}},
			},
		},
		"release lease-1 --only ci:aws-account:a --only ci:aws-account:b --new-state dirty": &quoratev1.ReleaseRequest{
			Id: "lease-1", ItemState: "dirty", Items: []*quoratev1.ItemName{
				{Tree: "ci", Resource: "aws-account", Name: "a"}, {Tree: "ci", Resource: "aws-account", Name: "b"},
			},
		},
		"renew lease-1 --fence 7 --ttl 90s --data a=b --data c=": &quoratev1.RenewRequest{
			Id: "lease-1", Fence: 7, TtlMs: 90_000, UserData: map[string]string{"a": "b", "c": ""},
		},
		"lease list --at ci:tenants": &quoratev1.ListAllocationsRequest{
			Tree: "ci", Node: "tenants",
			PageSize: 1000, Leases: true,
		},
		"queue list --at ci:tenants --resource aws-account --limit 2": &quoratev1.ListWaitingRequest{
			Tree: "ci", Node: "tenants", Resource: "aws-account", PageSize: 1, PageToken: "more", // the second page
		},
		"watch --at ci:tenants --id a --id b --after 4711.2 --limit 1": &quoratev1.WatchEventsRequest{
			Tree: "ci", Node: "tenants", Allocations: []*quoratev1.AllocationRef{{Id: "a"}, {Id: "b"}}, AfterIndex: 4711,
			AfterNumber: 2,
		},
		"item list ci:aws-account --state free --owner ann --name a --show-data --limit 3": &quoratev1.ListItemsRequest{
			Tree: "ci", Resource: "aws-account", State: "free", Owner: "ann", Name: "a", UserData: true, PageSize: 1,
			PageToken: "more",
		},
		"item list ci:aws-account --counts": &quoratev1.CountItemsRequest{Tree: "ci", Resource: "aws-account"},
		"item set ci:aws-account:b --new-state free --data k=v": &quoratev1.UpdateItemsRequest{
			Updates: []*quoratev1.ItemUpdate{{
				Item: &quoratev1.ItemName{Tree: "ci", Resource: "aws-account", Name: "b"}, State: "free",
				UserData: map[string]string{"k": "v"},
			}},
		},
		"item reset ci:aws-account --state leased --idle 2h --new-state dirty": &quoratev1.ResetItemsRequest{
			Tree: "ci", Resource: "aws-account", State: "leased", IdleMs: 7_200_000, NewState: "dirty",
		},
		"item reset ci:aws-account --state leased --new-state dirty --dry-run": &quoratev1.ResetItemsRequest{
			Tree: "ci", Resource: "aws-account", State: "leased", NewState: "dirty", DryRun: true,
		},
		"node cordon cern:atlas --deny --for 2h --reason cables": &adminv1.CordonNodeRequest{
			Tree: "cern", Node: "atlas", Deny: true, ForMs: 7_200_000, Actor: "alice", Reason: "cables",
		},
		// the civil time of the fake server is 2026-09-21T14:13:20Z
		"node cordon cern:atlas --until 2026-09-21T16:13:20Z": &adminv1.CordonNodeRequest{
			Tree: "cern", Node: "atlas", ForMs: 7_200_000, Actor: "alice",
		},
		"node drain cern --until 2026-09-23T16:13:20+02:00 --grace 10m": &adminv1.CordonNodeRequest{
			Tree: "cern", Drain: true, ForMs: 172_800_000, GraceMs: 600_000, Actor: "alice",
		},
		"node drain cern --grace 10m": &adminv1.CordonNodeRequest{
			Tree: "cern", Drain: true, GraceMs: 600_000, Actor: "alice",
		},
		"node uncordon cern:atlas": &adminv1.UncordonNodeRequest{Tree: "cern", Node: "atlas", Actor: "alice"},
	}
	for line, want := range tests {
		t.Run(line, func(t *testing.T) {
			if code, _, stderr := runQuorate(server, "", strings.Fields(line)...); code != cli.ExitOK {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			sent := proto.Clone(f.lastRequest(t))
			if name := sent.ProtoReflect().Descriptor().Fields().ByName("request_id"); name != nil {
				sent.ProtoReflect().Clear(name) // generated by the client
			}
			if diff := cmp.Diff(want, sent, protocmp.Transform()); diff != "" {
				t.Errorf("want (-), sent (+):\n%s", diff)
			}
		})
	}
}

func TestApplyReadsStandardInput(t *testing.T) {
	f, server := startFake(t)
	manifest := "trees: {t: {resources: {ram: {unit: bytes}}, limits: {ram: 1Gi}}}\n"
	code, _, stderr := runQuorate(server, manifest, "apply", "-f", "-", "--allow-removals", "1")
	if code != cli.ExitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	sent, isApply := f.lastRequest(t).(*quoratev1.ApplyTreesRequest)
	if !isApply || len(sent.GetTrees()) != 1 || sent.GetTrees()[0].GetLimits()["ram"].GetAmount() != 1<<30 {
		t.Errorf("sent %v", sent)
	}
	code, _, stderr = runQuorate(server, "trees:\n  t: {", "apply", "-f", "-")
	if code != cli.ExitUsage || !strings.Contains(stderr, "standard input:2:6: this { is never closed") {
		t.Errorf("half a manifest: exit code %d, %s", code, stderr)
	}
}

func TestAllocateMakesUpAnID(t *testing.T) {
	f, server := startFake(t)
	code, stdout, stderr := runQuorate(server, "", "allocate", "--at", "cern:atlas", "--amount", "cores=1")
	sent, isAllocate := f.lastRequest(t).(*quoratev1.AllocateRequest)
	if code != cli.ExitOK || !isAllocate || uuid.Validate(sent.GetId()) != nil {
		t.Fatalf("exit code %d, sent %v: %s", code, sent, stderr)
	}
	if !strings.Contains(stdout, sent.GetId()) {
		t.Errorf("the id %s is not printed:\n%s", sent.GetId(), stdout)
	}
}

func TestAllocateTellsOfDoubt(t *testing.T) {
	_, server := startFake(t)
	code, _, stderr := runQuorate(server, "", "allocate", "--id", "doubtful", "--at", "cern", "--amount", "cores=1",
		"--timeout", "300ms")
	if code != cli.ExitUnavailable || !strings.Contains(stderr,
		"the request may have been granted nevertheless: to find out, repeat the command with --id doubtful") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func TestExportedTreesCanBeApplied(t *testing.T) {
	f, server := startFake(t)
	_, exported, _ := runQuorate(server, "", "manifest", "export", "cern")
	if code, _, stderr := runQuorate(server, exported, "apply", "-f", "-"); code != cli.ExitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	want, err := fakeTree("cern")
	if err != nil {
		t.Fatal(err)
	}
	sent, isApply := f.lastRequest(t).(*quoratev1.ApplyTreesRequest)
	if !isApply {
		t.Fatalf("sent %v", f.lastRequest(t))
	}
	if diff := cmp.Diff([]*quoratev1.Tree{want}, sent.GetTrees(), protocmp.Transform()); diff != "" {
		t.Errorf("want (-), sent (+):\n%s", diff)
	}
}

func TestServersComeFromTheEnvironment(t *testing.T) {
	_, server := startFake(t)
	t.Setenv("QUORATE_SERVER", "127.0.0.1:1,"+server) // the first has no listener
	var out, talk strings.Builder
	if code := execute([]string{"tree", "list"}, nil, &out, &talk); code != cli.ExitOK ||
		!strings.Contains(out.String(), "cern") {
		t.Errorf("exit code %d: %s%s", code, out.String(), talk.String())
	}
	if strings.Contains(talk.String(), "trying again") {
		t.Errorf("another server answered at once, and yet: %q", talk.String())
	}
}

func TestNoServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := runQuorate(address, "", "status", "--timeout", "300ms")
	if code != cli.ExitUnavailable || stdout != "" || !strings.Contains(stderr, "refused") {
		t.Errorf("exit code %d, %q, %q; want 6 and a reason", code, stdout, stderr)
	}
	if code, _, stderr := runQuorate("ftp://x", "", "status"); code != cli.ExitUsage ||
		!strings.Contains(stderr, "is not an address") {
		t.Errorf("a malformed server: exit code %d, %q", code, stderr)
	}
}

// TestReleaseSucceedsWithoutUnits: a failure after the release was carried out must not be reported as a
// failed release.
func TestReleaseSucceedsWithoutUnits(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle(quoratev1connect.NewAllocationServiceHandler(&fake{}))
	mux.Handle(quoratev1connect.NewEventServiceHandler(&fake{}))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	code, stdout, stderr := runQuorate(server.URL, "", "release", "request-1")
	if code != cli.ExitOK || !strings.Contains(stdout, "ram=17179869184") || !strings.Contains(stderr, "base units") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}

func TestExitCodes(t *testing.T) {
	want := map[connect.Code]int{
		connect.CodeCanceled:           cli.ExitFailure,
		connect.CodeUnknown:            cli.ExitFailure,
		connect.CodeInvalidArgument:    cli.ExitUsage,
		connect.CodeDeadlineExceeded:   cli.ExitUnavailable,
		connect.CodeNotFound:           cli.ExitFailure,
		connect.CodeAlreadyExists:      cli.ExitConflict,
		connect.CodePermissionDenied:   cli.ExitForbidden,
		connect.CodeResourceExhausted:  cli.ExitFailure, // without a decision, the server itself is overloaded
		connect.CodeFailedPrecondition: cli.ExitDenied,
		connect.CodeAborted:            cli.ExitConflict,
		connect.CodeOutOfRange:         cli.ExitFailure,
		connect.CodeUnimplemented:      cli.ExitFailure,
		connect.CodeInternal:           cli.ExitFailure,
		connect.CodeUnavailable:        cli.ExitUnavailable,
		connect.CodeDataLoss:           cli.ExitFailure,
		connect.CodeUnauthenticated:    cli.ExitForbidden,
	}
	for code := connect.CodeCanceled; code <= connect.CodeUnauthenticated; code++ {
		err := connect.NewError(code, errors.New("says the test"))
		for _, err := range []error{err, fmt.Errorf("wrapped: %w", err)} {
			if got := cli.ExitCodeOf(err); got != want[code] {
				t.Errorf("%v exits with %d, want %d", err, got, want[code])
			}
		}
	}
	ended := connect.NewError(connect.CodeFailedPrecondition, errors.New("says the test"))
	detail, err := connect.NewErrorDetail(&quoratev1.Problem{Reason: "ENDED"})
	if err != nil {
		t.Fatal(err)
	}
	ended.AddDetail(detail)
	others := map[int]error{
		cli.ExitConflict: ended,
		cli.ExitOK:       nil,
		cli.ExitFailure:  errors.New("anything"),
		cli.ExitUsage:    fmt.Errorf("wrapped: %w", cli.Usagef("odd")),
		cli.ExitDenied: fmt.Errorf("wrapped: %w",
			denialError(&quoratev1.Claim{Amounts: map[string]int64{"cores": 21}})),
	}
	for want, err := range others {
		if got := cli.ExitCodeOf(err); got != want {
			t.Errorf("%v exits with %d, want %d", err, got, want)
		}
	}
}

func TestCompletion(t *testing.T) {
	_, server := startFake(t)
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if code, stdout, stderr := runQuorate(server, "", "completion", shell); code != cli.ExitOK ||
			len(stdout) < 1000 {
			t.Errorf("completion %s: exit code %d, %d bytes, %s", shell, code, len(stdout), stderr)
		}
	}
	for line, want := range map[string]string{
		"__complete usage ":     "cern\nci\nproviders\ntenants\n",
		"__complete limit set ": "cern\n",
		"__complete -o ":        "table\nwide\nname\njson\njsonl\nyaml\ncsv\n",
	} {
		if _, stdout, _ := runQuorate(server, "", strings.Split(line, " ")...); !strings.HasPrefix(stdout, want) {
			t.Errorf("%s offers %q, want %q", line, stdout, want)
		}
	}
}

// TestACancelledCommandEnds: cancelling the context of the command, as a signal does, cancels its call.
func TestACancelledCommandEnds(t *testing.T) {
	called := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil { // the server notices a disconnected caller only after that
			t.Error(err)
		}
		called <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(hanging.Close)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-called
		cancel()
	}()
	var out, talk strings.Builder
	c := &cli.Env{Out: &out, ErrOut: &talk}
	root := newRootCmd(c)
	root.SetArgs([]string{"--server", hanging.URL, "tree", "list"})
	if code := c.ReportError(root.ExecuteContextC(ctx)); code != cli.ExitFailure ||
		!strings.Contains(talk.String(), "canceled") {
		t.Errorf("exit code %d: %s", code, talk.String())
	}
}
