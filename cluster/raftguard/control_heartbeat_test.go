package raftguard_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster/raftguard"
)

// Negative control for raft#695: replicas diverge because heartbeats are handled outside of raft's main loop.
//
// The schedule: leader a is cut off; b or c becomes leader of the next term and commits its first, empty entry at index
// k+1. The network heals. The new leader's heartbeat reaches a before any other message, and immediately afterwards a
// client's write reaches a.
//
// Stock raft handles the heartbeat on the connection's goroutine: a's term rises to the new one while a's main loop is
// still in its leader loop. The loop accepts the write and stores it at k+1 under the new term, which belongs to
// another leader. Index and term now match the new leader's empty entry, so a never learns that its entry differs, and
// applies a command that no other server has.
//
// With the guard the heartbeat waits for the main loop, which steps down before it handles the write.
const heartbeatRounds = 20

func TestControl695StockHeartbeatsDiverge(t *testing.T) {
	if diverged := divergedRounds(t, raftguard.UnsafeAsyncHeartbeats()); diverged == 0 {
		t.Errorf("stock raft never diverged in %d rounds: either raft#695 is mended, then drop the guard, "+
			"or this schedule "+
			"no longer shows it, then mend the schedule", heartbeatRounds)
	}
}

func TestControl695GuardedHeartbeatsDoNot(t *testing.T) {
	if diverged := divergedRounds(t); diverged != 0 {
		t.Errorf("%d of %d rounds diverged in spite of the guard", diverged, heartbeatRounds)
	}
}

func divergedRounds(t *testing.T, options ...raftguard.TransportOption) int {
	t.Helper()
	count := 0
	for round := range uint64(heartbeatRounds) {
		synctest.Test(t, func(t *testing.T) {
			if healWhileAWriteArrives(t, round, options) {
				count++
			}
		})
	}
	t.Logf("%d of %d rounds diverged", count, heartbeatRounds)
	return count
}

// healWhileAWriteArrives plays one round and reports whether the replicas differ at its end.
func healWhileAWriteArrives(t *testing.T, seed uint64, options []raftguard.TransportOption) bool {
	t.Helper()
	c := newCluster(t, seed, func(c *cluster) { c.transport = options })
	defer c.close()

	c.net.Isolate("a")
	c.eventually("b or c takes over", func() bool { return c.leaderOf(c.b, c.c) != nil })
	// Let the new leader's attempts to reach a back off by different amounts, so that either a heartbeat or an append gets
	// through first.
	time.Sleep(time.Duration(rand.New(rand.NewPCG(seed, 0)).IntN(3000)) * time.Millisecond)
	c.net.Heal()
	c.eventually("a hears that it is deposed", func() bool { return c.a.raft.State() != raft.Leader })
	write := c.a.raft.Apply([]byte("too late"), time.Second)

	time.Sleep(20 * time.Second)
	if write.Error() == nil {
		t.Error("a deposed leader acknowledged a write")
	}
	c.mustWrite(c.leaderOf(c.allNodes()...), "after")
	time.Sleep(time.Second)
	for _, n := range c.allNodes() {
		if !n.fsm.hasCommand("before") || !n.fsm.hasCommand("after") {
			t.Fatalf("%s did not catch up, so this round shows nothing: %v", n.id, c)
		}
	}
	return c.hasDiverged()
}
