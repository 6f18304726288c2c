package rpc

import (
	"fmt"
	"testing"

	"connectrpc.com/connect"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

// TestGuardReportCountsWhatHasNoOwner: held allocations and waiting requests.
func TestGuardReportCountsWhatHasNoOwner(t *testing.T) {
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
	report, err := client.GetGuardReport(t.Context(), &adminv1.GetGuardReportRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if report.GetUnownedAllocations() < 5 {
		t.Errorf("%v", report)
	}
	_, err = d.accessAs(byToken(plainToken)).GetGuardReport(t.Context(), &adminv1.GetGuardReportRequest{})
	if connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("a caller without access.read: %v", err)
	}
}

// TestCommandsThatWouldBeRefusedAreCounted: the leader counts what its ledger would refuse.
func TestCommandsThatWouldBeRefusedAreCounted(t *testing.T) {
	d := accessNode(t, access.Watching)
	d.node.apply(quota.ManageWebhook{Name: "x"}) // not asked over the API, so it is not counted
	client := quoratev1connect.NewAllocationServiceClient(byToken(plainToken), d.url)
	_, err := client.Allocate(t.Context(), &quoratev1.AllocateRequest{
		Id: "h", Claims: []*quoratev1.Claim{{Tree: "cern", Node: "operations", Amounts: map[string]int64{"cores": 1}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	report, err := d.accessAs(admin).GetGuardReport(t.Context(), &adminv1.GetGuardReportRequest{})
	if err != nil || len(report.GetRefusals()) != 1 || report.GetRefusals()[0].GetVerb() != "hold" ||
		report.GetRefusals()[0].GetCalls() != 1 {
		t.Errorf("report %v, %v", report, err)
	}
	if got := d.metric(t, `quorate_access_would_refuse_total{verb="hold"}`); got != "1" {
		t.Errorf("counted %s, want 1", got)
	}
}
