package workload

import (
	"context"
	"slices"

	"github.com/quorate/quorate/chaos/history"
)

// elasticTrees returns a tree with a strict queue and little room, so that requests and resizes wait for each other.
func elasticTrees() []treeSpec {
	return []treeSpec{newTreeSpec("elastic", "", history.Unlimited, "x", 5, "y", 5).withStrictQueue()}
}

// elasticHolder waits for alternatives, and resizes what it got, which may wait too. Some of it ends when it declared.
type elasticHolder struct {
	holder

	waits []requestSpec
}

func startElastic(c *caller) func(context.Context) {
	e := &elasticHolder{holder: holder{caller: c}}
	return func(ctx context.Context) {
		switch dice := c.random.IntN(8); {
		case dice < 3 && len(e.waits) > 0:
			e.repeatOne(ctx)
		case dice < 6 && len(e.held) > 0:
			e.resizeOne(ctx)
		case dice < 7 && len(e.held) > 0:
			e.releaseOne(ctx)
		case len(e.held)+len(e.waits) < 4:
			w := c.newAlternatives("elastic", history.Wait)
			if c.oneIn(4) {
				w.declared = 500 + c.random.Int64N(3000)
			}
			e.waits = append(e.waits, w)
		}
	}
}

// newAlternatives returns a request for an amount at one node or the other, whichever comes first. One in four names
// one node only.
func (c *caller) newAlternatives(tree, mode string) requestSpec {
	nodes := []string{"x", "y"}
	c.random.Shuffle(2, func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	if c.oneIn(4) {
		nodes = nodes[:1]
	}
	w := requestSpec{id: c.newName(), mode: mode}
	if mode == history.Wait {
		w.priority, w.poll, w.keep = c.random.Int64N(3), c.random.Int64N(600), 20_000
	}
	amount := 1 + c.random.Int64N(3)
	for _, node := range nodes {
		w.anyOf = append(w.anyOf, []history.Claim{claimAt(tree, node, amount)})
	}
	w.claims = w.anyOf[0]
	return w
}

// repeatOne asks for a request that may wait, and one in eight times cancels it before.
func (e *elasticHolder) repeatOne(ctx context.Context) {
	i := e.random.IntN(len(e.waits))
	w := e.waits[i]
	if e.oneIn(8) {
		e.callCancel(ctx, w.id)
	}
	o := e.callAllocate(ctx, w)
	if o.Outcome == history.OK && o.State == history.Held {
		e.held = append(e.held, holding{id: w.id, claims: w.claims, fence: o.Fence})
	}
	if o.Outcome == history.Refused || o.Outcome == history.OK && o.State != history.Waiting {
		e.waits = slices.Delete(e.waits, i, i+1)
	}
}

// resizeOne repeats a resize that may wait, or makes another, which takes over the place of one that waits.
func (e *elasticHolder) resizeOne(ctx context.Context) {
	one := &e.held[e.random.IntN(len(e.held))]
	if one.resize == nil || e.oneIn(6) {
		w := one.nextChange(history.Resize)
		for _, node := range []string{"x", "y"} {
			w.claims = append(w.claims, claimAt("elastic", node, 1+e.random.Int64N(3)))
		}
		w.wait, w.poll = 1000+e.random.Int64N(3000), e.random.Int64N(300)
		one.resize = &w
	}
	o := e.callChange(ctx, *one.resize)
	if o.Outcome == history.Refused || o.Outcome == history.OK && o.Records[0].Generation == o.Generation {
		one.resize = nil
	}
}
