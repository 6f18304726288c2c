package rpc

import (
	"testing"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/access"
)

// TestANodeThatHasJustStarted: it believes the cluster to be open and knows no token, so that the credential of a call
// does not count. If it learns of the guard before it decides the call, it must not decide it as that of an anonymous
// caller, for whom there is no such allocation: the owner of a lease would believe that it is gone.
func TestANodeThatHasJustStarted(t *testing.T) {
	d := oneNode(t)
	d.applyCERN(t)
	d.node.bookWith(t, access.Guarded)
	empty, failed := access.Load(access.State{})
	if failed != nil {
		t.Fatal(failed)
	}
	api := d.allocationsOf(admin)
	claims := []*quoratev1.Claim{{Tree: "cern", Node: "physics/higgs", Amounts: map[string]int64{"cores": 1}}}
	allocate := func(a as, id string) error {
		_, err := d.allocationsOf(a).Allocate(t.Context(), &quoratev1.AllocateRequest{Id: id, Claims: claims})
		return err
	}
	if err := allocate(admin, "x"); err != nil {
		t.Fatal(err)
	}
	d.node.behind.Store(empty)
	for name, call := range map[string]func() error{
		"get": func() error {
			_, err := api.GetAllocation(t.Context(), &quoratev1.GetAllocationRequest{Id: "x"})
			return err
		},
		"list": func() error {
			_, err := api.ListAllocations(t.Context(), &quoratev1.ListAllocationsRequest{})
			return err
		},
		"release": func() error {
			_, err := api.Release(t.Context(), &quoratev1.ReleaseRequest{Id: "x"})
			return err
		},
		"allocate": func() error { return allocate(admin, "y") },
		"explain": func() error {
			_, err := api.Explain(t.Context(), &quoratev1.ExplainRequest{
				Question: &quoratev1.ExplainRequest_Request{Request: &quoratev1.AllocateRequest{Id: "y", Claims: claims}},
			})
			return err
		},
	} {
		err := call()
		problem, found := client.ProblemOf(err)
		if connect.CodeOf(err) != connect.CodeUnavailable || !found || problem.GetReason() != "TOKEN_UNVERIFIABLE" ||
			!problem.GetNotApplied() {
			t.Errorf("%s: %v, want that the credential cannot be verified", name, err)
		}
	}
	if err := allocate("", "z"); connect.CodeOf(err) == connect.CodeUnavailable {
		t.Errorf("a call without a credential: %v", err)
	}
	d.node.behind.Store(nil)
	if answer, err := api.GetAllocation(t.Context(), &quoratev1.GetAllocationRequest{Id: "x"}); err != nil ||
		answer.GetAllocation().GetState() != quoratev1.AllocationState_ALLOCATION_STATE_HELD {
		t.Errorf("once it has caught up: %v, %v", answer, err)
	}
}
