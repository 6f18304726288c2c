package clustertest_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
)

const diskStall = 5 * time.Second

func withDiskStall(c *cluster.Config) { c.DiskStall = diskStall }

// TestALeaderWhoseWriteHangsIsReplaced: raft's main loop waits for the write while heartbeats go on, so only the guard
// of the transport lets the followers elect another leader.
func TestALeaderWhoseWriteHangsIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, disks := startWithSmallDisks(t, 3, withDiskStall)
		broken := c.Leader()
		id := broken.Status().ID
		disks[id].hangs.Store(true)
		inFlight := make(chan error, 1)
		go func() {
			_, err := clustertest.Propose(broken, clustertest.NewAllocate("in-flight", 1))
			inFlight <- err
		}()

		// the setting, the timeouts of an election and some slack
		c.EventuallyWithin(diskStall+10*time.Second, "another leader", func() bool {
			for _, n := range c.Nodes() {
				if n != broken && n.IsLeader() {
					return true
				}
			}
			return false
		})
		if err := <-inFlight; cluster.ReasonOf(err) != cluster.LeadershipLost {
			t.Errorf("the command that raft had: %v, want LEADERSHIP_LOST", err)
		}
		c.MustPropose(clustertest.NewAllocate("after", 1))
		c.Eventually("the others are ready", func() bool {
			for _, n := range c.Nodes() {
				if n != broken && n.Ready() != nil {
					return false
				}
			}
			return true
		})
		if broken.IsLeader() || broken.Ready() == nil {
			t.Errorf("the broken node leads: %v, ready: %v", broken.IsLeader(), broken.Ready())
		}
		leader := c.Leader().Status().ID
		c.Eventually("the broken node knows the new leader", func() bool { return broken.Status().Leader == leader })
		if s := broken.Status(); s.State == "Leader" || !strings.Contains(s.Problem, "has not returned") {
			t.Errorf("the broken node reports the state %s and the problem %q", s.State, s.Problem)
		}
		ctx, cancel := context.WithTimeout(t.Context(), diskStall)
		defer cancel()
		if _, _, err := clustertest.ReadUsed(broken, cluster.ReadOptions{}); err == nil {
			t.Error("the broken node confirms a read")
		}
		if _, err := broken.ReadIndex(ctx); cluster.ReasonOf(err) != cluster.NotLeader {
			t.Errorf("the broken node is asked for a read index: %v, want NOT_LEADER", err)
		}

		disks[id].hangs.Store(false)
		c.AwaitConverged()
		if broken.IsLeader() {
			t.Error("the node with the repaired disk leads although there was another leader")
		}
	})
}

// TestAFollowerWhoseWriteHangsLeavesTheLeader: it is not ready, and the leader stays.
func TestAFollowerWhoseWriteHangsLeavesTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, disks := startWithSmallDisks(t, 3, withDiskStall)
		leader, broken := c.Leader(), c.Followers()[0]
		disks[broken.Status().ID].hangs.Store(true)
		c.MustPropose(clustertest.NewAllocate("a", 1))
		c.Eventually("the follower is not ready", func() bool {
			err := broken.Ready()
			return err != nil && strings.Contains(err.Error(), "has not returned")
		})
		term := leader.Status().Term
		c.MustPropose(clustertest.NewAllocate("b", 1))
		if s := leader.Status(); s.Term != term || !leader.IsLeader() {
			t.Errorf("the leader is now %+v, want the same in term %d", s, term)
		}
		disks[broken.Status().ID].hangs.Store(false)
		c.AwaitConverged()
	})
}

// TestASoleVoterLeadsAgainOnceItsWriteReturns: raft never stops to lead, so nothing but the write tells the node.
func TestASoleVoterLeadsAgainOnceItsWriteReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, disks := startWithSmallDisks(t, 1, withDiskStall)
		n := c.Leader()
		disks["n1"].hangs.Store(true)
		if _, err := clustertest.Propose(n, clustertest.NewAllocate("a", 1)); cluster.ReasonOf(err) !=
			cluster.LeadershipLost {
			t.Errorf("a command during the fault: %v, want LEADERSHIP_LOST", err)
		}
		if n.IsLeader() || n.Ready() == nil {
			t.Error("the node leads without a disk")
		}
		disks["n1"].hangs.Store(false)
		c.Leader()
		c.MustPropose(clustertest.NewAllocate("b", 1))
		c.AwaitConverged()
	})
}

// TestAHangingWriteIsSlowByItself: without other writes in the window, and until writes are fast again.
func TestAHangingWriteIsSlowByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, disks := startWithSmallDisks(t, 1)
		n := c.Leader()
		time.Sleep(time.Minute) // until the writes of the start no longer count
		disks["n1"].hangs.Store(true)
		go func() { _, _ = clustertest.Propose(n, clustertest.NewAllocate("a", 1)) }()
		c.Eventually("the disk counts as slow", func() bool { return n.DiskStatus().Slow })
		for range 60 {
			time.Sleep(time.Second)
			if s := n.Status(); !n.DiskStatus().Slow || !strings.Contains(s.Warning, "has not returned") {
				t.Fatalf("while the write hangs: %+v, warning %q", n.DiskStatus(), s.Warning)
			}
		}
		disks["n1"].hangs.Store(false)
		time.Sleep(5 * time.Second)
		if d := n.DiskStatus(); !d.Slow {
			t.Errorf("right after the write: %+v; its mean of %v is above the limit", d, d.WriteMean)
		}
		time.Sleep(time.Minute)
		if d := n.DiskStatus(); d.Slow {
			t.Errorf("a minute later: %+v", d)
		}
	})
}
