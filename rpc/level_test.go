package rpc

import (
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
	"github.com/quorate/quorate/gen/quorate/v1/quoratev1connect"
)

// changesOfLevels are changes of the tree of the tests that a leader of level 3 would not carry out whole.
func changesOfLevels() map[string]func(*quoratev1.ApplyTreesRequest) {
	bindings := []*quoratev1.Binding{{Role: "viewer", To: []string{"everyone"}}}
	return map[string]func(*quoratev1.ApplyTreesRequest){
		"7 bindings of a tree": func(r *quoratev1.ApplyTreesRequest) { r.Trees[0].Bindings = bindings },
		"7 bindings of a node": func(r *quoratev1.ApplyTreesRequest) { r.Trees[0].Nodes[0].Bindings = bindings },
		"7 access":             func(r *quoratev1.ApplyTreesRequest) { r.Access = &quoratev1.AccessSection{} },
		"7 a subtree": func(r *quoratev1.ApplyTreesRequest) {
			r.At, r.Subtree, r.Trees = &quoratev1.Subtree{Tree: "cern", Node: "physics"}, r.GetTrees()[0], nil
		},
		"7 a rule": func(r *quoratev1.ApplyTreesRequest) {
			r.Trees[0].AutoApprove = &quoratev1.AutoApprove{AtMostPercent: 1, EveryMs: 3_600_000}
		},
		"7 approvals":    func(r *quoratev1.ApplyTreesRequest) { r.Trees[0].Approvals = 2 },
		"7 what is seen": func(r *quoratev1.ApplyTreesRequest) { r.Trees[0].TenantsSee = quoratev1.TenantsSee_TENANTS_SEE_NAMES },
		"9 a threshold": func(r *quoratev1.ApplyTreesRequest) {
			r.Trees[0].WarnAt = &quoratev1.WarnAt{Percents: []int32{80}}
		},
		"8 a user":   func(r *quoratev1.ApplyTreesRequest) { r.Trees[0].RequirePrincipal = true },
		"6 policies": func(r *quoratev1.ApplyTreesRequest) { r.Policies = []*quoratev1.Policy{{Name: "lab", Base: "open"}} },
	}
}

// TestALeaderOfAnEarlierVersion: a follower passes on what the leader knows, and refuses what it would leave out or not
// know at all, in every protocol, with the level.
func TestALeaderOfAnEarlierVersion(t *testing.T) {
	c := newFakeCluster()
	c.supported = 7
	follower, leader := openServer(t, c, "n1"), openServer(t, c, "n2")
	c.lead("n2")
	leader.applyCERN(t)
	for i := range c.members { // which is not true any more: the leader was downgraded
		c.members[i].FeatureLevel = 7
	}
	known, err := leader.trees().GetTree(t.Context(), &quoratev1.GetTreeRequest{Name: "cern"})
	if err != nil {
		t.Fatal(err)
	}
	for name, options := range protocols {
		trees := follower.trees(options...)
		apply := func(change func(*quoratev1.ApplyTreesRequest)) error {
			request := &quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{proto.CloneOf(known.GetTree())}}
			change(request)
			_, err := trees.ApplyTrees(t.Context(), request)
			return err
		}
		if err := apply(func(*quoratev1.ApplyTreesRequest) {}); err != nil {
			t.Errorf("%s: what the leader knows: %v", name, err)
		}
		for what, change := range changesOfLevels() {
			err := apply(change)
			if connect.CodeOf(err) != connect.CodeUnavailable ||
				!strings.Contains(err.Error(), "this needs feature level "+what[:1]) {
				t.Errorf("%s: %s: %v", name, what, err)
			}
		}
		access := quoratev1connect.NewAccessServiceClient(overHTTP2, follower.url, options...)
		if _, err := access.CreateAccount(t.Context(), &quoratev1.CreateAccountRequest{
			Account: &quoratev1.Account{Name: "ci"},
		}); connect.CodeOf(err) != connect.CodeUnavailable {
			t.Errorf("%s: a method that the leader does not know: %v", name, err)
		}
	}
	revision, err := leader.trees().GetConfiguration(t.Context(), &quoratev1.GetConfigurationRequest{})
	if err != nil || revision.GetRevision() != 1 {
		t.Errorf("the leader is at revision %d, %v", revision.GetRevision(), err)
	}
}
