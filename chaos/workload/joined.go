package workload

import (
	"context"
	"math/rand/v2"
	"sync"

	"github.com/quorate/quorate/chaos/history"
)

// joinedAtOnce is how many calls a client of the workload "joined" makes at one time. With three clients and two
// batches under way, about a third of the calls are sent alone.
const joinedAtOnce = 5

// joinedTrees has less room than the callers want.
func joinedTrees() []treeSpec { return []treeSpec{newTreeSpec("joined", "", 26, "x", 15, "y", 15)} }

// startJoined makes several calls at one moment to one server, through the client that joins them. Each is an operation
// of its own, by a caller of its own.
func startJoined(c *caller) func(context.Context) {
	servers := c.servers
	holders := make([]*holder, joinedAtOnce)
	for i := range holders {
		own := *c
		own.number = c.number*joinedAtOnce + i
		own.random = rand.New(rand.NewPCG(c.random.Uint64(), uint64(i)))
		holders[i] = &holder{caller: &own, maxHeld: 3, nodes: map[string][]string{"joined": {"x", "y"}}}
	}
	return func(ctx context.Context) {
		s := *servers[c.random.IntN(len(servers))]
		s.allocations = s.joined
		var all sync.WaitGroup
		for _, h := range holders {
			h.servers = []*server{&s}
			all.Go(func() {
				h.nextStep(ctx, func() []history.Claim {
					node := []string{"x", "y"}[h.random.IntN(2)]
					return []history.Claim{claimAt("joined", node, 1+h.random.Int64N(4))}
				}, "joined")
			})
		}
		all.Wait()
	}
}
