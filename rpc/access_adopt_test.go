package rpc

import (
	"fmt"
	"testing"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

// TestAllocationsAreAdoptedOverTheAPI: pages of held allocations and waiting requests, and what is refused.
func TestAllocationsAreAdoptedOverTheAPI(t *testing.T) {
	d := oneNode(t)
	for i := range 5 {
		claim := quota.Claim{Tree: "cern", Node: "operations", Amounts: quota.Vector{{Resource: "cores", Amount: 1}}}
		mode := quota.Hold
		if i > 2 {
			claim.Amounts[0].Amount, mode = 80, quota.Wait
		}
		d.node.apply(quota.Allocate{ID: fmt.Sprint("old-", i), Claims: []quota.Claim{claim}, Mode: mode})
	}
	d.node.bookWith(t, access.Guarded)
	client := d.accessAs(admin)
	adopt := func(r *quoratev1.AdoptAllocationsRequest) (*quoratev1.AdoptAllocationsResponse, error) {
		return client.AdoptAllocations(t.Context(), r)
	}
	report, err := client.GetGuardReport(t.Context(), &quoratev1.GetGuardReportRequest{})
	if err != nil {
		t.Fatal(err)
	}
	unowned := report.GetUnownedAllocations()
	var ids []*quoratev1.AllocationRef
	for token, pages := "", 0; ; pages++ {
		page, err := adopt(&quoratev1.AdoptAllocationsRequest{
			Owner: "account/plain", IdPrefix: "old-", PageSize: 2, PageToken: token,
		})
		if err != nil || len(page.GetAllocations()) > 2 || int(page.GetAdopted()) != len(page.GetAllocations()) || pages > 9 {
			t.Fatalf("page %v, %v", page, err)
		}
		ids = append(ids, page.GetAllocations()...)
		if token = page.GetNextPageToken(); token == "" {
			break
		}
	}
	report, err = client.GetGuardReport(t.Context(), &quoratev1.GetGuardReportRequest{})
	if err != nil || report.GetUnownedAllocations() != unowned-int64(len(ids)) || len(ids) < 3 {
		t.Errorf("adopted %v; before there were %d without an owner, now %v, %v", ids, unowned, report, err)
	}
	again, err := adopt(&quoratev1.AdoptAllocationsRequest{Owner: "account/plain", IdPrefix: "old-"})
	if err != nil || len(again.GetAllocations()) != 0 || again.GetNextPageToken() == "" {
		t.Errorf("again: %v, %v", again, err) // the queue is the next page
	}
	_, err = adopt(&quoratev1.AdoptAllocationsRequest{Owner: "account/nobody", IdPrefix: "old-"})
	wantRefused(t, err, connect.CodeNotFound, "owner", "no account")
	_, err = adopt(&quoratev1.AdoptAllocationsRequest{Owner: "account/plain", PageToken: "x"})
	wantRefused(t, err, connect.CodeInvalidArgument, "page_token", "begin again")
	_, err = d.accessAs(byToken(plainToken)).AdoptAllocations(t.Context(),
		&quoratev1.AdoptAllocationsRequest{Owner: "account/plain"})
	if connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("a caller without access.manage: %v", err)
	}
	_, err = d.accessAs(byToken(plainToken)).GetGuardReport(t.Context(), &quoratev1.GetGuardReportRequest{})
	if connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("a caller without access.read: %v", err)
	}
}

// TestCommandsThatWouldBeRefusedAreCounted: the leader counts what its ledger would refuse.
func TestCommandsThatWouldBeRefusedAreCounted(t *testing.T) {
	d := accessNode(t, access.Watching)
	d.node.apply(quota.AdoptAllocations{Owner: "x", IDs: []string{"x"}}) // not asked over the API, so it is not counted
	client := quoratev1connect.NewAllocationServiceClient(byToken(plainToken), d.url)
	_, err := client.Allocate(t.Context(), &quoratev1.AllocateRequest{
		Id: "h", Claims: []*quoratev1.Claim{{Tree: "cern", Node: "operations", Amounts: map[string]int64{"cores": 1}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	report, err := d.accessAs(admin).GetGuardReport(t.Context(), &quoratev1.GetGuardReportRequest{})
	if err != nil || len(report.GetWouldRefuse()) != 1 || report.GetWouldRefuse()[0].GetVerb() != "hold" ||
		report.GetWouldRefuse()[0].GetCalls() != 1 {
		t.Errorf("report %v, %v", report, err)
	}
	if got := d.metric(t, `quorate_access_would_refuse_total{verb="hold"}`); got != "1" {
		t.Errorf("counted %s, want 1", got)
	}
}
