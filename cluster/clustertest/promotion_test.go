package clustertest_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/armon/go-metrics"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
)

// pausingSink runs a function between the moment at which a leader has sent an entry to the others and that at which it
// counts new voters.
type pausingSink struct {
	metrics.BlackholeSink

	during atomic.Pointer[func()]
}

func (s *pausingSink) AddSampleWithLabels(key []string, _ float32, _ []metrics.Label) {
	if during := s.during.Load(); during != nil && slices.Contains(key, "dispatchLog") {
		(*during)()
	}
}

// TestAPromotionIsCommittedOnAQuietCluster: raft does not count the acknowledgement of a promotion that comes before it
// counts the voter. A change that needs it must not wait for a write that may never come.
func TestAPromotionIsCommittedOnAQuietCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &pausingSink{}
		setMetrics(t, sink)
		defer setMetrics(t, &metrics.BlackholeSink{})
		c := clustertest.Start(t, 3)
		dead, slow := c.Followers()[0].Status().ID, c.Followers()[1].Status().ID
		c.Stop(dead)
		c.AddNode("n4")
		c.Eventually("n4 is added", func() bool { return c.Health()["n4"].Role == cluster.RoleNonVoter })
		time.Sleep(time.Second)
		during := func() {
			c.Isolate(slow)
			time.Sleep(200 * time.Millisecond)
			c.Heal()
		}
		sink.during.Store(&during)
		c.Eventually("n4 is a voter", func() bool { return c.Health()["n4"].Role == cluster.RoleVoter })
		sink.during.Store(nil)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if changed, err := c.Leader().Remove(ctx, dead, false); err != nil || !changed {
			t.Errorf("the next change of the members: %v, %v", changed, err)
		}
	})
}

func setMetrics(t *testing.T, sink metrics.MetricSink) {
	t.Helper()
	config := metrics.DefaultConfig("")
	config.EnableHostname, config.EnableRuntimeMetrics = false, false
	if _, err := metrics.NewGlobal(config, sink); err != nil {
		t.Fatal(err)
	}
}
