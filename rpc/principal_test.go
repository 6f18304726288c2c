package rpc

import (
	"fmt"
	"testing"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// limited adds principal limits to the CERN tree: five cores for each user, and two applications for ann.
func (d *testServer) limited(t *testing.T) {
	t.Helper()
	tree := cern()
	tree.Principals = []*quoratev1.PrincipalLimit{
		{Users: []string{"ann"}, Limits: map[string]*quoratev1.Limit{"cores": atMost(5)}, Applications: atMost(2)},
		{Users: []string{"*"}, Limits: map[string]*quoratev1.Limit{"cores": atMost(5)}},
		{Groups: []string{"dev"}, Limits: map[string]*quoratev1.Limit{"cores": atMost(7)}},
	}
	if _, err := d.trees().ApplyTrees(t.Context(),
		&quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{tree}}); err != nil {
		t.Fatal(err)
	}
}

// requestOf returns a request of a user in the group dev, with an application named after the user.
func requestOf(user, id, place string, n int64) *quoratev1.AllocateRequest {
	r := request(id, place, n)
	r.Principal = &quoratev1.Principal{User: user, Groups: []string{"ops", "dev"}, Application: "app-" + id}
	return r
}

func TestPrincipalsAreHeldToTheirLimits(t *testing.T) {
	d := oneNode(t)
	d.limited(t)
	granted, err := d.allocations().Allocate(t.Context(), requestOf("ann", "a", "cern:physics", 4))
	if err != nil || granted.GetAllocation().GetPrincipal().GetUser() != "ann" ||
		granted.GetAllocation().GetClaims()[0].GetGroup() != "dev" {
		t.Fatalf("got %v, %v", granted, err)
	}
	_, err = d.allocations().Allocate(t.Context(), requestOf("ann", "b", "cern:operations", 2))
	decision, denied := detailOf[*quoratev1.Decision](err)
	if !denied || len(decision.GetViolations()) != 1 ||
		decision.GetViolations()[0].GetHolderKind() != quoratev1.HolderKind_HOLDER_KIND_USER ||
		decision.GetViolations()[0].GetHolder() != "ann" || decision.GetViolations()[0].GetMissing() != 1 {
		t.Errorf("got %v, %v", decision, err)
	}
	_, err = d.allocations().Allocate(t.Context(), requestOf("bob", "c", "cern:operations", 4))
	if decision, _ = detailOf[*quoratev1.Decision](err); len(decision.GetViolations()) != 1 ||
		decision.GetViolations()[0].GetHolder() != "dev" {
		t.Errorf("got %v, %v", decision, err)
	}
	for i := range 2 {
		_, err = d.allocations().Allocate(t.Context(), requestOf("ann", fmt.Sprint("d", i), "cern:operations", 0))
	}
	decision, _ = detailOf[*quoratev1.Decision](err)
	if len(decision.GetViolations()) != 1 ||
		decision.GetViolations()[0].GetKind() != quoratev1.ViolationKind_VIOLATION_KIND_APPLICATIONS {
		t.Errorf("a third application: %v, %v", decision, err)
	}
}

func TestPrincipalsInPages(t *testing.T) {
	d := oneNode(t)
	d.limited(t)
	for _, user := range []string{"zoe", "ann", "bob"} {
		if _, err := d.allocations().Allocate(t.Context(), requestOf(user, user+"-1", "cern:operations", 1)); err != nil {
			t.Fatal(err)
		}
	}
	list := func(ask *quoratev1.ListPrincipalsRequest) (seen string) {
		for {
			page, err := d.trees(connect.WithHTTPGet()).ListPrincipals(t.Context(), ask)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range page.GetPrincipals() {
				seen += fmt.Sprint(p.GetName(), " ", p.GetNodes()[0].GetUsed()["cores"], "/",
					p.GetNodes()[0].GetLimits()["cores"].GetAmount(), " ")
			}
			if ask.PageToken = page.GetNextPageToken(); ask.GetPageToken() == "" {
				return seen
			}
		}
	}
	users, groups := quoratev1.HolderKind_HOLDER_KIND_USER, quoratev1.HolderKind_HOLDER_KIND_GROUP
	if got := list(&quoratev1.ListPrincipalsRequest{
		Tree: "cern", Kind: users,
		PageSize: 1,
	}); got != "ann 1/5 bob 1/5 zoe 1/5 " {
		t.Errorf("got %s", got)
	}
	if got := list(&quoratev1.ListPrincipalsRequest{Tree: "cern", Kind: users, Name: "bob"}); got != "bob 1/5 " {
		t.Errorf("got %s", got)
	}
	if got := list(&quoratev1.ListPrincipalsRequest{Tree: "cern", Kind: users, Name: "eve"}); got != "eve 0/5 " {
		t.Errorf("a user who holds nothing: %s", got)
	}
	if got := list(&quoratev1.ListPrincipalsRequest{Tree: "cern", Kind: groups}); got != "dev 3/7 " {
		t.Errorf("got %s", got)
	}
	_, err := d.trees().ListPrincipals(t.Context(), &quoratev1.ListPrincipalsRequest{Tree: "bern", Kind: users})
	if connect.CodeOf(err) != connect.CodeNotFound || problemOf(t, err).GetField() != "tree" {
		t.Errorf("an unknown tree: %v", err)
	}
	if _, err = d.trees().ListPrincipals(t.Context(),
		&quoratev1.ListPrincipalsRequest{Tree: "cern"}); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("neither users nor groups: %v", err)
	}
	usage, err := d.trees().GetUsage(t.Context(), &quoratev1.GetUsageRequest{Tree: "cern"})
	if err != nil || usage.GetNodes()[0].GetRunningApplications() != 3 {
		t.Errorf("got %v, %v", usage, err)
	}
}

// shares returns a tree that borrows: 8 of its 10 cores are held at a, whose share is 4.
func shares(t *testing.T) *testServer {
	t.Helper()
	d := oneNode(t)
	tree := &quoratev1.Tree{
		Name: "jobs", Policy: "borrowing", Resources: []*quoratev1.Resource{{Name: "cores"}}, Limits: cores(10),
		Nodes: []*quoratev1.Node{{Path: "a", Limits: cores(4)}, {Path: "b", Limits: cores(6)}},
	}
	if _, err := d.trees().ApplyTrees(t.Context(),
		&quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{tree}}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.allocations().Allocate(t.Context(), request("low", "jobs:a", 8)); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestCancelPutsBack(t *testing.T) {
	d := shares(t)
	reserved := d.reserve(t, "high", "jobs:b", 6)
	if len(reserved.GetPreempted()) != 1 || reserved.GetPreempted()[0].GetId() != "low" {
		t.Errorf("reserved %v", reserved)
	}
	answer, err := d.allocations().Cancel(t.Context(), &quoratev1.CancelRequest{Id: "high"})
	if err != nil || len(answer.GetRestored()) != 1 || answer.GetRestored()[0].GetId() != "low" {
		t.Errorf("cancelled %v, %v", answer, err)
	}
	low, err := d.allocations().GetAllocation(t.Context(), &quoratev1.GetAllocationRequest{Id: "low"})
	if err != nil || low.GetAllocation().GetState() != quoratev1.AllocationState_ALLOCATION_STATE_HELD {
		t.Errorf("got %v, %v", low, err)
	}
}

func TestWhoHasToGoIsNamed(t *testing.T) {
	d := shares(t)
	high := request("high", "jobs:b", 6)
	check := func(d *quoratev1.Decision, err error) {
		t.Helper()
		if err != nil || len(d.GetPreempted()) != 1 || d.GetPreempted()[0].GetId() != "low" ||
			d.GetPlacements()[0].GetPlaced() != "b" {
			t.Errorf("%v, %v", d, err)
		}
	}
	check(d.explain(t, high).GetDecision(), nil)
	for range 2 {
		answer, err := d.allocations().Allocate(t.Context(), high)
		check(answer.GetDecision(), err)
	}
	gone, err := d.allocations().GetAllocation(t.Context(), &quoratev1.GetAllocationRequest{Id: "low"})
	if err != nil || gone.GetAllocation().GetState() != quoratev1.AllocationState_ALLOCATION_STATE_PREEMPTED ||
		gone.GetAllocation().GetPreemptedBy().GetId() != "high" {
		t.Errorf("got %v, %v", gone, err)
	}
	events, err := d.allocations().ListEvents(t.Context(),
		&quoratev1.ListEventsRequest{Kind: quoratev1.EventKind_EVENT_KIND_PREEMPTED})
	if err != nil || len(events.GetEvents()) != 1 || events.GetEvents()[0].GetBy().GetId() != "high" {
		t.Errorf("got %v, %v", events, err)
	}
}
