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
			c.PlantTree()
			c.Must(clustertest.Take("a", 7))
			for _, n := range c.Nodes() {
				if got := len(n.Members()); got != size {
					t.Errorf("%s knows %d members, want %d", n.Standing().ID, got, size)
				}
				used, info, err := clustertest.Used(n, cluster.ReadOptions{})
				if err != nil || used != 7 || info.Stale {
					t.Errorf("%s reads %d, %+v, %v; want 7, linearizable", n.Standing().ID, used, info, err)
				}
			}
			c.CheckEqual()
		})
	}
}

func TestAnIdleLeaderStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		leader, term := c.Leader(), c.Leader().Standing().Term
		time.Sleep(10 * time.Minute)
		if c.Leader() != leader || leader.Standing().Term != term {
			t.Error("the leader changed without a reason")
		}
	})
}

func TestAnOrderlyStopHandsTheLeadershipOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.PlantTree()
		before := time.Now()
		c.Stop(c.Leader().Standing().ID)
		if _, err := clustertest.Propose(c.Leader(), clustertest.Take("a", 1)); err != nil {
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
		c.Run("n1")
		c.Run("n2")
		time.Sleep(time.Minute)
		for _, n := range c.Nodes() {
			if n.Standing().LastIndex != 0 {
				t.Fatal("two of three expected nodes formed a cluster")
			}
		}
		c.Run("n3")
		c.Leader()
		c.Settle()
	})
}

func TestTheOnlyVoterLeadsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 1)
		for range 2 {
			begin := time.Now()
			n := c.Run("n1")
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
			c.Crash(c.Followers()[0].Standing().ID)
			before := time.Now()
			c.Stop(c.Leader().Standing().ID)
			c.Leader()
			if took := time.Since(before); took > time.Second {
				t.Errorf("the hand-over took %v, as long as an election needs", took)
			}
			c.RunMissing()
			c.Settle()
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
		c.Run("n4")
		c.Leader()
		for _, id := range []string{"n1", "n2", "n3"} {
			c.Run(id)
		}
		time.Sleep(time.Minute)
		c.Stop("n4")
		time.Sleep(time.Hour)
		for _, n := range c.Nodes() {
			if s := n.Standing(); s.LastIndex != 0 {
				t.Errorf("%s belongs to a second cluster: %+v", s.ID, s)
			}
		}
	})
}
