package rpc

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/rpc/notify"
	"github.com/quorate/quorate/rpc/wire"
)

// fullNode starts a cluster of one node in which "holder" holds everything that physics may hold.
func fullNode(t *testing.T) *testServer {
	t.Helper()
	d := oneNode(t)
	d.hold(t, "holder")
	return d
}

func (d *testServer) hold(t *testing.T, id string) {
	t.Helper()
	if _, err := d.allocations().Allocate(t.Context(), request(id, "cern:physics", 20)); err != nil {
		t.Fatal(err)
	}
}

// waitingRequest returns a request that may wait for one core of physics.
func waitingRequest(id string, poll time.Duration) *quoratev1.AllocateRequest {
	r := request(id, "cern:physics", 1)
	r.Mode, r.PollMs = quoratev1.Mode_MODE_WAIT, poll.Milliseconds()
	return r
}

func stateOf(a *quoratev1.Allocation) string {
	return strings.TrimPrefix(a.GetState().String(), "ALLOCATION_STATE_")
}

func TestAPlaceInTheQueueIsNoError(t *testing.T) {
	for name, options := range protocols {
		t.Run(name, func(t *testing.T) {
			client := fullNode(t).allocations(options...)
			for i, id := range []string{"a", "b"} {
				got, err := client.Allocate(t.Context(), waitingRequest(id, 0))
				if err != nil {
					t.Fatal(err)
				}
				w := got.GetAllocation().GetWaiting()
				if got.GetDecision().GetOutcome() != quoratev1.Outcome_OUTCOME_WAITING ||
					stateOf(got.GetAllocation()) != "WAITING" || got.GetAllocation().GetFence() != 0 ||
					w.GetPosition() != int64(i+1) || !strings.Contains(w.GetLine(), "cern:physics") ||
					got.GetAllocation().GetGrantedAt() != nil {
					t.Errorf("got %v", got)
				}
				if v := got.GetDecision().GetViolations()[0]; v.GetNode() != "physics" || v.GetMissing() != 1 {
					t.Errorf("it waits for %v", v)
				}
			}
			if again, err := client.Allocate(t.Context(), waitingRequest("b", 0)); err != nil ||
				!again.GetWrite().GetRepetition() ||
				again.GetAllocation().GetWaiting().GetPosition() != 2 {
				t.Errorf("asked again: %v, %v", again, err)
			}
			hopeless := waitingRequest("c", 0)
			hopeless.Claims[0].Amounts["cores"] = 21
			if _, err := client.Allocate(t.Context(), hopeless); connect.CodeOf(err) != connect.CodeResourceExhausted {
				t.Errorf("what can never fit: %v", err)
			}
			kept, err := client.Renew(t.Context(), &quoratev1.RenewRequest{Id: "b"})
			if err != nil || kept.GetAllocation().GetWaiting().GetPosition() != 2 ||
				kept.GetAllocation().GetWaiting().GetKeepUntilLedgerMs() != kept.GetWrite().GetLedgerTimeMs()+120_000 {
				t.Errorf("kept: %v, %v", kept, err)
			}
		})
	}
}

// TestAWaitOfZeroDoesNotWait: left out, it is the longest; given, it is what it says.
func TestAWaitOfZeroDoesNotWait(t *testing.T) {
	for name, options := range protocols {
		t.Run(name, func(t *testing.T) {
			client := fullNode(t).allocations(options...)
			none := waitingRequest("none", 0)
			none.WaitMs, none.KeepMs = new(int64(0)), 60_000
			if got, err := client.Allocate(t.Context(), none); connect.CodeOf(err) != connect.CodeResourceExhausted {
				t.Errorf("a wait of 0: %v, %v", got, err)
			}
			got, err := client.Allocate(t.Context(), waitingRequest("longest", 0))
			if err != nil {
				t.Fatal(err)
			}
			w := got.GetAllocation().GetWaiting()
			if span := w.GetUntilLedgerMs() - w.GetArrivedLedgerMs(); span != (7 * 24 * time.Hour).Milliseconds() {
				t.Errorf("without one it may wait for %d ms", span)
			}
		})
	}
}

func TestWaitingByHand(t *testing.T) {
	d := fullNode(t)
	body := `{"id":"a","mode":"MODE_WAIT","claims":[{"tree":"cern","node":"physics","amounts":{"cores":1}}]}`
	if got := send(t, "POST", d.url+allocatePath, body); got.status != 200 ||
		!strings.Contains(got.body, `"outcome":"OUTCOME_WAITING"`) ||
		!strings.Contains(got.body, `"position":"1"`) {
		t.Errorf("got %v", got)
	}
	batch := `{"requests":[` + body + `,` + strings.Replace(body, `"a"`, `"b"`, 1) + `]}`
	if got := send(t, "POST", d.url+"/quorate.v1.AllocationService/BatchAllocate", batch); got.status != 200 ||
		strings.Count(got.body, `"outcome":"OUTCOME_WAITING"`) != 2 || !strings.Contains(got.body, `"position":"2"`) {
		t.Errorf("got %v", got)
	}
}

type polled struct {
	answer *quoratev1.AllocateResponse
	err    error
	took   time.Duration
}

// poll starts a call and returns when the server is waiting for the grant.
//
//nolint:revive // t goes first here
func (d *testServer) poll(t *testing.T, ctx context.Context, r *quoratev1.AllocateRequest) <-chan polled {
	t.Helper()
	answered := make(chan polled, 1)
	go func() {
		began := time.Now()
		answer, err := d.allocations().Allocate(ctx, r)
		answered <- polled{answer, err, time.Since(began)}
	}()
	// On a busy machine it may have waited for as long as it wants before it is seen.
	d.until(t, func() bool { return d.waiting(r.GetId()) || len(answered) > 0 })
	return answered
}

// waiting reports whether a caller is subscribed to the grant of an allocation.
func (d *testServer) waiting(id string) bool {
	return d.notifier.HasSubscriber(notify.AllocationKey(id))
}

func (d *testServer) until(t *testing.T, holds func() bool) {
	t.Helper()
	eventually(t, "it comes true", holds)
}

func TestACallWaitsForItsGrant(t *testing.T) {
	d := fullNode(t)
	lease := waitingRequest("a", 30*time.Second)
	lease.TtlMs, lease.KeepMs = 600_000, 60_000
	first := d.poll(t, t.Context(), lease)
	second := d.poll(t, t.Context(), waitingRequest("b", 30*time.Second))
	d.node.apply(quota.Release{ID: "holder"})
	for id, answered := range map[string]<-chan polled{"a": first, "b": second} {
		got := <-answered
		if got.err != nil || got.answer.GetDecision().GetOutcome() != quoratev1.Outcome_OUTCOME_GRANTED ||
			got.answer.GetAllocation().GetFence() == 0 || got.answer.GetWrite().GetRepetition() {
			t.Fatalf("%s got %+v", id, got)
		}
		if id == "a" && got.answer.GetAllocation().GetExpiresLedgerMs() != got.answer.GetWrite().GetLedgerTimeMs()+600_000 {
			t.Errorf("its caller has come, but the lease lasts only from %d to %d", got.answer.GetWrite().GetLedgerTimeMs(),
				got.answer.GetAllocation().GetExpiresLedgerMs())
		}
	}
	d.until(t, d.notifier.IsIdle)
}

func TestACallEndsWithItsPlace(t *testing.T) {
	d := fullNode(t)
	for name, c := range map[string]struct {
		poll, keep, deadline time.Duration
		least, most          time.Duration
	}{
		"when it has waited as long as it wanted": {
			300 * time.Millisecond, 0, 0, 300 * time.Millisecond,
			5 * time.Second,
		},
		"before its caller gives up": {
			time.Minute, 0, 2 * time.Second, 500 * time.Millisecond,
			2 * time.Second,
		},
		"before it would be taken for one without any": {
			time.Minute, 1200 * time.Millisecond, 0,
			800 * time.Millisecond, 1150 * time.Millisecond,
		},
		"at once if its deadline is as good as passed": {
			time.Minute, 0, 120 * time.Millisecond, 0,
			120 * time.Millisecond,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for attempt := 1; ; attempt++ {
				r := waitingRequest(fmt.Sprint(strings.ReplaceAll(name, " ", "-"), "-", attempt), c.poll)
				r.KeepMs = c.keep.Milliseconds()
				answer, took, err := d.allocateWithin(t, r, c.deadline)
				isLate := took > c.most || connect.CodeOf(err) == connect.CodeDeadlineExceeded
				if isLate && attempt < 10 {
					continue // a busy machine may delay one call, but not all of them
				}
				if err != nil || stateOf(answer.GetAllocation()) != "WAITING" ||
					answer.GetAllocation().GetWaiting().GetPosition() == 0 {
					t.Fatalf("got %v, %v after %v", answer, err, took)
				}
				if took < c.least || isLate {
					t.Errorf("it took %v, want %v to %v", took, c.least, c.most)
				}
				return
			}
		})
	}
}

// allocateWithin returns the duration of one call; a deadline of 0 is none.
func (d *testServer) allocateWithin(
	t *testing.T, r *quoratev1.AllocateRequest, deadline time.Duration,
) (*quoratev1.AllocateResponse, time.Duration, error) {
	t.Helper()
	ctx := t.Context()
	if deadline > 0 {
		short, cancel := context.WithTimeout(ctx, deadline)
		defer cancel()
		ctx = short
	}
	began := time.Now()
	answer, err := d.allocations().Allocate(ctx, r)
	return answer, time.Since(began), err
}

func TestACallLearnsThatItsRequestHasEnded(t *testing.T) {
	d := fullNode(t)
	answered := d.poll(t, t.Context(), waitingRequest("a", 30*time.Second))
	d.node.apply(quota.Cancel{ID: "a"})
	got := <-answered
	if connect.CodeOf(got.err) != connect.CodeFailedPrecondition || problemOf(t, got.err).GetReason() != "ENDED" {
		t.Errorf("got %+v", got)
	}
}

// TestACallGoesOnWithoutALeader: a waiting call needs only that its node applies the entries of the next leader.
func TestACallGoesOnWithoutALeader(t *testing.T) {
	d := fullNode(t)
	lease := waitingRequest("a", 30*time.Second)
	lease.TtlMs = 600_000
	answered := d.poll(t, t.Context(), lease)
	d.node.lead("")
	d.node.apply(quota.Release{ID: "holder"})
	got := <-answered
	if got.err != nil || stateOf(got.answer.GetAllocation()) != "HELD" {
		t.Fatalf("got %+v", got)
	}
	if left := got.answer.GetAllocation().GetExpiresLedgerMs() - got.answer.GetWrite().GetLedgerTimeMs(); left > 120_000 ||
		left <= 0 {
		t.Errorf("the heartbeat could not be written, but the request is kept for %d ms", left)
	}
}

func TestACallEndsWithoutALeader(t *testing.T) {
	t.Parallel()
	d := fullNode(t)
	answered := d.poll(t, t.Context(), waitingRequest("a", time.Second))
	d.node.lead("")
	if got := <-answered; got.err != nil || stateOf(got.answer.GetAllocation()) != "WAITING" {
		t.Errorf("got %+v", got)
	}
}

// TestForgottenFeedWakesWaiters: when the feed has dropped events, every waiting call checks the state itself.
func TestForgottenFeedWakesWaiters(t *testing.T) {
	d := fullNode(t)
	answered := d.poll(t, t.Context(), waitingRequest("a", 30*time.Second))
	d.node.mu.Lock()
	d.node.forgotten = cluster.PositionAfter(d.node.index + 1)
	d.node.mu.Unlock()
	d.node.apply(quota.Release{ID: "holder"})
	if got := <-answered; got.err != nil || stateOf(got.answer.GetAllocation()) != "HELD" {
		t.Errorf("got %+v", got)
	}
}

func TestListWaiting(t *testing.T) {
	d := fullNode(t)
	for i, priority := range []int64{0, 5, 0, -1} {
		r := waitingRequest(fmt.Sprint("w", i), 0)
		r.Priority = priority
		if _, err := d.allocations().Allocate(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	var order []string
	list := &quoratev1.ListWaitingRequest{Tree: "cern", Node: "physics", PageSize: 3}
	for {
		page, err := d.allocations().ListWaiting(t.Context(), list)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range page.GetRequests() {
			order = append(order, w.GetAllocation().GetId())
			if w.GetDecision().GetOutcome() != quoratev1.Outcome_OUTCOME_WAITING ||
				len(w.GetDecision().GetViolations()) == 0 ||
				w.GetAllocation().GetWaiting().GetPosition() != int64(len(order)) {
				t.Errorf("got %v", w)
			}
		}
		if list.PageToken = page.GetNextPageToken(); list.GetPageToken() == "" {
			break
		}
	}
	if got := strings.Join(order, " "); got != "w1 w0 w2 w3" {
		t.Errorf("the queue is %s", got)
	}
	for name, r := range map[string]*quoratev1.ListWaitingRequest{
		"elsewhere": {Tree: "cern", Node: "operations"}, "another resource": {Tree: "cern", Resource: "disk"},
	} {
		if page, err := d.allocations().ListWaiting(t.Context(), r); err == nil && len(page.GetRequests()) > 0 {
			t.Errorf("%s: %v", name, page)
		}
	}
	other, err := wire.OpenPage(&quoratev1.ListWaitingRequest{Tree: "cern"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{"?", "dw", other.TokenAfterQueued(&quota.QueueTurn{Priority: 1, Arrival: 2})} {
		if _, err := d.allocations().ListWaiting(t.Context(),
			&quoratev1.ListWaitingRequest{PageToken: token}); connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("token %q: %v", token, err)
		}
	}
}

// TestOneRuleOfPriorities: a request that does not wait, a dry run and a question are decided at the place that their
// priority has in the queue, as a request that waits is; and a resize waits with the priority of its allocation,
// however that was granted.
func TestOneRuleOfPriorities(t *testing.T) {
	d := oneNode(t)
	d.node.apply(quota.ApplyTrees{Trees: []quota.TreeSpec{{
		Name: "strict", Resources: []quota.Resource{{Name: "cores", Unit: quota.Count}}, Nodes: []quota.NodeSpec{{
			Queueing: quota.Strict, Limits: []quota.ResourceLimit{{Resource: "cores", Limit: quota.AtMost(10)}},
		}},
	}}})
	client := d.allocations()
	ask := func(id string, n, priority int64, mode quoratev1.Mode) *quoratev1.AllocateResponse {
		t.Helper()
		r := request(id, "strict:", n)
		r.Priority, r.Mode = priority, mode
		got, err := client.Allocate(t.Context(), r)
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		return got
	}
	ask("base", 5, 0, quoratev1.Mode_MODE_UNSPECIFIED)
	ask("head", 6, 3, quoratev1.Mode_MODE_WAIT)
	low := request("low", "strict:", 1)
	low.Priority = 2
	if _, err := client.Allocate(t.Context(), low); connect.CodeOf(err) != connect.CodeResourceExhausted {
		t.Errorf("a lower priority passes the head: %v", err)
	}
	high := request("high", "strict:", 1)
	high.Priority = 4
	explained, err := client.Explain(t.Context(), &quoratev1.ExplainRequest{
		Question: &quoratev1.ExplainRequest_Request{Request: high},
	})
	if err != nil || explained.GetDecision().GetOutcome() != quoratev1.Outcome_OUTCOME_GRANTED {
		t.Errorf("explained: %v, %v", explained, err)
	}
	got := ask("high", 1, 4, quoratev1.Mode_MODE_UNSPECIFIED)
	again := ask("high", 1, 4, quoratev1.Mode_MODE_UNSPECIFIED)
	if !again.GetWrite().GetRepetition() || again.GetAllocation().GetFence() != got.GetAllocation().GetFence() {
		t.Errorf("repeated: %v", again)
	}
	grown, err := client.Resize(t.Context(), &quoratev1.ResizeRequest{
		Id: "high", WaitMs: 60_000,
		Claims: []*quoratev1.ClaimChange{{Tree: "strict", Amounts: map[string]int64{"cores": 6}}},
	})
	if err != nil || grown.GetDecision().GetOutcome() != quoratev1.Outcome_OUTCOME_WAITING {
		t.Fatalf("grown: %v, %v", grown, err)
	}
	if w := grown.GetAllocation().GetResize().GetWaiting(); w.GetPosition() != 1 {
		t.Errorf("the resize waits behind a lower priority: %v", w)
	}
}
