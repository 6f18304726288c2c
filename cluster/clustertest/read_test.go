package clustertest_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

func TestLinearizableReadsFromEveryNodeSeeAcknowledgedWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		c.Network().SetDelay(func(_, to raft.ServerID) time.Duration {
			if to == "n3:1" {
				return 80 * time.Millisecond
			}
			return time.Millisecond
		})
		for i := range 50 {
			c.MustPropose(clustertest.NewAllocate(fmt.Sprint("a", i), 1))
			for _, n := range c.Nodes() {
				used, info, err := clustertest.ReadUsed(n, cluster.ReadOptions{})
				if err != nil || used != quota.Amount(i+1) {
					t.Fatalf("%s reads %d after write %d: %+v, %v", n.Status().ID, used, i+1, info, err)
				}
			}
		}
	})
}

// Writes and reads run concurrently through partitions: a read that begins after a write was acknowledged must see it,
// whichever node serves it.
func TestReadsNeverMissAnAcknowledgedWriteUnderFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		load := c.StartLoad(4)
		stop := make(chan struct{})
		var readers sync.WaitGroup
		var served [4]int
		for i := range served {
			readers.Go(func() {
				for {
					select {
					case <-stop:
						return
					case <-time.After(7 * time.Millisecond):
					}
					acknowledged := load.Acknowledged()
					nodes := c.Nodes()
					n := nodes[i%len(nodes)]
					used, _, err := clustertest.ReadUsed(n, cluster.ReadOptions{})
					if err != nil {
						continue
					}
					served[i]++
					if int(used) < acknowledged {
						t.Errorf("%s reads %d after %d were acknowledged", n.Status().ID, used, acknowledged)
					}
				}
			})
		}
		for round := range 10 {
			time.Sleep(700 * time.Millisecond)
			c.Isolate(c.Nodes()[round%3].Status().ID)
			time.Sleep(time.Duration(round%4) * time.Second)
			c.Heal()
		}
		time.Sleep(5 * time.Second)
		close(stop)
		readers.Wait()
		load.Stop()
		for i, n := range served {
			if n < 50 {
				t.Errorf("reader %d was served only %d times", i, n)
			}
		}
	})
}

// The deposed leader hears nothing but still considers itself the leader: the answers to its heartbeats were sent
// before the partition.
func TestADeposedLeaderServesNoLinearizableRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		old := c.Leader()
		c.Isolate(old.Status().ID)
		if !old.IsLeader() {
			t.Fatal("the leader noticed the partition at once: the test proves nothing")
		}
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if _, err := old.ReadIndex(ctx); err == nil {
			t.Error("a leader that reaches no other node confirms its leadership")
		}
		c.Leader()
		c.MustPropose(clustertest.NewAllocate("a", 1))
		if used, _, err := clustertest.ReadUsed(old, cluster.ReadOptions{}); err == nil {
			t.Errorf("the deposed leader reads %d", used)
		}
	})
}

func TestManyReadsShareARound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		const rtt = 20 * time.Millisecond
		c.Network().SetDelay(func(_, _ raft.ServerID) time.Duration { return rtt / 2 })
		begin := time.Now()
		var readers sync.WaitGroup
		for _, n := range c.Nodes() {
			for range 200 {
				readers.Go(func() {
					if _, _, err := clustertest.ReadUsed(n, cluster.ReadOptions{}); err != nil {
						t.Error(err)
					}
				})
			}
		}
		readers.Wait()
		if took := time.Since(begin); took > 10*rtt {
			t.Errorf("600 reads took %v, want a few round trips of %v", took, rtt)
		}
	})
}

func TestOnesOwnWriteOnAnotherNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		c.Network().SetDelay(func(_, _ raft.ServerID) time.Duration { return 50 * time.Millisecond })
		_, index, err := c.Leader().Propose(t.Context(), clustertest.NewAllocate("a", 3))
		if err != nil {
			t.Fatal(err)
		}
		follower := c.Followers()[0]
		used, info, err := clustertest.ReadUsed(follower, cluster.ReadOptions{Stale: true, MinIndex: index})
		if err != nil || used != 3 || info.Index < index {
			t.Errorf("a stale read at index %d on a follower: %d, %+v, %v", index, used, info, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = follower.Read(ctx, cluster.ReadOptions{Stale: true, MinIndex: index + 1000}, func(ledger.Reader) {
			t.Error("an index of the future was served")
		})
		if cluster.ReasonOf(err) != cluster.Deadline {
			t.Errorf("an index of the future: %v, want DEADLINE", err)
		}
	})
}

// The last entries of the log are those of elections, which never reach the ledger: a read must not wait for them.
func TestAnIndexThatIsNoCommandIsReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		for range 3 {
			id := c.Leader().Status().ID
			c.Stop(id)
			c.StartNode(id)
			c.AwaitConverged()
		}
		for _, n := range c.Nodes() {
			s := n.Status()
			if s.AppliedIndex >= s.LastIndex {
				t.Fatalf("%s: the log ends with a command (%+v): the test proves nothing", s.ID, s)
			}
			begin := time.Now()
			_, info, err := clustertest.ReadUsed(n, cluster.ReadOptions{MinIndex: s.LastIndex})
			if err != nil || time.Since(begin) > 100*time.Millisecond {
				t.Errorf("%s at index %d: %+v, %v after %v", s.ID, s.LastIndex, info, err, time.Since(begin))
			}
		}
	})
}

// Answers take longer than an election, so a deposed leader continues to receive answers to old messages. raft's own
// verification accepts them; a read must not.
func TestLateAnswersProveNoLeadership(t *testing.T) {
	tempted := 0
	for run := 0; run < 200 && tempted < 3; run++ {
		synctest.Test(t, func(t *testing.T) {
			if provokeStaleRead(t, clustertest.Start(t, 3), time.Duration(run)*70*time.Millisecond) {
				tempted++
			}
		})
	}
	if tempted == 0 {
		t.Error("no run had two leaders: the test proves nothing")
	}
}

// provokeStaleRead makes a deposed leader consider itself the leader while another one acknowledges a write, and asks
// it for a read index. It returns false if this did not succeed.
func provokeStaleRead(t *testing.T, c *clustertest.Cluster, jitter time.Duration) bool {
	t.Helper()
	const late = 3500 * time.Millisecond
	c.CreateTree()
	old, others, begin := c.Leader(), c.Followers(), time.Now()
	slow := raft.ServerID(old.Status().ID + ":1")
	c.Network().SetDelay(func(_, to raft.ServerID) time.Duration {
		if to != slow {
			return time.Millisecond
		}
		// The delay grows slowly, so that the leader never goes without answers for as long as its lease.
		return min(late, time.Since(begin)/2)
	})
	time.Sleep(10*time.Second + jitter)
	for _, n := range others {
		c.Network().CutOneWay(slow, raft.ServerID(n.Status().ID+":1"))
	}
	for cut := time.Now(); time.Since(cut) < late; time.Sleep(5 * time.Millisecond) {
		for _, n := range others {
			if !n.IsLeader() || !old.IsLeader() {
				continue
			}
			_, acknowledged, err := n.Propose(t.Context(), clustertest.NewAllocate("a", 1))
			if err != nil || !old.IsLeader() {
				return false
			}
			ctx, cancel := context.WithTimeout(t.Context(), late)
			defer cancel()
			if index, err := old.ReadIndex(ctx); err == nil && index < acknowledged {
				t.Errorf("a deposed leader confirmed a read at %d, below the acknowledged write at %d",
					index, acknowledged)
			}
			return true
		}
	}
	return false
}
