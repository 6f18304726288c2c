package clustertest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
)

func TestClustersOfEverySizeElectOneLeaderAndWrite(t *testing.T) {
	for _, size := range []int{1, 3, 5, 7} {
		synctest.Test(t, func(t *testing.T) {
			c := clustertest.Start(t, size)
			c.CreateTree()
			c.MustPropose(clustertest.NewAllocate("a", 7))
			for _, n := range c.Nodes() {
				if got := len(n.Members()); got != size {
					t.Errorf("%s knows %d members, want %d", n.Status().ID, got, size)
				}
				used, info, err := clustertest.ReadUsed(n, cluster.ReadOptions{})
				if err != nil || used != 7 || info.Stale {
					t.Errorf("%s reads %d, %+v, %v; want 7, linearizable", n.Status().ID, used, info, err)
				}
			}
			c.CheckEqual()
		})
	}
}

func TestAnIdleLeaderStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		leader, term := c.Leader(), c.Leader().Status().Term
		time.Sleep(10 * time.Minute)
		if c.Leader() != leader || leader.Status().Term != term {
			t.Error("the leader changed without a reason")
		}
	})
}

func TestAnOrderlyStopHandsTheLeadershipOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		before := time.Now()
		c.Stop(c.Leader().Status().ID)
		if _, err := clustertest.Propose(c.Leader(), clustertest.NewAllocate("a", 1)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(before); took > time.Second {
			t.Errorf("writes stood still for %v, as long as an election needs", took)
		}
	})
}

func TestOneNodeMayJoinLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		c.StartNode("n1")
		c.StartNode("n2")
		time.Sleep(time.Minute)
		for _, n := range c.Nodes() {
			if n.Status().LastIndex != 0 {
				t.Fatal("two of three expected nodes formed a cluster")
			}
		}
		c.StartNode("n3")
		c.Leader()
		c.AwaitConverged()
	})
}

func TestTheOnlyVoterLeadsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 1)
		for range 2 {
			begin := time.Now()
			n := c.StartNode("n1")
			if _, err := n.WaitLeader(t.Context()); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begin); took > 200*time.Millisecond {
				t.Errorf("the only voter waited %v for an election", took)
			}
			c.Stop("n1")
		}
	})
}

func TestTheLeadershipIsHandedToWhoeverLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 5)
		for range 2 {
			time.Sleep(10 * time.Second)
			c.Crash(c.Followers()[0].Status().ID)
			before := time.Now()
			c.Stop(c.Leader().Status().ID)
			c.Leader()
			if took := time.Since(before); took > time.Second {
				t.Errorf("the hand-over took %v, as long as an election needs", took)
			}
			c.StartMissing()
			c.AwaitConverged()
		}
	})
}

func TestNewcomersNeverFormASecondCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 4, clustertest.WithConfig(func(config *cluster.Config) {
			config.BootstrapExpect, config.ManualJoin = 3, true // n4 would take them in
			if config.ID == "n4" {
				config.BootstrapExpect = 1
			}
		}))
		c.StartNode("n4")
		c.Leader()
		for _, id := range []string{"n1", "n2", "n3"} {
			c.StartNode(id)
		}
		time.Sleep(time.Minute)
		c.Stop("n4")
		time.Sleep(time.Hour)
		for _, n := range c.Nodes() {
			if s := n.Status(); s.LastIndex != 0 {
				t.Errorf("%s belongs to a second cluster: %+v", s.ID, s)
			}
		}
	})
}
