package workload

import (
	"context"
	"fmt"
	"slices"

	"github.com/quorate/quorate/chaos/history"
)

// holding is what a client believes to hold.
type holding struct {
	id     string
	claims []history.Claim
}

// holder allocates and releases, and repeats what it was not answered.
type holder struct {
	*caller

	held []holding
	// most is how much it holds at once.
	most int
}

// take asks for something until it is decided, and remembers it if it may be held.
func (h *holder) take(ctx context.Context, w want) {
	o := h.insist(ctx, func() history.Op { return h.allocate(ctx, w) })
	if o.Outcome != history.Refused && o.Outcome != history.Failed {
		h.held = append(h.held, holding{w.id, w.claims})
	}
}

// give releases something held until that is decided.
func (h *holder) give(ctx context.Context) {
	i := h.random.IntN(len(h.held))
	id := h.held[i].id
	h.held = slices.Delete(h.held, i, i+1)
	h.insist(ctx, func() history.Op { return h.release(ctx, id) })
}

// step does one thing: it asks for a claim, gives one back, repeats what was granted long ago, or looks.
func (h *holder) step(ctx context.Context, claims func() []history.Claim, tree string) {
	switch dice := h.random.IntN(10); {
	case len(h.held) == 0 || dice < 4 && len(h.held) < h.most:
		h.take(ctx, want{id: h.newID(), claims: claims()})
	case dice < 7:
		h.give(ctx)
	case dice < 8:
		old := h.held[h.random.IntN(len(h.held))]
		h.allocate(ctx, want{id: old.id, claims: old.claims})
	case dice < 9:
		h.look(ctx, h.held[h.random.IntN(len(h.held))].id, h.anyFreshness())
	default:
		h.readUsage(ctx, tree, freshness{})
	}
}

// A deep tree: "hot" nodes that all want, and a node for each client that nobody else wants, eight levels down.
const deepPath = "a/b/c/d/e/f/g"

func deepTrees() []tree {
	pairs := []any{"", 60}
	for i := 1; i < len(deepPath); i += 2 {
		pairs = append(pairs, deepPath[:i], 60-2*i)
	}
	pairs = append(pairs, deepPath, 40, deepPath+"/hot", 10)
	for i := range 8 {
		pairs = append(pairs, fmt.Sprintf("%s/own%d", deepPath, i), 8)
	}
	return []tree{limits("deep", append(pairs, "wide", history.Unlimited, "wide/x", 12, "wide/y", 12)...)}
}

func startDeep(c *caller) func(context.Context) {
	h := &holder{caller: c, most: 6}
	nodes := []string{deepPath + "/hot", fmt.Sprintf("%s/own%d", deepPath, c.number%8), "a/b/c", "wide/x", "wide/y"}
	claims := func() []history.Claim {
		return []history.Claim{at("deep", nodes[c.random.IntN(len(nodes))], 1+c.random.Int64N(5))}
	}
	return func(ctx context.Context) { h.step(ctx, claims, "deep") }
}

// Two trees: most requests claim in both, at several nodes, so that half a grant would show.
func pairTrees() []tree {
	return []tree{limits("left", "", 20, "x", 12, "y", 12), limits("right", "", 16, "x", 12, "y", 9)}
}

func startPair(c *caller) func(context.Context) {
	h := &holder{caller: c, most: 5}
	claims := func() []history.Claim {
		all := []history.Claim{at("left", "x", 1+c.random.Int64N(3)), at("right", "y", 1+c.random.Int64N(3))}
		if c.one(3) {
			all = append(all, at("left", "y", 1+c.random.Int64N(3)))
		}
		return all
	}
	trees := []string{"left", "right"}
	return func(ctx context.Context) { h.step(ctx, claims, trees[c.random.IntN(2)]) }
}

// One tree in which several clients ask for, repeat and release the same ids.
func retryTrees() []tree { return []tree{limits("retry", "", 12, "x", 8, "y", 8)} }

func startRetry(c *caller) func(context.Context) {
	return func(ctx context.Context) {
		c.serial++
		// Whoever uses an id says the same under it.
		node := []string{"x", "y"}[c.serial%2]
		w := want{id: fmt.Sprintf("retry-%d", c.serial), claims: []history.Claim{at("retry", node, 1+int64(c.serial%4))}}
		for range 1 + c.random.IntN(3) {
			c.insist(ctx, func() history.Op { return c.allocate(ctx, w) })
		}
		c.pause(ctx, 2*c.config.Pause)
		for range 1 + c.random.IntN(2) {
			c.insist(ctx, func() history.Op { return c.release(ctx, w.id) })
		}
	}
}

// A tree whose limits change while requests come; the first client changes them.
func limitTrees() []tree { return []tree{limits("limits", "", 30, "x", 15, "y", 15)} }

func startLimits(c *caller) func(context.Context) {
	h := &holder{caller: c, most: 6}
	nodes := []string{"x", "y"}
	claims := func() []history.Claim {
		return []history.Claim{at("limits", nodes[c.random.IntN(2)], 1+c.random.Int64N(5))}
	}
	return func(ctx context.Context) {
		if c.number > 0 || c.one(3) && c.config.Clients == 1 {
			h.step(ctx, claims, "limits")
			return
		}
		node, id := []string{"", "x", "y"}[c.random.IntN(3)], c.newID()
		l := history.Limit{Tree: "limits", Node: node, Resource: resource, Amount: 4 + c.random.Int64N(26)}
		c.insistLong(ctx, func() history.Op { return c.setLimit(ctx, id, l) })
		c.pause(ctx, 5*c.config.Pause)
	}
}
