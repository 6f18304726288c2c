package clustertest_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

func leaseRequest(id string, ttl time.Duration) quota.Allocate {
	c := clustertest.NewAllocate(id, 1)
	c.TTL = quota.Span(ttl.Milliseconds())
	return c
}

func mustRenew(t *testing.T, c *clustertest.Cluster, id string) ledger.Outcome {
	t.Helper()
	outcomes, _, err := c.Leader().ProposeBatched(t.Context(), quota.Renew{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	return outcomes[0]
}

func wantState(t *testing.T, n *cluster.Node, id string, want quota.State) quota.AllocationInfo {
	t.Helper()
	a, now := lookUp(t, n, id)
	if a.State != want {
		t.Errorf("%s is %d at %d, and was to end at %d; want state %d", id, a.State, now, a.ExpiresAt, want)
	}
	return a
}

// TestALeaseOverALeaderChange (P4): the time without a leader does not count, and a lease that is renewed is not lost.
func TestALeaseOverALeaderChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		until := c.MustPropose(leaseRequest("silent", time.Minute)).Allocation.Info().ExpiresAt
		c.MustPropose(leaseRequest("renewed", 10*time.Second))
		for range 3 {
			time.Sleep(5 * time.Second)
			mustRenew(t, c, "renewed")
		}
		c.Crash(c.Leader().Status().ID)
		for range 4 {
			mustRenew(t, c, "renewed")
			time.Sleep(5 * time.Second)
		}
		wantState(t, c.Leader(), "silent", quota.Held)
		time.Sleep(45 * time.Second)
		a := wantState(t, c.Leader(), "silent", quota.Expired)
		if a.EndedAt < until || a.EndedAt > until+50 {
			t.Errorf("it ended at %d, want %d or just after", a.EndedAt, until)
		}
		if a := wantState(t, c.Leader(), "renewed", quota.Expired); a.EndedAt >= until {
			t.Errorf("the renewed one went on without renewals, to %d", a.EndedAt)
		}
		c.StartMissing()
		c.CheckEqual()
	})
}

// TestAnOutageEndsNoLease (P4): ledger time stands still without a leader; a holder that comes back still has its
// lease.
func TestAnOutageEndsNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		c.MustPropose(leaseRequest("a", 20*time.Second))
		time.Sleep(10 * time.Second)
		c.MustPropose(clustertest.NewAllocate("mark", 1)) // ledger time is as old as the last entry
		for _, n := range c.Nodes() {
			c.Crash(n.Status().ID)
		}
		time.Sleep(24 * time.Hour)
		c.StartMissing()
		c.Leader()
		time.Sleep(5 * time.Second)
		wantState(t, c.Leader(), "a", quota.Held)
		if out := mustRenew(t, c, "a"); out.Refused != nil {
			t.Fatal(out.Refused)
		}
		time.Sleep(19 * time.Second)
		wantState(t, c.Leader(), "a", quota.Held)
		time.Sleep(2 * time.Second)
		wantState(t, c.Leader(), "a", quota.Expired)
	})
}

// TestAPausedHolderLosesItsLease: a holder that comes back too late is told so, and its fence is lower than that of the
// next holder.
func TestAPausedHolderLosesItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		everything := leaseRequest("paused", 10*time.Second)
		everything.Claims[0].Amounts[0].Amount = clustertest.TreeLimit
		old := c.MustPropose(everything).Allocation.Fence()
		next := leaseRequest("next", 10*time.Second)
		if out := c.MustPropose(next); out.Decision.Granted {
			t.Fatal("two allocations fit")
		}
		time.Sleep(11 * time.Second)
		out := c.MustPropose(next)
		if !out.Decision.Granted || out.Allocation.Fence() <= old {
			t.Errorf("the next one got %+v after fence %d", out.Decision, old)
		}
		if out := mustRenew(t, c, "paused"); out.Refused == nil || out.Refused.Kind != quota.Ended {
			t.Errorf("the paused holder was answered %+v", out)
		}
		outcomes, _, err := c.Leader().ProposeBatched(t.Context(), quota.Renew{ID: "next", Fence: old})
		if err != nil || outcomes[0].Refused == nil || outcomes[0].Refused.Kind != quota.FenceMismatch {
			t.Errorf("with the fence of another grant: %+v, %v", outcomes, err)
		}
	})
}

// TestRenewalsAreGathered: independent renewals of any number of holders take at most 20 entries a second.
func TestRenewalsAreGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		const leases, seconds = 3000, 10
		createLeases(t, c, leases, 30*time.Second)
		leader, before := c.Leader(), c.Leader().Status().LastIndex
		var renewed atomic.Int64
		var busy sync.WaitGroup
		for i := range leases {
			busy.Go(func() {
				time.Sleep(time.Duration(rand.Int64N(int64(seconds * time.Second))))
				outcomes, _, err := leader.ProposeBatched(t.Context(), quota.Renew{ID: fmt.Sprint("l", i)})
				if err != nil || outcomes[0].Refused != nil {
					t.Errorf("renewal %d: %+v, %v", i, outcomes, err)
					return
				}
				renewed.Add(1)
			})
		}
		busy.Wait()
		if entries := leader.Status().LastIndex - before; entries > 20*seconds+5 || entries < seconds {
			t.Errorf("%d renewals in %d seconds took %d entries", renewed.Load(), seconds, entries)
		}
	})
}

func createLeases(t testing.TB, c *clustertest.Cluster, n int, ttl time.Duration) {
	t.Helper()
	for from := 0; from < n; from += 1000 {
		var commands []quota.Command
		for i := from; i < min(from+1000, n); i++ {
			commands = append(commands, leaseRequest(fmt.Sprint("l", i), ttl))
		}
		if _, _, err := c.Leader().Propose(t.Context(), commands...); err != nil {
			t.Fatal(err)
		}
	}
}
