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

func wantEndedWithin(t *testing.T, c *clustertest.Cluster, id string, most time.Duration) {
	t.Helper()
	c.EventuallyWithin(most, id+" has ended", func() bool {
		a, _ := lookUp(t, c.Leader(), id)
		return a.State == quota.Expired
	})
}

// TestLeaderChangesOnAQuietClusterProlongNoLease (P12): each change costs the time without a leader, and nothing of the
// quiet time before it.
func TestLeaderChangesOnAQuietClusterProlongNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		c.MustPropose(leaseRequest("j", 40*time.Second))
		for range 2 {
			time.Sleep(15 * time.Second)
			if _, err := c.Leader().TransferLeader(t.Context(), ""); err != nil {
				t.Fatal(err)
			}
			c.Leader()
		}
		wantState(t, c.Leader(), "j", quota.Held)
		wantEndedWithin(t, c, "j", 12*time.Second) // of the 40 s 30 have passed; a transfer takes less than a second
		c.CheckEqual()
	})
}

// TestACrashedLeaderTakesOneTickAlong (P12): what a crash loses of a long quiet time is one tick.
func TestACrashedLeaderTakesOneTickAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		until := c.MustPropose(leaseRequest("j", time.Minute)).Allocation.Info().ExpiresAt
		time.Sleep(50 * time.Second)
		c.Crash(c.Leader().Status().ID)
		if _, now := lookUp(t, c.Leader(), "j"); until-now > 11_500 || until-now < 9000 {
			t.Errorf("10 s before its end a crash leaves it %d ms", until-now)
		}
		wantEndedWithin(t, c, "j", 12*time.Second)
		c.StartMissing()
		c.CheckEqual()
	})
}

// TestARollingRestartProlongsNoLease (P12).
func TestARollingRestartProlongsNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		until := c.MustPropose(leaseRequest("j", 10*time.Minute)).Allocation.Info().ExpiresAt
		time.Sleep(5 * time.Minute)
		for _, n := range c.Nodes() {
			c.Stop(n.Status().ID)
			c.StartMissing()
			c.AwaitConverged()
			time.Sleep(20 * time.Second)
		}
		if _, now := lookUp(t, c.Leader(), "j"); until-now > 244_000 {
			t.Errorf("6 of its 10 minutes have passed, and %d ms are left", until-now)
		}
	})
}

// TestAQuietClusterWithoutAnythingTimedWritesNothing: there is nothing that could be late.
func TestAQuietClusterWithoutAnythingTimedWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		c.MustPropose(clustertest.NewAllocate("held", 1))
		time.Sleep(10 * time.Second)
		before := c.Leader().Status().LastIndex
		time.Sleep(time.Hour)
		if now := c.Leader().Status().LastIndex; now != before {
			t.Errorf("%d entries were written in a quiet hour", now-before)
		}
		c.MustPropose(leaseRequest("timed", time.Minute))
		before = c.Leader().Status().LastIndex
		time.Sleep(30*time.Second + 500*time.Millisecond)
		if ticks := c.Leader().Status().LastIndex - before; ticks < 29 || ticks > 31 {
			t.Errorf("%d entries in 30 seconds with a lease, want one a second", ticks)
		}
		wantEndedWithin(t, c, "timed", 31*time.Second)
	})
}

// TestReadsKnowThePresentLedgerTime: a remaining time counts down between entries, on every member, and is never
// negative.
func TestReadsKnowThePresentLedgerTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		ends := time.Now().Add(time.Minute) // or later: until its answer is here, time passes
		until := c.MustPropose(leaseRequest("j", time.Minute)).Allocation.Info().ExpiresAt
		for range 300 { // 200 ms apart
			time.Sleep(200*time.Millisecond + time.Millisecond/2)
			for _, n := range c.Nodes() {
				for _, stale := range []bool{false, true} {
					checkRemainingTime(t, n, stale, until, ends)
				}
			}
		}
	})
}

func checkRemainingTime(t *testing.T, n *cluster.Node, stale bool, until quota.Instant, ends time.Time) {
	t.Helper()
	var lease quota.AllocationInfo
	info, err := n.Read(t.Context(), cluster.ReadOptions{Stale: stale}, func(v ledger.Reader) {
		lease, _ = v.Allocation("j")
		if v.Now() < lease.GrantedAt {
			t.Errorf("it is %d, and the lease is from %d", v.Now(), lease.GrantedAt)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	want := time.Until(ends)
	if lease.State != quota.Held {
		if want > 0 {
			t.Errorf("it ended %v too early", want)
		}
		return
	}
	left := time.Duration(until-info.Now) * time.Millisecond
	if off := left - want; left < 0 || off > 200*time.Millisecond || off < -200*time.Millisecond {
		t.Errorf("%s, stale %v: %v are left, want %v", n.Status().ID, stale, left, want)
	}
}
