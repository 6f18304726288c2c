package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

func askFor(node string, n quota.Amount) quota.RequestLimits {
	return quota.RequestLimits{Tree: "cern", Node: node, Limits: cores(n), Reason: "a campaign"}
}

// twoApprovers is the tree of the examples, in which anna and carl may both set the limits below atlas.
func twoApprovers(approvals int) []quota.TreeSpec {
	trees := cernTree()
	trees[0].Approvals = approvals
	trees[0].Nodes[1].Bindings = []access.Binding{bind("node-admin", "anna", "carl", "peter")}
	return trees
}

func restoredWith(t rapid.TB, l *ledger.Ledger, b quota.Bounds) *ledger.Ledger {
	t.Helper()
	loaded, err := quotatest.Restore(l.Snapshot(), b)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func (g *guarded) digestOf(account string, number uint64) string {
	g.t.Helper()
	list := g.requestsOf(account, quota.LimitRequestFilter{Number: number})
	if len(list) != 1 {
		g.t.Fatalf("%s sees %d requests of number %d", account, len(list), number)
	}
	return list[0].Digest
}

func (g *guarded) requestsOf(account string, f quota.LimitRequestFilter) []quota.LimitRequestInfo {
	g.t.Helper()
	reader, err := g.ledger.Reader().ReaderOf(callerOf(account))
	if err != nil {
		g.t.Fatal(err)
	}
	return reader.LimitRequests(f, 0, 10_000).Requests
}

func (g *guarded) dryRun(account string, c quota.Command) ledger.Outcome {
	return g.ledger.Sandbox().DryRunFrom(ledger.Origin{Caller: callerOf(account)}, c)
}

func (g *guarded) approve(account string, number uint64) ledger.Outcome {
	g.t.Helper()
	return g.must(account, quota.ApproveRequest{Number: number, Digest: g.digestOf(account, number)})
}

func (g *guarded) coresOf(node string) quota.Limit {
	g.t.Helper()
	spec, err := g.ledger.Reader().Tree("cern")
	if err != nil {
		g.t.Fatal(err)
	}
	for _, n := range spec.Nodes {
		if n.Path == node && len(n.Limits) > 0 {
			return n.Limits[0].Limit
		}
	}
	return quota.Limit{}
}

// TestARequestIsAppliedByTheLastApprover: different people approve, none their own, and the history names them all.
func TestARequestIsAppliedByTheLastApprover(t *testing.T) {
	g := newGuarded(t, twoApprovers(2), "anna", "peter", "hans", "heidi", "carl")
	asked := g.must("peter", askFor("atlas/physics", 50))
	if r := asked.LimitRequest; r.Number != 1 || r.Asker != "account/peter" || r.Needed != 2 || r.MayDecide ||
		r.Ends != r.Made.At+quota.Instant(quota.DefaultRequestOpen) {
		t.Fatalf("the request is %+v", r)
	}
	if again := g.must("peter", askFor("atlas/physics", 50)); !again.Repeated || again.LimitRequest.Number != 1 {
		t.Errorf("the repeated request is %+v", again)
	}
	digest := g.digestOf("anna", 1)
	g.refused("peter", quota.ApproveRequest{Number: 1, Digest: digest}, quota.Forbidden, "another user must decide")
	g.refused("peter", quota.RejectRequest{Number: 1, Reason: "x"}, quota.Forbidden, "another user must decide")
	g.refused("hans", quota.ApproveRequest{Number: 1, Digest: digest}, quota.NotFound, "no request for limits 1")
	g.refused("anna", quota.ApproveRequest{Number: 1, Digest: "other"}, quota.RevisionMismatch, "has cores=40 now")
	g.refused("anna", quota.WithdrawRequest{Number: 1}, quota.NotFound, "no request for limits 1")
	before := g.ledger.Header()
	dry := g.dryRun("anna", quota.ApproveRequest{Number: 1, Digest: digest})
	if len(dry.LimitRequest.Approvals) != 1 || len(g.requestsOf("anna", quota.LimitRequestFilter{})[0].Approvals) != 0 ||
		g.ledger.Header() != before {
		t.Errorf("the dry run answers %+v, or has changed the ledger", dry.LimitRequest)
	}
	first := g.approve("anna", 1)
	if len(first.LimitRequest.Approvals) != 1 || first.LimitRequest.State != quota.RequestOpen {
		t.Fatalf("the first approval makes %+v", first.LimitRequest)
	}
	if again := g.approve("anna", 1); !again.Repeated || len(again.LimitRequest.Approvals) != 1 {
		t.Errorf("the repeated approval answers %+v", again.LimitRequest)
	}
	last := g.approve("carl", 1)
	if last.LimitRequest.State != quota.RequestApplied || last.Configuration == nil ||
		last.LimitRequest.Revision != last.Configuration.Revision || g.coresOf("atlas/physics") != quota.AtMost(50) {
		t.Fatalf("the last approval makes %+v", last.LimitRequest)
	}
	if again := g.must("carl", quota.ApproveRequest{Number: 1, Digest: digest}); !again.Repeated {
		t.Error("the last approval cannot be repeated")
	}
	revision := g.ledger.Reader().Revisions(0, 1)[0]
	if revision.Actor != "account/carl" || revision.Reason != "a campaign" || revision.Request == nil ||
		revision.Request.Asker != "account/peter" ||
		!slices.Equal(revision.Request.Approvers, []string{"account/anna", "account/carl"}) {
		t.Errorf("the revision is %+v with %+v", revision, revision.Request)
	}
	if err := g.ledger.Check(); err != nil {
		t.Error(err)
	}
}

// TestApprovalsCountForTheLimitsTheyWereJudgedOn: other limits need all approvals again.
func TestApprovalsCountForTheLimitsTheyWereJudgedOn(t *testing.T) {
	g := newGuarded(t, twoApprovers(2), "anna", "peter", "hans", "heidi", "carl")
	g.must("peter", askFor("atlas/physics", 50))
	old := g.digestOf("anna", 1)
	g.approve("anna", 1)
	g.must("carl", setCores("atlas/physics", 45))
	g.refused("carl", quota.ApproveRequest{Number: 1, Digest: old}, quota.RevisionMismatch, "has cores=45 now")
	if out := g.approve("carl", 1); out.LimitRequest.State != quota.RequestOpen || len(out.LimitRequest.Approvals) != 1 {
		t.Fatalf("an approval of other limits counts: %+v", out.LimitRequest)
	}
	if out := g.approve("anna", 1); out.LimitRequest.State != quota.RequestApplied {
		t.Errorf("both have approved, and the request is %+v", out.LimitRequest)
	}
}

// TestARequestBecomesStale: what does not fit any more is closed, and those who may not read the parent do not learn
// its limits from the reason.
func TestARequestBecomesStale(t *testing.T) {
	g := newGuarded(t, cernTree(), "anna", "peter", "hans", "heidi", "carl")
	g.must("hans", askFor("atlas/physics/higgs", 41))
	digest := g.digestOf("peter", 1)
	dry := g.dryRun("peter", quota.ApproveRequest{Number: 1, Digest: digest})
	out := g.must("peter", quota.ApproveRequest{Number: 1, Digest: digest})
	for _, r := range []*quota.LimitRequestInfo{dry.LimitRequest, out.LimitRequest} {
		if r.State != quota.RequestStale || !strings.Contains(r.ClosedReason, "strict") {
			t.Errorf("the request is %+v", r)
		}
	}
	if seen := g.requestsOf("hans", quota.LimitRequestFilter{})[0]; strings.Contains(seen.ClosedReason, "40") ||
		!strings.Contains(seen.ClosedReason, "ask an administrator") {
		t.Errorf("the asker reads %q", seen.ClosedReason)
	}
	g.must("hans", askFor("atlas/physics/higgs", 12))
	g.must("root", quota.MoveNode{Tree: "cern", From: "atlas/physics/higgs", To: "atlas/physics/boson"})
	out = g.must("peter", quota.ApproveRequest{Number: 2, Digest: "any"})
	if out.LimitRequest.State != quota.RequestStale {
		t.Errorf("the request for a moved node is %+v", out.LimitRequest)
	}
	g.refused("peter", quota.RejectRequest{Number: 2, Reason: "late"}, quota.Ended, "request 2 is stale")
}

func TestRequestsAreClosedOnce(t *testing.T) {
	g := newGuarded(t, cernTree(), "anna", "peter", "hans", "heidi", "carl")
	for n := range quota.Amount(3) {
		g.must("hans", askFor("atlas/physics/higgs", 20+n))
	}
	g.refused("peter", quota.RejectRequest{Number: 1}, quota.Invalid, "reason: the reason has 0 bytes; 1 to 512")
	for range 2 {
		if out := g.must("peter", quota.RejectRequest{Number: 1, Reason: "no"}); out.LimitRequest.ClosedReason != "no" {
			t.Errorf("rejected as %+v", out.LimitRequest)
		}
		if out := g.must("hans", quota.WithdrawRequest{Number: 2}); out.LimitRequest.State != quota.RequestWithdrawn {
			t.Errorf("withdrawn as %+v", out.LimitRequest)
		}
	}
	g.refused("hans", quota.WithdrawRequest{Number: 1}, quota.Ended, "request 1 is rejected")
	due, waits := g.ledger.Reader().NextDue()
	if !waits || due != quota.Instant(quota.DefaultRequestOpen) {
		t.Fatalf("the ledger is due at %d, %v", due, waits)
	}
	system := access.SystemCaller()
	out := g.ledger.ApplyFrom(quota.Stamp{At: due, Wall: wallNow}, ledger.Origin{Caller: &system, Index: 99},
		quota.Expire{Most: 5})
	if seen := g.requestsOf("hans", quota.LimitRequestFilter{Number: 3}); out.Expired != 1 ||
		seen[0].State != quota.RequestExpired || seen[0].ClosedBy != "" {
		t.Errorf("expired %d: %+v", out.Expired, seen)
	}
	if _, waits := g.ledger.Reader().NextDue(); waits {
		t.Error("closed requests have deadlines")
	}
}

func TestRequestsAreBounded(t *testing.T) {
	g := newGuarded(t, cernTree(), "anna", "peter", "hans", "heidi", "carl")
	for _, bad := range []struct {
		change func(*quota.RequestLimits)
		kind   quota.Kind
		text   string
	}{
		{func(r *quota.RequestLimits) { r.Reason = "" }, quota.Invalid, "reason: the reason has 0 bytes; 1 to 512"},
		{func(r *quota.RequestLimits) { r.Reason = strings.Repeat("x", 513) }, quota.Invalid, "reason: the reason has 513"},
		{func(r *quota.RequestLimits) { r.Open = quota.MaxRequestOpen + 1 }, quota.Invalid, "open_ms: "},
		{func(r *quota.RequestLimits) { r.Open = -1 }, quota.Invalid, "open_ms: "},
		{func(r *quota.RequestLimits) { r.Limits = nil }, quota.Invalid, "limits: the request names 0 limits; 1 to 64"},
		{
			func(r *quota.RequestLimits) { r.Limits = make([]quota.ResourceLimit, 65) }, quota.Invalid,
			"limits: the request names 65",
		},
		{func(r *quota.RequestLimits) { r.Limits = cores(10) }, quota.Invalid, "has these limits already"},
		{func(r *quota.RequestLimits) { r.Limits[0].Resource = "ram" }, quota.NotFound, "ram"},
		{func(r *quota.RequestLimits) { r.Node = "cms" }, quota.NotFound, "place: there is no node cern:cms"},
		{func(r *quota.RequestLimits) { r.Tree = "none" }, quota.NotFound, "place: there is no node none:atlas"},
	} {
		r := askFor("atlas/physics/higgs", 12)
		bad.change(&r)
		g.refused("hans", r, bad.kind, bad.text)
	}
	most := quota.DefaultBounds().RequestsOfOne
	for n := range most {
		g.must("hans", askFor("atlas/physics/higgs", quota.Amount(100+n)))
	}
	g.refused("hans", askFor("atlas/physics/higgs", 12), quota.Full, "20 open requests for limits; at most 20")
	g.must("heidi", askFor("atlas/physics/higgs", 12))
	g.must("hans", quota.WithdrawRequest{Number: 1})
	g.must("hans", askFor("atlas/physics/higgs", 12))
}

// TestAllRequestsAreBounded: the bound of all users together, and that of the closed requests, of which those that were
// closed first are forgotten.
func TestAllRequestsAreBounded(t *testing.T) {
	b := quota.DefaultBounds()
	b.Requests, b.ClosedRequests = 3, 2
	g := newGuarded(t, cernTree(), "anna", "peter", "hans", "heidi", "carl")
	g.ledger = restoredWith(t, g.ledger, b)
	for n := range quota.Amount(3) {
		g.must("hans", askFor("atlas/physics/higgs", 20+n))
	}
	g.refused("heidi", askFor("atlas/physics/higgs", 12), quota.Full, "3 open requests for limits; at most 3")
	for _, number := range []uint64{3, 1, 2} {
		g.must("hans", quota.WithdrawRequest{Number: number})
	}
	var left []uint64
	for _, r := range g.requestsOf("hans", quota.LimitRequestFilter{}) {
		left = append(left, r.Number)
	}
	if !slices.Equal(left, []uint64{1, 2}) {
		t.Errorf("the requests %v are remembered, want those that were closed last", left)
	}
	g.ledger = restoredWith(t, g.ledger, b)
	if n := g.must("hans", askFor("atlas/physics/higgs", 12)).LimitRequest.Number; n != 4 {
		t.Errorf("the next request has number %d", n)
	}
}

// TestClosedRequestsStayVisible: a user who asks and withdraws again and again does not remove the closed requests of
// others, neither for the one who asked nor for those who decide.
func TestClosedRequestsStayVisible(t *testing.T) {
	b := quota.DefaultBounds()
	b.ClosedRequests = 3
	g := newGuarded(t, cernTree(), "anna", "peter", "hans", "heidi", "carl")
	g.ledger = restoredWith(t, g.ledger, b)
	g.must("heidi", askFor("atlas/physics/higgs", 12))
	g.must("peter", quota.RejectRequest{Number: 1, Reason: "in spring"})
	for n := range uint64(5) {
		g.must("hans", askFor("atlas/physics/higgs", 20))
		g.must("hans", quota.WithdrawRequest{Number: n + 2})
	}
	for _, user := range []string{"heidi", "peter"} {
		seen := g.requestsOf(user, quota.LimitRequestFilter{Asker: "account/heidi"})
		if len(seen) != 1 || seen[0].State != quota.RequestRejected || seen[0].ClosedBy != "account/peter" ||
			seen[0].ClosedReason != "in spring" {
			t.Errorf("%s sees %+v of the request that was rejected", user, seen)
		}
	}
}

// TestRequestsNeedUsers: an open cluster cannot tell callers apart, and neither can a watching one without credentials.
func TestRequestsNeedUsers(t *testing.T) {
	g := newOpen(t, "hans")
	for _, c := range []quota.Command{
		askFor("atlas", 61),
		quota.ApproveRequest{Number: 1, Digest: "x"},
		quota.RejectRequest{Number: 1, Reason: "x"},
		quota.WithdrawRequest{Number: 1},
	} {
		g.refused("hans", c, quota.InUse, "the cluster is open")
	}
	w := newLedgerIn(t, access.Watching, cernTree(), "hans", "anna")
	if out := w.anonymously(askFor("atlas", 61)); out.Refused == nil || out.Refused.Kind != quota.Forbidden {
		t.Errorf("a caller without a credential is answered %+v", out.Refused)
	}
	out := w.must("hans", askFor("atlas", 61))
	if out.WouldRefuse == nil || out.LimitRequest.Asker != "account/hans" {
		t.Errorf("a watching ledger answers %+v", out)
	}
	w.refused("hans", quota.ApproveRequest{Number: 1, Digest: out.LimitRequest.Digest}, quota.Forbidden, "another user")
}

// TestRequestsAfterABackup: those that were open in the backup are stale, and numbers go on from the larger ledger.
func TestRequestsAfterABackup(t *testing.T) {
	g := newGuarded(t, cernTree(), "anna", "peter", "hans", "heidi", "carl")
	g.must("hans", askFor("atlas/physics/higgs", 12))
	backup := restoredWith(t, g.ledger, quota.DefaultBounds())
	g.must("hans", askFor("atlas/physics/higgs", 13))
	backup.Supersede(g.ledger.Header(), 1)
	g.ledger = backup
	if seen := g.requestsOf("hans", quota.LimitRequestFilter{}); len(seen) != 1 || seen[0].State != quota.RequestStale {
		t.Errorf("after the backup there are %+v", seen)
	}
	if n := g.must("hans", askFor("atlas/physics/higgs", 13)).LimitRequest.Number; n != 3 {
		t.Errorf("the next request has number %d", n)
	}
	if err := g.ledger.Check(); err != nil {
		t.Error(err)
	}
}

// TestWhoSeesRequests: askers their own, approvers those that they may decide, auditors all, others none.
func TestWhoSeesRequests(t *testing.T) {
	g := newGuarded(t, cernTree(), "anna", "peter", "hans", "heidi", "carl")
	g.must("hans", askFor("atlas/physics/higgs", 12))
	g.must("peter", askFor("atlas/physics", 50))
	for account, want := range map[string]string{
		"hans": "1-", "heidi": "", "carl": "", "peter": "1+ 2-", "anna": "1+ 2+", "root": "1+ 2+",
	} {
		var seen []string
		for _, r := range g.requestsOf(account, quota.LimitRequestFilter{}) {
			seen = append(seen, fmt.Sprint(r.Number)+map[bool]string{true: "+", false: "-"}[r.MayDecide])
		}
		if got := strings.Join(seen, " "); got != want {
			t.Errorf("%s sees %q, want %q", account, got, want)
		}
	}
	reader, _ := g.ledger.Reader().ReaderOf(callerOf("root"))
	first := reader.LimitRequests(quota.LimitRequestFilter{}, 0, 1)
	rest := reader.LimitRequests(quota.LimitRequestFilter{}, first.Next, 1)
	if len(first.Requests) != 1 || first.Next != 1 || len(rest.Requests) != 1 || rest.Next != 0 {
		t.Errorf("the pages are %+v and %+v", first, rest)
	}
}
