package workload

import (
	"context"

	"github.com/quorate/quorate/chaos/history"
)

func rangeTrees() []treeSpec { return []treeSpec{newTreeSpec("ranges", "", 30, "x", 18, "y", 18)} }

// startRanges requests ranges of amounts or one of two alternatives, and releases what it got.
func startRanges(c *caller) func(context.Context) {
	h := &holder{caller: c}
	return func(ctx context.Context) {
		switch dice := c.random.IntN(8); {
		case len(h.held) == 0 || dice < 3 && len(h.held) < 4:
			h.acquireOne(ctx, c.newChoice())
		case dice < 6:
			h.releaseOne(ctx)
		case dice < 7:
			old := h.held[c.random.IntN(len(h.held))]
			c.callAllocate(ctx, requestSpec{id: old.id, claims: old.claims, anyOf: old.anyOf})
		default:
			c.readUsage(ctx, "ranges", readMode{})
		}
	}
}

func (c *caller) newChoice() requestSpec {
	if c.oneIn(3) {
		return c.newAlternatives("ranges", history.Reject)
	}
	return requestSpec{id: c.newName(), claims: c.newRanges()}
}

func (c *caller) newRanges() []history.Claim {
	nodes := []string{"x", "y"}
	c.random.Shuffle(2, func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	steps := max(0, c.random.Int64N(6)-1)
	var claims []history.Claim
	for _, node := range nodes[:1+c.random.IntN(2)] {
		claim := claimAt("ranges", node, 1+c.random.Int64N(3))
		if steps > 0 {
			claim.Step, claim.Steps = 1+c.random.Int64N(4), steps
		}
		claims = append(claims, claim)
	}
	return claims
}
