package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/quorate/quorate/chaos/nodes"
)

type direction struct{ from, to int }

// linkLayer is what one fault does to the network. The layers of several faults are combined.
type linkLayer struct{ links map[direction]nodes.Link }

func (t *Target) addLayer(l *linkLayer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.layers[l] = true
	t.applyLinks()
}

func (t *Target) removeLayer(l *linkLayer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.layers, l)
	t.applyLinks()
}

func (t *Target) clearLinks() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.layers)
	t.applyLinks()
}

// applyLinks sets each link to the worst of all layers. The caller holds the lock.
func (t *Target) applyLinks() {
	for from := range t.Nodes {
		for to := range t.Nodes {
			var worst nodes.Link
			for l := range t.layers {
				worst = worseLink(worst, l.links[direction{from, to}])
			}
			t.SetLink(from, to, worst)
		}
	}
}

func worseLink(a, b nodes.Link) nodes.Link {
	return nodes.Link{
		Cut: a.Cut || b.Cut, Loss: max(a.Loss, b.Loss), Delay: max(a.Delay, b.Delay), Jitter: max(a.Jitter, b.Jitter),
		Reorder: max(a.Reorder, b.Reorder),
	}
}

const ms = time.Millisecond

func networkKinds() []Kind {
	kind := func(name, says string, shape linkPattern) Kind {
		return Kind{
			Name: name, Description: says, missingNeed: needsNetwork, minHold: 3 * time.Second,
			maxHold: 12 * time.Second, newFault: staticLinks(shape),
		}
	}
	return []Kind{
		kind("isolate-leader", "the leader is cut off from all other nodes", isolateLeader),
		kind("split", "a minority is cut off from the majority", splitCluster),
		kind("one-way", "one node cannot send, or cannot receive", oneWay),
		kind("bridge", "two halves reach each other only through one node that both reach", bridgeHalves),
		kind("delay", "packets take 20 to 200 ms longer", everyLink("packets are late", func(r *rand.Rand) nodes.Link {
			return nodes.Link{Delay: time.Duration(20+r.IntN(180)) * ms, Jitter: time.Duration(1+r.IntN(100)) * ms}
		})),
		kind("loss", "5 to 30 percent of the packets are lost",
			everyLink("packets are lost", func(r *rand.Rand) nodes.Link {
				return nodes.Link{Loss: 0.05 + 0.25*r.Float64()}
			})),
		kind("reorder", "packets overtake each other", everyLink("packets overtake each other",
			func(r *rand.Rand) nodes.Link {
				return nodes.Link{Reorder: 0.1 + 0.4*r.Float64(), Delay: time.Duration(r.IntN(20)) * ms}
			})),
		{
			Name: "flap", Description: "the leader is cut off and reconnected, many times", missingNeed: needsNetwork,
			minHold: 6 * time.Second, maxHold: 15 * time.Second, newFault: flapLeaderLinks,
		},
	}
}

// linkPattern draws links. leads is the leader when the fault begins, -1 if there is none.
type linkPattern func(r *rand.Rand, size, leads int) (links map[direction]nodes.Link, what string)

// staticLinks makes a fault that adds links and removes them again.
func staticLinks(s linkPattern) func(*rand.Rand) (begin, end func(context.Context, *Target) error) {
	return func(r *rand.Rand) (begin, end func(context.Context, *Target) error) {
		seed, l := r.Uint64(), &linkLayer{}
		return func(ctx context.Context, t *Target) error {
				links, what := s(rand.New(rand.NewPCG(seed, 0)), len(t.Nodes), t.Leader(ctx))
				l.links = links
				t.addLayer(l)
				t.Note(-1, "%s", what)
				return nil
			}, func(_ context.Context, t *Target) error {
				t.removeLayer(l)
				t.Note(-1, "the network is healed")
				return nil
			}
	}
}

func isolateLeader(r *rand.Rand, size, leads int) (map[direction]nodes.Link, string) {
	if leads < 0 {
		leads = r.IntN(size)
	}
	side := make([]bool, size)
	side[leads] = true
	return cutBetween(side), fmt.Sprintf("n%d, the leader, is cut off", leads+1)
}

func splitCluster(r *rand.Rand, size, _ int) (map[direction]nodes.Link, string) {
	side := make([]bool, size)
	apart := r.Perm(size)[:1+r.IntN(size/2)]
	for _, node := range apart {
		side[node] = true
	}
	return cutBetween(side), fmt.Sprintf("%s cut off from the others", nodeNames(apart))
}

func cutBetween(side []bool) map[direction]nodes.Link {
	links := map[direction]nodes.Link{}
	for from := range side {
		for to := range side {
			if side[from] != side[to] {
				links[direction{from, to}] = nodes.Link{Cut: true}
			}
		}
	}
	return links
}

func oneWay(r *rand.Rand, size, leads int) (map[direction]nodes.Link, string) {
	node, deaf := r.IntN(size), r.IntN(2) == 0
	if leads >= 0 && r.IntN(2) == 0 {
		node = leads
	}
	links := map[direction]nodes.Link{}
	for other := range size {
		if deaf {
			links[direction{other, node}] = nodes.Link{Cut: true}
		} else {
			links[direction{node, other}] = nodes.Link{Cut: true}
		}
	}
	if deaf {
		return links, fmt.Sprintf("n%d receives nothing", node+1)
	}
	return links, fmt.Sprintf("n%d cannot send", node+1)
}

func bridgeHalves(r *rand.Rand, size, _ int) (map[direction]nodes.Link, string) {
	order := r.Perm(size)
	middle, left := order[0], map[int]bool{}
	for _, node := range order[1 : 1+(size-1)/2] {
		left[node] = true
	}
	links := map[direction]nodes.Link{}
	for from := range size {
		for to := range size {
			if from != middle && to != middle && left[from] != left[to] {
				links[direction{from, to}] = nodes.Link{Cut: true}
			}
		}
	}
	return links, fmt.Sprintf("only n%d reaches all nodes", middle+1)
}

// everyLink draws one bad link for all links, or for those of one node.
func everyLink(what string, bad func(*rand.Rand) nodes.Link) linkPattern {
	return func(r *rand.Rand, size, _ int) (map[direction]nodes.Link, string) {
		link, all, node := bad(r), r.IntN(2) == 0, r.IntN(size)
		links := map[direction]nodes.Link{}
		for from := range size {
			for to := range size {
				if all || from == node || to == node {
					links[direction{from, to}] = link
				}
			}
		}
		if all {
			return links, what + " everywhere"
		}
		return links, fmt.Sprintf("%s around n%d", what, node+1)
	}
}

func flapLeaderLinks(r *rand.Rand) (begin, end func(context.Context, *Target) error) {
	seed, l, done := r.Uint64(), &linkLayer{}, make(chan struct{})
	var cancel context.CancelFunc
	return func(ctx context.Context, t *Target) error {
			ctx, cancel = context.WithCancel(ctx)
			t.Note(-1, "leaders are cut off and reconnected")
			go func() {
				defer close(done)
				t.flapLeader(ctx, rand.New(rand.NewPCG(seed, 0)), l)
			}()
			return nil
		}, func(_ context.Context, t *Target) error {
			cancel()
			<-done
			t.removeLayer(l)
			t.Note(-1, "the network is healed")
			return nil
		}
}

func (t *Target) flapLeader(ctx context.Context, r *rand.Rand, l *linkLayer) {
	for ctx.Err() == nil {
		links, _ := isolateLeader(r, len(t.Nodes), t.Leader(ctx))
		t.removeLayer(l)
		l.links = links
		t.addLayer(l)
		Sleep(ctx, time.Duration(300+r.IntN(3000))*ms)
		t.removeLayer(l)
		Sleep(ctx, time.Duration(200+r.IntN(1500))*ms)
	}
}

func nodeNames(list []int) string {
	words := make([]string, len(list))
	for i, node := range list {
		words[i] = fmt.Sprintf("n%d", node+1)
	}
	return strings.Join(words, " and ")
}
