package rpc

import (
	"maps"
	"strings"
	"testing"

	"connectrpc.com/connect"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// TestALeaderOfAnEarlierVersion: a follower passes on what the leader knows, and refuses what it would not know, in
// every protocol, with the level. No method needs a level yet, so the follower has a made-up table.
func TestALeaderOfAnEarlierVersion(t *testing.T) {
	c := newFakeCluster()
	c.supported = 4
	follower, leader := openServer(t, c, "n1"), openServer(t, c, "n2")
	next := follower.procedures[adminv1connect.AccessServiceCreateAccountProcedure]
	next.Level = 4
	follower.procedures = maps.Clone(follower.procedures)
	follower.procedures[adminv1connect.AccessServiceCreateAccountProcedure] = next
	c.lead("n2")
	leader.applyCERN(t)
	for i := range c.members { // which is not true any more: the leader was downgraded
		c.members[i].FeatureLevel = 4
	}
	for name, options := range protocols {
		if _, err := follower.trees(options...).SetLimits(t.Context(), &quoratev1.SetLimitsRequest{
			Tree: "cern", Limits: map[string]*quoratev1.Limit{"cores": {Value: &quoratev1.Limit_Amount{Amount: 101}}},
		}); err != nil {
			t.Errorf("%s: what the leader knows: %v", name, err)
		}
		access := adminv1connect.NewAccessServiceClient(overHTTP2, follower.url, options...)
		if _, err := access.CreateAccount(t.Context(), &adminv1.CreateAccountRequest{
			Account: &adminv1.Account{Name: "ci"},
		}); connect.CodeOf(err) != connect.CodeUnavailable || !strings.Contains(err.Error(), "this needs feature level 4") {
			t.Errorf("%s: a method that the leader does not know: %v", name, err)
		}
	}
}
