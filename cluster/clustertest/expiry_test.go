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

func reserveRequest(id string, span time.Duration) quota.Allocate {
	c := clustertest.NewAllocate(id, 1)
	c.Mode, c.ReserveFor = quota.Reserve, quota.Span(span.Milliseconds())
	return c
}

func lookUp(t *testing.T, n *cluster.Node, id string) (quota.AllocationInfo, quota.Instant) {
	t.Helper()
	var info quota.AllocationInfo
	read, err := n.Read(t.Context(), cluster.ReadOptions{Stale: true}, func(v ledger.Reader) {
		var refused *quota.Error
		if info, refused = v.Allocation(id); refused != nil {
			t.Errorf("allocation %s: %v", id, refused)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return info, read.Now
}

func TestAReservationLapsesAtItsInstantAndNotBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		until := c.MustPropose(reserveRequest("a", time.Minute)).Allocation.Info().ReservedUntil
		c.MustPropose(reserveRequest("later", 30*time.Minute))
		entries := c.Leader().Status().LastIndex
		time.Sleep(time.Minute - 50*time.Millisecond)
		if a, _ := lookUp(t, c.Leader(), "a"); a.State != quota.Reserved {
			t.Fatalf("it is %d before its time", a.State)
		}
		if written := c.Leader().Status().LastIndex - entries; written > 60 {
			t.Errorf("%d entries were written while nothing was due, want one tick a second", written)
		}
		entries = c.Leader().Status().LastIndex
		time.Sleep(100 * time.Millisecond)
		a, _ := lookUp(t, c.Leader(), "a")
		if a.State != quota.Expired || a.EndedAt < until || a.EndedAt > until+50 {
			t.Errorf("it is %d, ended at %d; want expired at %d or just after", a.State, a.EndedAt, until)
		}
		if later, _ := lookUp(t, c.Leader(), "later"); later.State != quota.Reserved {
			t.Errorf("the one with more time is %d", later.State)
		}
		if now := c.Leader().Status().LastIndex; now != entries+1 {
			t.Errorf("%d entries were written for one lapse", now-entries)
		}
		c.CheckEqual()
	})
}

func TestANearerInstantWakesTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		c.MustPropose(reserveRequest("far", time.Hour))
		time.Sleep(time.Second)
		c.MustPropose(reserveRequest("near", time.Second))
		c.MustPropose(reserveRequest("kept", time.Second))
		c.MustPropose(quota.Confirm{ID: "kept"})
		time.Sleep(1100 * time.Millisecond)
		for id, want := range map[string]quota.State{"far": quota.Reserved, "near": quota.Expired, "kept": quota.Held} {
			if a, _ := lookUp(t, c.Leader(), id); a.State != want {
				t.Errorf("%s is %d, want %d", id, a.State, want)
			}
		}
	})
}

func TestAReservationLapsesUnderTheNextLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		until := c.MustPropose(reserveRequest("a", time.Minute)).Allocation.Info().ReservedUntil
		time.Sleep(30 * time.Second)
		c.Crash(c.Leader().Status().ID)
		c.Leader()
		time.Sleep(time.Minute + 100*time.Millisecond) // the election did not count; the entry needs a moment
		a, _ := lookUp(t, c.Leader(), "a")
		if a.State != quota.Expired || a.EndedAt < until || a.EndedAt > until+50 {
			t.Errorf("it is %d, ended at %d; want expired at %d or just after", a.State, a.EndedAt, until)
		}
		c.StartMissing()
		c.CheckEqual()
	})
}

func TestAnOutageDoesNotEatAReservation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		until := c.MustPropose(reserveRequest("a", time.Minute)).Allocation.Info().ReservedUntil
		time.Sleep(20 * time.Second)
		c.MustPropose(clustertest.NewAllocate("mark", 1)) // ledger time is as old as the last entry
		for _, n := range c.Nodes() {
			c.Crash(n.Status().ID)
		}
		time.Sleep(time.Hour)
		c.StartMissing()
		c.Leader()
		time.Sleep(30 * time.Second)
		if a, now := lookUp(t, c.Leader(), "a"); a.State != quota.Reserved || now >= until {
			t.Fatalf("it is %d at %d although it has until %d", a.State, now, until)
		}
		time.Sleep(15 * time.Second)
		if a, _ := lookUp(t, c.Leader(), "a"); a.State != quota.Expired || a.EndedAt < until {
			t.Errorf("it is %d, ended at %d, want expired at %d", a.State, a.EndedAt, until)
		}
	})
}

func TestManyLapsesGoInBoundedEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		const many = 1000
		var commands []quota.Command
		for i := range many {
			commands = append(commands, reserveRequest(fmt.Sprint("r", i), time.Minute))
		}
		if _, _, err := c.Leader().Propose(t.Context(), commands...); err != nil {
			t.Fatal(err)
		}
		entries := c.Leader().Status().LastIndex
		time.Sleep(61 * time.Second)
		if used, _, err := clustertest.ReadUsed(c.Leader(), cluster.ReadOptions{}); err != nil || used != 0 {
			t.Errorf("%d are still held, %v", used, err)
		}
		if written := c.Leader().Status().LastIndex - entries; written > 62 { // with 60 ticks
			t.Errorf("%d entries ended %d reservations, want 2", written, many)
		}
	})
}

// TestExclusiveReads: a dry run may change the ledger temporarily; other reads never see that.
func TestExclusiveReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 1)
		c.CreateTree()
		n := c.Leader()
		inside, reading := make(chan struct{}), make(chan error, 1)
		_, err := n.Sandbox(t.Context(), cluster.ReadOptions{}, func(v ledger.Sandbox) {
			go func() {
				close(inside)
				_, err := n.Read(t.Context(), cluster.ReadOptions{Stale: true}, func(ledger.Reader) {})
				reading <- err
			}()
			<-inside
			if out := v.DryRun(reserveRequest("a", time.Second)); out.Decision == nil || !out.Decision.Granted {
				t.Errorf("the dry run said %+v", out)
			}
			select {
			case <-reading:
				t.Error("another reader came in")
			default:
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := <-reading; err != nil {
			t.Error(err)
		}
	})
}
