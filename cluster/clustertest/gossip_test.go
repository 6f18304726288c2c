package clustertest_test

import (
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
)

// forgedMember is what an attacker announces in the name of a member: other addresses, an old version, another intent.
func forgedMember(id string) cluster.Peer {
	return cluster.Peer{
		ID: id, RaftAddr: "attacker:1", HTTPAddr: "attacker:2", Version: "v0", FeatureLevel: 1, Expect: 5,
		Intent: "another",
		Alive:  true,
	}
}

// forgedNonMember is a node that does not exist.
func forgedNonMember(id string) cluster.Peer {
	return cluster.Peer{
		ID: id, RaftAddr: "nowhere:1", HTTPAddr: "nowhere:2", FeatureLevel: math.MaxUint32, Expect: 5, HasState: true,
		Alive: true,
	}
}

// TestForgedGossipDecidesNothing: whatever gossip claims about members and about nodes that do not exist, the members
// and their addresses stay the same, all requests are served, and the level rises as usual.
func TestForgedGossipDecidesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3, raiseLevelAfter(time.Minute), versions(nextVersion, "n1", "n2", "n3"))
		c.CreateTree()
		before := c.Leader()
		for _, id := range []string{"n1", "n2", "n3"} {
			c.ForgeGossip(forgedMember(id))
		}
		for _, id := range []string{"a", "n0", "n4", "z"} {
			c.ForgeGossip(forgedNonMember(id))
		}
		time.Sleep(10 * time.Minute)
		if c.Leader() != before {
			t.Error("another node leads")
		}
		wantLevel(t, c, "with forged gossip", 2)
		for _, n := range c.Nodes() {
			id := n.Status().ID
			if n.Err() != nil || n.Ready() != nil {
				t.Errorf("%s stopped: %v, %v", id, n.Err(), n.Ready())
			}
			for _, m := range n.Members() {
				if m.Voter && (m.RaftAddr != m.ID+":1" || m.HTTPAddr != m.ID+":2" || m.Version != "test") {
					t.Errorf("%s takes %s for %+v", id, m.ID, m)
				}
				if !m.Voter && !strings.Contains("a n0 n4 z", m.ID) {
					t.Errorf("%s is no longer a voter", m.ID)
				}
			}
		}
		c.MustPropose(clustertest.NewAllocate("meanwhile", 1))
		c.CheckEqual()
	})
}

// TestForgedGossipAtTheStart: the nodes that form a cluster rely on each other's answers and not on gossip.
func TestForgedGossipAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		for _, id := range []string{"a", "n4"} {
			c.ForgeGossip(forgedNonMember(id))
		}
		c.ForgeGossip(forgedMember("n2"))
		for _, id := range []string{"n1", "n2", "n3"} {
			c.StartNode(id)
		}
		c.Leader()
		c.AwaitConverged()
		c.Eventually("three healthy voters", func() bool {
			all, healthy := c.Voters()
			return all == 3 && healthy == 3
		})
	})
}

// TestOneMemberCannotAccuseAnother: a false digest of one member, or of a non-member, is not a majority.
func TestOneMemberCannotAccuseAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startWithCheckpoints(t, 3)
		liar := c.Followers()[0].Status().ID
		c.OverrideStatus(liar, func(s *cluster.NodeStatus) {
			for i := range s.Checkpoints {
				s.Checkpoints[i].Digest = "0123456789abcdef"
			}
		})
		for range 3 {
			c.MustPropose(clustertest.NewAllocate("round", 1))
			time.Sleep(2 * time.Minute)
		}
		for _, n := range c.Nodes() {
			if n.Err() != nil || n.Ready() != nil {
				t.Errorf("%s stopped: %v, %v", n.Status().ID, n.Err(), n.Ready())
			}
		}
		if found := comparisonFindings(c.Leader()); found[liar] != cluster.Differs {
			t.Errorf("the leader finds %v, want that %s differs", found, liar)
		}
	})
}
