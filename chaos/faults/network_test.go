package faults

import (
	"math/rand/v2"
	"testing"

	"github.com/quorate/quorate/chaos/nodes"
)

// reachableFrom counts direct links only; the node itself is included.
func reachableFrom(links map[direction]nodes.Link, size, from int) int {
	count := 0
	for to := range size {
		if !links[direction{from, to}].Cut {
			count++
		}
	}
	return count
}

func TestSplitLeavesAMajority(t *testing.T) {
	for seed := range uint64(50) {
		for _, size := range []int{3, 5} {
			links, what := splitCluster(rand.New(rand.NewPCG(seed, 0)), size, 0)
			most := 0
			for from := range size {
				most = max(most, reachableFrom(links, size, from))
			}
			if most <= size/2 || most == size {
				t.Fatalf("of %d nodes %d reach each other: %s", size, most, what)
			}
		}
	}
}

func TestBridgeNodeReachesAll(t *testing.T) {
	for _, size := range []int{3, 5} {
		links, what := bridgeHalves(rand.New(rand.NewPCG(1, 0)), size, 0)
		bridges := 0
		for from := range size {
			if reachableFrom(links, size, from) == size {
				bridges++
			}
		}
		if bridges != 1 {
			t.Errorf("%d of %d nodes reach all nodes: %s", bridges, size, what)
		}
	}
}

func TestIsolateLeaderCutsBothWays(t *testing.T) {
	links, _ := isolateLeader(rand.New(rand.NewPCG(1, 0)), 3, 1)
	if reachableFrom(links, 3, 1) != 1 || links[direction{0, 1}].Cut != true || links[direction{0, 2}].Cut {
		t.Errorf("%v", links)
	}
}

func TestOneWayCutsOneWay(t *testing.T) {
	for seed := range uint64(20) {
		links, what := oneWay(rand.New(rand.NewPCG(seed, 0)), 3, -1)
		for p, link := range links {
			if p.from != p.to && link.Cut && links[direction{p.to, p.from}].Cut {
				t.Fatalf("seed %d: both ways between %v: %s", seed, p, what)
			}
		}
	}
}
