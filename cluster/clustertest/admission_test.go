package clustertest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
)

// TestOnlyMembersAreAdmitted: members accept members, but neither a node that never joined nor one that was removed. A
// node that is not a member, or has no state, accepts every node.
func TestOnlyMembersAreAdmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.Leader()
		for _, n := range c.Nodes() {
			for _, id := range []string{"n1", "n2", "n3"} {
				if err := n.AuthorizePeer(id); err != nil {
					t.Errorf("%s: %v", n.Status().ID, err)
				}
			}
			if n.AuthorizePeer("n9") == nil {
				t.Errorf("%s admits a node that never joined", n.Status().ID)
			}
		}
		if _, err := removeMember(t, c, "n3", true); err != nil {
			t.Fatal(err)
		}
		c.Eventually("the others refuse a removed node", func() bool {
			return c.Node("n1").AuthorizePeer("n3") != nil && c.Node("n2").AuthorizePeer("n3") != nil
		})
		c.Stop("n3")
		c.WipeDisk("n3")
		if err := c.StartNode("n3").AuthorizePeer("n9"); err != nil {
			t.Errorf("a node without state: %v", err)
		}
	})
}

// TestALeaderThatAMemberNamesIsAdmitted: n3 was down while n4 joined and all other members except n2 left. It knows n2,
// which tells it that n4 leads.
func TestALeaderThatAMemberNamesIsAdmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.Leader()
		c.Stop("n3")
		c.AddNode("n4")
		c.Eventually("n4 votes", func() bool { all, healthy := c.Voters(); return all == 4 && healthy == 3 })
		c.Eventually("n4 leads", func() bool {
			_, err := c.Leader().TransferLeader(t.Context(), "n4")
			return err == nil && c.Leader().Status().ID == "n4"
		})
		c.Isolate("n3")
		n3 := c.StartNode("n3")
		if n3.AuthorizePeer("n4") == nil {
			t.Error("n3 admits n4 without having heard of it")
		}
		c.Heal()
		for _, id := range []string{"n1", "n2", "n4"} {
			c.CutRaft("n3", id) // so that it learns nothing from raft
		}
		c.Eventually("n3 admits the leader", func() bool { return n3.AuthorizePeer("n4") == nil })
		if n3.AuthorizePeer("n9") == nil {
			t.Error("n3 admits every node")
		}
	})
}

// TestARemovedLeaderIsNotAdmitted, although members recently named it as the leader, and raft considers it the leader
// until it hears of another one.
func TestARemovedLeaderIsNotAdmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		id, others := c.Leader().Status().ID, c.Followers()
		time.Sleep(15 * time.Second) // by now the others have told each other who leads
		for _, n := range others {
			if err := n.AuthorizePeer(id); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := removeMember(t, c, id, true); err != nil {
			t.Fatal(err)
		}
		for _, n := range others {
			if n.AuthorizePeer(id) == nil {
				t.Errorf("%s admits the removed leader, and takes %q for the leader", n.Status().ID, n.Status().Leader)
			}
		}
	})
}

// TestNoticesComeFromTheLeader: with certificates the sender of a notice is known, and only the leader that the node
// knows may send one.
func TestNoticesComeFromTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		leader, follower := c.Leader().Status().ID, c.Followers()[0]
		other := c.Followers()[1].Status().ID
		c.Eventually("the follower knows the leader", func() bool { return follower.Status().Leader == leader })
		for from, in := range map[string]string{other: leader, "n9": "n9", leader: other} {
			wantRefused(t, follower.Notify(cluster.Notice{Leader: in, From: from}), "sends a notice")
		}
		wantRefused(t, follower.Notify(cluster.Notice{Leader: other, From: other}), "only the leader may")
		if err := follower.Notify(cluster.Notice{Leader: leader, From: leader}); err != nil {
			t.Error(err)
		}
		for _, id := range []string{leader, other} {
			c.Stop(id)
		}
		c.Eventually("no leader is known", func() bool { return follower.Status().Leader == "" })
		wantRefused(t, follower.Notify(cluster.Notice{Leader: "n9", From: "n9"}), "is not a member")
		if follower.Status().Removed {
			t.Error("it believes that it was removed")
		}
		if err := follower.Notify(cluster.Notice{Leader: other, From: other}); err != nil {
			t.Errorf("a member: %v", err)
		}
		time.Sleep(time.Second)
	})
}
