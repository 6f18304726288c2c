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

func withCheckpoints(c *cluster.Config) { c.CheckpointEvery = time.Minute }

func startWithCheckpoints(t *testing.T, size int) *clustertest.Cluster {
	t.Helper()
	c := clustertest.Start(t, size, clustertest.WithConfig(withCheckpoints))
	c.CreateTree()
	for i := range 10 {
		c.MustPropose(clustertest.NewAllocate(fmt.Sprint("a", i), 1))
	}
	c.CheckEqual()
	return c
}

func injectDivergence(c *clustertest.Cluster, id string) {
	c.Stop(id)
	c.InjectDivergence(id, quota.Release{ID: "a3"})
	c.StartNode(id)
	c.AwaitConverged()
	c.MustPropose(clustertest.NewAllocate("more", 1))
}

func comparisonFindings(n *cluster.Node) map[string]cluster.Finding {
	found := map[string]cluster.Finding{}
	for _, m := range n.Comparison() {
		found[m.ID] = m.Finding
	}
	return found
}

// TestEqualStatesAgree: checkpoints are written only while commands are applied, also under new leaders.
func TestEqualStatesAgree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startWithCheckpoints(t, 3)
		for round := range 3 {
			c.MustPropose(clustertest.NewAllocate(fmt.Sprint("round", round), 1))
			time.Sleep(130 * time.Second)
			c.AwaitConverged()
			last := c.Leader().Status().LastIndex
			time.Sleep(5 * time.Minute)
			if now := c.Leader().Status().LastIndex; now != last {
				t.Fatalf("the idle log grew from %d to %d", last, now)
			}
			for _, n := range c.Nodes() {
				for _, m := range n.Comparison() {
					if m.Finding != cluster.Agrees || m.Index != last {
						t.Fatalf("%s says that %s at %d %q, want agreement at %d", n.Status().ID, m.ID, m.Index,
							m.Finding, last)
					}
				}
			}
			c.Stop(c.Leader().Status().ID)
			c.StartMissing()
			c.AwaitConverged()
		}
	})
}

// TestAMinorityWithAnotherStateStops: leader or follower, it says why, also after a restart, until its data is
// replaced. The others continue.
func TestAMinorityWithAnotherStateStops(t *testing.T) {
	for _, leads := range []bool{false, true} {
		t.Run(fmt.Sprint("leading ", leads), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := startWithCheckpoints(t, 3)
				bad := c.Followers()[0].Status().ID
				injectDivergence(c, bad)
				for leads && c.Leader().Status().ID != bad {
					c.Stop(c.Leader().Status().ID)
					c.StartMissing()
					c.AwaitConverged()
				}
				n := c.Node(bad)
				time.Sleep(70 * time.Second)
				wantQuarantined(t, n)
				if n.CountDiffering() != 1 || c.Leader().CountDiffering() != 1 {
					t.Errorf("found to differ: %d here, %d at the leader; want 1", n.CountDiffering(),
						c.Leader().CountDiffering())
				}
				if found := comparisonFindings(c.Leader()); found[bad] != cluster.Differs || len(found) != 3 {
					t.Errorf("the leader finds %v", found)
				}
				c.MustPropose(clustertest.NewAllocate("meanwhile", 1))

				c.Stop(bad)
				time.Sleep(time.Minute)
				n = c.StartNode(bad)
				time.Sleep(time.Minute)
				wantQuarantined(t, n)
				c.MustPropose(clustertest.NewAllocate("still", 1))

				c.Stop(bad)
				*c.Disk(bad) = *simnet.NewDisk(3)
				c.StartNode(bad)
				c.AwaitConverged()
				time.Sleep(130 * time.Second)
				if found := comparisonFindings(c.Leader()); found[bad] != cluster.Agrees ||
					c.Leader().CountDiffering() != 0 {
					t.Errorf("with new data the leader finds %v", found)
				}
				c.CheckEqual()
			})
		})
	}
}

func wantQuarantined(t *testing.T, n *cluster.Node) {
	t.Helper()
	for what, err := range map[string]error{"ready": n.Ready(), "read": staleRead(n), "write": writeOne(n)} {
		if cluster.ReasonOf(err) != cluster.Halted ||
			!strings.Contains(err.Error(), "another state than the majority") ||
			!strings.Contains(err.Error(), "empty one") {
			t.Errorf("%s: %v; want HALTED with the reason and the way out", what, err)
		}
	}
	if s := n.Status(); s.State != "Shutdown" || s.Problem == "" || n.IsLeader() {
		t.Errorf("it stands as %+v", s)
	}
	select {
	case <-n.Done():
		t.Error("its process would end, so it could not report why")
	default:
	}
}

func staleRead(n *cluster.Node) error {
	_, _, err := clustertest.ReadUsed(n, cluster.ReadOptions{Stale: true})
	return err
}

func writeOne(n *cluster.Node) error {
	_, err := clustertest.Propose(n, clustertest.NewAllocate("here", 1))
	return err
}

// TestADisputeStopsNobody: if two nodes have different states, neither is known to be right.
func TestADisputeStopsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startWithCheckpoints(t, 3)
		nodes := c.Followers()
		injectDivergence(c, nodes[0].Status().ID)
		away := nodes[1].Status().ID
		c.Stop(away)
		time.Sleep(130 * time.Second)
		for _, n := range c.Nodes() {
			if found := comparisonFindings(n); found[n.Status().ID] != cluster.Disputed || n.CountDiffering() != 2 ||
				n.Ready() != nil {
				t.Errorf("%s finds %v, %d differ, ready: %v", n.Status().ID, found, n.CountDiffering(), n.Ready())
			}
		}
		n := c.Node(nodes[0].Status().ID)
		c.StartNode(away) // the third decides: it applies the same checkpoint when it has caught up
		c.Eventually("the dispute is settled", func() bool { return n.Ready() != nil })
		wantQuarantined(t, n)
	})
}
