package clustertest_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/internal/verify"
)

var seeds = flag.Uint64("seeds", verify.Scale[uint64](1, 4), "how many random schedules of faults to try")

// Random faults, several at a time, while callers write and snapshots are taken continuously. In the end nothing
// acknowledged is lost, nothing is charged twice, and all nodes have identical bytes.
func TestRandomFaults(t *testing.T) {
	for seed := range *seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := clustertest.Start(t, 3+2*int(seed%2), clustertest.WithConfig(shortLogs))
				c.CreateTree()
				load := c.StartLoad(4)
				faults := &faultSchedule{t: t, c: c, random: rand.New(rand.NewPCG(seed, seed))}
				for range 40 {
					faults.injectFault()
					time.Sleep(time.Duration(faults.random.IntN(3000)) * time.Millisecond)
				}
				faults.repairAll()
				c.Leader()
				time.Sleep(10 * time.Second)
				acknowledged, unknown := load.Stop()
				if acknowledged < 100 {
					t.Errorf("only %d writes were acknowledged, %d are unknown", acknowledged, unknown)
				}
				load.Check()
				c.CheckEqual()
			})
		})
	}
}

type faultSchedule struct {
	t      *testing.T
	c      *clustertest.Cluster
	random *rand.Rand
}

func (f *faultSchedule) randomNode() string {
	nodes := f.c.Nodes()
	return nodes[f.random.IntN(len(nodes))].Status().ID
}

func (f *faultSchedule) injectFault() {
	switch f.random.IntN(9) {
	case 0, 1:
		f.c.Isolate(f.randomNode())
	case 2:
		f.c.Network().CutOneWay(raft.ServerID(f.randomNode()+":1"), raft.ServerID(f.randomNode()+":1"))
	case 3:
		loss := f.random.Float64() / 5
		f.c.Network().SetLoss(func(_, _ raft.ServerID) float64 { return loss })
	case 4:
		slow := raft.ServerID(f.randomNode() + ":1")
		f.c.Network().SetDelay(func(_, to raft.ServerID) time.Duration {
			if to == slow {
				return 300 * time.Millisecond
			}
			return time.Millisecond
		})
	case 5:
		if len(f.c.Nodes()) > 1 {
			f.c.Crash(f.randomNode())
		}
	case 6:
		f.c.StartMissing()
	case 7, 8:
		f.repairAll()
	}
}

func (f *faultSchedule) repairAll() {
	f.c.Network().SetLoss(nil)
	f.c.Network().SetDelay(func(_, _ raft.ServerID) time.Duration { return time.Millisecond })
	f.c.Heal()
	f.c.StartMissing()
	for _, n := range f.c.Nodes() {
		if n.Err() != nil {
			f.t.Errorf("%s stopped by itself: %v", n.Status().ID, n.Err())
		}
	}
}
