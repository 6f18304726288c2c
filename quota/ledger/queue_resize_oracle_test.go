package ledger_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/quotatest"
)

// Resizes in the oracle of the queue: one that fits releases the old amounts and takes the new ones in one instant. One
// that does not is a job of its own in the queue, at the place of the resize of the same job that waits already, and
// the held job keeps what it has.

// resizeOf is the resize that waits for a held job; nil if none does.
func (o *queueOracle) resizeOf(held *queued) *queued {
	for _, j := range o.waiting {
		if held != nil && j.of == held {
			return j
		}
	}
	return nil
}

// blocksResize lists what is in the way of a resize: levels where more would be asked for than is held now.
func (o *queueOracle) blocksResize(j *queued) (list []quota.Violation) {
	seen := map[spotInLine]bool{}
	for _, c := range j.request.Claims {
		for _, path := range quotatest.Upwards(c.Node) {
			for _, r := range o.trees[c.Tree].Resources {
				s := spotInLine{c.Tree, path, r.Name, false}
				after, _ := asks(j.request, s)
				before, _ := asks(j.of.request, s)
				if seen[s] || after <= before {
					continue
				}
				seen[s] = true
				if used, limit := o.used(s), o.limit(s); used-before+after > limit {
					list = append(list, quota.Violation{
						Tree: s.tree, Node: s.node, Resource: s.resource, Limit: limit, Used: used, Requested: after - before,
					})
				}
				if n := o.ahead(s, j); n > 0 {
					list = append(list, quota.Violation{
						Kind: quota.OfQueue, Tree: s.tree, Node: s.node, Resource: s.resource, Used: n,
					})
				}
			}
		}
	}
	if slices.Contains(o.waiting, j) {
		j.markTooLarge(list)
	}
	return list
}

// markTooLarge marks the levels whose whole limit is less than all that the job would hold there.
func (j *queued) markTooLarge(list []quota.Violation) (any bool) {
	for i, v := range list {
		alone, _ := asks(j.request, spotInLine{v.Tree, v.Node, v.Resource, false})
		list[i].TooLarge = v.Kind == quota.OfResource && alone > v.Limit
		any = any || list[i].TooLarge
	}
	return any
}

// after is what a job holds after changes; same is true if that is what it holds now. To give up an amount of 0 is a
// change, unless nothing would be left.
func (j *queued) after(changes []quota.ClaimChange) (claims []quota.Claim, same bool) {
	same = true
	givesUp := false
	for _, c := range j.request.Claims {
		c.Amounts = slices.Clone(c.Amounts)
		claims = append(claims, c)
	}
	for _, change := range changes {
		at := slices.IndexFunc(claims, func(c quota.Claim) bool { return c.Tree == change.Tree && c.Node == change.Node })
		if at < 0 {
			at = len(claims)
			claims = append(claims, quota.Claim{Tree: change.Tree, Node: change.Node})
		}
		for _, to := range change.Amounts {
			i := slices.IndexFunc(claims[at].Amounts, func(c quota.Component) bool { return c.Resource == to.Resource })
			givesUp = givesUp || i >= 0 && to.Amount == 0
			if i < 0 {
				i = len(claims[at].Amounts)
				claims[at].Amounts = append(claims[at].Amounts, quota.Component{Resource: to.Resource})
			}
			same = same && claims[at].Amounts[i].Amount == to.Amount
			if claims[at].Amounts[i] = to; to.Amount == 0 {
				claims[at].Amounts = slices.Delete(claims[at].Amounts, i, i+1)
			}
		}
		slices.SortFunc(claims[at].Amounts, func(a, b quota.Component) int {
			if a.Resource < b.Resource {
				return -1
			}
			return 1
		})
	}
	claims = slices.DeleteFunc(claims, func(c quota.Claim) bool { return len(c.Amounts) == 0 })
	return claims, same && (!givesUp || len(claims) == 0)
}

// resize says what becomes of a resize without a generation.
func (o *queueOracle) resize(c quota.Resize) string {
	held, _ := o.find(c.ID)
	if held == nil {
		return "refused"
	}
	claims, same := held.after(c.Claims)
	j := &queued{request: held.request, of: held, changes: c.Claims, arrival: 1 << 62, ends: &queueEnds{}}
	j.request.Claims = claims
	waiting := o.resizeOf(held)
	if waiting != nil {
		j.arrival = waiting.arrival
	}
	list := o.blocks(j)
	switch {
	case waiting != nil && inText(waiting.changes) == inText(c.Claims):
		return "waits: " + inOrder(o.blocks(waiting))
	case same && waiting != nil:
		o.leave(c.ID)
		return "granted"
	case same:
		return "granted again"
	case len(claims) == 0:
		return "refused"
	case len(list) == 0:
		o.leave(c.ID)
		held.request.Claims = claims
		return "granted"
	case c.WaitFor == 0:
		return "denied: " + inOrder(list)
	}
	if j.markTooLarge(list) {
		return "denied: " + inOrder(list)
	}
	if waiting == nil {
		o.arrival++
		j.arrival = o.arrival
	}
	o.leave(c.ID)
	o.noteHeads()
	j.line, j.ends.until = lineOf(list[0]), o.now+quota.Instant(c.WaitFor)
	j.ends.keepUntil = j.ends.until
	o.enter(j)
	return "waits: " + inOrder(list)
}

func inText(changes []quota.ClaimChange) string { return asJSON(changes) }

// resize changes what a job holds, or another that exists no more.
func (q *queuePair) resize(t *rapid.T) {
	c := quota.Resize{ID: jobName(t), WaitFor: quota.Span(die(t, 4) * die(t, 10))}
	if n := len(q.oracle.held); n > 0 && die(t, 8) > 0 {
		c.ID = q.oracle.held[die(t, n)].request.ID
	}
	for range 1 + die(t, 2) {
		change := quota.ClaimChange{Tree: []string{"t", "u"}[die(t, 2)], Node: []string{"", "a", "b", "a/x"}[die(t, 4)]}
		if held, _ := q.oracle.find(c.ID); held != nil && die(t, 3) > 0 {
			claim := held.request.Claims[die(t, len(held.request.Claims))]
			change.Tree, change.Node = claim.Tree, claim.Node
		}
		for _, resource := range []string{"cpu", "mem"} {
			if n := die(t, 6); n > 0 || resource == "cpu" {
				change.Amounts = append(change.Amounts, quota.Component{Resource: resource, Amount: quota.Amount(n)})
			}
		}
		if !slices.ContainsFunc(c.Claims, func(o quota.ClaimChange) bool {
			return o.Tree == change.Tree && o.Node == change.Node
		}) {
			c.Claims = append(c.Claims, change)
		}
	}
	before := quotatest.ImageText(q.ledger.Snapshot())
	dry := q.ledger.Sandbox().DryRun(c)
	if quotatest.ImageText(q.ledger.Snapshot()) != before {
		t.Fatal("a dry run has changed the ledger")
	}
	out := q.apply(t, c)
	quotatest.RequireSame(t, "a dry run", verdictOfQueue(dry), verdictOfQueue(out))
	quotatest.RequireSame(t, "the answer", q.oracle.resize(c), verdictOfQueue(out))
	q.oracle.settle()
}

// TestResizesAgainstOracle is TestQueueAgainstOracle with mostly resizes.
func TestResizesAgainstOracle(t *testing.T) {
	t.Parallel()
	verify.Check(t, func(t *rapid.T) { agreeOnQueue(t, 30) })
}
