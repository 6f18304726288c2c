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

// patiently asks to wait for all the room there is.
func patiently(id string, priority int64) quota.Allocate {
	c := clustertest.Take(id, clustertest.Room)
	c.Mode, c.Priority = quota.Wait, priority
	return c
}

// queue is what waits, in order, as one node has it.
func queue(t *testing.T, n *cluster.Node) string {
	t.Helper()
	var ids []string
	_, err := n.Read(t.Context(), cluster.ReadOptions{Stale: true, Exclusive: true}, func(v ledger.View) {
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

// TestTheQueueOutlivesLeaders (P8): priority, then arrival, whoever leads; and a restart of all nodes changes nothing.
func TestTheQueueOutlivesLeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.PlantTree()
		c.Must(patiently("first", 0))
		for i, priority := range []int64{0, 5, 0, 5, -1} {
			if out := c.Must(patiently(fmt.Sprint("w", i), priority)); !out.Decision.Waiting {
				t.Fatalf("w%d: %+v", i, out.Decision)
			}
			if i%2 == 1 {
				dead := c.Leader().Standing().ID
				c.Crash(dead)
				c.Leader()
				c.Run(dead)
			}
		}
		const order = "w1 w3 w0 w2 w4"
		c.Settle()
		for _, n := range c.Nodes() {
			if got := queue(t, n); got != order {
				t.Errorf("%s has the queue %s, want %s", n.Standing().ID, got, order)
			}
		}
		_, before, err := clustertest.Used(c.Leader(), cluster.ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ended := "first"
		for next := range strings.FieldsSeq(order) {
			c.Must(quota.Release{ID: ended})
			wantState(t, c.Leader(), next, quota.Held)
			if next == "w0" { // in the middle, all of them
				for _, n := range c.Nodes() {
					c.Crash(n.Standing().ID)
				}
				c.RunMissing()
				c.Settle()
			}
			ended = next
		}
		var want []string
		for _, n := range c.Nodes() {
			news, _ := follow(t, n, cluster.After(before.Index), 10)
			if want == nil {
				want = news
			}
			if !slices.Equal(news, want) {
				t.Errorf("%s tells %q, another %q", n.Standing().ID, news, want)
			}
		}
		c.CheckEqual()
	})
}

// TestARepeatedRequestKeepsItsPlace: whoever did not hear the answer asks the next leader, and stands where it stood.
func TestARepeatedRequestKeepsItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.PlantTree()
		c.Must(patiently("first", 0))
		for i := range 3 {
			c.Must(patiently(fmt.Sprint("w", i), 0))
			c.Crash(c.Leader().Standing().ID)
			out := c.Must(patiently("w0", 0))
			if !out.Decision.Waiting || !out.Repeated || len(out.Decision.Violations) == 0 {
				t.Errorf("repeated: %+v", out)
			}
			c.RunMissing()
			c.Settle()
		}
		if got := queue(t, c.Leader()); got != "w0 w1 w2" {
			t.Errorf("the queue is %s", got)
		}
		c.Must(quota.Release{ID: "first"})
		c.Crash(c.Leader().Standing().ID)
		if out := c.Must(patiently("w0", 0)); !out.Decision.Granted || !out.Repeated {
			t.Errorf("after the grant: %+v", out)
		}
	})
}

// TestTheQueueForgetsWhoIsGone: a caller that gives no sign, and one whose deadline has come. An outage counts for neither.
func TestTheQueueForgetsWhoIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.PlantTree()
		c.Must(patiently("first", 0))
		gone, late, kept := patiently("gone", 0), patiently("late", 0), patiently("kept", 0)
		gone.Keep, late.WaitFor, kept.Keep = 20_000, 20_000, 20_000
		for _, r := range []quota.Allocate{gone, late, kept} {
			c.Must(r)
		}
		for _, n := range c.Nodes() {
			c.Crash(n.Standing().ID)
		}
		time.Sleep(time.Hour)
		c.RunMissing()
		c.Leader()
		time.Sleep(10 * time.Second)
		c.Settle()
		if got := queue(t, c.Leader()); got != "gone late kept" {
			t.Errorf("after the outage the queue is %q", got)
		}
		renew(t, c, "kept")
		time.Sleep(11 * time.Second)
		if got := queue(t, c.Leader()); got != "kept" {
			t.Errorf("in the end the queue is %q", got)
		}
		wantState(t, c.Leader(), "gone", quota.Abandoned)
		wantState(t, c.Leader(), "late", quota.TimedOut)
		c.CheckEqual()
	})
}

// TestALeaseFromTheQueueWaitsForItsCaller, but not for ever: the next in the queue has it then.
func TestALeaseFromTheQueueWaitsForItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.PlantTree()
		c.Must(patiently("first", 0))
		for _, id := range []string{"gone", "here"} {
			r := patiently(id, 0)
			r.TTL, r.Keep = 600_000, 30_000
			c.Must(r)
		}
		c.Must(quota.Release{ID: "first"})
		if a := wantState(t, c.Leader(), "gone", quota.Held); !a.Unclaimed {
			t.Errorf("nobody has come, but it is %+v", a)
		}
		time.Sleep(20 * time.Second)
		renew(t, c, "here") // still waiting, and a sign of its caller
		time.Sleep(11 * time.Second)
		wantState(t, c.Leader(), "gone", quota.Expired)
		wantState(t, c.Leader(), "here", quota.Held)
		c.Crash(c.Leader().Standing().ID)
		time.Sleep(10 * time.Second)
		renew(t, c, "here")
		a := wantState(t, c.Leader(), "here", quota.Held)
		if _, now := look(t, c.Leader(), "here"); a.Unclaimed || a.ExpiresAt < now+599_000 {
			t.Errorf("its caller has come, but at %d it is %+v", now, a)
		}
	})
}
