package clustertest_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/quota"
)

func readEvents(t *testing.T, n *cluster.Node, after cluster.Position,
	want int,
) (news []string, next cluster.Position) {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		b, err := n.ReadFeed(after, 3)
		if err != nil {
			t.Fatal(err)
		}
		after = b.Next
		for _, fact := range b.Events {
			if fact.Allocation == nil {
				continue
			}
			news = append(
				news, fmt.Sprintf("%d.%d %s became %d", fact.Index, fact.Number, fact.Allocation.Info().ID, fact.Kind))
			if len(news) == want {
				return news, fact.Position
			}
		}
		if b.Behind > 0 {
			continue
		}
		select {
		case <-b.Changed:
		case <-deadline:
			t.Fatalf("%s has only %d news of %d: %q", n.Status().ID, len(news), want, news)
		}
	}
}

// TestNewsGoOnOnAnotherNode: a reader of a node that crashes continues on another node, misses nothing and sees nothing
// twice.
func TestNewsGoOnOnAnotherNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		_, before, err := clustertest.ReadUsed(c.Leader(), cluster.ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 4 {
			id := fmt.Sprint("a", i)
			c.MustPropose(clustertest.NewAllocate(id, 1))
			c.MustPropose(quota.Release{ID: id})
		}
		first, position := readEvents(t, c.Leader(), cluster.PositionAfter(before.Index), 3)
		c.Crash(c.Leader().Status().ID)
		c.MustPropose(clustertest.NewAllocate("b", 1))
		c.MustPropose(quota.Release{ID: "b"})
		const rest = 7 // ten in all: each was granted and has ended
		second, _ := readEvents(t, c.Followers()[0], position, rest)
		c.StartMissing()
		c.AwaitConverged()
		for _, n := range c.Nodes() {
			all, _ := readEvents(t, n, cluster.PositionAfter(before.Index), 3+rest)
			if !slices.Equal(all, slices.Concat(first, second)) {
				t.Errorf("%s says %q, but those who changed nodes saw %q and %q", n.Status().ID, all, first, second)
			}
		}
	})
}

// TestNewsBehindASnapshotAreForgotten: a node that installed a snapshot reports that it has not seen the events before
// it.
func TestNewsBehindASnapshotAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3, clustertest.WithConfig(func(config *cluster.Config) { config.TrailingLogs = 1 }))
		c.CreateTree()
		late := c.Followers()[0].Status().ID
		c.Crash(late)
		for i := range 20 {
			c.MustPropose(clustertest.NewAllocate(fmt.Sprint("a", i), 1))
		}
		for _, n := range c.Nodes() {
			if err := n.Snapshot(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		c.MustPropose(quota.Release{ID: "a0"})
		c.StartNode(late)
		c.AwaitConverged()
		_, err := c.Node(late).ReadFeed(cluster.PositionAfter(5), 1)
		if cluster.ReasonOf(err) != cluster.Forgotten {
			t.Errorf("it was answered %v", err)
		}
		_, now, err := clustertest.ReadUsed(c.Node(late), cluster.ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		c.MustPropose(quota.Release{ID: "a1"})
		if news, _ := readEvents(t, c.Node(late), cluster.PositionAfter(now.Index), 1); len(news) != 1 {
			t.Errorf("it goes on with %q", news)
		}
	})
}
