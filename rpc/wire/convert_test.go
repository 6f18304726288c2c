package wire

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

func TestAllocateIsCanonical(t *testing.T) {
	got := ToAllocate(&quoratev1.AllocateRequest{
		Id: "a", Labels: map[string]string{"z": "1", "a": "2"},
		Claims: []*quoratev1.Claim{
			{Tree: "t", Node: "x/y", Amounts: map[string]int64{"mem": 3, "cpu": 0, "gpu": 7}}, {Tree: "s"},
		},
	}, quota.DefaultNamespace)
	want := quota.Allocate{
		ID: "a", Labels: []quota.Label{{Key: "a", Value: "2"}, {Key: "z", Value: "1"}},
		Claims: []quota.Claim{
			{Tree: "t", Node: "x/y", Amounts: quota.Vector{
				{Resource: "cpu"},
				{Resource: "gpu", Amount: 7},
				{Resource: "mem", Amount: 3},
			}},
			{Tree: "s"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestLimitsHaveThreeValues(t *testing.T) {
	wire := map[string]*quoratev1.Limit{
		"zero": {Value: &quoratev1.Limit_Amount{}}, "some": {Value: &quoratev1.Limit_Amount{Amount: 5}},
		"all":  {Value: &quoratev1.Limit_Unlimited{Unlimited: true}},
		"none": {Value: &quoratev1.Limit_Unset{Unset: true}},
	}
	got, err := ToLimits(wire, "limits", true)
	if err != nil {
		t.Fatal(err)
	}
	want := []quota.ResourceLimit{
		{Resource: "all", Limit: quota.NoLimit()},
		{Resource: "none"},
		{Resource: "some", Limit: quota.AtMost(5)},
		{Resource: "zero", Limit: quota.AtMost(0)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	delete(wire, "none") // unset limits are absent after the round trip
	if diff := cmp.Diff(wire, fromLimits(got), protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

func TestUnsetIsOnlyForSetLimits(t *testing.T) {
	tree := exampleTree()
	tree.Nodes[1].Limits = map[string]*quoratev1.Limit{"cores": {Value: &quoratev1.Limit_Unset{Unset: true}}}
	_, _, err := ToApplyTrees(&quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{tree}})
	if err == nil || !strings.HasPrefix(err.Error(), `trees[0].nodes[1].limits["cores"]: unset is only for SetLimits`) {
		t.Errorf("got %v", err)
	}
}

func TestTreesSurviveTheWayThereAndBack(t *testing.T) {
	tree := exampleTree()
	tree.Labels = map[string]string{"site": "meyrin"}
	tree.Nodes[0].Policy = "open"
	tree.Nodes[2].Labels = map[string]string{"lead": "ada", "cost": "7"}
	everySetting(tree)
	tree.Resources = []*quoratev1.Resource{
		{Name: "cores", Unit: quoratev1.Unit_UNIT_COUNT},
		{Name: "ram", Unit: quoratev1.Unit_UNIT_BYTES},
	}
	spec, err := toTreeSpec(tree, "trees[0]", FieldPaths{})
	if err != nil {
		t.Fatal(err)
	}
	want := proto.CloneOf(tree)
	want.Nodes = []*quoratev1.Node{tree.GetNodes()[2], tree.GetNodes()[1], tree.GetNodes()[0]} // in the order of the walk
	options := []cmp.Option{protocmp.Transform(), protocmp.IgnoreEmptyMessages()}
	if diff := cmp.Diff(want, FromTreeSpec(spec), options...); diff != "" {
		t.Error(diff)
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
	t.RequirePrincipal = true
	t.Forest, t.RequireReason, t.Applications = "here", true, atMost(9)
	t.Principals, t.Defaults, t.TenantsSee = limits, coreLimits(1), quoratev1.TenantsSee_TENANTS_SEE_NOTHING
	n := t.GetNodes()[1]
	n.Hard, n.Principals, n.Defaults, n.Borrow, n.Lend = true, limits, coreLimits(2), coreLimits(3), coreLimits(4)
	n.Applications = atMost(0)
	t.Bindings = []*quoratev1.Binding{{Role: "limit-admin", Subjects: subjectsOf("group corp/board")}}
	n.Bindings = []*quoratev1.Binding{everyTerm()}
}

func TestMovesKeepTheirOrder(t *testing.T) {
	tree := exampleTree()
	tree.Moves = []*quoratev1.NodeMove{{Node: "z", NewNode: "y"}, {Node: "a", NewNode: "z"}}
	spec, err := toTreeSpec(tree, "trees[0]", FieldPaths{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]quota.Move{{From: "z", To: "y"}, {From: "a", To: "z"}}, spec.Moves); diff != "" {
		t.Error(diff)
	}
}

func TestParentsComeBeforeChildren(t *testing.T) {
	// In the order of a walk, although '-' and '.' are smaller bytes than '/'.
	walk := []string{"", "a", "a/b", "a/b/c", "a/c", "a-b", "a.b", "b"}
	for i := range walk {
		for j := range walk {
			if got := comparePaths(walk[i], walk[j]); got < 0 != (i < j) || got > 0 != (i > j) {
				t.Errorf("comparePaths(%q, %q) = %d", walk[i], walk[j], got)
			}
		}
	}
}

func TestRefusalsNameThePlaceThatTheCallerWrote(t *testing.T) {
	ledger := ledger.New(quota.DefaultBounds())
	tree := exampleTree()
	tree.Nodes = append([]*quoratev1.Node{{Path: "zeta/bad name"}, {Path: "zeta"}}, tree.GetNodes()...)
	command, moved, err := ToApplyTrees(&quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{tree}})
	if err != nil {
		t.Fatal(err)
	}
	outcome := ledger.Apply(quota.Stamp{}, command)
	if outcome.Refused == nil {
		t.Fatal("a bad name was accepted")
	}
	if got := moved.RestoreField(outcome.Refused); got.Field != "trees[0].nodes[0].path" {
		t.Errorf("the ledger says %q, the caller reads %q", outcome.Refused.Field, got.Field)
	}
	for _, untouched := range []string{
		"", "trees", "trees[0].name", "id", "claims[1].node", "trees[0].nodes",
		"trees[0].limits[cores]",
	} {
		if got := moved.RestoreField(&quota.Error{Field: untouched}); got.Field != untouched {
			t.Errorf("%q became %q", untouched, got.Field)
		}
	}
}

func TestFingerprintIsOfTheContent(t *testing.T) {
	base := &quoratev1.SetLimitsRequest{
		Tree: "cern", Node: "atlas", Limits: coreLimits(5), RequestId: "r1",
		Actor: "ada", Reason: "because",
	}
	digest := func(change func(*quoratev1.SetLimitsRequest)) string {
		r := proto.CloneOf(base)
		change(r)
		got, err := requestFingerprint(r)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	first := digest(func(*quoratev1.SetLimitsRequest) {})
	for name, same := range map[string]func(*quoratev1.SetLimitsRequest){
		"id":       func(r *quoratev1.SetLimitsRequest) { r.RequestId = "r2" },
		"actor":    func(r *quoratev1.SetLimitsRequest) { r.Actor = "bob" },
		"reason":   func(r *quoratev1.SetLimitsRequest) { r.Reason = "" },
		"expected": func(r *quoratev1.SetLimitsRequest) { r.ExpectedRevision = proto.Uint64(1) },
	} {
		if digest(same) != first {
			t.Errorf("another %s makes another fingerprint", name)
		}
	}
	for name, other := range map[string]func(*quoratev1.SetLimitsRequest){
		"node":  func(r *quoratev1.SetLimitsRequest) { r.Node = "cms" },
		"limit": func(r *quoratev1.SetLimitsRequest) { r.Limits = coreLimits(6) },
	} {
		if digest(other) == first {
			t.Errorf("another %s makes the same fingerprint", name)
		}
	}
	if digest(func(r *quoratev1.SetLimitsRequest) { r.RequestId = "" }) != "" {
		t.Error("a fingerprint without a request id")
	}
	if deleting, err := requestFingerprint(&quoratev1.DeleteTreeRequest{Name: "cern", RequestId: "r1"}); err != nil ||
		deleting == first || deleting == "" {
		t.Errorf("got %q, %v", deleting, err)
	}
}

func atMost(amount int64) *quoratev1.Limit {
	return &quoratev1.Limit{Value: &quoratev1.Limit_Amount{Amount: amount}}
}
