package workload

import (
	"context"

	"github.com/quorate/quorate/chaos/history"
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
)

// holdTrees returns a tree of three levels, all of which are put on hold and resumed.
func holdTrees() []treeSpec {
	return []treeSpec{newTreeSpec("holds", "", 40, "p", 20, "p/x", 12, "p/y", 12, "q", 12)}
}

// startHolds uses the first client to put nodes on hold and to resume them. All clients allocate.
func startHolds(c *caller) func(context.Context) {
	nodes := []string{"p/x", "p/y", "q", "p"}
	h := &holder{caller: c, maxHeld: 6, nodes: map[string][]string{"holds": nodes}}
	claims := func() []history.Claim {
		all := []history.Claim{claimAt("holds", nodes[c.random.IntN(3)], 1+c.random.Int64N(4))}
		if all[0].Node != "q" && c.oneIn(3) {
			all = append(all, claimAt("holds", "q", 1+c.random.Int64N(3)))
		}
		return all
	}
	onHold := map[string]bool{}
	return func(ctx context.Context) {
		if c.number > 0 || c.oneIn(2) {
			h.nextStep(ctx, claims, "holds")
			return
		}
		node, id := nodes[c.random.IntN(len(nodes))], c.newID()
		if !onHold[node] && !c.oneIn(3) { // fewer holds than ends of holds, so that something is granted
			return
		}
		onHold[node] = !onHold[node]
		c.retryForever(ctx, func() history.Op { return c.callHold(ctx, id, "holds", node, onHold[node]) })
	}
}

func (c *caller) holdForAWhile(ctx context.Context, tree, node string) {
	for _, hold := range []bool{true, false} {
		id := c.newID()
		c.retryForever(ctx, func() history.Op { return c.callHold(ctx, id, tree, node, hold) })
		if hold {
			c.pauseAbout(ctx, 10*c.config.Pause)
		}
	}
}

func (c *caller) callHold(ctx context.Context, id, tree, node string, hold bool) history.Op {
	s := c.randomServer()
	o := c.beginOp(history.Configure, s)
	l := history.Limit{Tree: tree, Node: node, Resource: history.OnHold, Amount: history.Unlimited}
	if hold {
		l.Amount = 0
	}
	o.ID, o.Limits = id, []history.Limit{l}
	var answer configurationAnswer
	err := c.withTimeout(ctx, func(ctx context.Context) (err error) {
		if hold {
			answer, err = s.cordons.CordonNode(ctx, &adminv1.CordonNodeRequest{
				Tree: l.Tree, Node: node, RequestId: id, Actor: "chaos", Reason: c.workload,
			})
			return err
		}
		answer, err = s.cordons.UncordonNode(ctx, &adminv1.UncordonNodeRequest{
			Tree: l.Tree, Node: node, RequestId: id, Actor: "chaos", Reason: c.workload,
		})
		return err
	})
	setConfiguration(o, answer)
	return c.endOp(o, err)
}
