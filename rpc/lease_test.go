package rpc

import (
	"strings"
	"testing"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
)

func leaseOf(id, place string, n int64) *quoratev1.AllocateRequest {
	r := request(id, place, n)
	r.TtlMs = 60_000
	return r
}

func TestLeases(t *testing.T) {
	for name, options := range protocols {
		t.Run(name, func(t *testing.T) {
			d := oneNode(t)
			client := d.allocations(options...)
			asked := leaseOf("a", "cern:physics", 5)
			asked.UserData = map[string]string{"host": "x", "old": "y"}
			granted, err := client.Allocate(t.Context(), asked)
			if err != nil {
				t.Fatal(err)
			}
			a := granted.GetAllocation()
			if a.GetTtlMs() != 60_000 || a.GetExpiresLedgerMs() != granted.GetWrite().GetLedgerTimeMs()+60_000 ||
				a.GetUserData()["host"] != "x" {
				t.Errorf("granted %v", granted)
			}
			renewal := &quoratev1.RenewRequest{
				Id: "a", Fence: granted.GetAllocation().GetFence(),
				UserData: map[string]string{"old": "", "new": "z"},
			}
			renewed, err := client.Renew(t.Context(), renewal)
			if err != nil {
				t.Fatal(err)
			}
			b := renewed.GetAllocation()
			if b.GetExpiresLedgerMs() <= a.GetExpiresLedgerMs() ||
				b.GetExpiresLedgerMs() != renewed.GetWrite().GetLedgerTimeMs()+60_000 ||
				renewed.GetWrite().GetIndex() <= granted.GetWrite().GetIndex() {
				t.Errorf("renewed %v after %v", renewed, granted)
			}
			if data := b.GetUserData(); len(data) != 2 || data["new"] != "z" {
				t.Errorf("the data are %v", data)
			}
			renewal.Fence = 99
			if _, err = client.Renew(t.Context(), renewal); connect.CodeOf(err) != connect.CodeAborted ||
				problemOf(t, err).GetReason() != "FENCE_MISMATCH" {
				t.Errorf("with another fence: %v", err)
			}
			d.node.applyAt(quota.Instant(b.GetExpiresLedgerMs()), quota.Expire{Most: 10})
			renewal.Fence = 0
			if _, err = client.Renew(t.Context(), renewal); connect.CodeOf(err) != connect.CodeFailedPrecondition ||
				problemOf(t, err).GetReason() != "ENDED" {
				t.Errorf("after its end: %v", err)
			}
			if d.node.patient.Load() != 3 {
				t.Errorf("%d of 3 renewals waited for company", d.node.patient.Load())
			}
		})
	}
}

func TestBatchesOfRenewalsHaveAnOutcomeForEach(t *testing.T) {
	d := oneNode(t)
	for _, id := range []string{"a", "b"} {
		if _, err := d.allocations().Allocate(t.Context(), leaseOf(id, "cern:physics", 1)); err != nil {
			t.Fatal(err)
		}
	}
	before := d.node.index
	answer, err := d.allocations().BatchRenew(t.Context(),
		&quoratev1.BatchRenewRequest{Renewals: []*quoratev1.RenewRequest{
			{Id: "a"}, {Id: "two words"}, {Id: "nobody"}, {Id: "b", Fence: 99}, {Id: "b", TtlMs: 30_000},
		}})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"", "invalid_argument", "not_found", "aborted", ""} {
		if got := answer.GetOutcomes()[i].GetFailure().GetCode(); got != want {
			t.Errorf("renewal %d: %q, want %q", i, got, want)
		}
	}
	last := answer.GetOutcomes()[4].GetRenewed()
	if last.GetAllocation().GetTtlMs() != 30_000 ||
		last.GetAllocation().GetExpiresLedgerMs() != last.GetWrite().GetLedgerTimeMs()+30_000 {
		t.Errorf("got %v", last)
	}
	if d.node.index != before+1 || d.node.patient.Load() != 1 {
		t.Errorf("one batch took %d entries", d.node.index-before)
	}
	if answer, err := d.allocations().BatchRenew(t.Context(),
		&quoratev1.BatchRenewRequest{Renewals: []*quoratev1.RenewRequest{{}}}); err != nil ||
		answer.GetOutcomes()[0].GetFailure().GetProblem().GetField() != "id" || d.node.index != before+1 {
		t.Errorf("a batch of nothing valid: %v, %v", answer, err)
	}
}

func TestListingOnlyLeases(t *testing.T) {
	d := oneNode(t)
	for _, r := range []*quoratev1.AllocateRequest{request("plain", "cern", 1), leaseOf("lease", "cern", 1)} {
		if _, err := d.allocations().Allocate(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	page, err := d.allocations().ListAllocations(t.Context(), &quoratev1.ListAllocationsRequest{Leases: true})
	if err != nil || len(page.GetAllocations()) != 1 || page.GetAllocations()[0].GetId() != "lease" {
		t.Errorf("got %v, %v", page, err)
	}
}

// TestRenewByHand checks the JSON answers of renewals over plain HTTP.
func TestRenewByHand(t *testing.T) {
	d := oneNode(t)
	send(t, "POST", d.url+allocatePath, `{"id":"a","ttlMs":60000,"claims":[{"tree":"cern","amounts":{"cores":1}}]}`)
	const path = "/quorate.v1.AllocationService/Renew"
	if got := send(t, "POST", d.url+path, `{"id":"a"}`); got.status != 200 ||
		!strings.Contains(got.body, `"expiresLedgerMs":"60003"`) {
		t.Errorf("got %v", got)
	}
	if got := send(t, "POST", d.url+path, `{"id":"a","fence":7}`); got.status != 409 ||
		!strings.Contains(got.body, "FENCE_MISMATCH") {
		t.Errorf("got %v", got)
	}
}
