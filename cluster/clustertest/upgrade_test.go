package clustertest_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/quota"
)

// tryReserve proposes a command that feature level 1 does not have.
func tryReserve(t *testing.T, c *clustertest.Cluster, id string) error {
	t.Helper()
	_, _, err := c.Leader().Propose(t.Context(), reserveRequest(id, time.Hour))
	return err
}

func wantNotUpgraded(t *testing.T, err error, member string) {
	t.Helper()
	if cluster.ReasonOf(err) != cluster.NotUpgraded || !strings.Contains(err.Error(), member) {
		t.Fatalf("it was answered %v, want NOT_UPGRADED because of %s", err, member)
	}
}

func TestNewCommandsWaitForAllMembersToUnderstandThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		old := c.Followers()[0].Status().ID
		c.OverrideLevel(old, 1)
		time.Sleep(time.Second)
		wantNotUpgraded(t, tryReserve(t, c, "a"), old)
		c.MustPropose(clustertest.NewAllocate("plain", 1)) // what all understand goes on

		c.Isolate(old) // gossip does not forget it
		time.Sleep(time.Second)
		wantNotUpgraded(t, tryReserve(t, c, "a"), old)
		c.Heal()

		c.OverrideLevel(old, 2)
		time.Sleep(time.Second)
		if err := tryReserve(t, c, "a"); err != nil {
			t.Errorf("with all members upgraded: %v", err)
		}
		c.OverrideLevel(old, 1)
		time.Sleep(time.Second)
		if err := tryReserve(t, c, "b"); err != nil {
			t.Errorf("after an entry of the new format was written: %v", err)
		}
	})
}

func TestAMemberThatWasNeverHeardCountsAsNotUpgraded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		silent := c.Followers()[0].Status().ID
		c.Isolate(silent)
		for _, n := range c.Nodes() {
			if id := n.Status().ID; id != silent {
				c.Stop(id)
				c.StartNode(id)
			}
		}
		c.MustPropose(clustertest.NewAllocate("plain", 1))
		wantNotUpgraded(t, tryReserve(t, c, "a"), silent+" (has not answered yet)")
		c.Heal()
		c.Eventually("a reservation once all members were heard", func() bool { return tryReserve(t, c, "a") == nil })
	})
}

// TestEachFormatHasAGateOfItsOwn: members that understand format 2 accept reservations, but not leases yet.
func TestEachFormatHasAGateOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		old := c.Followers()[0].Status().ID
		c.OverrideLevel(old, 2)
		time.Sleep(time.Second)
		if err := tryReserve(t, c, "a"); err != nil {
			t.Errorf("a reservation: %v", err)
		}
		_, _, err := c.Leader().Propose(t.Context(), leaseRequest("b", time.Hour))
		wantNotUpgraded(t, err, old)
		_, _, err = c.Leader().ProposeBatched(t.Context(), quota.Renew{ID: "b"})
		wantNotUpgraded(t, err, old)
		c.OverrideLevel(old, 3)
		time.Sleep(time.Second)
		c.MustPropose(leaseRequest("b", time.Hour))
	})
}
