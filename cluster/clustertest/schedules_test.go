package clustertest_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/cluster/recurrence"
	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

type nights struct {
	t     *testing.T
	c     *clustertest.Cluster
	ahead time.Duration
	rule  recurrence.Rule
	// seen are all windows that were ever in the log.
	seen map[quota.CivilWindow]bool
}

func (n *nights) windows() (list []quota.CivilWindow) {
	n.t.Helper()
	if _, err := n.c.Leader().Read(n.t.Context(), cluster.ReadOptions{}, func(v ledger.Reader) {
		for _, s := range v.ScheduledLimits(clustertest.Tree, "") {
			list = s.Windows
		}
	}); err != nil {
		n.t.Fatal(err)
	}
	for _, w := range list {
		n.seen[w] = true
	}
	return list
}

func (n *nights) ended() (list []quota.CivilWindow) {
	n.t.Helper()
	if _, err := n.c.Leader().Read(n.t.Context(), cluster.ReadOptions{}, func(v ledger.Reader) {
		for _, e := range v.Events(quota.EventFilter{Kind: quota.EventLimitEnded}, 10_000).Events {
			list = append(list, e.Scheduled.Limit.Windows[0])
		}
	}); err != nil {
		n.t.Fatal(err)
	}
	return list
}

// jump moves the clocks of all members ahead, and lets the leader look for limits that need windows.
func (n *nights) jump(span time.Duration) {
	n.t.Helper()
	n.ahead += span
	for _, node := range n.c.Nodes() {
		n.c.SetClock(node.Status().ID, n.ahead)
	}
	time.Sleep(70 * time.Second)
	n.c.MustPropose(quota.Expire{Most: 100})
}

func (n *nights) change(way int) {
	n.t.Helper()
	leader := n.c.Leader().Status().ID
	switch way % 3 {
	case 0:
		leadBy(n.t, n.c, n.c.Followers()[0].Status().ID)
	case 1:
		n.c.Crash(leader)
		time.Sleep(20 * time.Second)
		n.c.StartMissing()
	case 2:
		n.c.Isolate(leader)
		time.Sleep(20 * time.Second)
		n.c.Heal()
	}
	n.c.AwaitConverged()
}

func firstDifference(a, b []quota.CivilWindow) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("number %d is %v and %v", i, a[i], b[i])
		}
	}
	return fmt.Sprintf("there are %d and %d", len(a), len(b))
}

// TestLeadersExtendRecurringLimits: through a year or two, changes of the clock and of the leader, the ledger gets each
// window of a rule once and in time, whichever leader has added it.
func TestLeadersExtendRecurringLimits(t *testing.T) {
	const text = "daily 18:00-08:00 Europe/Zurich"
	jumps := verify.Scale(12, 28)
	synctest.Test(t, func(t *testing.T) {
		rule, err := recurrence.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		n := &nights{t: t, c: civilCluster(t, 3, nil), rule: rule, seen: map[quota.CivilWindow]bool{}}
		now := n.c.Leader().CivilTime()
		out := n.c.MustPropose(quota.ScheduleLimits{
			ID: "nights", Tree: clustertest.Tree, Rule: text, Windows: rule.Windows(now, 0, quota.MaxWindows),
			Adjustments: []quota.LimitAdjustment{{Resource: clustertest.Resource, Kind: quota.AddToLimit, Amount: 5}},
		})
		if out.Refused != nil {
			t.Fatal(out.Refused)
		}
		n.windows()
		for i := range jumps {
			n.jump(26 * day)
			n.change(i)
			if left := len(n.windows()); left < quota.MaxWindows/2 {
				t.Fatalf("after %d jumps %d windows are left", i+1, left)
			}
		}
		n.jump(0)
		n.windows()
		all := slices.SortedFunc(maps.Keys(n.seen), func(a, b quota.CivilWindow) int { return int(a.From - b.From) })
		want := rule.Windows(now, 0, len(all))
		if want[0].From = all[0].From; !slices.Equal(all, want) { // the first one began when it was scheduled
			t.Errorf("the windows of the log and those of the rule differ: %s", firstDifference(all, want))
		}
		ended := n.ended()
		if want := all[:min(len(all), 26*jumps)]; !slices.Equal(ended[:min(len(ended), len(want))], want) {
			t.Errorf("the windows that have ended and those of the log differ: %s", firstDifference(ended, want))
		}
		n.catchUp()
		n.c.CheckEqual()
	})
}

// catchUp jumps over all windows of the ledger, and wants those that come next.
func (n *nights) catchUp() {
	n.t.Helper()
	n.jump(100 * day)
	n.jump(0)
	now, list := n.c.Leader().CivilTime(), n.windows()
	if len(list) != quota.MaxWindows || list[0].Until < now || time.Duration(list[0].From-now)*time.Millisecond > day {
		n.t.Errorf("after a jump over all windows, at %s, there are %v", now, list)
	}
}
