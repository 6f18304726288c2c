package wire

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
)

// grpcTrailer is the trailer in which Connect sends an error over gRPC, and the status in it.
func grpcTrailer(t *testing.T, err error) (http.Header, *status.Status) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/x", nil)
	r.Header.Set("Content-Type", "application/grpc")
	w := httptest.NewRecorder()
	if failed := connect.NewErrorWriter().Write(w, r, err); failed != nil {
		t.Fatal(failed)
	}
	answer := w.Result()
	encoded, broken := connect.DecodeBinaryHeader(answer.Trailer.Get("Grpc-Status-Details-Bin"))
	sent := &status.Status{}
	if failed := errors.Join(answer.Body.Close(), broken, proto.Unmarshal(encoded, sent)); failed != nil {
		t.Fatal(failed)
	}
	return answer.Trailer, sent
}

func decisionOf(t *testing.T, sent *status.Status) *quoratev1.Decision {
	t.Helper()
	for _, detail := range sent.GetDetails() {
		if decision := (&quoratev1.Decision{}); detail.MessageIs(decision) {
			if err := detail.UnmarshalTo(decision); err != nil {
				t.Fatal(err)
			}
			return decision
		}
	}
	return nil
}

// TestErrorsFitIntoTrailers: whatever an error has, over gRPC its trailer is one that all clients accept, its main
// detail is there, and what was left out is counted.
func TestErrorsFitIntoTrailers(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		d := randomDenial(random)
		whole := DenialError(d, 7)
		decision := denialDetail(&d, 7)
		trailer, sent := grpcTrailer(t, FitError(whole, true))
		assertSmall(t, trailer, sent)
		got := decisionOf(t, sent)
		if got.GetIndex() != 7 || got.GetNeverFits() != decision.GetNeverFits() || got.GetExplanation() != "" ||
			got.GetOutcome() != quoratev1.Outcome_OUTCOME_DENIED {
			t.Fatalf("of %v arrived %v", decision, got)
		}
		if len(d.Violations) != len(got.GetViolations())+int(got.GetOtherViolations()) ||
			len(d.Holders) != len(got.GetHolders())+int(got.GetOtherHolders()) ||
			len(d.Preempted) != len(got.GetPreempted())+int(got.GetOtherPreempted()) {
			t.Fatalf("%d violations, %d holders, %d preempted: the counts are wrong in %v", len(d.Violations),
				len(d.Holders), len(d.Preempted), got)
		}
	}
}

// randomDenial has paths, names and reasons of all lengths, and texts that gRPC must escape.
func randomDenial(random *rand.Rand) quota.Decision {
	word := func(longest int) string {
		return strings.Repeat([]string{"a", "é", "%"}[random.IntN(3)], random.IntN(longest))
	}
	d := quota.Decision{}
	for range 1 + random.IntN(1+random.IntN(300)) {
		d.Violations = append(d.Violations, quota.Violation{
			Tree: "cern", Node: word(1 + random.IntN(200)), Resource: word(63), Limit: quota.Amount(random.IntN(100)),
			Used: quota.Amount(random.IntN(1000)), Requested: quota.Amount(random.IntN(100)), Reason: word(1 + random.IntN(200)),
		})
	}
	for range random.IntN(1 + random.IntN(300)) {
		d.Holders = append(d.Holders, quota.LevelHolders{Tree: "cern", Node: word(60), Resource: word(63)})
		d.Preempted = append(d.Preempted, quota.Preempted{ID: word(60), Tree: "cern", Node: word(60)})
	}
	return d
}

// assertSmall demands the bounds that clients have: 8 KiB for names and values, with 32 bytes for each pair (RFC 9113).
func assertSmall(t *testing.T, trailer http.Header, sent *status.Status) {
	t.Helper()
	total := 0
	for name, values := range trailer {
		for _, value := range values {
			total += len(name) + len(value) + 32
		}
	}
	if total > 7<<10 || proto.Size(sent) > MaxTrailerStatus || len(trailer.Get("Grpc-Message")) > MaxTrailerText {
		t.Fatalf("a trailer of %d bytes with a status of %d and a text of %d", total, proto.Size(sent),
			len(trailer.Get("Grpc-Message")))
	}
	if text, err := url.PathUnescape(trailer.Get("Grpc-Message")); err != nil || text != sent.GetMessage() {
		t.Fatalf("the texts differ: %q and %q (%v)", text, sent.GetMessage(), err)
	}
}

// TestSmallErrorsStayWhole: what fits is sent as it is, in its order.
func TestSmallErrorsStayWhole(t *testing.T) {
	d := quota.Decision{Violations: []quota.Violation{
		{Tree: "cern", Node: "atlas", Resource: "cores", Limit: 9, Used: 9, Requested: 1},
		{Tree: "cern", Resource: "cores", Limit: 10, Requested: 11},
	}}
	want := denialDetail(&d, 7)
	_, sent := grpcTrailer(t, FitError(DenialError(d, 7), true))
	if got := decisionOf(t, sent); sent.GetMessage() != want.GetExplanation() || !proto.Equal(got, func() proto.Message {
		want.Explanation = ""
		return want
	}()) {
		t.Errorf("got %v and %q, want %v", got, sent.GetMessage(), want)
	}
	over := FitError(DenialError(d, 7), false)
	if got, want := ToFailure(ToError(over)), DenialFailure(&d, 7); !proto.Equal(got, want) {
		t.Errorf("over Connect: %v, want %v", got, want)
	}
}

// TestMostUsefulViolationsStay: of a denial that does not fit, the limits that can never hold the request come first,
// then of each resource the level at which most is missing.
func TestMostUsefulViolationsStay(t *testing.T) {
	d := quota.Decision{}
	for level := range 16 {
		for _, resource := range []string{"cores", "gpus", "memory"} {
			d.Violations = append(d.Violations, quota.Violation{
				Tree: "cern", Node: fmt.Sprintf("%s%d", strings.Repeat("x", 100), level), Resource: resource,
				Limit: 100, Used: quota.Amount(100 + level), Requested: 5,
			})
		}
	}
	d.Violations[46].Limit = 1 // gpus at the root: never
	_, sent := grpcTrailer(t, FitError(DenialError(d, 7), true))
	got := decisionOf(t, sent)
	seen := ""
	for _, v := range got.GetViolations()[:4] {
		seen += fmt.Sprintf("%s%s ", v.GetResource(), strings.TrimLeft(v.GetNode(), "x"))
	}
	if seen != "gpus15 cores15 memory15 cores0 " || got.GetOtherViolations() == 0 {
		t.Errorf("first come %s", seen)
	}
}

// TestProblemsFitIntoTrailers: other errors are bounded in the same way, and say when to retry.
func TestProblemsFitIntoTrailers(t *testing.T) {
	refused := &quota.Error{
		Kind: quota.PolicyBreach, Field: strings.Repeat("f", 500), Text: strings.Repeat("text; ", 5000),
	}
	for i := range 200 {
		refused.Breaches = append(refused.Breaches,
			quota.Breach{Tree: "cern", Node: fmt.Sprint(i), Text: strings.Repeat("b", 100)})
	}
	trailer, sent := grpcTrailer(t, FitError(WithRetryAfter(RefusalError(refused), time.Second), true))
	assertSmall(t, trailer, sent)
	problem := &quoratev1.Problem{}
	if err := sent.GetDetails()[1].UnmarshalTo(problem); err != nil || problem.GetReason() != "POLICY_BREACH" ||
		len(problem.GetBreaches())+int(problem.GetOtherBreaches()) != 200 {
		t.Errorf("arrived: %v (%v)", problem, err)
	}
	if len(sent.GetDetails()) != 2 || trailer.Get("Retry-After") != "1" {
		t.Errorf("%d details: the delay is missing", len(sent.GetDetails()))
	}
	if text := sent.GetMessage(); !strings.HasSuffix(text, "; …") {
		t.Errorf("the text ends in %q", text[len(text)-20:])
	}
}
