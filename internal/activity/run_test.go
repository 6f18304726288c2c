package activity

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/quota"
)

// TestRun runs a recorder in virtual time: it begins when the node is ready, follows the feed, and ends with its
// context.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNode()
		n.do(t, quota.ApplyTrees{Trees: []quota.TreeSpec{{
			Name: "t", Resources: []quota.Resource{{Name: "cores", Unit: quota.Count}}, Nodes: []quota.NodeSpec{{}},
		}}})
		n.do(t, want("before", ""))
		n.failing = &cluster.Error{Reason: cluster.NoLeader, Text: "not yet"}
		r, err := New(Config{Node: n, Logger: hclog.NewNullLogger(), Registerer: prometheus.NewRegistry()})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			r.Run(ctx)
		}()
		time.Sleep(time.Minute)
		if r.hasBegun() {
			t.Error("it has begun without a leader")
		}
		n.mu.Lock()
		n.failing = nil
		n.mu.Unlock()
		time.Sleep(time.Second)
		n.do(t, want("after", ""))
		time.Sleep(sampleEvery + time.Second)
		r.mu.Lock()
		step := r.nodes.findSeries(Key{Tree: "t"}).listSteps(stepAt(time.Now()), 1)[0]
		r.mu.Unlock()
		if step.Held != 2 || step.Granted != 1 {
			t.Errorf("got %+v", step)
		}
		n.mu.Lock()
		n.reads = 0
		n.mu.Unlock()
		time.Sleep(10 * time.Minute)
		cancel()
		<-ended
		if n.reads < 4*50 || n.reads > 4*61 { // sizes, the queue, one tree and amounts, about every ten seconds
			t.Errorf("an idle node is read %d times in ten minutes", n.reads)
		}
	})
}
