package ledger_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

// requestOracle is the rules as sentences: who may set the limits of two nodes, and when they fit.
type requestOracle struct {
	needed   int
	limits   map[string]quota.Amount
	requests []*modelRequest
}

type modelRequest struct {
	asker, node string
	amount      quota.Amount
	state       quota.RequestState
	// approvals are the users who approved, each with the limit that it saw.
	approvals []modelApproval
}

type modelApproval struct {
	user string
	saw  quota.Amount
}

const (
	physics = "atlas/physics"
	higgs   = "atlas/physics/higgs"
)

// deciders are the users who may set the limit of a node: those bound above it, and root.
var deciders = map[string][]string{
	physics: {"root", "anna", "carl", "peter"},
	higgs:   {"root", "anna", "carl", "peter", "dora", "emil"},
}

// askers are the users who may ask at a node: those with the role node-admin at or above it, holders at it, and root.
var askers = map[string][]string{
	physics: {"root", "anna", "carl", "peter", "dora", "emil"},
	higgs:   {"root", "anna", "carl", "peter", "dora", "emil", "hans"},
}

// fits is the strict policy: no children's limits above that of their parent.
func (o *requestOracle) fits(node string, amount quota.Amount) bool {
	if node == physics {
		return amount <= 60 && o.limits[higgs] <= amount
	}
	return amount <= o.limits[physics]
}

// ask returns the number of the request; 0 if it is refused.
func (o *requestOracle) ask(user, node string, amount quota.Amount) int {
	if !slices.Contains(askers[node], user) || o.limits[node] == amount {
		return 0
	}
	for i, r := range o.requests {
		if r.state == quota.RequestOpen && r.asker == user && r.node == node && r.amount == amount {
			return i + 1
		}
	}
	o.requests = append(o.requests, &modelRequest{asker: user, node: node, amount: amount, state: quota.RequestOpen})
	return len(o.requests)
}

// approve reports whether the approval is taken. saw is the limit that the user judged the request on.
func (o *requestOracle) approve(user string, number int, saw quota.Amount) bool {
	r := o.requests[number-1]
	if !slices.Contains(deciders[r.node], user) || r.asker == user {
		return false
	}
	approval := modelApproval{user, saw}
	if r.state != quota.RequestOpen {
		return slices.Contains(r.approvals, approval)
	}
	if saw != o.limits[r.node] {
		return false
	}
	r.approvals = slices.DeleteFunc(r.approvals, func(a modelApproval) bool { return a.saw != saw })
	if slices.Contains(r.approvals, approval) {
		return true
	}
	r.approvals = append(r.approvals, approval)
	switch {
	case len(r.approvals) < o.needed:
	case r.amount == saw || !o.fits(r.node, r.amount):
		r.state = quota.RequestStale
	default:
		r.state, o.limits[r.node] = quota.RequestApplied, r.amount
	}
	return true
}

func (o *requestOracle) close(user string, number int, state quota.RequestState) bool {
	r := o.requests[number-1]
	if state == quota.RequestWithdrawn && r.asker != user ||
		state == quota.RequestRejected && (r.asker == user || !slices.Contains(deciders[r.node], user)) ||
		r.state != quota.RequestOpen {
		return false
	}
	r.state = state
	return true
}

// closing is who closed a request and how; repeated, the command is taken again.
type closing struct {
	number int
	user   string
	state  quota.RequestState
}

// TestRequestsAgreeWithAnOracle compares who may ask, approve, reject and withdraw, when approvals count, and when a
// request becomes stale. Each command is tried before, which must change nothing, and the ledger is restored at times.
func TestRequestsAgreeWithAnOracle(t *testing.T) {
	seen := map[string]int{}
	verify.Check(t, func(t *rapid.T) {
		o := &requestOracle{
			needed: rapid.IntRange(1, 3).Draw(t, "needed"), limits: map[string]quota.Amount{physics: 40, higgs: 10},
		}
		trees := twoApprovers(o.needed)
		trees[0].Nodes[2].Bindings = append(trees[0].Nodes[2].Bindings[:0], bind("node-admin", "dora", "emil"))
		trees[0].Nodes[3].Bindings = append(trees[0].Nodes[3].Bindings[:0], bind("holder", "hans"))
		users := []string{"anna", "carl", "peter", "dora", "emil", "hans"}
		g := newGuarded(t, trees, users...)
		users = append(users, "root")
		var closed []closing
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			user := rapid.SampledFrom(users).Draw(t, "user")
			node := rapid.SampledFrom([]string{physics, higgs}).Draw(t, "node")
			amount := rapid.SampledFrom([]quota.Amount{8, 10, 12, 41, 61}).Draw(t, "amount")
			var c quota.Command
			var taken bool
			action := rapid.SampledFrom([]string{"ask", "approve", "approve", "approve", "close", "set", "restart"}).
				Draw(t, "action")
			switch {
			case action == "restart":
				g.ledger = restoredWith(t, g.ledger, quota.DefaultBounds())
				continue
			case action == "set":
				if o.fits(node, amount) {
					o.limits[node] = amount
				}
				g.apply("root", setCores(node, amount))
				continue
			case action == "ask" || len(o.requests) == 0:
				action = "ask"
				taken = o.ask(user, node, amount) > 0
				c = askFor(node, amount)
			case action == "approve":
				number := rapid.IntRange(1, len(o.requests)).Draw(t, "number")
				r := o.requests[number-1]
				saw, digest := o.limits[r.node], g.digestFor(user, number)
				if r.state != quota.RequestOpen {
					saw = r.sawBy(user)
				}
				if rapid.IntRange(0, 4).Draw(t, "late") == 0 {
					saw, digest = -1, "0123456789abcdef"
				}
				taken = o.approve(user, number, saw)
				seen[fmt.Sprint("approved: ", taken, " ", r.state)]++
				c = quota.ApproveRequest{Number: uint64(number), Digest: digest}
			default:
				number := rapid.IntRange(1, len(o.requests)).Draw(t, "number")
				state := rapid.SampledFrom([]quota.RequestState{quota.RequestRejected, quota.RequestWithdrawn}).Draw(t, "state")
				taken = o.close(user, number, state)
				done := closing{number, user, state}
				if taken {
					closed = append(closed, done)
				}
				taken = taken || slices.Contains(closed, done)
				c = quota.WithdrawRequest{Number: uint64(number)}
				if state == quota.RequestRejected {
					c = quota.RejectRequest{Number: uint64(number), Reason: "no"}
				}
			}
			seen[fmt.Sprint(action, " ", taken)]++
			before := quotatest.ImageText(g.ledger.Snapshot())
			dry := g.ledger.Sandbox().DryRunFrom(ledger.Origin{Caller: callerOf(user)}, c)
			if quotatest.ImageText(g.ledger.Snapshot()) != before {
				t.Fatalf("a dry run of %+v changes the ledger", c)
			}
			shown := g.allShown(users)
			out := g.apply(user, c)
			checkRequestsNamed(t, g, shown)
			if (out.Refused == nil) != taken || (dry.Refused == nil) != taken {
				t.Fatalf("%s: %T %+v is taken: %v; the ledger answers %v, and to a dry run %v", user, c, c, taken, out.Refused,
					dry.Refused)
			}
			if out.Refused == nil && dry.LimitRequest.State != out.LimitRequest.State {
				t.Fatalf("a dry run of %+v makes it %v, and the command %v", c, dry.LimitRequest.State, out.LimitRequest.State)
			}
			compareRequests(t, g, o)
		}
	})
	rareThings := verify.Scale(0, 1) // a quick run has too few steps to be sure of any
	for _, rare := range []string{
		"ask false", "ask true", "close false", "close true", "approved: true applied", "approved: true stale",
		"approved: true open", "approved: false open", "approved: false applied",
	} {
		if seen[rare] < rareThings && !t.Failed() {
			t.Errorf("%q never happened", rare)
		}
	}
}

// sawBy is the limit that a user approved a request on; -1 if it did not.
func (r *modelRequest) sawBy(user string) quota.Amount {
	for _, a := range r.approvals {
		if a.user == user {
			return a.saw
		}
	}
	return -1
}

// digestFor is, for a closed request, that of the user's approval.
func (g *guarded) digestFor(user string, number int) string {
	r := g.requestsOf("root", quota.LimitRequestFilter{Number: uint64(number)})[0]
	for _, a := range r.Approvals {
		if r.State != quota.RequestOpen && a.User == "account/"+user {
			return a.Digest
		}
	}
	return r.Digest
}

func (g *guarded) allShown(users []string) map[string]string {
	shown := map[string]string{}
	for _, user := range users {
		for _, r := range g.requestsOf(user, quota.LimitRequestFilter{}) {
			shown[user] += fmt.Sprintln(r.Number, r.State, r.Approvals, r.ClosedBy)
		}
	}
	return shown
}

// checkRequestsNamed compares what users see with what they saw before the last command: who sees a difference is told,
// and the others are not, unless the configuration has changed.
func checkRequestsNamed(t *rapid.T, g *guarded, before map[string]string) {
	for user, shown := range g.allShown(slices.Collect(maps.Keys(before))) {
		reader, err := g.ledger.Reader().ReaderOf(callerOf(user))
		if err != nil {
			t.Fatal(err)
		}
		changes := reader.Changes(quota.ChangesQuery{After: g.index - 1})
		if named := changes.LimitRequests; named != (shown != before[user]) && !changes.Configuration {
			t.Fatalf("%s saw\n%sand sees\n%sand was told of a change: %v", user, before[user], shown, named)
		}
	}
}

func compareRequests(t *rapid.T, g *guarded, o *requestOracle) {
	all := g.requestsOf("root", quota.LimitRequestFilter{})
	if len(all) != len(o.requests) {
		t.Fatalf("there are %d requests, want %d", len(all), len(o.requests))
	}
	for i, r := range all {
		want := o.requests[i]
		if r.State != want.state || r.Asker != "account/"+want.asker || r.Node != want.node {
			t.Fatalf("request %d is %+v, want %+v", i+1, r, want)
		}
	}
	for node, limit := range o.limits {
		if got := g.coresOf(node); got != quota.AtMost(limit) {
			t.Fatalf("%s has the limit %v, want %d", node, got, limit)
		}
	}
	if err := g.ledger.Check(); err != nil {
		t.Fatal(err)
	}
}
