package clustertest_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
)

// TestOneOfThree: a node without a majority refuses writes at once, with NotApplied, and continues to serve stale reads
// that tell their age.
func TestOneOfThree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		c.MustPropose(clustertest.NewAllocate("a", 1))
		c.AwaitConverged()
		alone := c.Leader()
		for _, n := range c.Followers() {
			c.Crash(n.Status().ID)
		}
		lost := time.Now()
		c.Eventually("it does not lead any more", func() bool { return !alone.IsLeader() })
		for range 3 {
			began := time.Now()
			_, err := clustertest.Propose(alone, clustertest.NewAllocate("b", 1))
			var e *cluster.Error
			if !errors.As(err, &e) || e.Reason != cluster.NoLeader || !e.NotApplied {
				t.Errorf("a write: %v, want NO_LEADER, not applied", err)
			}
			if took := time.Since(began); took != 0 {
				t.Errorf("a write was refused after %v, want at once", took)
			}
			used, info, err := clustertest.ReadUsed(alone, cluster.ReadOptions{Stale: true})
			if err != nil || used != 1 || !info.Stale || info.Age <= 0 || info.Age > time.Since(lost)+3*time.Second ||
				info.Index == 0 {
				t.Errorf("a stale read: %d, %+v, %v", used, info, err)
			}
			if _, _, err := clustertest.ReadUsed(alone,
				cluster.ReadOptions{Stale: true, MinIndex: info.Index}); err != nil {
				t.Errorf("a read from an index that is there: %v", err)
			}
			if _, _, err := clustertest.ReadUsed(alone,
				cluster.ReadOptions{}); cluster.ReasonOf(err) != cluster.NoLeader &&
				cluster.ReasonOf(err) != cluster.Deadline {
				t.Errorf("a linearizable read: %v, want NO_LEADER or DEADLINE", err)
			}
			time.Sleep(10 * time.Second)
		}
	})
}
