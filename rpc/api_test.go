package rpc

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cluster"
)

// protocols are the three protocols of typed clients.
var protocols = map[string][]connect.ClientOption{
	"connect": nil, "connect json": {connect.WithProtoJSON()}, "connect gzip": {connect.WithSendGzip()},
	"connect get": {connect.WithHTTPGet()},
	"grpc":        {connect.WithGRPC()}, "grpc-web": {connect.WithGRPCWeb()},
}

func TestEveryProtocolGrantsDeniesAndExplains(t *testing.T) {
	for name, options := range protocols {
		t.Run(name, func(t *testing.T) {
			client := oneNode(t).allocations(options...)
			granted, err := client.Allocate(t.Context(), request("a", "cern:physics/higgs", 8))
			if err != nil {
				t.Fatal(err)
			}
			if granted.GetAllocation().GetFence() != 1 || granted.GetWrite().GetIndex() != 2 ||
				granted.GetWrite().GetRepetition() ||
				granted.GetAllocation().GetClaims()[0].GetAmounts()["cores"] != 8 {
				t.Errorf("granted %v", granted)
			}
			again, err := client.Allocate(t.Context(), request("a", "cern:physics/higgs", 8))
			if err != nil || !again.GetWrite().GetRepetition() || again.GetAllocation().GetFence() != 1 {
				t.Errorf("repeated: %v, %v", again, err)
			}
			_, err = client.Allocate(t.Context(), request("b", "cern:physics/higgs", 13))
			if connect.CodeOf(err) != connect.CodeResourceExhausted ||
				!strings.Contains(err.Error(), "cern:physics/higgs holds 8 of 10 cores, 13 requested, 11 missing") {
				t.Errorf("denied: %v", err)
			}
			decision, ok := detailOf[*quoratev1.Decision](err)
			if !ok || len(decision.GetViolations()) != 2 || decision.GetViolations()[1].GetNode() != "physics" ||
				!decision.GetNeverFits() {
				t.Errorf("decision %v", decision)
			}
			if decision.GetIndex() <= granted.GetWrite().GetIndex() {
				t.Errorf("denied at index %d, after a grant at %d", decision.GetIndex(), granted.GetWrite().GetIndex())
			}
			read, err := client.GetAllocation(t.Context(), &quoratev1.GetAllocationRequest{Id: "a"})
			if err != nil || read.GetRead().GetServedBy() != "n1" ||
				read.GetRead().GetConsistency() != quoratev1.Consistency_CONSISTENCY_LINEARIZABLE {
				t.Errorf("read %v, %v", read, err)
			}
			released, err := client.Release(t.Context(), &quoratev1.ReleaseRequest{Id: "a"})
			ended := released.GetAllocation()
			if err != nil || ended.GetState() != quoratev1.AllocationState_ALLOCATION_STATE_RELEASED ||
				ended.GetEndedAt() == nil {
				t.Errorf("released %v, %v", released, err)
			}
		})
	}
}

// TestBadInput checks the error for each kind of invalid request.
func TestBadInput(t *testing.T) {
	d := oneNode(t)
	allocate := func(change func(*quoratev1.AllocateRequest)) func() error {
		return func() error {
			r := request("x", "cern:physics", 1)
			change(r)
			_, err := d.allocations().Allocate(t.Context(), r)
			return err
		}
	}
	apply := func(change func(*quoratev1.Tree)) func() error {
		return func() error {
			tree := cern()
			change(tree)
			_, err := d.trees().ApplyTrees(t.Context(), &quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{tree}})
			return err
		}
	}
	if _, err := d.allocations().Allocate(t.Context(), request("held", "cern:physics", 5)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		call  func() error
		code  connect.Code
		field string
		says  string
	}{
		"unknown tree": {
			allocate(func(r *quoratev1.AllocateRequest) { r.Claims[0].Tree = "cren" }),
			connect.CodeNotFound, "claims[0].tree", `no tree "cren"`,
		},
		"unknown node": {
			allocate(func(r *quoratev1.AllocateRequest) { r.Claims[0].Node = "physics/hgigs" }),
			connect.CodeNotFound, "claims[0].node", `"physics/hgigs"`,
		},
		"unknown resource": {allocate(func(r *quoratev1.AllocateRequest) {
			r.Claims[0].Amounts = map[string]int64{"coers": 1}
		}), connect.CodeNotFound, "claims[0].amounts[coers]", `"coers"`},
		"negative amount": {
			allocate(func(r *quoratev1.AllocateRequest) { r.Claims[0].Amounts["cores"] = -1 }),
			connect.CodeInvalidArgument, `claims[0].amounts["cores"]`, `claims[0].amounts["cores"]`,
		},
		"huge amount": {allocate(func(r *quoratev1.AllocateRequest) {
			r.Claims[0].Amounts["cores"] = math.MaxInt64
		}), connect.CodeInvalidArgument, "claims[0].amounts[cores]", "more than any request may name"},
		"no id": {
			allocate(func(r *quoratev1.AllocateRequest) { r.Id = "" }),
			connect.CodeInvalidArgument, "id", "id",
		},
		"id with a space": {
			allocate(func(r *quoratev1.AllocateRequest) { r.Id = "a b" }),
			connect.CodeInvalidArgument, "id", "id",
		},
		"no claims": {
			allocate(func(r *quoratev1.AllocateRequest) { r.Claims = nil }),
			connect.CodeInvalidArgument, "claims", "claims",
		},
		"unknown mode": {
			allocate(func(r *quoratev1.AllocateRequest) { r.Mode = 99 }), connect.CodeInvalidArgument,
			"mode", "mode",
		},
		"claimed twice": {allocate(func(r *quoratev1.AllocateRequest) {
			r.Claims = append(r.Claims, r.GetClaims()[0])
		}), connect.CodeInvalidArgument, "claims[1].node", "twice"},
		"id taken": {
			allocate(func(r *quoratev1.AllocateRequest) { r.Id = "held" }), connect.CodeAlreadyExists,
			"id", "other content",
		},
		"bad tree name": {
			apply(func(t *quoratev1.Tree) { t.Name = "a b" }), connect.CodeInvalidArgument,
			"trees[0].name", "trees[0].name",
		},
		"no resources": {
			apply(func(t *quoratev1.Tree) { t.Resources = nil }), connect.CodeInvalidArgument,
			"trees[0].resources", "trees[0].resources",
		},
		"duplicate node": {
			apply(func(t *quoratev1.Tree) { t.Nodes = append(t.Nodes, t.GetNodes()[0]) }),
			connect.CodeInvalidArgument, "trees[0].nodes[3].path", "twice",
		},
		"orphan": {
			apply(func(t *quoratev1.Tree) { t.Nodes[0].Path = "chemistry/higgs" }),
			connect.CodeInvalidArgument, "trees[0].nodes[0].path", "chemistry",
		},
		"too deep": {
			apply(func(t *quoratev1.Tree) { t.Nodes[0].Path = strings.Repeat("a/", 16) + "a" }),
			connect.CodeInvalidArgument, "trees[0].nodes[0].path", "17 levels",
		},
		"malformed path": {
			apply(func(t *quoratev1.Tree) { t.Nodes[0].Path = "physics//higgs" }),
			connect.CodeInvalidArgument, "trees[0].nodes[0].path", "physics//higgs",
		},
		"unknown policy": {
			apply(func(t *quoratev1.Tree) { t.Nodes[0].Policy = "strcit" }),
			connect.CodeInvalidArgument, "trees[0].nodes[0].policy", "strcit",
		},
		"negative limit": {
			apply(func(t *quoratev1.Tree) { t.Limits = cores(-1) }), connect.CodeInvalidArgument,
			`trees[0].limits["cores"].amount`, "limits",
		},
		"limit of nothing": {
			apply(func(t *quoratev1.Tree) { t.Limits["cores"] = &quoratev1.Limit{} }),
			connect.CodeInvalidArgument, `trees[0].limits["cores"].value`, "limits",
		},
		"policy breach": {
			apply(func(t *quoratev1.Tree) { t.Nodes[2].Limits = cores(81) }),
			connect.CodeFailedPrecondition, "", "100",
		},
		"node in use": {
			apply(func(t *quoratev1.Tree) { t.Nodes = t.GetNodes()[2:] }),
			connect.CodeFailedPrecondition, "", "physics",
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.call()
			if connect.CodeOf(err) != c.code || err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("got %v, want %s saying %q", err, c.code, c.says)
			}
			if p := problemOf(t, err); p.GetField() != c.field || !p.GetNotApplied() {
				t.Errorf("got %v, want field %q", p, c.field)
			}
		})
	}
}

// TestANodeNeedsItsTree: what is meant for one node is not done everywhere because its tree was forgotten.
func TestANodeNeedsItsTree(t *testing.T) {
	d := oneNode(t)
	for path, more := range map[string]string{
		"admin.v1.ConfigurationService/GetConfiguration": "",
		"admin.v1.ConfigurationService/ListRevisions":    "",
		"v1.TreeService/ListScheduledLimits":             "",
		"v1beta1.LimitRequestService/ListRequests":       "",
		"admin.v1.AuditService/ListRecords":              "",
		"admin.v1.AccessService/WhoCan":                  `"verb":"limits.set",`,
	} {
		got := send(t, "POST", d.url+"/quorate."+path, `{`+more+`"node":"physics"}`)
		if got.status != http.StatusBadRequest || !strings.Contains(got.body, "node: it needs tree") {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
}

func TestDryRunChangesNothing(t *testing.T) {
	d := oneNode(t)
	asked := request("a", "cern:physics", 20)
	for range 2 {
		answer := d.explain(t, asked)
		if answer.GetAllocation() != nil || answer.GetDecision().GetOutcome() != quoratev1.Outcome_OUTCOME_GRANTED {
			t.Fatalf("got %v", answer)
		}
	}
	asked.Claims[0].Amounts["cores"] = 21
	if got := d.explain(t, asked).GetDecision(); got.GetOutcome() != quoratev1.Outcome_OUTCOME_DENIED {
		t.Errorf("got %v", got)
	}
	result, err := d.trees().SetLimits(t.Context(),
		&quoratev1.SetLimitsRequest{Tree: "cern", Node: "physics", Limits: cores(15), DryRun: true})
	if err != nil || len(result.GetResult().GetChanges()) != 1 || result.GetResult().GetRevision() != 1 {
		t.Errorf("got %v, %v", result, err)
	}
	if _, err = d.trees().DeleteTree(t.Context(),
		&quoratev1.DeleteTreeRequest{Name: "cern", DryRun: true}); err != nil {
		t.Error(err)
	}
	if d.node.index != 1 {
		t.Errorf("the log grew to %d", d.node.index)
	}
}

func TestConfiguration(t *testing.T) {
	d := oneNode(t)
	trees := d.trees()
	set := &quoratev1.SetLimitsRequest{
		Tree: "cern", Node: "physics", Limits: cores(15), Actor: "ada", Reason: "less physics", RequestId: "r1",
		ExpectedRevision: proto.Uint64(1),
	}
	first, err := trees.SetLimits(t.Context(), set)
	if err != nil || first.GetResult().GetRevision() != 2 || len(first.GetResult().GetChanges()) != 1 ||
		first.GetWrite().GetIndex() != 2 {
		t.Fatalf("got %v, %v", first, err)
	}
	again, err := trees.SetLimits(t.Context(), set)
	if err != nil || !again.GetWrite().GetRepetition() || again.GetResult().GetRevision() != 2 {
		t.Errorf("repeated: %v, %v", again, err)
	}
	set.Limits = cores(16)
	if _, err = trees.SetLimits(t.Context(), set); connect.CodeOf(err) != connect.CodeAlreadyExists {
		t.Errorf("same request id, other content: %v", err)
	}
	set.RequestId = "r2"
	if _, err = trees.SetLimits(t.Context(), set); connect.CodeOf(err) != connect.CodeAborted ||
		problemOf(t, err).GetReason() != "REVISION_MISMATCH" {
		t.Errorf("wrong revision: %v", err)
	}
	set.ExpectedRevision, set.Limits = nil, cores(5)
	_, err = trees.SetLimits(t.Context(), set)
	if breaches := problemOf(t, err).GetBreaches(); connect.CodeOf(err) != connect.CodeFailedPrecondition ||
		len(breaches) != 1 || breaches[0].GetNode() != "physics" {
		t.Errorf("breach: %v", err)
	}
	history, err := trees.ListRevisions(t.Context(), &adminv1.ListRevisionsRequest{})
	if err != nil || len(history.GetRevisions()) != 2 || history.GetRevisions()[0].GetReason() != "less physics" ||
		history.GetRevisions()[0].GetRequestId() != "r1" {
		t.Errorf("history: %v, %v", history, err)
	}
	got, err := trees.GetTree(t.Context(), &quoratev1.GetTreeRequest{Name: "cern"})
	if err != nil || got.GetRevision() != 2 || got.GetTree().GetPolicy() != "strict" ||
		len(got.GetTree().GetNodes()) != 3 {
		t.Errorf("tree: %v, %v", got, err)
	}
	list, err := trees.ListTrees(t.Context(), &quoratev1.ListTreesRequest{})
	if err != nil || len(list.GetTrees()) != 1 || list.GetTrees()[0].GetNodeCount() != 4 {
		t.Errorf("trees: %v, %v", list, err)
	}
	if _, err = trees.DeleteTree(t.Context(), &quoratev1.DeleteTreeRequest{Name: "cern"}); err != nil {
		t.Error(err)
	}
	if _, err = trees.GetTree(t.Context(), &quoratev1.GetTreeRequest{Name: "cern"}); connect.CodeOf(
		err) != connect.CodeNotFound {
		t.Errorf("after the end: %v", err)
	}
}

func TestUsageInPages(t *testing.T) {
	d := oneNode(t)
	if _, err := d.allocations().Allocate(t.Context(), request("a", "cern:physics/higgs", 8)); err != nil {
		t.Fatal(err)
	}
	var seen []string
	ask := &quoratev1.GetUsageRequest{Tree: "cern", Subtree: true, PageSize: 3}
	for {
		page, err := d.trees().GetUsage(t.Context(), ask)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range page.GetNodes() {
			r := n.GetResources()[0]
			seen = append(
				seen, fmt.Sprintf("%s %d/%d free %d", n.GetNode(), r.GetSubtree(), r.GetEffective().GetAmount(),
					r.GetHeadroom()))
		}
		if ask.PageToken = page.GetNextPageToken(); ask.GetPageToken() == "" {
			break
		}
	}
	want := " 8/100 free 92|operations 0/80 free 80|physics 8/20 free 12|physics/higgs 8/10 free 2"
	if got := strings.Join(seen, "|"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAllocationsInPages(t *testing.T) {
	d := oneNode(t)
	for i := range 5 {
		r := request(fmt.Sprint("a", i), "cern:operations", 1)
		r.Labels = map[string]string{"odd": fmt.Sprint(i % 2)}
		if _, err := d.allocations().Allocate(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	list := func(ask *quoratev1.ListAllocationsRequest) (ids string) {
		for {
			page, err := d.allocations(connect.WithHTTPGet()).ListAllocations(t.Context(), ask)
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range page.GetAllocations() {
				ids += a.GetId() + " "
			}
			if ask.PageToken = page.GetNextPageToken(); ask.GetPageToken() == "" {
				return ids
			}
		}
	}
	if got := list(&quoratev1.ListAllocationsRequest{PageSize: 2}); got != "a0 a1 a2 a3 a4 " {
		t.Errorf("got %s", got)
	}
	if got := list(&quoratev1.ListAllocationsRequest{
		Tree: "cern", Node: "operations",
		Labels: map[string]string{"odd": "1"}, PageSize: 1,
	}); got != "a1 a3 " {
		t.Errorf("got %s", got)
	}
	if got := list(&quoratev1.ListAllocationsRequest{Tree: "cern", Node: "physics"}); got != "" {
		t.Errorf("got %s", got)
	}
	_, err := d.allocations().ListAllocations(t.Context(), &quoratev1.ListAllocationsRequest{Node: "physics"})
	if connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("a node without a tree: %v", err)
	}
	_, err = d.allocations().ListAllocations(t.Context(), &quoratev1.ListAllocationsRequest{PageToken: "nonsense"})
	if connect.CodeOf(err) != connect.CodeInvalidArgument || problemOf(t, err).GetField() != "page_token" {
		t.Errorf("a made-up token: %v", err)
	}
}

func TestBatchDecidesEachOnItsOwn(t *testing.T) {
	d := oneNode(t)
	answer, err := d.allocations().BatchAllocate(t.Context(),
		&quoratev1.BatchAllocateRequest{Requests: []*quoratev1.AllocateRequest{
			request("a", "cern:physics/higgs", 8), request("bad id", "cern:physics", 1),
			request("b", "cern:physics/higgs", 3),
			request("c", "nowhere", 1), request("a", "cern:physics/higgs", 8), request("a", "cern:physics/higgs", 7),
			request("d", "cern:operations", 1),
		}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range answer.GetOutcomes() {
		switch {
		case o.GetFailure() != nil:
			got = append(got, o.GetFailure().GetCode())
		default:
			got = append(
				got, fmt.Sprint("fence ", o.GetGranted().GetAllocation().GetFence(), " repeated ",
					o.GetGranted().GetWrite().GetRepetition()))
		}
	}
	want := "fence 1 repeated false|invalid_argument|resource_exhausted|not_found|fence 1 " +
		"repeated true|already_exists|fence 2 repeated false"
	if strings.Join(got, "|") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "|"), want)
	}
	if denied := answer.GetOutcomes()[2].GetFailure().GetDecision(); len(denied.GetViolations()) != 1 {
		t.Errorf("got decision %v", denied)
	}
	if taken := answer.GetOutcomes()[5].GetFailure().GetProblem(); taken.GetReason() != "ID_TAKEN" {
		t.Errorf("got problem %v", taken)
	}
	if d.node.index != 2 {
		t.Errorf("the batch took %d entries, want one", d.node.index-1)
	}
	_, err = d.allocations().BatchAllocate(t.Context(), &quoratev1.BatchAllocateRequest{})
	if connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("an empty batch: %v", err)
	}
}

func TestBatchEndsEachOnItsOwn(t *testing.T) {
	d := oneNode(t)
	for _, id := range []string{"a", "b"} {
		if _, err := d.allocations().Allocate(t.Context(), request(id, "cern:physics/higgs", 1)); err != nil {
			t.Fatal(err)
		}
	}
	before := d.node.index
	answer, err := d.allocations().BatchRelease(t.Context(),
		&quoratev1.BatchReleaseRequest{Requests: []*quoratev1.ReleaseRequest{
			{Id: "b"}, {Id: "nobody"}, {Id: "a"}, {Id: "a"}, {Id: "bad id"},
		}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range answer.GetOutcomes() {
		if o.GetFailure() != nil {
			got = append(got, o.GetFailure().GetCode())
			continue
		}
		got = append(got, fmt.Sprint(o.GetReleased().GetAllocation().GetId(), " ",
			o.GetReleased().GetAllocation().GetState(), " ", o.GetReleased().GetWrite().GetRepetition()))
	}
	const released = " ALLOCATION_STATE_RELEASED"
	want := "b" + released + " false|not_found|a" + released + " false|a" + released + " true|invalid_argument"
	if strings.Join(got, "|") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "|"), want)
	}
	if d.node.index != before+1 {
		t.Errorf("the batch took %d entries, want one", d.node.index-before)
	}
	if _, err = d.allocations().BatchRelease(t.Context(),
		&quoratev1.BatchReleaseRequest{}); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("an empty batch: %v", err)
	}
}

func TestReads(t *testing.T) {
	d := oneNode(t)
	client := d.trees()
	stale := &quoratev1.ReadOptions{Consistency: quoratev1.Consistency_CONSISTENCY_STALE}
	d.node.lead("")
	answer, err := client.ListTrees(t.Context(), &quoratev1.ListTreesRequest{Read: stale})
	if err != nil || answer.GetRead().GetConsistency() != quoratev1.Consistency_CONSISTENCY_STALE ||
		answer.GetRead().GetAgeMs() != 7 || answer.GetRead().GetIndex() != 1 {
		t.Errorf("a stale read without a leader: %v, %v", answer, err)
	}
	d.node.lead("n1")
	if _, err = client.ListTrees(t.Context(),
		&quoratev1.ListTreesRequest{Read: &quoratev1.ReadOptions{MinIndex: 1}}); err != nil {
		t.Error(err)
	}
	_, err = client.ListTrees(t.Context(), &quoratev1.ListTreesRequest{Read: &quoratev1.ReadOptions{MinIndex: 9}})
	if connect.CodeOf(err) != connect.CodeDeadlineExceeded {
		t.Errorf("an index that is not there: %v", err)
	}
}

func TestStatus(t *testing.T) {
	c := newFakeCluster()
	first, second := openServer(t, c, "n1"), openServer(t, c, "n2")
	c.lead("n2")
	first.applyCERN(t)
	c.members = append(c.members, cluster.Member{ID: "n3", HTTPAddr: "127.0.0.1:1", Voter: true})
	client := adminv1connect.NewClusterServiceClient(overHTTP2, first.url)
	status, err := client.GetStatus(t.Context(), &adminv1.GetStatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if status.GetServedBy() != "n1" || status.GetLeaderId() != "n2" || status.GetClusterName() != "test" ||
		status.GetRevision() != 1 || status.GetTombstoneMs() != 600_000 {
		t.Errorf("got %v", status)
	}
	if own := status.GetMember(); own.GetId() != "n1" || own.GetRole() != adminv1.Role_ROLE_FOLLOWER ||
		own.GetSeat() != adminv1.Seat_SEAT_VOTER || !own.GetReachable() || own.GetHealthy() {
		t.Errorf("the node shows itself as %v", own)
	}
	c.lead("")
	list, err := client.ListMembers(t.Context(), &adminv1.ListMembersRequest{})
	if err != nil || len(list.GetMembers()) != 3 {
		t.Fatalf("without a leader: %v, %v", list, err)
	}
	if reached := list.GetMembers()[1]; !reached.GetReachable() || reached.GetHealthy() ||
		reached.GetRole() != adminv1.Role_ROLE_FOLLOWER || reached.GetProblem() != "no leader looks after it" {
		t.Errorf("n2 is shown as %v", reached)
	}
	if lost := list.GetMembers()[2]; lost.GetReachable() || !strings.Contains(lost.GetProblem(), "n3 does not answer") {
		t.Errorf("n3 is shown as %v", lost)
	}
	if status, err = client.GetStatus(t.Context(), &adminv1.GetStatusRequest{}); err != nil ||
		!strings.Contains(status.GetProblem(), "no leader") {
		t.Errorf("without a leader: %v, %v", status, err)
	}
	_ = second
}
