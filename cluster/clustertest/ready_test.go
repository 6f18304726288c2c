package clustertest_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
)

// wantUnready polls nodes until one of them is not ready for a reason that says this.
func wantUnready(t *testing.T, says string, nodes ...*cluster.Node) {
	t.Helper()
	var last error
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Microsecond) {
		for _, n := range nodes {
			if last = n.Ready(); last != nil && strings.Contains(last.Error(), says) {
				return
			}
		}
	}
	t.Errorf("not ready: %v, want %q", last, says)
}

// TestANodeSaysWhyItIsNotReady: every reason has a sentence. Those of nodes that stopped are in the tests of their faults.
func TestANodeSaysWhyItIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 5)
		wantUnready(t, "n1 belongs to no cluster yet: 1 of 5 expected nodes are here", c.Run("n1"))
		c.RunMissing()
		c.Settle()
		c.PlantTree()

		leader, followers := c.Leader().Standing().ID, c.Followers()
		for _, n := range followers {
			c.Isolate(n.Standing().ID)
		}
		wantUnready(t, "has not heard from leader "+leader+" for 2", followers...)
		wantUnready(t, "knows no leader; a majority of the voters must be up and reach each other", followers...)
		c.Heal()
		c.Settle()

		late := c.Followers()[0].Standing().ID
		c.Stop(late)
		c.Must(clustertest.Take("more", 1))
		wantUnready(t, late+" is catching up with leader ", c.Run(late))
		c.Settle()
		stopped := c.Node(late)
		c.Stop(late)
		wantUnready(t, late+" is shutting down; ask another one", stopped)
	})
}
