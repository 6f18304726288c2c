package clustertest_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/cluster/raftguard"
	"github.com/quorate/quorate/cluster/simnet"
	"github.com/quorate/quorate/fsm"
	"github.com/quorate/quorate/quota"
)

func shortLogs(c *cluster.Config) {
	c.SnapshotThreshold, c.SnapshotInterval, c.TrailingLogs = 20, 5*time.Second, 5
}

func TestALaggingFollowerReceivesASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3, clustertest.WithConfig(shortLogs))
		c.CreateTree()
		late := c.Followers()[0].Status().ID
		c.Isolate(late)
		for i := range 300 {
			c.MustPropose(clustertest.NewAllocate(fmt.Sprint("a", i), 1))
		}
		time.Sleep(time.Minute) // snapshots are taken, the log is shortened
		leader := c.Disk(c.Leader().Status().ID)
		if first, _ := leader.FirstIndex(); first < 100 {
			t.Fatalf("the leader's log still starts at %d", first)
		}
		c.Heal()
		c.AwaitConverged()
		if list, _ := c.Disk(late).Snapshots.List(); len(list) == 0 || list[0].Index < 100 {
			t.Error("the late node caught up without a snapshot")
		}
		if used, _, err := clustertest.ReadUsed(c.Node(late), cluster.ReadOptions{}); err != nil || used != 300 {
			t.Errorf("the late node reads %d, %v; want 300", used, err)
		}
		c.CheckEqual()
	})
}

func TestAllNodesComeBackFromTheirDisks(t *testing.T) {
	for name, change := range map[string]func(*cluster.Config){
		"from the log": func(*cluster.Config) {}, "from snapshots": shortLogs,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := clustertest.Start(t, 3, clustertest.WithConfig(change))
				c.CreateTree()
				for i := range 100 {
					c.MustPropose(clustertest.NewAllocate(fmt.Sprint("a", i), 1))
				}
				c.MustPropose(quota.Release{ID: "a7"})
				time.Sleep(time.Minute)
				before := c.CheckEqual()
				at := c.MustPropose(clustertest.NewAllocate("last", 1)).Allocation.Info()
				for _, id := range []string{"n1", "n2", "n3"} {
					c.Stop(id)
				}
				time.Sleep(time.Hour)
				for _, id := range []string{"n1", "n2", "n3"} {
					c.StartNode(id)
				}
				again := c.MustPropose(clustertest.NewAllocate("last", 1))
				if !again.Repeated || again.Allocation.Info().Fence != at.Fence {
					t.Errorf("after the restart the retry got %+v, want the first answer again", again)
				}
				next := c.MustPropose(clustertest.NewAllocate("next", 1)).Allocation.Info()
				if next.Fence <= at.Fence || next.GrantedAt < at.GrantedAt ||
					next.GrantedAt > at.GrantedAt+quota.Instant(time.Minute.Milliseconds()) {
					t.Errorf("after the restart a grant has fence %d at %d, before it %d at %d",
						next.Fence, next.GrantedAt, at.Fence, at.GrantedAt)
				}
				if used, _, err := clustertest.ReadUsed(c.Leader(), cluster.ReadOptions{}); err != nil || used != 101 {
					t.Errorf("used %d, %v; want 101", used, err)
				}
				if bytes.Equal(before, c.CheckEqual()) {
					t.Error("the comparison cannot fail: two more grants changed nothing")
				}
			})
		})
	}
}

// A deposed leader left a long tail that no other node has (raft#697): stock raft would receive snapshots again and
// again. The node stops and says so, and its next start repairs it.
func TestATailThatContradictsTheSnapshotIsHealedByARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3, clustertest.WithConfig(shortLogs))
		c.CreateTree()
		late := c.Followers()[0].Status().ID
		c.Stop(late)
		leaveTail(t, c.Disk(late), 1000)
		for _, n := range c.Nodes() { // so that the term of the tail is over
			c.Stop(n.Status().ID)
		}
		for _, id := range []string{"n1", "n2", "n3"} {
			if id != late {
				c.StartNode(id)
			}
		}
		for i := range 300 {
			c.MustPropose(clustertest.NewAllocate(fmt.Sprint("a", i), 1))
		}
		time.Sleep(time.Minute)
		stuck := c.StartNode(late)
		select {
		case <-stuck.Done():
		case <-time.After(time.Hour):
			t.Fatalf("the node neither heals nor stops: %+v", stuck.Status())
		}
		if stuck.Err() == nil || !strings.Contains(stuck.Err().Error(), "start it again") {
			t.Errorf("the node stopped with %v, without the way out", stuck.Err())
		}
		c.Stop(late)
		c.StartNode(late)
		c.CheckEqual()
	})
}

// leaveTail appends entries of the last term to a disk, like a leader that reaches no other node.
func leaveTail(t *testing.T, disk *simnet.Disk, length uint64) {
	t.Helper()
	logs := raftguard.NewChecksum(disk)
	last, err := disk.LastIndex()
	if err != nil {
		t.Fatal(err)
	}
	var end raft.Log
	if err := logs.GetLog(last, &end); err != nil {
		t.Fatal(err)
	}
	for i := uint64(1); i <= length; i++ {
		data, err := fsm.EncodeEntry(quota.Stamp{}, []quota.Command{quota.Release{ID: "tail"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := logs.StoreLog(
			&raft.Log{Index: last + i, Term: end.Term, Type: raft.LogCommand, Data: data}); err != nil {
			t.Fatal(err)
		}
	}
}

// A follower is further than the leader knows, because its answers were lost, and has truncated its log. The leader's
// probes are below the follower's log, and the leader's snapshot is older than the follower's own: stock raft resets
// the follower to it, again and again.
func TestAFollowerThatIsFurtherThanTheLeaderKnowsNeverGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3, clustertest.WithConfig(func(config *cluster.Config) { config.TrailingLogs = 5 }))
		c.CreateTree()
		for i := range 50 {
			c.MustPropose(clustertest.NewAllocate(fmt.Sprint("a", i), 1))
		}
		leader, follower := c.Leader(), c.Followers()[0]
		take := func(n *cluster.Node) {
			if err := n.Snapshot(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		take(leader)
		c.Network().CutOneWay(raft.ServerID(follower.Status().ID+":1"), raft.ServerID(leader.Status().ID+":1"))
		for i := range 50 {
			c.MustPropose(clustertest.NewAllocate(fmt.Sprint("b", i), 1))
		}
		time.Sleep(3 * time.Second) // what the follower does not confirm is sent again
		take(follower)
		reached, _ := follower.Digest()
		if all := leader.Status().LastIndex; reached < all {
			t.Fatalf("the follower heard %d of %d: the test proves nothing", reached, all)
		}
		c.Network().Heal()
		for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			index, _ := follower.Digest()
			if index < reached {
				t.Fatalf("the follower went back from %d to %d", reached, index)
			}
			reached = index
		}
		c.MustPropose(clustertest.NewAllocate("after", 1))
		c.CheckEqual()
	})
}

// TestAFollowerWhoseFirstAnswersAfterASnapshotAreLostCatchesUp: it has entries right after the snapshot, of which the
// leader does not know, and no entry at the index of the snapshot, for which the leader asks.
func TestAFollowerWhoseFirstAnswersAfterASnapshotAreLostCatchesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const delay = 10 * time.Millisecond
		c := clustertest.Start(t, 3, clustertest.WithConfig(func(config *cluster.Config) { config.TrailingLogs = 5 }))
		c.CreateTree()
		leader, follower := c.Leader(), c.Followers()[0]
		write := func(name string, count int) {
			for i := range count {
				c.MustPropose(clustertest.NewAllocate(fmt.Sprint(name, i), 1))
			}
		}
		c.Network().SetDelay(func(_, _ raft.ServerID) time.Duration { return delay })
		c.Network().Isolate(raft.ServerID(follower.Status().ID + ":1"))
		write("a", 50)
		if err := leader.Snapshot(t.Context()); err != nil {
			t.Fatal(err)
		}
		inSnapshot := leader.Status().LastIndex
		write("b", 3)
		c.Network().Heal()
		c.Eventually("the follower has the snapshot", func() bool {
			index, _ := follower.Digest()
			return index >= inSnapshot
		})
		time.Sleep(delay + delay/2) // the leader knows that, and has sent the entries that follow
		c.Network().CutOneWay(raft.ServerID(follower.Status().ID+":1"), raft.ServerID(leader.Status().ID+":1"))
		time.Sleep(2 * time.Second)
		c.Network().Heal()
		c.AwaitConverged()
		write("c", 1)
		c.CheckEqual()
	})
}
