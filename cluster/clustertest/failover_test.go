package clustertest_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

func TestALostLeaderUnderLoadLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		load := c.StartLoad(8)
		for range 3 {
			time.Sleep(3 * time.Second)
			id := c.Leader().Status().ID
			c.Crash(id)
			c.Leader()
			time.Sleep(time.Second)
			c.StartNode(id)
		}
		acknowledged, unknown := load.Stop()
		if acknowledged < 200 {
			t.Errorf("only %d writes were acknowledged", acknowledged)
		}
		t.Logf("%d acknowledged, %d tries unknown", acknowledged, unknown)
		load.Check()
		c.CheckEqual()
	})
}

func TestARetryAcrossALeaderChangeChargesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		first := c.MustPropose(clustertest.NewAllocate("a", 5))
		c.Crash(c.Leader().Status().ID)
		again := c.MustPropose(clustertest.NewAllocate("a", 5))
		if !again.Repeated || again.Allocation.Info().Fence != first.Allocation.Info().Fence {
			t.Errorf("the retry got %+v, want the first answer again", again)
		}
		other := c.MustPropose(quota.Release{ID: "a"})
		if other.Allocation == nil {
			t.Error("the release found nothing")
		}
		if used, _, err := clustertest.ReadUsed(c.Leader(), cluster.ReadOptions{}); err != nil || used != 0 {
			t.Errorf("used %d after the release, %v; want 0", used, err)
		}
	})
}

func TestLedgerTimeStandsStillWithoutALeaderAndNeverGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		time.Sleep(time.Minute)
		before := c.MustPropose(clustertest.NewAllocate("before", 1)).Allocation.Info().GrantedAt
		if before < quota.Instant(time.Minute.Milliseconds()) {
			t.Fatalf("ledger time is %d ms after more than a minute", before)
		}
		leader := c.Leader().Status().ID
		c.Isolate("n1", "n2", "n3")
		time.Sleep(time.Hour)
		c.Crash(leader)
		c.Heal()
		took := time.Now()
		after := c.MustPropose(clustertest.NewAllocate("after", 1)).Allocation.Info().GrantedAt
		// The clock of the new leader starts after its barrier. An election may lie between the healing and the barrier.
		if grown, most := time.Duration(after-before)*time.Millisecond, time.Since(took)+time.Second; grown < 0 ||
			grown > most {
			t.Errorf("ledger time grew by %v over an hour without a leader, want 0 to %v", grown, most)
		}
		time.Sleep(time.Minute)
		later := c.MustPropose(clustertest.NewAllocate("later", 1)).Allocation.Info().GrantedAt
		if grown := time.Duration(later-after) * time.Millisecond; grown < time.Minute ||
			grown > time.Minute+time.Second {
			t.Errorf("ledger time grew by %v in a minute with a leader", grown)
		}
	})
}

func TestLedgerTimeIsInTheOrderOfTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		load := c.StartLoad(8)
		for range 4 {
			time.Sleep(2 * time.Second)
			id := c.Leader().Status().ID
			c.Stop(id)
			c.StartNode(id)
		}
		load.Stop()
		var last quota.AllocationInfo
		_, err := c.Leader().Read(t.Context(), cluster.ReadOptions{}, func(v ledger.Reader) {
			for after := uint64(0); ; {
				page, refused := v.Allocations(quota.AllocationFilter{}, after, 100)
				if refused != nil {
					t.Fatal(refused)
				}
				for _, a := range page.Allocations {
					if a.GrantedAt < last.GrantedAt {
						t.Errorf("%s was granted at %d, before %s at %d", a.ID, a.GrantedAt, last.ID, last.GrantedAt)
					}
					last = a
				}
				if after = page.Next; after == 0 {
					return
				}
			}
		})
		if err != nil || last.ID == "" {
			t.Fatalf("last allocation %q, %v", last.ID, err)
		}
	})
}

func TestLeadershipLostAndRegainedInOneBreath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		for round := range 20 {
			leader := c.Leader().Status().ID
			c.Isolate(leader)
			time.Sleep(time.Duration(900+10*round) * time.Millisecond) // about the leader lease
			c.Heal()
			c.MustPropose(clustertest.NewAllocate(fmt.Sprint("round-", round), 1))
		}
		if used, _, err := clustertest.ReadUsed(c.Leader(), cluster.ReadOptions{}); err != nil || used != 20 {
			t.Errorf("used %d, %v; want 20", used, err)
		}
		c.CheckEqual()
	})
}

func TestANewLeaderRefusesUntilItIsEstablished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		for range 200 {
			c.MustPropose(clustertest.NewAllocate(fmt.Sprint(time.Now().UnixNano()), 1))
			time.Sleep(time.Millisecond)
		}
		c.Crash(c.Leader().Status().ID)
		c.Eventually("an elected leader", func() bool {
			for _, n := range c.Nodes() {
				s := n.Status()
				if s.State != "Leader" || n.IsLeader() {
					continue
				}
				_, _, err := n.Propose(t.Context(), clustertest.NewAllocate("early", 1))
				if cluster.ReasonOf(err) != cluster.NoLeader {
					t.Errorf("a leader that is not established answers %v, want NO_LEADER", err)
				}
				return true
			}
			return c.Nodes()[0].IsLeader() || c.Nodes()[1].IsLeader()
		})
		if used, _, err := clustertest.ReadUsed(c.Leader(), cluster.ReadOptions{}); err != nil || used != 200 {
			t.Errorf("the new leader reads %d, %v; want 200", used, err)
		}
	})
}
