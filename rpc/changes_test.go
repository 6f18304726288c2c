package rpc

import (
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

func TestNodesMove(t *testing.T) {
	d := oneNode(t)
	if _, err := d.allocations().Allocate(t.Context(), request("a", "cern:physics/higgs", 8)); err != nil {
		t.Fatal(err)
	}
	move := &quoratev1.MoveNodeRequest{
		Tree: "cern", Node: "physics/higgs", NewNode: "physics/bosons", Actor: "ada",
		RequestId: "r1",
	}
	dry := proto.CloneOf(move)
	dry.DryRun = true
	if planned, err := d.trees().MoveNode(t.Context(), dry); err != nil || len(planned.GetResult().GetChanges()) != 1 ||
		planned.GetResult().GetRevision() != 1 {
		t.Errorf("dry run: %v, %v", planned, err)
	}
	for _, repeated := range []bool{false, true} {
		moved, err := d.trees().MoveNode(t.Context(), move)
		if err != nil || moved.GetResult().GetRevision() != 2 || moved.GetWrite().GetRepetition() != repeated ||
			moved.GetResult().GetChanges()[0].GetField() != "path" {
			t.Errorf("moved %v, %v", moved, err)
		}
	}
	held, err := d.allocations().GetAllocation(t.Context(), &quoratev1.GetAllocationRequest{Id: "a"})
	if err != nil || held.GetAllocation().GetClaims()[0].GetPlaced() != "physics/bosons" {
		t.Errorf("held %v, %v", held, err)
	}
	_, err = d.trees().MoveNode(
		t.Context(), &quoratev1.MoveNodeRequest{Tree: "cern", Node: "physics/higgs", NewNode: "physics/x"})
	if connect.CodeOf(err) != connect.CodeNotFound || problemOf(t, err).GetField() != "node" {
		t.Errorf("moved what is not there: %v", err)
	}
	_, err = d.trees().MoveNode(t.Context(), &quoratev1.MoveNodeRequest{Tree: "cern", NewNode: "physics/x"})
	if connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("moved the root: %v", err)
	}
}

func TestRollBack(t *testing.T) {
	d := oneNode(t)
	if _, err := d.trees().SetLimits(t.Context(),
		&quoratev1.SetLimitsRequest{Tree: "cern", Node: "physics", Limits: cores(15)}); err != nil {
		t.Fatal(err)
	}
	back, err := d.trees().RollBack(t.Context(),
		&adminv1.RollBackRequest{Revision: 1, ExpectedRevision: proto.Uint64(2), Reason: "mistake"})
	if err != nil || back.GetResult().GetRevision() != 3 || back.GetResult().GetChanges()[0].GetAfter() != "20" {
		t.Errorf("got %v, %v", back, err)
	}
	if _, err = d.trees().RollBack(t.Context(), &adminv1.RollBackRequest{Revision: 9}); err == nil {
		t.Error("went back to the future")
	}
	none, err := d.trees().RollBack(t.Context(), &adminv1.RollBackRequest{})
	if err != nil || none.GetResult().GetChanges()[0].GetField() != "tree" {
		t.Errorf("back to nothing: %v, %v", none, err)
	}
	all, err := d.trees().GetConfiguration(t.Context(), &adminv1.GetConfigurationRequest{})
	if err != nil || len(all.GetTrees()) != 0 || all.GetRevision() != 4 {
		t.Errorf("got %v, %v", all, err)
	}
}

// TestAPastConfiguration: every revision that the history reaches can be read, also of trees that are gone.
func TestAPastConfiguration(t *testing.T) {
	d := oneNode(t)
	if _, err := d.trees().SetLimits(t.Context(),
		&quoratev1.SetLimitsRequest{Tree: "cern", Node: "physics", Limits: cores(15)}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.trees().DeleteTree(t.Context(), &quoratev1.DeleteTreeRequest{Name: "cern"}); err != nil {
		t.Fatal(err)
	}
	get := func(r *adminv1.GetConfigurationRequest) (*adminv1.GetConfigurationResponse, error) {
		return d.trees().GetConfiguration(t.Context(), r)
	}
	for revision, limit := range map[uint64]int64{1: 20, 2: 15} {
		past, err := get(&adminv1.GetConfigurationRequest{Revision: revision})
		if err != nil || past.GetRevision() != revision || len(past.GetTrees()) != 1 {
			t.Fatalf("revision %d: %v, %v", revision, past, err)
		}
		physics := past.GetTrees()[0].GetNodes()[1]
		if physics.GetPath() != "physics" || physics.GetLimits()["cores"].GetAmount() != limit {
			t.Errorf("revision %d has %v", revision, physics)
		}
	}
	if past, err := get(&adminv1.GetConfigurationRequest{Revision: 3}); err != nil || len(past.GetTrees()) != 0 {
		t.Errorf("revision 3: %v, %v", past, err)
	}
	_, err := get(&adminv1.GetConfigurationRequest{Revision: 4})
	wantRefused(t, err, connect.CodeNotFound, "revision", "there is no revision 4 yet; the configuration is at 3")
	_, err = get(&adminv1.GetConfigurationRequest{Revision: 1, Tree: "cern"})
	wantRefused(t, err, connect.CodeInvalidArgument, "revision", "leave out revision, or tree")
}

func TestTheWholeConfigurationCanBeAppliedAgain(t *testing.T) {
	d := oneNode(t)
	other := cern()
	other.Name, other.Policy = "desy", "capped"
	everySetting(other)
	other.Nodes[1].Borrow, other.Nodes[1].Lend, other.Nodes[1].Hard = nil, nil, false // "capped" has none
	apply := func(r *quoratev1.ApplyTreesRequest) *quoratev1.ConfigurationResult {
		t.Helper()
		r.Reason, r.Actor = "because", "ada"
		answer, err := d.trees().ApplyTrees(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return answer.GetResult()
	}
	apply(&quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{other}})
	all, err := d.trees().GetConfiguration(t.Context(), &adminv1.GetConfigurationRequest{})
	if err != nil || len(all.GetTrees()) != 2 || all.GetTrees()[1].GetName() != "desy" || all.GetRevision() != 2 {
		t.Fatalf("got %v, %v", all, err)
	}
	if again := apply(&quoratev1.ApplyTreesRequest{Trees: all.GetTrees(), Prune: true}); len(again.GetChanges()) != 0 {
		t.Errorf("applying what is there changed %v", again.GetChanges())
	}
	if _, err := d.trees().ApplyTrees(t.Context(),
		&quoratev1.ApplyTreesRequest{}); connect.CodeOf(err) != connect.CodeInvalidArgument ||
		problemOf(t, err).GetField() != "trees" {
		t.Errorf("no trees: %v", err)
	}
	if pruned := apply(&quoratev1.ApplyTreesRequest{Trees: all.GetTrees()[1:], Prune: true}); len(
		pruned.GetChanges()) == 0 || pruned.GetChanges()[0].GetTree() != "cern" {
		t.Errorf("pruning changed %v", pruned.GetChanges())
	}
	if all := apply(&quoratev1.ApplyTreesRequest{Prune: true}); len(all.GetChanges()) != 1 ||
		all.GetChanges()[0].GetTree() != "desy" {
		t.Errorf("pruning everything changed %v", all.GetChanges())
	}
}

func TestAPlanTellsItsEffect(t *testing.T) {
	d := oneNode(t)
	if _, err := d.allocations().Allocate(t.Context(),
		request("big", "cern:physics/higgs", 11)); connect.CodeOf(err) != connect.CodeResourceExhausted {
		t.Fatal(err)
	}
	wanted := cern()
	wanted.Nodes[0].Limits = cores(15)
	wanted.Nodes[2].Limits = cores(0)
	plan, err := d.trees().ApplyTrees(t.Context(),
		&quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{wanted}, DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	result := plan.GetResult()
	if len(result.GetChanges()) != 2 || len(result.GetAdmitted()) != 1 || result.GetAdmitted()[0].GetId() != "big" ||
		len(result.GetRooms()) != 1 || result.GetRooms()[0].GetNode() != "operations" ||
		result.GetRooms()[0].GetAfter() != 0 {
		t.Errorf("got %v", result)
	}
}

// TestAPlanTellsWhoWouldBeGranted: the dry run of a change names the waiting request that fits after it, and grants it
// not.
func TestAPlanTellsWhoWouldBeGranted(t *testing.T) {
	d := oneNode(t)
	first, waits := request("first", "cern:physics/higgs", 10), request("waits", "cern:physics/higgs", 3)
	waits.Mode = quoratev1.Mode_MODE_WAIT
	for _, r := range []*quoratev1.AllocateRequest{first, waits} {
		if _, err := d.allocations().Allocate(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	raise := &quoratev1.SetLimitsRequest{Tree: "cern", Node: "physics/higgs", Limits: cores(13), DryRun: true}
	for range 2 {
		plan, err := d.trees().SetLimits(t.Context(), raise)
		if err != nil {
			t.Fatal(err)
		}
		queue := plan.GetResult().GetQueue()
		if list := queue.GetGranted().GetRequests(); len(list) != 1 || list[0].GetId() != "waits" ||
			queue.GetGranted().GetTotal() != 1 || plan.GetResult().GetQueueNotEvaluated() {
			t.Errorf("got %v", plan.GetResult())
		}
	}
}

// TestABlankReasonIsNone: a blank reason does not satisfy a tree that requires one.
func TestABlankReasonIsNone(t *testing.T) {
	d := oneNode(t)
	tree := cern()
	tree.RequireReason = true
	if _, err := d.trees().ApplyTrees(t.Context(),
		&quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{tree}}); err != nil {
		t.Fatal(err)
	}
	set := &quoratev1.SetLimitsRequest{Tree: "cern", Node: "physics", Limits: cores(15), Reason: " \t"}
	if _, err := d.trees().SetLimits(t.Context(), set); connect.CodeOf(err) != connect.CodeInvalidArgument ||
		problemOf(t, err).GetField() != "reason" {
		t.Errorf("a blank reason is good enough: %v", err)
	}
	set.Reason = " because "
	if _, err := d.trees().SetLimits(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	list, err := d.trees().ListRevisions(t.Context(), &adminv1.ListRevisionsRequest{PageSize: 1})
	if err != nil || list.GetRevisions()[0].GetReason() != "because" {
		t.Errorf("got %v, %v", list, err)
	}
}

// everySetting sets the fields that only some policies accept.
func everySetting(t *quoratev1.Tree) {
	limits := []*quoratev1.PrincipalLimit{
		{
			Users: []string{"zoe", "ann"}, Groups: []string{"dev", "*"}, Limits: map[string]*quoratev1.Limit{"cores": atMost(3)},
			Applications: atMost(2), Description: "why",
		},
		{Users: []string{"*"}, Applications: atMost(1)},
	}
	t.Forest, t.RequireReason, t.Applications = "here", true, atMost(9)
	t.Principals, t.Defaults = limits, cores(1)
	n := t.GetNodes()[1]
	n.Hard, n.Principals, n.Defaults, n.Borrow, n.Lend = true, limits, cores(2), cores(3), cores(4)
	n.Applications = atMost(0)
}

func atMost(amount int64) *quoratev1.Limit {
	return &quoratev1.Limit{Value: &quoratev1.Limit_Amount{Amount: amount}}
}

// TestRefusedSubtreesNameTheirField: the ledger refuses them, and the field is that of the request.
func TestRefusedSubtreesNameTheirField(t *testing.T) {
	d := oneNode(t)
	d.applyCERN(t)
	at := func(tree, node string) *quoratev1.SubtreeText {
		return &quoratev1.SubtreeText{Tree: tree, Node: node, Text: &quoratev1.Tree{Name: tree}}
	}
	for field, request := range map[string]*quoratev1.ApplyTreesRequest{
		"subtree.tree": {Subtree: at("dune", "atlas")},
		"subtree.node": {Subtree: at("cern", "dune")},
		"prune":        {Subtree: at("cern", "atlas"), Prune: true},
		"trees":        {Subtree: at("cern", "atlas"), Trees: []*quoratev1.Tree{{Name: "cern"}}},
	} {
		_, err := d.trees().ApplyTrees(t.Context(), request)
		if p := problemOf(t, err); p.GetField() != field || strings.Contains(err.Error(), " at;") {
			t.Errorf("got %v of field %q, want %q", err, p.GetField(), field)
		}
	}
}
