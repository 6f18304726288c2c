package workload

import (
	"context"
	"fmt"
	"slices"

	"github.com/quorate/quorate/chaos/history"
)

// holding is an allocation that a client may hold.
type holding struct {
	id string
	// claims are those that were requested; none if it is a part of another allocation.
	claims []history.Claim
	// anyOf are the alternatives that were requested; none if there is one list.
	anyOf [][]history.Claim
	// heldClaims are the claims that it has by now, as far as this client knows. isUncertain is true if a change of them
	// was not decided, and fence is 0 unless an answer told it.
	heldClaims  []history.Claim
	isUncertain bool
	// isMoved is true if nodes of the claims depend on a change that was not decided.
	isMoved bool
	fence   uint64
	// generation is that of the last change that was tried.
	generation uint64
	// resize is one that may wait; nil if there is none.
	resize *changeSpec
}

// holder allocates and releases, and repeats unanswered calls.
type holder struct {
	*caller

	held []holding
	// maxHeld is how many allocations it holds at once.
	maxHeld int
	// nodes are where it may claim, by tree.
	nodes map[string][]string
}

func (h *holder) acquireOne(ctx context.Context, w requestSpec) {
	o := h.retryUntilDecided(ctx, func() history.Op { return h.callAllocate(ctx, w) })
	if o.Outcome != history.Refused && o.Outcome != history.Failed {
		h.held = append(h.held, holding{id: w.id, claims: w.claims, anyOf: w.anyOf, heldClaims: w.claims, fence: o.Fence})
	}
}

func (h *holder) releaseOne(ctx context.Context) {
	i := h.random.IntN(len(h.held))
	id := h.held[i].id
	h.held = slices.Delete(h.held, i, i+1)
	h.retryUntilDecided(ctx, func() history.Op { return h.callRelease(ctx, id) })
}

// nextStep makes one random call: a new request, a release, a change of what is held, a repeated request, or a read.
func (h *holder) nextStep(ctx context.Context, claims func() []history.Claim, tree string) {
	switch dice := h.random.IntN(13); {
	case len(h.held) == 0 || dice < 4 && len(h.held) < h.maxHeld:
		h.acquireOne(ctx, requestSpec{id: h.newName(), claims: claims()})
	case dice < 7:
		h.releaseOne(ctx)
	case dice < 10:
		h.changeOne(ctx, h.random.IntN(len(h.held)))
	case dice < 11:
		if old := h.held[h.random.IntN(len(h.held))]; old.claims != nil {
			h.callAllocate(ctx, requestSpec{id: old.id, claims: old.claims})
		}
	case dice < 12:
		h.readAllocation(ctx, h.held[h.random.IntN(len(h.held))].id, h.randomReadMode())
	default:
		h.readUsage(ctx, tree, readMode{})
	}
}

// deepPath leads through a deep tree. It has a "hot" node that all clients use and a node for each client, eight levels
// deep.
const deepPath = "a/b/c/d/e/f/g"

func deepTrees() []treeSpec {
	pairs := []any{"", 60}
	for i := 1; i < len(deepPath); i += 2 {
		pairs = append(pairs, deepPath[:i], 60-2*i)
	}
	pairs = append(pairs, deepPath, 40, deepPath+"/hot", 10)
	for i := range 8 {
		pairs = append(pairs, fmt.Sprintf("%s/own%d", deepPath, i), 8)
	}
	return []treeSpec{newTreeSpec("deep", append(pairs, "wide", history.Unlimited, "wide/x", 12, "wide/y", 12)...)}
}

func startDeep(c *caller) func(context.Context) {
	nodes := []string{deepPath + "/hot", fmt.Sprintf("%s/own%d", deepPath, c.number%8), "a/b/c", "wide/x", "wide/y"}
	h := &holder{caller: c, maxHeld: 6, nodes: map[string][]string{"deep": nodes}}
	claims := func() []history.Claim {
		return []history.Claim{claimAt("deep", nodes[c.random.IntN(len(nodes))], 1+c.random.Int64N(5))}
	}
	return func(ctx context.Context) { h.nextStep(ctx, claims, "deep") }
}

// pairTrees returns two trees. Most requests claim in both, at several nodes, so that a partial grant would show.
func pairTrees() []treeSpec {
	return []treeSpec{newTreeSpec("left", "", 20, "x", 12, "y", 12), newTreeSpec("right", "", 16, "x", 12, "y", 9)}
}

func startPair(c *caller) func(context.Context) {
	h := &holder{caller: c, maxHeld: 5, nodes: map[string][]string{"left": {"x", "y"}, "right": {"x", "y"}}}
	claims := func() []history.Claim {
		all := []history.Claim{claimAt("left", "x", 1+c.random.Int64N(3)), claimAt("right", "y", 1+c.random.Int64N(3))}
		if c.oneIn(3) {
			all = append(all, claimAt("left", "y", 1+c.random.Int64N(3)))
		}
		return all
	}
	trees := []string{"left", "right"}
	return func(ctx context.Context) { h.nextStep(ctx, claims, trees[c.random.IntN(2)]) }
}

// retryTrees returns one tree in which several clients request, repeat and release the same ids.
func retryTrees() []treeSpec { return []treeSpec{newTreeSpec("retry", "", 12, "x", 8, "y", 8)} }

func startRetry(c *caller) func(context.Context) {
	return func(ctx context.Context) {
		c.serial++
		// Every client that uses an id sends the same request.
		node := []string{"x", "y"}[c.serial%2]
		w := requestSpec{
			id:     fmt.Sprintf("retry-%d", c.serial),
			claims: []history.Claim{claimAt("retry", node, 1+int64(c.serial%4))},
		}
		for range 1 + c.random.IntN(3) {
			c.retryUntilDecided(ctx, func() history.Op { return c.callAllocate(ctx, w) })
		}
		c.pauseAbout(ctx, 2*c.config.Pause)
		for range 1 + c.random.IntN(2) {
			c.retryUntilDecided(ctx, func() history.Op { return c.callRelease(ctx, w.id) })
		}
	}
}

// limitTrees returns a tree whose limits change during requests. The first client changes them; some are advisory.
func limitTrees() []treeSpec { return []treeSpec{newTreeSpec("limits", "", 30, "x", 15, "y", 15)} }

func startLimits(c *caller) func(context.Context) {
	nodes := []string{"x", "y"}
	h := &holder{caller: c, maxHeld: 6, nodes: map[string][]string{"limits": nodes}}
	claims := func() []history.Claim {
		return []history.Claim{claimAt("limits", nodes[c.random.IntN(2)], 1+c.random.Int64N(5))}
	}
	return func(ctx context.Context) {
		if c.number > 0 || c.oneIn(3) && c.config.Clients == 1 {
			h.nextStep(ctx, claims, "limits")
			return
		}
		node, id := []string{"", "x", "y"}[c.random.IntN(3)], c.newID()
		l := history.Limit{Tree: "limits", Node: node, Resource: countedResource, Amount: 4 + c.random.Int64N(26)}
		if c.oneIn(5) {
			l.Amount, l.Advises = history.Unlimited, l.Amount
		}
		c.retryForever(ctx, func() history.Op { return c.callSetLimits(ctx, id, l) })
		c.pauseAbout(ctx, 5*c.config.Pause)
	}
}
