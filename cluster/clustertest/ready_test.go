package clustertest_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
)

// wantUnready polls nodes until one of them is not ready for such a reason.
func wantUnready(t *testing.T, says string, nodes ...*cluster.Node) {
	t.Helper()
	if last := awaitUnready(says, 30*time.Second, nodes); last != nil {
		t.Errorf("not ready: %v, want %q", last, says)
	}
}

// awaitUnready returns nil on success, otherwise the last reason.
func awaitUnready(says string, limit time.Duration, nodes []*cluster.Node) error {
	var last error
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(100 * time.Microsecond) {
		for _, n := range nodes {
			if last = n.Ready(); last != nil && strings.Contains(last.Error(), says) {
				return nil
			}
		}
	}
	if last == nil {
		last = errors.New("all are ready")
	}
	return last
}

// TestANodeSaysWhyItIsNotReady: every reason has a text. Those of nodes that stopped are in the tests of their faults.
func TestANodeSaysWhyItIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 5)
		wantUnready(t, "n1 belongs to no cluster yet: 1 of 5 expected nodes are here", c.StartNode("n1"))
		c.StartMissing()
		c.AwaitConverged()
		c.CreateTree()

		// Raft checks at random times whether its leader is lost: usually before a follower has heard nothing for 2 s.
		silent := errors.New("no node was isolated")
		for range 20 {
			leader, followers := c.Leader().Status().ID, c.Followers()
			for _, n := range followers {
				c.Isolate(n.Status().ID)
			}
			silent = awaitUnready("has not heard from leader "+leader+" for 2", 4*time.Second, followers)
			wantUnready(t, "knows no leader; a majority of the voters must be up and reach each other", followers...)
			c.Heal()
			c.AwaitConverged()
			if silent == nil {
				break
			}
		}
		if silent != nil {
			t.Errorf("no follower has said that it does not hear its leader: %v", silent)
		}

		late := c.Followers()[0].Status().ID
		c.Stop(late)
		c.MustPropose(clustertest.NewAllocate("more", 1))
		wantUnready(t, late+" is catching up with leader ", c.StartNode(late))
		c.AwaitConverged()
		stopped := c.Node(late)
		c.Stop(late)
		wantUnready(t, late+" is shutting down; ask another one", stopped)
	})
}
