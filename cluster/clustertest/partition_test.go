package clustertest_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
)

func TestAMajorityGoesOnWithoutTheCutOffLeader(t *testing.T) {
	for _, size := range []int{3, 5} {
		synctest.Test(t, func(t *testing.T) {
			c := clustertest.Start(t, size)
			c.CreateTree()
			load := c.StartLoad(4)
			time.Sleep(2 * time.Second)
			old := c.Leader()
			cut := []string{old.Status().ID}
			if size == 5 {
				cut = append(cut, c.Followers()[0].Status().ID)
			}
			c.Isolate(cut...)
			c.Leader()
			time.Sleep(10 * time.Second)
			if old.IsLeader() {
				t.Error("the minority still has a leader")
			}
			if _, err := clustertest.Propose(old, clustertest.NewAllocate("minority",
				1)); cluster.ReasonOf(err) != cluster.NoLeader {
				t.Errorf("a write to the minority: %v, want NO_LEADER", err)
			}
			if _, _, err := clustertest.ReadUsed(old,
				cluster.ReadOptions{}); cluster.ReasonOf(err) != cluster.NoLeader {
				t.Errorf("a linearizable read from the minority: %v, want NO_LEADER", err)
			}
			_, info, err := clustertest.ReadUsed(old, cluster.ReadOptions{Stale: true})
			if err != nil || !info.Stale || info.Age < 10*time.Second {
				t.Errorf("a stale read from the minority: %+v, %v; want an age of 10 s at least", info, err)
			}
			if old.Ready() == nil {
				t.Error("the minority calls itself ready")
			}
			c.Heal()
			time.Sleep(5 * time.Second)
			if acknowledged, _ := load.Stop(); acknowledged < 100 {
				t.Errorf("only %d writes were acknowledged", acknowledged)
			}
			load.Check()
			c.CheckEqual()
		})
	}
}

func TestNoWriteIsAcknowledgedWithoutAMajority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		leader := c.Leader()
		for _, n := range c.Followers() {
			c.Isolate(n.Status().ID)
		}
		_, err := clustertest.Propose(leader, clustertest.NewAllocate("a", 1))
		var e *cluster.Error
		if err == nil || cluster.ReasonOf(err) != cluster.LeadershipLost {
			t.Fatalf("got %v, want LEADERSHIP_LOST", err)
		}
		if !errors.As(err, &e) || e.NotApplied {
			t.Error("the leader claims that a written entry is certainly not applied")
		}
		c.Heal()
		// The same id afterwards: whether it is granted now or was granted before, it is charged once.
		c.MustPropose(clustertest.NewAllocate("a", 1))
		if used, _, err := clustertest.ReadUsed(c.Leader(), cluster.ReadOptions{}); err != nil || used != 1 {
			t.Errorf("used %d, %v; want 1", used, err)
		}
		c.CheckEqual()
	})
}

func TestFaultyLinksLoseNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 5)
		c.CreateTree()
		load := c.StartLoad(4)
		for round := range 8 {
			ids := []string{"n1", "n2", "n3", "n4", "n5"}
			c.Isolate(ids[round%5], ids[(round*2+1)%5])
			time.Sleep(time.Duration(round%4) * 1500 * time.Millisecond)
			c.Heal()
			time.Sleep(time.Duration(round%3) * time.Second)
		}
		time.Sleep(10 * time.Second)
		if acknowledged, _ := load.Stop(); acknowledged < 50 {
			t.Errorf("only %d writes were acknowledged", acknowledged)
		}
		load.Check()
		c.CheckEqual()
	})
}
