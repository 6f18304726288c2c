package clustertest_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/fsm"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// definePolicy defines a policy and makes the tree of the tests use it.
func definePolicy(t *testing.T, c *clustertest.Cluster) error {
	t.Helper()
	_, _, err := c.Leader().Propose(t.Context(), quota.ApplyTrees{
		Policies: []quota.PolicySpec{{Name: "lab", Base: "strict", Sum: "off"}},
		Trees: []quota.TreeSpec{{
			Name: "labs", Resources: []quota.Resource{{Name: "cpu", Unit: quota.Count}},
			Nodes: []quota.NodeSpec{{Policy: "lab"}, {Path: "a"}},
		}},
	})
	return err
}

// TestPoliciesNeedTheSixthLevel: with a member of the fifth level definitions are refused with its name, and with all
// members upgraded until the level is raised. What needs no definition goes on. Afterwards all members have the same
// state, also those that were restored from a snapshot.
func TestPoliciesNeedTheSixthLevel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ids := []string{"n1", "n2", "n3"}
		config := func(c *cluster.Config) {
			shortLogs(c)
			c.RaiseLevelAfter = time.Minute
		}
		c := clustertest.Start(t, 3, clustertest.WithConfig(config), func(c *clustertest.Cluster) {
			for _, id := range ids {
				c.OverrideLevel(id, 5)
			}
		})
		c.CreateTree()
		time.Sleep(2 * time.Minute)
		wantLevel(t, c, "with all members at level 5", 5)
		old := c.Followers()[0].Status().ID
		for _, id := range ids {
			if id != old {
				c.OverrideStatus(id, nil)
			}
		}
		time.Sleep(5 * time.Minute)
		wantNotUpgraded(t, definePolicy(t, c), old)
		c.MustPropose(clustertest.NewAllocate("plain", 1))

		c.OverrideStatus(old, nil)
		time.Sleep(time.Second)
		if err := definePolicy(t, c); cluster.ReasonOf(err) != cluster.NotUpgraded ||
			!strings.Contains(err.Error(), "this needs feature level 6, and the cluster is at 5") ||
			!strings.Contains(err.Error(), "--raise") {
			t.Errorf("before the level was raised a definition is answered %v", err)
		}
		time.Sleep(2 * time.Minute)
		wantLevel(t, c, "after a while", fsm.EntryFormat)
		if err := definePolicy(t, c); err != nil {
			t.Fatal(err)
		}
		c.CheckEqual() // with snapshots
		for _, id := range ids {
			c.Stop(id)
		}
		c.StartMissing()
		c.AwaitConverged()
		for _, n := range c.Nodes() {
			read := cluster.ReadOptions{Stale: true}
			if _, err := n.Read(t.Context(), read, func(v ledger.View) {
				if len(v.Policies()) != 1 || v.Trees()[0].Policy != "lab" {
					t.Errorf("%s has the policies %+v", n.Status().ID, v.Policies())
				}
			}); err != nil {
				t.Error(err)
			}
		}
	})
}
