package clustertest_test

import (
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/internal/verify"
)

func raiseLevelAfter(after time.Duration) clustertest.Option {
	return clustertest.WithConfig(func(c *cluster.Config) { c.RaiseLevelAfter = after })
}

func wantLevel(t *testing.T, c *clustertest.Cluster, when string, want uint32) {
	t.Helper()
	for _, n := range c.Nodes() {
		if got := n.Level().Current; got != want {
			t.Errorf("%s %s is at level %d, want %d", when, n.Status().ID, got, want)
		}
	}
}

// TestTheLevelIsRaisedWhenAllMembersWereUpgradedForAWhile: until then commands that need the level are refused with the
// reason. A member that is downgraded, or does not answer, restarts the wait.
func TestTheLevelIsRaisedWhenAllMembersWereUpgradedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const old = "n3"
		c := clustertest.Start(t, 3, raiseLevelAfter(time.Minute))
		c.CreateTree()
		for _, id := range []string{"n1", "n2"} {
			restartAs(c, id, nextVersion)
			c.AwaitConverged()
		}
		leadByUpgraded := func() {
			if c.Leader().Status().ID == old {
				leadBy(t, c, "n1")
			}
			time.Sleep(time.Second)
		}
		leadByUpgraded()
		time.Sleep(5 * time.Minute)
		wantLevel(t, c, "with an old member", 1)
		wantNotUpgraded(t, tryNext(t, c, "next"), old+" (version test, feature level 1)")
		c.Isolate(old) // what it said is not forgotten
		time.Sleep(time.Second)
		wantNotUpgraded(t, tryNext(t, c, "next"), old)
		c.Heal()
		c.MustPropose(clustertest.NewAllocate("plain", 1)) // what all understand goes on

		restartAs(c, old, nextVersion)
		leadByUpgraded()
		time.Sleep(50 * time.Second)
		wantLevel(t, c, "soon after the last upgrade", 1)
		if err := tryNext(t, c, "next"); cluster.ReasonOf(err) != cluster.NotUpgraded ||
			!strings.Contains(err.Error(), "this needs feature level 2, and the cluster is at 1") ||
			!strings.Contains(err.Error(), "quorate level raise") {
			t.Errorf("before the level was raised it is answered %v", err)
		}
		restartAs(c, old, nil) // it went back to the old version
		time.Sleep(50 * time.Second)
		restartAs(c, old, nextVersion)
		time.Sleep(50 * time.Second)
		c.Stop(old) // members that are away could come back as anything
		time.Sleep(5 * time.Minute)
		wantLevel(t, c, "with a member away", 1)
		c.StartNode(old)
		time.Sleep(70 * time.Second)
		c.AwaitConverged()
		wantLevel(t, c, "after a while with all upgraded", 2)
		if err := tryNext(t, c, "next"); err != nil {
			t.Error(err)
		}
		c.CheckEqual()
	})
}

// TestANewClusterIsRaisedAtOnce: it has no data that an older version could return to. Without RaiseLevelAfter the
// level is not raised.
func TestANewClusterIsRaisedAtOnce(t *testing.T) {
	for after, want := range map[time.Duration]uint32{time.Hour: 2, 0: 1} {
		synctest.Test(t, func(t *testing.T) {
			c := clustertest.Start(t, 3, raiseLevelAfter(after), versions(nextVersion, "n1", "n2", "n3"))
			time.Sleep(10 * time.Second)
			wantLevel(t, c, "a new cluster", want)
		})
	}
}

// TestTheLevelIsRaisedByHand: at once, unless a member does not understand it, and only once.
func TestTheLevelIsRaisedByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const old = "n3"
		c := clustertest.Start(t, 3, clustertest.WithConfig(shortLogs), versions(nextVersion, "n1", "n2"))
		c.CreateTree()
		if c.Leader().Status().ID == old {
			leadBy(t, c, "n1")
		}
		time.Sleep(time.Second)
		_, err := c.Leader().RaiseLevel(t.Context())
		wantNotUpgraded(t, err, old)
		if _, err := c.Followers()[0].RaiseLevel(t.Context()); cluster.ReasonOf(err) != cluster.NotLeader {
			t.Errorf("a follower answers %v", err)
		}
		restartAs(c, old, nextVersion)
		c.AwaitConverged()
		time.Sleep(time.Minute)
		before := c.Leader().Status().LastIndex
		for range 2 {
			if level, err := c.Leader().RaiseLevel(t.Context()); err != nil || level != 2 {
				t.Fatalf("raised to %d, %v", level, err)
			}
		}
		if after := c.Leader().Status().LastIndex; after != before+1 {
			t.Errorf("raising twice wrote %d entries", after-before)
		}
		c.CheckEqual() // with snapshots
		for _, id := range []string{"n1", "n2", "n3"} {
			c.Stop(id)
		}
		c.StartMissing()
		c.AwaitConverged()
		wantLevel(t, c, "after a restart from snapshots", 2)
	})
}

// TestAMembersWordAboutTheLevelStopsNobody: only an entry or a snapshot of that level does.
func TestAMembersWordAboutTheLevelStopsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		c.OverrideStatus(c.Leader().Status().ID, func(s *cluster.NodeStatus) { s.ClusterLevel = math.MaxUint32 })
		time.Sleep(verify.Scale(20*time.Minute, time.Hour))
		for _, n := range c.Nodes() {
			if n.Err() != nil || n.Ready() != nil {
				t.Errorf("%s stopped: %v, %v", n.Status().ID, n.Err(), n.Ready())
			}
		}
	})
}
