package clustertest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/cluster/simnet"
	"github.com/quorate/quorate/internal/verify"
)

func retryChange(t *testing.T, c *clustertest.Cluster, change func(context.Context, *cluster.Node) (bool,
	error),
) (bool, error) {
	t.Helper()
	var changed bool
	var err error
	c.Eventually("an answer to a change of the membership", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		changed, err = change(ctx, c.Leader())
		reason := cluster.ReasonOf(err)
		return err == nil || reason == cluster.Unsafe || reason == cluster.UnknownMember
	})
	return changed, err
}

func removeMember(t *testing.T, c *clustertest.Cluster, id string, force bool) (bool, error) {
	t.Helper()
	return retryChange(t, c, func(ctx context.Context, n *cluster.Node) (bool, error) {
		return n.Remove(ctx, id, force)
	})
}

func wantRefused(t *testing.T, err error, says string) {
	t.Helper()
	if cluster.ReasonOf(err) != cluster.Unsafe || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, want UNSAFE saying %q", err, says)
	}
}

// awaitVoters waits for members to be stable and promoted, which takes longer when leaders change meanwhile.
func awaitVoters(c *clustertest.Cluster, count int) {
	c.EventuallyWithin(2*time.Minute, fmt.Sprint(count, " healthy voters"), func() bool {
		all, healthy := c.Voters()
		return all == count && healthy == count
	})
}

func TestAClusterGrowsAndShrinksUnderLoad(t *testing.T) {
	for name, change := range map[string]func(*cluster.Config){
		"with logs":      func(*cluster.Config) {},
		"with snapshots": shortLogs,
	} {
		t.Run(name, func(t *testing.T) {
			if name == "with snapshots" {
				verify.Only(t)
			}
			synctest.Test(t, func(t *testing.T) {
				c := clustertest.Start(t, 1, clustertest.WithConfig(change))
				c.CreateTree()
				load, pause := c.StartLoad(4), verify.Scale(2*time.Second, 5*time.Second)
				time.Sleep(2 * pause)
				for size := 2; size <= 5; size++ {
					c.AddNode(fmt.Sprint("n", size))
					awaitVoters(c, size)
				}
				time.Sleep(pause)
				for _, id := range []string{c.Leader().Status().ID, c.Followers()[0].Status().ID} {
					if changed, err := removeMember(t, c, id, false); err != nil || !changed {
						t.Fatalf("remove %s: %v, %v", id, changed, err)
					}
					c.Stop(id)
				}
				awaitVoters(c, 3)
				time.Sleep(pause)
				if acknowledged, _ := load.Stop(); acknowledged < 1000 {
					t.Errorf("only %d writes were acknowledged", acknowledged)
				}
				load.Check()
				c.CheckEqual()
			})
		})
	}
}

func TestANewNodeHasNoVoteBeforeItIsStable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(
			t, 1, clustertest.WithConfig(func(c *cluster.Config) { c.StabilizationTime = time.Minute }))
		c.CreateTree()
		c.AddNode("n2")
		c.Eventually("n2 healthy", func() bool { return c.Health()["n2"].Healthy })
		if role := c.Health()["n2"].Role; role != cluster.RoleNonVoter {
			t.Errorf("n2 has role %d after it caught up, want that of a non-voter", role)
		}
		for range 5 { // never a minute without a break
			time.Sleep(40 * time.Second)
			c.Isolate("n2")
			time.Sleep(5 * time.Second)
			c.Heal()
		}
		if voters, _ := c.Voters(); voters != 1 {
			t.Error("a node that comes and goes was promoted")
		}
		time.Sleep(90 * time.Second)
		if voters, _ := c.Voters(); voters != 2 {
			t.Error("a stable node was not promoted")
		}
		c.AwaitConverged()
	})
}

// TestAVoterThatLostItsDiskDoesNotVote: only n1 and n2 have an entry; n2 loses its disk, then n1 is cut off. If n2
// voted for n3, the entry would be lost.
func TestAVoterThatLostItsDiskDoesNotVote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		leader := c.Leader().Status().ID
		behind, lost := c.Followers()[0].Status().ID, c.Followers()[1].Status().ID
		c.Isolate(behind)
		c.MustPropose(clustertest.NewAllocate("precious", 1))
		c.Stop(lost)
		c.WipeDisk(lost)
		c.Isolate(leader)
		c.Heal()
		c.Isolate(leader)
		c.StartNode(lost)
		time.Sleep(5 * time.Minute)
		for _, n := range c.Nodes() {
			if id := n.Status().ID; id != leader && n.IsLeader() {
				t.Fatalf("%s leads with the vote of a node that has forgotten what it promised", id)
			}
		}
		c.Heal()
		awaitVoters(c, 3)
		c.AwaitConverged()
		if used, _, err := clustertest.ReadUsed(c.Node(lost), cluster.ReadOptions{}); err != nil || used != 1 {
			t.Errorf("the node with the new disk reads %d, %v; want 1", used, err)
		}
	})
}

func TestAReplacedDiskBeginsAsANonVoter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		load := c.StartLoad(4)
		time.Sleep(5 * time.Second)
		lost := c.Leader().Status().ID
		c.Crash(lost)
		c.WipeDisk(lost)
		c.StartNode(lost)
		c.Eventually("a non-voter", func() bool { return c.Health()[lost].Role == cluster.RoleNonVoter })
		awaitVoters(c, 3)
		time.Sleep(time.Second)
		load.Stop()
		load.Check()
		c.CheckEqual()
	})
}

// TestADemotedNodeWaitsForTheEntryOfItsDemotion: a node lost its disk and is demoted. What it installs first is a
// snapshot that still names it as a voter, and the entry of its demotion follows much later. It must not take itself
// for a voter meanwhile: it would forget that it is to become one.
func TestADemotedNodeWaitsForTheEntryOfItsDemotion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var noEntriesTo atomic.Value
		noEntriesTo.Store("")
		var c *clustertest.Cluster
		parts := clustertest.WithParts(func(id string) cluster.Parts {
			disk, transport := c.Disk(id), c.Network().Transport(raft.ServerID(id+":1"))
			return cluster.Parts{
				Logs: disk, Stable: disk, Snapshots: disk.Snapshots, Transport: &entryLoser{transport, &noEntriesTo},
			}
		})
		c = clustertest.New(t, 3, clustertest.WithConfig(shortLogs), parts)
		c.StartMissing()
		c.CreateTree()
		emptied := c.Followers()[0].Status().ID
		for i := range 60 { // enough for a snapshot
			c.MustPropose(clustertest.NewAllocate(fmt.Sprint("a", i), 1))
		}
		time.Sleep(10 * time.Second) // for snapshots
		c.Stop(emptied)
		c.WipeDisk(emptied)
		noEntriesTo.Store(emptied)
		c.StartNode(emptied)
		c.Eventually("a snapshot is installed", func() bool { return c.Node(emptied).Status().AppliedIndex > 0 })
		time.Sleep(10 * time.Second)
		noEntriesTo.Store("")
		awaitVoters(c, 3)
		c.Eventually("the promotion is noticed", func() bool { return !c.Node(emptied).Status().PromoteWhenStable })
		c.AwaitConverged()
	})
}

// entryLoser is a transport that delivers heartbeats and snapshots to all nodes, and new entries to all but one.
type entryLoser struct {
	*simnet.Transport
	noEntriesTo *atomic.Value
}

func (l *entryLoser) loses(id raft.ServerID) bool { return l.noEntriesTo.Load() == string(id) }

func (l *entryLoser) AppendEntries(id raft.ServerID, target raft.ServerAddress, request *raft.AppendEntriesRequest,
	response *raft.AppendEntriesResponse,
) error {
	if !l.loses(id) || len(request.Entries) == 0 {
		return l.Transport.AppendEntries(id, target, request, response)
	}
	// A node that does not have the entry before these says so, which the leader must hear to send it a snapshot.
	withoutEntries := *request
	withoutEntries.Entries = nil
	if err := l.Transport.AppendEntries(id, target, &withoutEntries, response); err != nil || !response.Success {
		return err
	}
	return errors.New("lost on the way")
}

func (l *entryLoser) AppendEntriesPipeline(id raft.ServerID, target raft.ServerAddress) (raft.AppendPipeline, error) {
	if l.loses(id) {
		return nil, raft.ErrPipelineReplicationNotSupported
	}
	return l.Transport.AppendEntriesPipeline(id, target)
}

func TestARemovedNodeIsToldAndComesBackOnlyEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		c.AddNode("n4")
		awaitVoters(c, 4)
		if _, err := removeMember(t, c, "n4", false); err != nil {
			t.Fatal(err)
		}
		if changed, err := removeMember(t, c, "n4", false); changed || err != nil {
			t.Errorf("the second removal: %v, %v; want unchanged", changed, err)
		}
		for range 2 {
			time.Sleep(5 * time.Minute)
			if h := c.Health()["n4"]; h.Role != cluster.RoleNone {
				t.Errorf("n4 still gossips, and came back to role %d", h.Role)
			}
			err := c.Node("n4").Ready()
			if err == nil || !strings.Contains(err.Error(), "removed from the cluster") ||
				!strings.Contains(err.Error(), "empty its data folder") {
				t.Errorf("n4 says %v", err)
			}
			c.Stop("n4")
			c.StartNode("n4") // on the same disk
		}
		c.Eventually("n4 is heard again", func() bool { return c.Health()["n4"].Answered })
		_, err := c.Leader().AddNode(t.Context(), "n4")
		wantRefused(t, err, "empty its data folder")
		c.Stop("n4")
		c.WipeDisk("n4")
		c.StartNode("n4")
		awaitVoters(c, 4)
		c.CheckEqual()
	})
}

func TestMembersDoNotGoBelowWhatIsNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 5)
		c.CreateTree()
		dead := []string{c.Followers()[0].Status().ID, c.Followers()[1].Status().ID}
		alive := []string{c.Followers()[2].Status().ID, c.Followers()[3].Status().ID}
		c.Isolate(dead...)
		time.Sleep(time.Minute)
		_, err := removeMember(t, c, alive[0], false)
		wantRefused(t, err, "only 2 of 4 voters would be healthy")
		_, err = c.Leader().Promote(t.Context(), "n9", false)
		if cluster.ReasonOf(err) != cluster.UnknownMember {
			t.Errorf("promoting an unknown node: %v", err)
		}
		_, err = c.Leader().TransferLeader(t.Context(), dead[0])
		wantRefused(t, err, "cannot lead now")
		for _, id := range dead {
			if _, err := removeMember(t, c, id, false); err != nil {
				t.Fatalf("remove the dead %s: %v", id, err)
			}
			c.Stop(id)
		}
		_, err = removeMember(t, c, alive[0], false)
		wantRefused(t, err, "min-quorum is 3")
		if _, err = removeMember(t, c, alive[0], true); err != nil {
			t.Errorf("by force: %v", err)
		}
		if _, err = removeMember(t, c, alive[1], true); err != nil {
			t.Errorf("by force: %v", err)
		}
		_, err = removeMember(t, c, c.Leader().Status().ID, true)
		wantRefused(t, err, "last voter")
		c.MustPropose(clustertest.NewAllocate("alone", 1))
		c.Heal()
	})
}

func TestWhoIsDemotedStaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		c.AddNode("n4")
		awaitVoters(c, 4)
		time.Sleep(5 * time.Second)
		demote := func(ctx context.Context, n *cluster.Node) (bool, error) { return n.Demote(ctx, "n4", false) }
		if changed, err := retryChange(t, c, demote); !changed || err != nil {
			t.Fatalf("demote: %v, %v", changed, err)
		}
		if changed, err := retryChange(t, c, demote); changed || err != nil {
			t.Errorf("demote again: %v, %v", changed, err)
		}
		time.Sleep(5 * time.Minute)
		if role := c.Health()["n4"].Role; role != cluster.RoleNonVoter {
			t.Errorf("n4 has role %d", role)
		}
		_, err := c.Leader().TransferLeader(t.Context(), "n4")
		wantRefused(t, err, "is not a voter")
		promote := func(ctx context.Context, n *cluster.Node) (bool, error) { return n.Promote(ctx, "n4", false) }
		if changed, err := retryChange(t, c, promote); !changed || err != nil {
			t.Fatalf("promote: %v, %v", changed, err)
		}
		awaitVoters(c, 4)
		if changed, err := c.Leader().TransferLeader(t.Context(), "n4"); !changed || err != nil {
			t.Fatalf("transfer: %v, %v", changed, err)
		}
		c.Eventually("n4 leads", func() bool { return c.Node("n4").IsLeader() })
	})
}

func TestByHandNobodyIsTakenInByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 1, clustertest.WithConfig(func(c *cluster.Config) { c.ManualJoin = true }))
		c.CreateTree()
		c.AddNode("n2")
		time.Sleep(5 * time.Minute)
		if role := c.Health()["n2"].Role; role != cluster.RoleWaiting {
			t.Fatalf("n2 has role %d, want it to wait", role)
		}
		_, err := c.Leader().Promote(t.Context(), "n2", false)
		if cluster.ReasonOf(err) != cluster.UnknownMember {
			t.Errorf("promoted before it was admitted: %v", err)
		}
		if changed, err := c.Leader().AddNode(t.Context(), "n2"); !changed || err != nil {
			t.Fatalf("add: %v, %v", changed, err)
		}
		if changed, err := c.Leader().AddNode(t.Context(), "n2"); changed || err != nil {
			t.Errorf("add again: %v, %v", changed, err)
		}
		time.Sleep(5 * time.Minute)
		if h := c.Health()["n2"]; h.Role != cluster.RoleNonVoter || !h.Healthy {
			t.Fatalf("n2: %+v, want a healthy non-voter", h)
		}
		if changed, err := c.Leader().Promote(t.Context(), "n2", false); !changed || err != nil {
			t.Fatalf("promote: %v, %v", changed, err)
		}
		awaitVoters(c, 2)
	})
}

func TestTheDeadAreRemovedOnlyIfAsked(t *testing.T) {
	for after, want := range map[time.Duration]int{0: 5, time.Minute: 3} {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := clustertest.Start(
					t, 5, clustertest.WithConfig(func(c *cluster.Config) { c.RemoveDeadAfter = after }))
				c.CreateTree()
				dead, silence := c.Followers(), verify.Scale(3*time.Minute, 10*time.Minute)
				c.Isolate(dead[0].Status().ID)
				time.Sleep(30 * time.Second)
				c.Heal()
				time.Sleep(50 * time.Second)
				if voters, _ := c.Voters(); voters != 5 {
					t.Fatalf("there are %d voters although no member was silent for a minute", voters)
				}
				c.Isolate(dead[0].Status().ID, dead[1].Status().ID)
				time.Sleep(silence)
				if voters, _ := c.Voters(); voters != want {
					t.Errorf("two were silent for %v, and there are %d voters, want %d", silence, voters, want)
				}
				c.Isolate(dead[2].Status().ID)
				time.Sleep(silence)
				if want == 3 {
					if voters, _ := c.Voters(); voters != 3 {
						t.Errorf("one of three is silent, and there are %d voters", voters)
					}
				}
				c.Heal()
			})
		})
	}
}
