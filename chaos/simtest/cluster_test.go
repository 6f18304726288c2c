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
	"github.com/quorate/quorate/internal/server"
)

// Ports of the services of a node. clustertest advertises the first one.
const (
	apiPort    = "2"
	boskosPort = "3"
)

type simCluster struct {
	*clustertest.Cluster

	t      *testing.T
	wires  *simWires
	ids    []string
	served map[string]*cluster.Node
	// secretFile is the bootstrap secret of all nodes; empty for none.
	secretFile string
}

// newSimCluster takes the bootstrap secret of its nodes; an empty file name is none.
func newSimCluster(t *testing.T, seed uint64, size int, secretFile string) *simCluster {
	t.Helper()
	w := &simCluster{
		t: t, wires: newSimWires(seed), served: map[string]*cluster.Node{}, secretFile: secretFile,
	}
	w.Cluster = clustertest.Start(t, size, clustertest.WithConfig(func(c *cluster.Config) {
		c.SnapshotThreshold, c.SnapshotInterval, c.TrailingLogs, c.RaiseLevelAfter = 50, 3*time.Second, 20, time.Second
	}))
	for _, n := range w.Nodes() {
		w.ids = append(w.ids, n.Status().ID)
	}
	w.serveNodes()
	t.Cleanup(func() {
		for _, h := range w.wires.endpoints {
			h.stop()
		}
	})
	return w
}

func (w *simCluster) serveNodes() {
	w.t.Helper()
	for _, n := range w.Nodes() {
		id := n.Status().ID
		if w.served[id] == n {
			continue
		}
		service, err := server.NewService(n, w.simSettings(), server.Process{Log: hclog.NewNullLogger()},
			server.Transport{Peers: wireTransport{w.wires, id}})
		if err != nil {
			w.t.Fatal(err)
		}
		alive, die := context.WithCancel(context.Background())
		w.wires.update(func() {
			w.wires.endpoints[id] = &nodeEndpoint{ports: map[string]http.Handler{
				apiPort:    service.API(),
				boskosPort: service.Boskos(),
			}, running: alive, stop: die}
		})
		go service.RunLoops(alive)
		w.served[id] = n
	}
}

// simSettings are the settings of every node. The ports are names that the wires know; nothing listens.
func (w *simCluster) simSettings() server.Settings {
	s := server.DefaultSettings()
	s.ClusterName, s.FrontEnds, s.Insecure = "sim", []string{"boskos=:" + boskosPort}, true
	s.BootstrapSecret = w.secretFile
	return s
}

func (w *simCluster) nodeURLs(port string) []string {
	var urls []string
	for _, id := range w.ids {
		urls = append(urls, "http://"+id+":"+port)
	}
	return urls
}

func (w *simCluster) crashNodes(ids ...string) {
	for _, id := range ids {
		if w.isRunning(id) {
			w.wires.endpointOf(id).stop()
			delete(w.served, id)
			w.Crash(id)
		}
	}
}

func (w *simCluster) isRunning(id string) bool {
	return slices.ContainsFunc(w.Nodes(), func(n *cluster.Node) bool { return n.Status().ID == id })
}

// isolateNodes cuts nodes off from all other nodes, and from clients too if callers is true.
func (w *simCluster) isolateNodes(callers bool, ids ...string) {
	w.Isolate(ids...)
	w.wires.update(func() {
		for _, id := range ids {
			for _, other := range append(slices.Clone(w.ids), callerSide) {
				if other != callerSide || callers {
					w.wires.cut[[2]string{id, other}], w.wires.cut[[2]string{other, id}] = true, true
				}
			}
		}
	})
}

// repairCluster heals all faults, starts nodes that do not run, and reports nodes that stopped by themselves.
func (w *simCluster) repairCluster() {
	w.t.Helper()
	w.Network().SetLoss(nil)
	w.Network().SetDelay(func(_, _ raft.ServerID) time.Duration { return time.Millisecond })
	w.wires.healAll()
	for _, id := range w.ids {
		w.SetClock(id, 0)
	}
	w.Heal()
	w.StartMissing()
	w.serveNodes()
	for _, n := range w.Nodes() {
		if n.Err() != nil {
			w.t.Errorf("%s stopped by itself: %v", n.Status().ID, n.Err())
		}
	}
}

// leaderOrFirst returns the id of the leader, or of the first node.
func (w *simCluster) leaderOrFirst() string {
	for _, n := range w.Nodes() {
		if n.IsLeader() {
			return n.Status().ID
		}
	}
	return w.ids[0]
}

type faultInjector struct {
	*simCluster

	random   *rand.Rand
	injected map[string]int
}

// faultActions are the faults that it draws from.
var faultActions = map[string]func(*faultInjector){
	"isolate a node":     func(n *faultInjector) { n.isolateNodes(n.random.IntN(2) == 0, n.randomNode()) },
	"isolate the leader": func(n *faultInjector) { n.isolateNodes(n.random.IntN(2) == 0, n.leaderOrFirst()) },
	"isolate a majority": func(n *faultInjector) { n.isolateNodes(false, n.randomNodes(len(n.ids)/2+1)...) },
	"crash a node":       func(n *faultInjector) { n.crashNodes(n.randomNode()) },
	"crash the leader":   func(n *faultInjector) { n.crashNodes(n.leaderOrFirst()) },
	"crash all":          func(n *faultInjector) { n.crashNodes(n.ids...) },
	"cut one way": func(n *faultInjector) {
		n.Network().CutOneWay(raft.ServerID(n.randomNode()+":1"), raft.ServerID(n.randomNode()+":1"))
	},
	"lose messages": func(n *faultInjector) {
		loss := n.random.Float64() / 5
		n.Network().SetLoss(func(_, _ raft.ServerID) float64 { return loss })
	},
	"lose answers": func(n *faultInjector) { n.wires.update(func() { n.wires.loss = n.random.Float64() / 10 }) },
	"slow calls": func(n *faultInjector) {
		n.wires.update(func() { n.wires.delay = time.Duration(n.random.IntN(400)) * time.Millisecond })
	},
	"slow node": func(n *faultInjector) {
		slow := raft.ServerID(n.randomNode() + ":1")
		n.Network().SetDelay(func(_, to raft.ServerID) time.Duration {
			if to == slow {
				return 300 * time.Millisecond
			}
			return time.Millisecond
		})
	},
	"cut callers off": func(n *faultInjector) {
		id := n.randomNode()
		n.wires.update(func() { n.wires.cut[[2]string{callerSide, id}] = true })
	},
	"wrong clocks": (*faultInjector).setWrongClocks,
	"snapshot": func(n *faultInjector) {
		for _, node := range n.Nodes() {
			_ = node.Snapshot(n.t.Context()) // it fails if there is nothing new
		}
	},
	"start what is down": func(n *faultInjector) { n.StartMissing(); n.serveNodes() },
	"repair":             (*faultInjector).repairAll,
	"repair again":       (*faultInjector).repairAll, // twice as likely
}

// setWrongClocks sets the wall clocks of a minority wrong, the leader's every other time, and corrects those of the
// others.
func (n *faultInjector) setWrongClocks() {
	wrong := n.randomNodes(1 + n.random.IntN((len(n.ids)-1)/2))
	if leader := n.leaderOrFirst(); n.random.IntN(2) == 0 && !slices.Contains(wrong, leader) {
		wrong[0] = leader
	}
	for _, id := range n.ids {
		n.SetClock(id, 0)
	}
	const day = 24 * time.Hour
	errors := []time.Duration{3 * time.Second, 10 * time.Second, 4 * time.Minute, time.Hour, day, 365 * day}
	for _, id := range wrong {
		n.SetClock(id, errors[n.random.IntN(len(errors))]*time.Duration(1-2*n.random.IntN(2)))
	}
}

func (n *faultInjector) repairAll() { n.repairCluster() }

func (n *faultInjector) randomNode() string { return n.ids[n.random.IntN(len(n.ids))] }

func (n *faultInjector) randomNodes(count int) []string {
	var ids []string
	for _, i := range n.random.Perm(len(n.ids))[:count] {
		ids = append(ids, n.ids[i])
	}
	return ids
}

func (n *faultInjector) injectFault() {
	names := slices.Sorted(maps.Keys(faultActions))
	name := names[n.random.IntN(len(names))]
	n.injected[name]++
	faultActions[name](n)
}
