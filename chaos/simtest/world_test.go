package simtest

import (
	"context"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/server"
)

// Where a node serves what; clustertest advertises the first.
const (
	apiPort    = "2"
	boskosPort = "3"
)

// world is a cluster whose nodes serve the API over wires.
type world struct {
	*clustertest.Cluster

	t      *testing.T
	wires  *wires
	ids    []string
	served map[string]*cluster.Node
}

func newWorld(t *testing.T, seed uint64, size int) *world {
	t.Helper()
	w := &world{t: t, wires: newWires(seed), served: map[string]*cluster.Node{}}
	w.Cluster = clustertest.Start(t, size, clustertest.WithConfig(func(c *cluster.Config) {
		c.SnapshotThreshold, c.SnapshotInterval, c.TrailingLogs, c.RaiseLevelAfter = 50, 3*time.Second, 20, time.Second
	}))
	for _, n := range w.Nodes() {
		w.ids = append(w.ids, n.Status().ID)
	}
	w.serve()
	t.Cleanup(func() {
		for _, h := range w.wires.homes {
			h.die()
		}
	})
	return w
}

// serve gives every node that runs a home, if it has none yet.
func (w *world) serve() {
	w.t.Helper()
	for _, n := range w.Nodes() {
		id := n.Status().ID
		if w.served[id] == n {
			continue
		}
		service, err := server.NewService(n, simSettings(), server.Process{Log: hclog.NewNullLogger()}, server.Transport{Peers: end{w.wires, id}})
		if err != nil {
			w.t.Fatal(err)
		}
		alive, die := context.WithCancel(context.Background())
		w.wires.change(func() {
			w.wires.homes[id] = &home{ports: map[string]http.Handler{apiPort: service.API(), boskosPort: service.Boskos()}, alive: alive, die: die}
		})
		go service.RunLoops(alive)
		w.served[id] = n
	}
}

// simSettings are those of every node: the ports are names that the wires know, and nothing listens.
func simSettings() server.Settings {
	s := server.DefaultSettings()
	s.ClusterName, s.BoskosAddr, s.Insecure = "sim", boskosPort, true
	return s
}

func (w *world) urls(port string) []string {
	var urls []string
	for _, id := range w.ids {
		urls = append(urls, "http://"+id+":"+port)
	}
	return urls
}

// crash ends nodes without a word to anybody.
func (w *world) crash(ids ...string) {
	for _, id := range ids {
		if w.runs(id) {
			w.wires.home(id).die()
			delete(w.served, id)
			w.Crash(id)
		}
	}
}

func (w *world) runs(id string) bool {
	return slices.ContainsFunc(w.Nodes(), func(n *cluster.Node) bool { return n.Status().ID == id })
}

// isolate cuts nodes off from all others, and from callers too if they are to notice nothing.
func (w *world) isolate(callers bool, ids ...string) {
	w.Isolate(ids...)
	w.wires.change(func() {
		for _, id := range ids {
			for _, other := range append(slices.Clone(w.ids), outside) {
				if other != outside || callers {
					w.wires.cut[[2]string{id, other}], w.wires.cut[[2]string{other, id}] = true, true
				}
			}
		}
	})
}

// repair makes everything whole, starts what does not run, and finds nodes that stopped by themselves.
func (w *world) repair() {
	w.t.Helper()
	w.Network().SetLoss(nil)
	w.Network().SetDelay(func(_, _ raft.ServerID) time.Duration { return time.Millisecond })
	w.wires.heal()
	w.Heal()
	w.StartMissing()
	w.serve()
	for _, n := range w.Nodes() {
		if n.Err() != nil {
			w.t.Errorf("%s stopped by itself: %v", n.Status().ID, n.Err())
		}
	}
}

// leader is the id of whoever leads, or of anybody.
func (w *world) leader() string {
	for _, n := range w.Nodes() {
		if n.IsLeader() {
			return n.Status().ID
		}
	}
	return w.ids[0]
}

// nemesis strikes by a seed.
type nemesis struct {
	*world

	random *rand.Rand
	struck map[string]int
}

// blows are what it can do.
var blows = map[string]func(*nemesis){
	"isolate a node":     func(n *nemesis) { n.isolate(n.random.IntN(2) == 0, n.any()) },
	"isolate the leader": func(n *nemesis) { n.isolate(n.random.IntN(2) == 0, n.leader()) },
	"isolate a majority": func(n *nemesis) { n.isolate(false, n.some(len(n.ids)/2+1)...) },
	"crash a node":       func(n *nemesis) { n.crash(n.any()) },
	"crash the leader":   func(n *nemesis) { n.crash(n.leader()) },
	"crash all":          func(n *nemesis) { n.crash(n.ids...) },
	"cut one way":        func(n *nemesis) { n.Network().CutOneWay(raft.ServerID(n.any()+":1"), raft.ServerID(n.any()+":1")) },
	"lose messages": func(n *nemesis) {
		loss := n.random.Float64() / 5
		n.Network().SetLoss(func(_, _ raft.ServerID) float64 { return loss })
	},
	"lose answers": func(n *nemesis) { n.wires.change(func() { n.wires.loss = n.random.Float64() / 10 }) },
	"slow calls": func(n *nemesis) {
		n.wires.change(func() { n.wires.delay = time.Duration(n.random.IntN(400)) * time.Millisecond })
	},
	"slow node": func(n *nemesis) {
		slow := raft.ServerID(n.any() + ":1")
		n.Network().SetDelay(func(_, to raft.ServerID) time.Duration {
			if to == slow {
				return 300 * time.Millisecond
			}
			return time.Millisecond
		})
	},
	"cut callers off": func(n *nemesis) {
		id := n.any()
		n.wires.change(func() { n.wires.cut[[2]string{outside, id}] = true })
	},
	"snapshot": func(n *nemesis) {
		for _, node := range n.Nodes() {
			_ = node.Snapshot(n.t.Context()) // there may be nothing new to keep
		}
	},
	"start what is down": func(n *nemesis) { n.StartMissing(); n.serve() },
	"repair":             (*nemesis).mend,
	"repair again":       (*nemesis).mend, // twice as likely
}

func (n *nemesis) mend() { n.repair() }

func (n *nemesis) any() string { return n.ids[n.random.IntN(len(n.ids))] }

func (n *nemesis) some(count int) []string {
	var ids []string
	for _, i := range n.random.Perm(len(n.ids))[:count] {
		ids = append(ids, n.ids[i])
	}
	return ids
}

func (n *nemesis) strike() {
	names := slices.Sorted(maps.Keys(blows))
	name := names[n.random.IntN(len(names))]
	n.struck[name]++
	blows[name](n)
}
