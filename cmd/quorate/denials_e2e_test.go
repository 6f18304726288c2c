package main_test

import (
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"testing"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
)

// deniedRequest asks for more cores than the tree of the activity has.
func deniedRequest(id string) *quoratev1.AllocateRequest {
	r := busyRequest(id, "team")
	r.Claims[0].Amounts["cores"] = 3
	return r
}

// joinedDenials is how many calls one client makes at the same time, so that it joins them into batches.
const joinedDenials = 30

// beDenied makes calls of every kind to one server: 5 requests and the joined ones are denied for their cores, one for
// its items. What is granted, refused or a dry run is no denial.
func beDenied(t *testing.T, f serverFlags) {
	t.Helper()
	api := quoratev1connect.NewAllocationServiceClient(http2, f.baseURL())
	expectDenial := func(r *quoratev1.AllocateRequest) {
		t.Helper()
		if _, err := api.Allocate(t.Context(), r); connect.CodeOf(err) != connect.CodeResourceExhausted {
			t.Errorf("%s on %s: %v", r.GetId(), f.id, err)
		}
	}
	expectDenial(deniedRequest("unary"))
	expectDenial(deniedRequest("unary")) // a denial leaves nothing behind: the same request is decided anew
	machines := busyRequest("machines", "team")
	machines.Claims[0].Items = []*quoratev1.ItemPick{{Resource: "machine", Count: 3}}
	delete(machines.GetClaims()[0].GetAmounts(), "cores")
	expectDenial(machines)
	explained, err := api.Explain(t.Context(), &quoratev1.ExplainRequest{
		Question: &quoratev1.ExplainRequest_Request{Request: deniedRequest("explained")},
	})
	if err != nil || explained.GetDecision().GetOutcome() != quoratev1.Outcome_OUTCOME_DENIED {
		t.Errorf("an explanation, which is not counted: %v, %v", explained, err)
	}
	granted, unknown := busyRequest("granted-"+f.id, "team"), busyRequest("unknown", "team")
	unknown.Claims[0].Tree = "elsewhere"
	batch, err := api.BatchAllocate(t.Context(), &quoratev1.BatchAllocateRequest{Requests: []*quoratev1.AllocateRequest{
		deniedRequest("batch-1"), granted, deniedRequest("batch-2"), unknown,
	}})
	if err != nil || batch.GetOutcomes()[1].GetGranted() == nil || batch.GetOutcomes()[3].GetFailure() == nil {
		t.Fatalf("%v, %v", batch, err)
	}
	stream, err := api.AllocateStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := callOnStream(stream, 1, deniedRequest("stream")); err != nil || answer.GetFailure() == nil {
		t.Errorf("%v, %v", answer, err)
	}
	joining := clientOf(t, []serverFlags{f})
	var calls sync.WaitGroup
	for i := range joinedDenials {
		calls.Go(func() {
			_, err := joining.Allocations.Allocate(t.Context(), deniedRequest(fmt.Sprint("joined-", i)))
			if connect.CodeOf(err) != connect.CodeResourceExhausted {
				t.Errorf("a joined call to %s: %v", f.id, err)
			}
		})
	}
	calls.Wait()
	if _, err := api.Release(t.Context(), &quoratev1.ReleaseRequest{Id: granted.GetId()}); err != nil {
		t.Error(err)
	}
}

var denialLine = regexp.MustCompile(`(?m)^quorate_denials_total\{cluster="quorate",reason="(\w+)",tree="(\w+)"\} (\d+)$`)

// expectDenials compares the sum over all members with what was denied: each request counts once, at the member that
// leads, whatever member was called.
func expectDenials(t *testing.T, flags []serverFlags, want map[string]int) {
	t.Helper()
	awaitCondition(t, fmt.Sprintf("the members do not count %v", want), func() bool {
		sums := map[string]int{}
		for _, f := range flags {
			_, page := httpGet(t, f.baseURL()+"/metrics")
			for _, line := range denialLine.FindAllStringSubmatch(page, -1) {
				n, _ := strconv.Atoi(line[3])
				sums[line[2]+" "+line[1]] += n
			}
		}
		for key, n := range sums {
			if n > want[key] {
				t.Fatalf("%d denials of %s are counted, want %d", n, key, want[key])
			}
		}
		return fmt.Sprint(sums) == fmt.Sprint(want)
	})
}
