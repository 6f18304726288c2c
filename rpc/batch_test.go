package rpc

import (
	"fmt"
	"strings"
	"testing"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

func TestBatchDecidesEachOnItsOwn(t *testing.T) {
	d := oneNode(t)
	answer, err := d.allocations().BatchAllocate(t.Context(),
		&quoratev1.BatchAllocateRequest{Requests: []*quoratev1.AllocateRequest{
			request("a", "cern:physics/higgs", 8), request("bad id", "cern:physics", 1),
			request("b", "cern:physics/higgs", 3),
			request("c", "nowhere", 1), request("a", "cern:physics/higgs", 8), request("a", "cern:physics/higgs", 7),
			request("d", "cern:operations", 1),
		}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range answer.GetOutcomes() {
		switch {
		case o.GetFailure() != nil:
			got = append(got, o.GetFailure().GetCode())
		default:
			got = append(
				got, fmt.Sprint("fence ", o.GetGranted().GetAllocation().GetFence(), " repeated ",
					o.GetGranted().GetWrite().GetRepetition()))
		}
	}
	want := "fence 1 repeated false|invalid_argument|resource_exhausted|not_found|fence 1 " +
		"repeated true|already_exists|fence 2 repeated false"
	if strings.Join(got, "|") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "|"), want)
	}
	if denied := answer.GetOutcomes()[2].GetFailure().GetDecision(); len(denied.GetViolations()) != 1 {
		t.Errorf("got decision %v", denied)
	}
	if taken := answer.GetOutcomes()[5].GetFailure().GetProblem(); taken.GetReason() != "ID_TAKEN" {
		t.Errorf("got problem %v", taken)
	}
	if d.node.index != 2 {
		t.Errorf("the batch took %d entries, want one", d.node.index-1)
	}
	_, err = d.allocations().BatchAllocate(t.Context(), &quoratev1.BatchAllocateRequest{})
	if connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("an empty batch: %v", err)
	}
}

func TestBatchEndsEachOnItsOwn(t *testing.T) {
	d := oneNode(t)
	for _, id := range []string{"a", "b"} {
		if _, err := d.allocations().Allocate(t.Context(), request(id, "cern:physics/higgs", 1)); err != nil {
			t.Fatal(err)
		}
	}
	before := d.node.index
	answer, err := d.allocations().BatchRelease(t.Context(),
		&quoratev1.BatchReleaseRequest{Requests: []*quoratev1.ReleaseRequest{
			{Id: "b"}, {Id: "nobody"}, {Id: "a"}, {Id: "a"}, {Id: "bad id"},
		}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range answer.GetOutcomes() {
		if o.GetFailure() != nil {
			got = append(got, o.GetFailure().GetCode())
			continue
		}
		got = append(got, fmt.Sprint(o.GetReleased().GetAllocation().GetId(), " ",
			o.GetReleased().GetAllocation().GetState(), " ", o.GetReleased().GetWrite().GetRepetition()))
	}
	const released = " ALLOCATION_STATE_RELEASED"
	want := "b" + released + " false|not_found|a" + released + " false|a" + released + " true|invalid_argument"
	if strings.Join(got, "|") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "|"), want)
	}
	if d.node.index != before+1 {
		t.Errorf("the batch took %d entries, want one", d.node.index-before)
	}
	if _, err = d.allocations().BatchRelease(t.Context(),
		&quoratev1.BatchReleaseRequest{}); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("an empty batch: %v", err)
	}
}
