package rpc

import (
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
// TestANodeNeedsItsTree: what is meant for one node is not done everywhere because its tree was forgotten.
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
