package clustertest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// waitingAllocate requests the whole limit and is willing to wait.
func waitingAllocate(id string, priority int64) quota.Allocate {
	c := clustertest.NewAllocate(id, clustertest.TreeLimit)
	c.Mode, c.Priority = quota.Wait, priority
	return c
}

// queuedIDs returns the waiting requests of one node in queue order.
func queuedIDs(t *testing.T, n *cluster.Node) string {
	t.Helper()
	var ids []string
	_, err := n.Sandbox(t.Context(), cluster.ReadOptions{Stale: true}, func(v ledger.Sandbox) {
		page, refused := v.Waiting(quota.QueueFilter{}, nil, 100)
		if refused != nil {
			t.Error(refused)
		}
		for _, q := range page.Requests {
			ids = append(ids, q.Allocation.ID)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(ids, " ")
}

// TestTheQueueOutlivesLeaders (P8): the order is priority, then arrival, under every leader; a restart of all nodes
// changes nothing.
func TestTheQueueOutlivesLeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		c.MustPropose(waitingAllocate("first", 0))
		for i, priority := range []int64{0, 5, 0, 5, -1} {
			if out := c.MustPropose(waitingAllocate(fmt.Sprint("w", i), priority)); !out.Decision.Waiting {
				t.Fatalf("w%d: %+v", i, out.Decision)
			}
			if i%2 == 1 {
				dead := c.Leader().Status().ID
				c.Crash(dead)
				c.Leader()
				c.StartNode(dead)
			}
		}
		const order = "w1 w3 w0 w2 w4"
		c.AwaitConverged()
		for _, n := range c.Nodes() {
			if got := queuedIDs(t, n); got != order {
				t.Errorf("%s has the queue %s, want %s", n.Status().ID, got, order)
			}
		}
		_, before, err := clustertest.ReadUsed(c.Leader(), cluster.ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ended := "first"
		for next := range strings.FieldsSeq(order) {
			c.MustPropose(quota.Release{ID: ended})
			wantState(t, c.Leader(), next, quota.Held)
			if next == "w0" { // in the middle, all of them
				for _, n := range c.Nodes() {
					c.Crash(n.Status().ID)
				}
				c.StartMissing()
				c.AwaitConverged()
			}
			ended = next
		}
		var want []string
		for _, n := range c.Nodes() {
			news, _ := readEvents(t, n, cluster.PositionAfter(before.Index), 10)
			if want == nil {
				want = news
			}
			if !slices.Equal(news, want) {
				t.Errorf("%s tells %q, another %q", n.Status().ID, news, want)
			}
		}
		c.CheckEqual()
	})
}

// TestARepeatedRequestKeepsItsPlace: a caller that did not get the answer asks the next leader and keeps its place.
func TestARepeatedRequestKeepsItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		c.MustPropose(waitingAllocate("first", 0))
		for i := range 3 {
			c.MustPropose(waitingAllocate(fmt.Sprint("w", i), 0))
			c.Crash(c.Leader().Status().ID)
			out := c.MustPropose(waitingAllocate("w0", 0))
			if !out.Decision.Waiting || !out.Repeated || len(out.Decision.Violations) == 0 {
				t.Errorf("repeated: %+v", out)
			}
			c.StartMissing()
			c.AwaitConverged()
		}
		if got := queuedIDs(t, c.Leader()); got != "w0 w1 w2" {
			t.Errorf("the queue is %s", got)
		}
		c.MustPropose(quota.Release{ID: "first"})
		c.Crash(c.Leader().Status().ID)
		if out := c.MustPropose(waitingAllocate("w0", 0)); !out.Decision.Granted || !out.Repeated {
			t.Errorf("after the grant: %+v", out)
		}
	})
}

// TestTheQueueForgetsWhoIsGone: a caller without heartbeats, and one whose deadline has passed. An outage counts for
// neither.
func TestTheQueueForgetsWhoIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		c.MustPropose(waitingAllocate("first", 0))
		gone, late, kept := waitingAllocate("gone", 0), waitingAllocate("late", 0), waitingAllocate("kept", 0)
		gone.Keep, late.WaitFor, kept.Keep = 20_000, 20_000, 20_000
		for _, r := range []quota.Allocate{gone, late, kept} {
			c.MustPropose(r)
		}
		for _, n := range c.Nodes() {
			c.Crash(n.Status().ID)
		}
		time.Sleep(time.Hour)
		c.StartMissing()
		c.Leader()
		time.Sleep(10 * time.Second)
		c.AwaitConverged()
		if got := queuedIDs(t, c.Leader()); got != "gone late kept" {
			t.Errorf("after the outage the queue is %q", got)
		}
		mustRenew(t, c, "kept")
		time.Sleep(11 * time.Second)
		if got := queuedIDs(t, c.Leader()); got != "kept" {
			t.Errorf("in the end the queue is %q", got)
		}
		wantState(t, c.Leader(), "gone", quota.Abandoned)
		wantState(t, c.Leader(), "late", quota.TimedOut)
		c.CheckEqual()
	})
}

// TestALeaseFromTheQueueWaitsForItsCaller, but not without end: then the next request in the queue gets it.
func TestALeaseFromTheQueueWaitsForItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		c.MustPropose(waitingAllocate("first", 0))
		for _, id := range []string{"gone", "here"} {
			r := waitingAllocate(id, 0)
			r.TTL, r.Keep = 600_000, 30_000
			c.MustPropose(r)
		}
		c.MustPropose(quota.Release{ID: "first"})
		if a := wantState(t, c.Leader(), "gone", quota.Held); !a.Unclaimed {
			t.Errorf("no caller has come, but it is %+v", a)
		}
		time.Sleep(20 * time.Second)
		mustRenew(t, c, "here") // still waiting, and a sign of its caller
		time.Sleep(11 * time.Second)
		wantState(t, c.Leader(), "gone", quota.Expired)
		wantState(t, c.Leader(), "here", quota.Held)
		c.Crash(c.Leader().Status().ID)
		time.Sleep(10 * time.Second)
		mustRenew(t, c, "here")
		a := wantState(t, c.Leader(), "here", quota.Held)
		if _, now := lookUp(t, c.Leader(), "here"); a.Unclaimed || a.ExpiresAt < now+599_000 {
			t.Errorf("its caller has come, but at %d it is %+v", now, a)
		}
	})
}
