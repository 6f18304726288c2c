package clustertest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

const day = 24 * time.Hour

// civilCluster begins civil time. wrong are the errors of the clocks from the start.
func civilCluster(t *testing.T, size int, wrong map[string]time.Duration) *clustertest.Cluster {
	t.Helper()
	c := clustertest.Start(t, size, func(c *clustertest.Cluster) {
		for id, ahead := range wrong {
			c.SetClock(id, ahead)
		}
	})
	c.CreateTree()
	time.Sleep(10 * time.Second)
	return c
}

// civilError is how far civil time is ahead of the true time, after an entry that is written now.
func civilError(t *testing.T, c *clustertest.Cluster) time.Duration {
	t.Helper()
	c.MustPropose(quota.Expire{Most: 1})
	var civil quota.CivilTime
	if _, err := c.Leader().Read(t.Context(), cluster.ReadOptions{}, func(v ledger.Reader) {
		civil = v.CivilTime()
	}); err != nil {
		t.Fatal(err)
	}
	if civil == 0 {
		t.Fatal("there is no civil time")
	}
	return time.Until(time.UnixMilli(int64(civil)))
}

func leadBy(t *testing.T, c *clustertest.Cluster, id string) {
	t.Helper()
	var err error
	for range 60 {
		if _, err = c.Leader().TransferLeader(t.Context(), id); err == nil || c.Leader().Status().ID == id {
			return
		}
		time.Sleep(time.Second)
	}
	t.Fatal(err)
}

func wantCivil(t *testing.T, c *clustertest.Cluster, when string, want time.Duration) {
	t.Helper()
	if got := civilError(t, c); (got - want).Abs() > 1100*time.Millisecond {
		t.Errorf("%s civil time is wrong by %v, want %v", when, got, want)
	}
}

// TestAMinorityOfWrongClocksMovesNothing: whether it leads or not, and while one of the other voters is away.
func TestAMinorityOfWrongClocksMovesNothing(t *testing.T) {
	for _, wrong := range []time.Duration{-10 * 365 * day, -day, -2 * time.Minute, 2 * time.Minute, day, 10 * 365 * day} {
		synctest.Test(t, func(t *testing.T) {
			c := civilCluster(t, 5, map[string]time.Duration{"n1": wrong, "n2": wrong})
			wantCivil(t, c, "at the start", 0)
			for _, id := range []string{"n1", "n3", "n2"} {
				leadBy(t, c, id)
				time.Sleep(5 * time.Second)
				wantCivil(t, c, "with the leader "+id, 0)
			}
			c.Crash("n5")
			time.Sleep(20 * time.Second)
			wantCivil(t, c, "with a voter away", 0)
			c.StartMissing()
			c.CheckEqual()
		})
	}
}

// TestOneWrongClockOfTwoVotersDoesNotMoveCivilTime: with the third away, neither alone does.
func TestOneWrongClockOfTwoVotersDoesNotMoveCivilTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := civilCluster(t, 3, nil)
		c.Crash(c.Followers()[0].Status().ID)
		for _, n := range c.Nodes() {
			for _, wrong := range []time.Duration{-day, day} {
				c.SetClock(n.Status().ID, wrong)
				time.Sleep(time.Minute)
				wantCivil(t, c, "with one wrong clock of two", 0)
			}
			c.SetClock(n.Status().ID, 0)
		}
	})
}

// TestCivilTimeFollowsAMajority: forward at once, backward by standing still, and never back.
func TestCivilTimeFollowsAMajority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := civilCluster(t, 3, nil)
		c.SetClock("n1", day)
		c.SetClock("n2", 2*day)
		time.Sleep(10 * time.Second)
		wantCivil(t, c, "while no majority agrees on a jump", 0)
		c.SetClock("n2", day)
		time.Sleep(10 * time.Second)
		wantCivil(t, c, "after a jump of a majority", day)
		for _, id := range []string{"n1", "n2"} {
			c.SetClock(id, day-time.Minute)
		}
		time.Sleep(30 * time.Second)
		wantCivil(t, c, "while it stands", day-30*time.Second)
		before := c.Leader().Status().LastIndex
		time.Sleep(20 * time.Second)
		if after := c.Leader().Status().LastIndex; after != before {
			t.Errorf("%d entries were written while civil time stands", after-before)
		}
		time.Sleep(time.Minute)
		wantCivil(t, c, "after it has stood", day-time.Minute)
		c.CheckEqual()
	})
}

// TestCivilTimeAfterAnOutage: ledger time stands still without a leader, and civil time catches up.
func TestCivilTimeAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := civilCluster(t, 3, map[string]time.Duration{"n3": -day})
		for _, id := range []string{"n1", "n2", "n3"} {
			c.Stop(id)
		}
		time.Sleep(day)
		c.StartMissing()
		c.AwaitConverged()
		time.Sleep(10 * time.Second)
		wantCivil(t, c, "after an outage of a day", 0)
	})
}

// TestCivilTimeOfASingleServer is that of its own clock.
func TestCivilTimeOfASingleServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := civilCluster(t, 1, map[string]time.Duration{"n1": -day})
		wantCivil(t, c, "of a single server", -day)
		c.SetClock("n1", 0)
		time.Sleep(5 * time.Second)
		wantCivil(t, c, "after its clock was corrected", 0)
	})
}

// TestEveryNodeKnowsCivilTimeOfNow: also while nothing is written, after a restart, and behind another leader.
func TestEveryNodeKnowsCivilTimeOfNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := civilCluster(t, 3, nil)
		for _, change := range []func(){
			func() {}, func() { c.Crash(c.Followers()[0].Status().ID) }, func() { c.Crash(c.Leader().Status().ID) },
		} {
			change()
			c.StartMissing()
			c.AwaitConverged()
			time.Sleep(10 * time.Minute)
			for _, n := range c.Nodes() {
				if wrong := time.Until(time.UnixMilli(int64(n.CivilTime()))); wrong.Abs() > 1100*time.Millisecond {
					t.Errorf("%s is wrong by %v", n.Status().ID, wrong)
				}
			}
		}
		c.Isolate("n1")
		time.Sleep(time.Minute)
		if at := time.UnixMilli(int64(c.Node("n1").CivilTime())); time.Since(at) < time.Minute {
			t.Errorf("a node without a leader says that civil time is %v", at)
		}
	})
}

// TestTheLeaderShowsWrongClocks: relative to civil time, also its own.
func TestTheLeaderShowsWrongClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := civilCluster(t, 3, nil)
		wrong := c.Leader().Status().ID
		c.SetClock(wrong, time.Hour)
		time.Sleep(5 * time.Second)
		for id, h := range c.Health() {
			want := map[bool]time.Duration{true: time.Hour}[id == wrong]
			if (h.CivilOffset - want).Abs() > time.Second {
				t.Errorf("the clock of %s is shown %v ahead, want %v", id, h.CivilOffset, want)
			}
		}
	})
}
