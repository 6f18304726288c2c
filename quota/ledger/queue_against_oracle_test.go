package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

// TestQueueAgainstOracle gives random commands to two ledgers, one of which is frozen and loaded now and then, and to
// an oracle that tries all requests again and again. All three must agree on who is granted, in which order and under
// which fence, and on who waits where and why.
func TestQueueAgainstOracle(t *testing.T) {
	t.Parallel()
	verify.Check(t, func(t *rapid.T) { agreeOnQueue(t, 6) })
}

// agreeOnQueue draws resizes with a weight, beside 40 for everything else.
func agreeOnQueue(t *rapid.T, resizes int) {
	bounds := quota.DefaultBounds()
	bounds.TombstoneSpan = 0 // the oracle knows nothing of tombstones
	q := &queuePair{
		bounds: bounds, ledger: ledger.New(bounds), frozen: ledger.New(bounds),
		stamp: quota.Stamp{At: 1}, oracle: &queueOracle{now: 1, trees: map[string]quota.TreeSpec{}}, resizes: resizes,
	}
	for _, name := range []string{"t", "u"} {
		q.configure(t, name)
	}
	for range 60 {
		q.step(t)
		q.compare(t)
	}
}

type queuePair struct {
	bounds         quota.Bounds
	ledger, frozen *ledger.Ledger
	oracle         *queueOracle
	stamp          quota.Stamp
	// resizes is the weight of resizes.
	resizes int
}

func die(t *rapid.T, n int) int { return quotatest.Die(t, n, "die") }

func (q *queuePair) step(t *rapid.T) {
	if die(t, 40+q.resizes) >= 40 {
		q.resize(t)
		return
	}
	switch n := die(t, 40); {
	case n < 20:
		q.allocate(t)
	case n < 28:
		q.release(t)
	case n < 31:
		q.stamp.At += quota.Instant(die(t, 9)) + quota.Instant(quota.MinKeep)*quota.Instant(die(t, 4)/3)
		q.oracle.now = q.stamp.At
		q.expire(t)
	case n < 35:
		q.limit(t)
	case n < 37:
		q.configure(t, []string{"t", "u"}[die(t, 2)])
	case n < 39:
		q.renew(t)
	default:
		loaded, err := quotatest.Restore(q.frozen.Snapshot(), q.bounds)
		if err != nil {
			t.Fatal(err)
		}
		q.frozen = loaded
	}
}

// apply gives a command to both ledgers.
func (q *queuePair) apply(t *rapid.T, c quota.Command) ledger.Outcome {
	out := q.ledger.Apply(q.stamp, c)
	q.frozen.Apply(q.stamp, c)
	q.ledger.TakeFacts()
	q.frozen.TakeFacts()
	t.Logf("at %d %T%+v", q.stamp.At, c, c)
	return out
}

// configure makes a tree of the same nodes with other limits and ways of queueing.
func (q *queuePair) configure(t *rapid.T, name string) {
	spec := quota.TreeSpec{
		Name: name, Resources: []quota.Resource{{Name: "cpu", Unit: quota.Count}, {Name: "mem", Unit: quota.Count}},
	}
	spec.Overtake = quota.Span(1 + die(t, 12))
	for _, path := range []string{"", "a", "b", "a/x"} {
		n := quota.NodeSpec{Path: path, Queueing: quota.Queueing(die(t, 3))}
		for _, r := range spec.Resources {
			if die(t, 3) > 0 {
				n.Limits = append(
					n.Limits, quota.ResourceLimit{Resource: r.Name, Limit: quota.AtMost(quota.Amount(die(t, 7)))})
			}
		}
		spec.Nodes = append(spec.Nodes, n)
	}
	if out := q.apply(t, quota.ApplyTrees{Trees: []quota.TreeSpec{spec}}); out.Refused != nil {
		t.Fatal(out.Refused)
	}
	q.oracle.now = q.stamp.At
	q.oracle.configure(spec)
	q.oracle.settle()
}

// limit changes one limit.
func (q *queuePair) limit(t *rapid.T) {
	tree, resource := []string{"t", "u"}[die(t, 2)], []string{"cpu", "mem"}[die(t, 2)]
	spec := q.oracle.trees[tree]
	i, to := die(t, len(spec.Nodes)), quota.AtMost(quota.Amount(die(t, 9)))
	change := []quota.ResourceLimit{{Resource: resource, Limit: to}}
	if out := q.apply(t, quota.SetLimits{Tree: tree, Node: spec.Nodes[i].Path, Limits: change}); out.Refused != nil {
		t.Fatal(out.Refused)
	}
	spec.Nodes = slices.Clone(spec.Nodes) // the ledger has the others
	q.oracle.trees[tree] = spec
	limits := map[string]quota.Limit{resource: to}
	for _, l := range spec.Nodes[i].Limits {
		if l.Resource != resource {
			limits[l.Resource] = l.Limit
		}
	}
	spec.Nodes[i].Limits = nil
	for _, r := range spec.Resources {
		if l, set := limits[r.Name]; set {
			spec.Nodes[i].Limits = append(spec.Nodes[i].Limits, quota.ResourceLimit{Resource: r.Name, Limit: l})
		}
	}
	q.oracle.settle()
}

func jobName(t *rapid.T) string { return fmt.Sprint("j", die(t, 14)) }

func (q *queuePair) allocate(t *rapid.T) {
	r := quotatest.WithAlternatives(drawClaims(t), drawClaims).Draw(t, "request")
	r.ID, r.Mode, r.Priority = jobName(t), quota.Wait, int64(die(t, 5)/3)
	if die(t, 4) == 0 {
		r.Mode = quota.Hold
	} else {
		r.WaitFor, r.Keep = quota.Span(die(t, 30)), quota.MinKeep+quota.Span(die(t, 3))
	}
	q.try(t, r)
}

// drawClaims is a request of which only the claims are known.
func drawClaims(t *rapid.T) (r quota.Allocate) {
	for range 1 + die(t, 3)/2*die(t, 3) {
		c := quota.Claim{Tree: []string{"t", "u"}[die(t, 2)], Node: []string{"", "a", "b", "a/x"}[die(t, 4)]}
		for _, resource := range []string{"cpu", "mem"} {
			if n := die(t, 5); n > 0 || resource == "cpu" {
				c.Amounts = append(c.Amounts, quota.Component{Resource: resource, Amount: quota.Amount(n)})
			}
		}
		if known := fmt.Sprint(r.Claims); !strings.Contains(known, "{"+c.Tree+" "+c.Node+" ") {
			r.Claims = append(r.Claims, c)
		}
	}
	return quotatest.WithRanges(r).Draw(t, "ranges")
}

func (q *queuePair) try(t *rapid.T, r quota.Allocate) {
	before := quotatest.ImageText(q.ledger.Snapshot())
	dry := q.ledger.Sandbox().DryRun(r)
	if quotatest.ImageText(q.ledger.Snapshot()) != before {
		t.Fatal("a dry run has changed the ledger")
	}
	out := q.apply(t, r)
	if _, waited := q.oracle.find(r.ID); waited == nil || out.Refused != nil {
		quotatest.RequireSame(t, "a dry run", verdictOfQueue(dry), verdictOfQueue(out))
	}
	want := q.oracle.allocate(r)
	quotatest.RequireSame(t, "the answer", want, verdictOfQueue(out))
	q.oracle.settle()
}

func verdictOfQueue(out ledger.Outcome) string {
	switch d := out.Decision; {
	case out.Refused != nil:
		return "refused"
	case d.Granted && out.Repeated:
		return "granted again" + alternativeWords(d.Alternative)
	case d.Granted:
		return "granted" + alternativeWords(d.Alternative)
	case d.Waiting:
		return "waits: " + inOrder(d.Violations)
	default:
		return "denied: " + inOrder(d.Violations)
	}
}

func (q *queuePair) release(t *rapid.T) {
	id := jobName(t)
	var c quota.Command = quota.Release{ID: id}
	if held, _ := q.oracle.find(id); held == nil && die(t, 2) == 0 {
		c = quota.Cancel{ID: id}
	}
	q.apply(t, c)
	q.oracle.end(id)
	q.oracle.settle()
}

func (q *queuePair) renew(t *rapid.T) {
	id := jobName(t)
	q.apply(t, quota.Renew{ID: id})
	held, waiting := q.oracle.find(id)
	if waiting != nil {
		q.oracle.sign(waiting[0])
	}
	if held != nil {
		held.unclaimedUntil = 0
	}
	q.oracle.settle()
}

func (q *queuePair) expire(t *rapid.T) {
	most := 1 + die(t, 3)
	q.apply(t, quota.Expire{Most: most})
	q.oracle.expire(most)
	q.oracle.settle()
}

func (q *queuePair) compare(t *rapid.T) {
	if err := q.ledger.Check(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(lines(q.oracle.state()), lines(stateOfQueue(q.ledger.Sandbox()))); diff != "" {
		t.Fatalf("the queue is not what it should be (-oracle +ledger):\n%s", diff)
	}
	diff := cmp.Diff(lines(quotatest.ImageText(q.ledger.Snapshot())), lines(quotatest.ImageText(q.frozen.Snapshot())))
	if diff != "" {
		t.Fatalf("a ledger that was frozen and loaded is another (-never +frozen):\n%s", diff)
	}
}

// stateOfQueue writes what the oracle does.
func stateOfQueue(v ledger.Sandbox) string {
	var text strings.Builder
	page, _ := v.Allocations(quota.AllocationFilter{}, 0, 1000)
	for _, a := range page.Allocations {
		var amounts []quota.Vector
		for _, c := range a.Claims {
			amounts = append(amounts, c.Amounts)
		}
		fmt.Fprintf(&text, "%s holds %v under %d until %d%s\n", a.ID, amounts, a.Fence, a.ExpiresAt,
			alternativeWords(a.Alternative))
	}
	for _, w := range wholeQueue(v) {
		info := w.Allocation.Waiting
		if w.Allocation.Resize != nil {
			info = &w.Allocation.Resize.Waiting
		}
		fmt.Fprintf(&text, "%s waits until %d or %d: %s\n", w.Allocation.ID, info.Until, info.KeepUntil,
			inOrder(w.Decision.Violations))
		places := info.Alternatives
		if len(places) == 0 {
			places = []quota.WaitingPlace{{Position: info.Position, Line: info.Line}}
		}
		for _, at := range places {
			fmt.Fprintf(&text, "  %d is number %d for %s\n", at.Alternative, at.Position, at.Line)
		}
	}
	return text.String()
}
