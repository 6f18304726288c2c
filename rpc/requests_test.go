package rpc

import (
	"fmt"
	"testing"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

func (d *testServer) reserve(t *testing.T, id, place string, n int64) *quoratev1.Allocation {
	t.Helper()
	r := request(id, place, n)
	r.Mode = quoratev1.Mode_MODE_RESERVE
	answer, err := d.allocations().Allocate(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return answer.GetAllocation()
}

func TestReservationsAreConfirmed(t *testing.T) {
	d := oneNode(t)
	reserved := d.reserve(t, "a", "cern:physics", 20)
	if reserved.GetState() != quoratev1.AllocationState_ALLOCATION_STATE_RESERVED ||
		reserved.GetReservedUntilLedgerMs() != reserved.GetGrantedLedgerMs()+60_000 {
		t.Errorf("reserved %v", reserved)
	}
	if _, err := d.allocations().Allocate(t.Context(),
		request("b", "cern:physics", 1)); connect.CodeOf(err) != connect.CodeResourceExhausted {
		t.Errorf("what is reserved was given away: %v", err)
	}
	for _, repeated := range []bool{false, true} {
		answer, err := d.allocations().Confirm(t.Context(), &quoratev1.ConfirmRequest{Id: "a"})
		if err != nil || answer.GetWrite().GetRepetition() != repeated || answer.GetWrite().GetIndex() == 0 ||
			answer.GetAllocation().GetState() != quoratev1.AllocationState_ALLOCATION_STATE_HELD ||
			answer.GetAllocation().GetReservedUntilLedgerMs() != 0 {
			t.Errorf("confirmed %v, %v", answer, err)
		}
	}
	_, err := d.allocations().Cancel(t.Context(), &quoratev1.CancelRequest{Id: "a"})
	if connect.CodeOf(err) != connect.CodeFailedPrecondition || problemOf(t, err).GetReason() != "IN_USE" {
		t.Errorf("cancelled what is confirmed: %v", err)
	}
	if _, err = d.allocations().Confirm(t.Context(),
		&quoratev1.ConfirmRequest{Id: "nobody"}); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("confirmed an unknown id: %v", err)
	}
}

func TestReservationsAreCancelled(t *testing.T) {
	d := oneNode(t)
	d.reserve(t, "a", "cern:physics", 20)
	for _, repeated := range []bool{false, true} {
		answer, err := d.allocations().Cancel(t.Context(), &quoratev1.CancelRequest{Id: "a"})
		if err != nil || answer.GetWrite().GetRepetition() != repeated ||
			answer.GetAllocation().GetState() != quoratev1.AllocationState_ALLOCATION_STATE_CANCELLED ||
			answer.GetAllocation().GetEndedAt() == nil {
			t.Errorf("cancelled %v, %v", answer, err)
		}
	}
	_, err := d.allocations().Confirm(t.Context(), &quoratev1.ConfirmRequest{Id: "a"})
	if connect.CodeOf(err) != connect.CodeFailedPrecondition || problemOf(t, err).GetReason() != "ENDED" {
		t.Errorf("confirmed what is cancelled: %v", err)
	}
	if _, err = d.allocations().Allocate(t.Context(), request("b", "cern:physics", 20)); err != nil {
		t.Errorf("the room did not come back: %v", err)
	}
}

func TestOnlyReservationsHaveATime(t *testing.T) {
	r := request("a", "cern:physics", 1)
	r.ReserveMs = 5
	_, err := oneNode(t).allocations().Allocate(t.Context(), r)
	if connect.CodeOf(err) != connect.CodeInvalidArgument || problemOf(t, err).GetField() != "reserve_ms" {
		t.Errorf("got %v", err)
	}
}

func TestForceLooksAtNoLimit(t *testing.T) {
	d := oneNode(t)
	r := request("a", "cern:physics/higgs", 50)
	r.Mode = quoratev1.Mode_MODE_FORCE
	answer, err := d.allocations().Allocate(t.Context(), r)
	if err != nil || !answer.GetAllocation().GetForced() ||
		answer.GetDecision().GetPlacements()[0].GetPlaced() != "physics/higgs" {
		t.Fatalf("got %v, %v", answer, err)
	}
	usage, err := d.trees().GetUsage(t.Context(), &quoratev1.GetUsageRequest{Tree: "cern", Node: "physics/higgs"})
	if err != nil || usage.GetNodes()[0].GetResources()[0].GetOver() != 40 {
		t.Errorf("got %v, %v", usage, err)
	}
}

func TestExplainHypothetically(t *testing.T) {
	d := oneNode(t)
	ask := func(r *quoratev1.AllocateRequest) (*quoratev1.ExplainResponse, error) {
		return d.allocations().Explain(t.Context(), explainRequest(r))
	}
	fits, err := ask(request("a", "cern:physics", 20))
	if err != nil || fits.GetDecision().GetOutcome() != quoratev1.Outcome_OUTCOME_GRANTED ||
		fits.GetAllocation() != nil ||
		fits.GetDecision().GetPlacements()[0].GetPlaced() != "physics" || fits.GetRead().GetServedBy() != "n1" {
		t.Errorf("got %v, %v", fits, err)
	}
	if level := fits.GetLevels()[0]; level.GetNode() != "physics" || level.Limit == nil ||
		level.GetRequested() != 20 || level.GetLeft() != level.GetLimit()-level.GetUsed()-20 {
		t.Errorf("the first level is %v", level)
	}
	if !d.node.alone {
		t.Error("others may read while a request is tried out")
	}
	reserve := request("a", "cern:physics/higgs", 30)
	reserve.Mode, reserve.ReserveMs = quoratev1.Mode_MODE_RESERVE, 7
	denied, err := ask(reserve)
	if err != nil || denied.GetDecision().GetOutcome() != quoratev1.Outcome_OUTCOME_DENIED ||
		len(denied.GetDecision().GetViolations()) != 2 {
		t.Errorf("a denial is an answer here: %v, %v", denied, err)
	}
	exceeded := 0
	for _, level := range denied.GetLevels() {
		if level.GetVerdict() == quoratev1.LevelVerdict_LEVEL_VERDICT_EXCEEDED {
			exceeded++
		}
	}
	if exceeded != 2 {
		t.Errorf("%d levels are exceeded: %v", exceeded, denied.GetLevels())
	}
	reserve.Mode = quoratev1.Mode_MODE_FORCE
	if forced, err := ask(reserve); err != nil ||
		forced.GetDecision().GetOutcome() != quoratev1.Outcome_OUTCOME_GRANTED {
		t.Errorf("by force: %v, %v", forced, err)
	}
	_, err = ask(request("a", "cern:phyzics", 1))
	if connect.CodeOf(err) != connect.CodeNotFound || problemOf(t, err).GetField() != "request.claims[0].node" {
		t.Errorf("an unknown node: %v", err)
	}
	if _, err = d.allocations().Explain(t.Context(),
		&quoratev1.ExplainRequest{}); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("no question: %v", err)
	}
	if d.node.index != 1 {
		t.Errorf("the log grew to %d", d.node.index)
	}
}

func TestExplainThePast(t *testing.T) {
	d := oneNode(t)
	if _, err := d.allocations().Allocate(t.Context(), request("held", "cern:physics", 15)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.allocations().Allocate(t.Context(),
		request("big", "cern:physics/higgs", 6)); connect.CodeOf(err) != connect.CodeResourceExhausted {
		t.Fatal(err)
	}
	ask := func(id string) (*quoratev1.ExplainResponse, error) {
		return d.allocations().Explain(t.Context(),
			&quoratev1.ExplainRequest{Question: &quoratev1.ExplainRequest_Id{Id: id}})
	}
	granted, err := ask("held")
	if err != nil || granted.GetAllocation().GetId() != "held" ||
		granted.GetDecision().GetPlacements()[0].GetPlaced() != "physics" || granted.GetDecidedAt() != nil {
		t.Errorf("got %v, %v", granted, err)
	}
	denied, err := ask("big")
	if err != nil || denied.GetAllocation() != nil || denied.GetDecidedAt() == nil ||
		len(denied.GetDecision().GetViolations()) != 1 {
		t.Fatalf("got %v, %v", denied, err)
	}
	// Physics can get more only if the root does, because operations has all the rest.
	remedy := denied.GetDecision().GetRemedy()
	raises := remedy.GetRaises()
	if len(raises) != 2 || raises[0].GetNode() != "" || raises[1].GetNewLimit() != 21 ||
		len(remedy.GetReleases()) != 1 || remedy.GetReleases()[0].GetId() != "held" {
		t.Errorf("got %v", remedy)
	}
	if _, err = ask("nobody"); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("unknown id: %v", err)
	}
}

func TestEventsInPages(t *testing.T) {
	d := oneNode(t)
	for i := range 5 {
		if _, err := d.allocations().Allocate(t.Context(),
			request(fmt.Sprint("a", i%2), "cern:physics", 21)); connect.CodeOf(err) != connect.CodeResourceExhausted {
			t.Fatal(err)
		}
	}
	list := func(ask *quoratev1.ListEventsRequest) (seen string) {
		for {
			page, err := d.allocations(connect.WithHTTPGet()).ListEvents(t.Context(), ask)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range page.GetEvents() {
				seen += fmt.Sprint(e.GetNumber(), e.GetId(), len(e.GetDecision().GetViolations()), " ")
			}
			if ask.PageToken = page.GetNextPageToken(); ask.GetPageToken() == "" {
				return seen
			}
		}
	}
	if got := list(&quoratev1.ListEventsRequest{PageSize: 2}); got != "1a01 2a11 3a01 4a11 5a01 " {
		t.Errorf("got %s", got)
	}
	if got := list(&quoratev1.ListEventsRequest{
		AfterEvent: 1, Id: "a0",
		Kind: quoratev1.EventKind_EVENT_KIND_DENIED,
	}); got != "3a01 5a01 " {
		t.Errorf("got %s", got)
	}
	if got := list(&quoratev1.ListEventsRequest{Kind: quoratev1.EventKind_EVENT_KIND_EXPIRED}); got != "" {
		t.Errorf("got %s", got)
	}
}
