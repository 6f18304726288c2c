package clustertest_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/cluster/simnet"
	"github.com/quorate/quorate/quota"
)

// comparing has the members compare their states every minute.
func comparing(c *cluster.Config) { c.CheckpointEvery = time.Minute }

// startComparing runs nodes at level 4 with something in the ledger and a snapshot each.
func startComparing(t *testing.T, size int) *clustertest.Cluster {
	t.Helper()
	c := clustertest.Start(t, size, clustertest.WithConfig(comparing))
	c.PlantTree()
	for i := range 10 {
		c.Must(clustertest.Take(fmt.Sprint("a", i), 1))
	}
	if _, err := c.Leader().RaiseLevel(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.CheckEqual()
	return c
}

// plant stops a node, plants another state in it and starts it again.
func plant(c *clustertest.Cluster, id string) {
	c.Stop(id)
	c.PlantDivergence(id, quota.Release{ID: "a3"})
	c.Run(id)
	c.Settle()
	c.Must(clustertest.Take("more", 1))
}

func findings(n *cluster.Node) map[string]cluster.Finding {
	found := map[string]cluster.Finding{}
	for _, m := range n.Comparison() {
		found[m.ID] = m.Finding
	}
	return found
}

// TestEqualStatesAgree: checkpoints come by themselves while something happens, and only then, also under new leaders.
func TestEqualStatesAgree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startComparing(t, 3)
		for round := range 3 {
			c.Must(clustertest.Take(fmt.Sprint("round", round), 1))
			time.Sleep(130 * time.Second)
			c.Settle()
			last := c.Leader().Standing().LastIndex
			time.Sleep(5 * time.Minute)
			if now := c.Leader().Standing().LastIndex; now != last {
				t.Fatalf("the idle log grew from %d to %d", last, now)
			}
			for _, n := range c.Nodes() {
				for _, m := range n.Comparison() {
					if m.Finding != cluster.Agrees || m.Index != last {
						t.Fatalf("%s says that %s at %d %q, want agreement at %d", n.Standing().ID, m.ID, m.Index, m.Finding, last)
					}
				}
			}
			c.Stop(c.Leader().Standing().ID)
			c.RunMissing()
			c.Settle()
		}
	})
}

// TestAMinorityWithAnotherStateStops: whether it follows or leads; it says why, also after a restart, until its data is
// replaced. The others go on.
func TestAMinorityWithAnotherStateStops(t *testing.T) {
	for _, leads := range []bool{false, true} {
		t.Run(fmt.Sprint("leading ", leads), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := startComparing(t, 3)
				bad := c.Followers()[0].Standing().ID
				plant(c, bad)
				for leads && c.Leader().Standing().ID != bad {
					c.Stop(c.Leader().Standing().ID)
					c.RunMissing()
					c.Settle()
				}
				n := c.Node(bad)
				time.Sleep(70 * time.Second)
				wantQuarantined(t, n)
				if n.Differing() != 1 || c.Leader().Differing() != 1 {
					t.Errorf("found to differ: %d here, %d at the leader; want 1", n.Differing(), c.Leader().Differing())
				}
				if found := findings(c.Leader()); found[bad] != cluster.Differs || len(found) != 3 {
					t.Errorf("the leader finds %v", found)
				}
				c.Must(clustertest.Take("meanwhile", 1))

				c.Stop(bad)
				time.Sleep(time.Minute)
				n = c.Run(bad)
				time.Sleep(time.Minute)
				wantQuarantined(t, n)
				c.Must(clustertest.Take("still", 1))

				c.Stop(bad)
				*c.Disk(bad) = *simnet.NewDisk(3)
				c.Run(bad)
				c.Settle()
				time.Sleep(130 * time.Second)
				if found := findings(c.Leader()); found[bad] != cluster.Agrees || c.Leader().Differing() != 0 {
					t.Errorf("with new data the leader finds %v", found)
				}
				c.CheckEqual()
			})
		})
	}
}

func wantQuarantined(t *testing.T, n *cluster.Node) {
	t.Helper()
	for what, err := range map[string]error{"ready": n.Ready(), "read": staleRead(n), "write": write(n)} {
		if cluster.ReasonOf(err) != cluster.Halted || !strings.Contains(err.Error(), "another state than the majority") ||
			!strings.Contains(err.Error(), "empty one") {
			t.Errorf("%s: %v; want HALTED with the reason and the way out", what, err)
		}
	}
	if s := n.Standing(); s.State != "Shutdown" || s.Problem == "" || n.IsLeader() {
		t.Errorf("it stands as %+v", s)
	}
	select {
	case <-n.Done():
		t.Error("its process would end, so nobody could ask it why")
	default:
	}
}

func staleRead(n *cluster.Node) error {
	_, _, err := clustertest.Used(n, cluster.ReadOptions{Stale: true})
	return err
}

func write(n *cluster.Node) error {
	_, err := clustertest.Propose(n, clustertest.Take("here", 1))
	return err
}

// TestADisputeStopsNobody: of two nodes with different states neither is known to be right.
func TestADisputeStopsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startComparing(t, 3)
		nodes := c.Followers()
		plant(c, nodes[0].Standing().ID)
		away := nodes[1].Standing().ID
		c.Stop(away)
		time.Sleep(130 * time.Second)
		for _, n := range c.Nodes() {
			if found := findings(n); found[n.Standing().ID] != cluster.Disputed || n.Differing() != 2 || n.Ready() != nil {
				t.Errorf("%s finds %v, %d differ, ready: %v", n.Standing().ID, found, n.Differing(), n.Ready())
			}
		}
		n := c.Node(nodes[0].Standing().ID)
		c.Run(away) // the third decides: it applies the same checkpoint when it has caught up
		c.Eventually("the dispute is settled", func() bool { return n.Ready() != nil })
		wantQuarantined(t, n)
	})
}
