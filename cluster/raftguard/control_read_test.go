package raftguard_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// Negative control for reads that trust raft.VerifyLeader: a deposed leader passes it after a newer write was
// acknowledged by its successor.
//
// The schedule: leader a sends a heartbeat to b and to c, whose answers are delayed. From then on no other message of a
// gets through. b and c elect a leader, which acknowledges the write "new". Now a client reads at a: a calls
// VerifyLeader, the old answers arrive, and raft counts them although they prove nothing about the time after they were
// sent. The read would miss "new".
//
// The guard remembers when a sent the messages that were answered. AckedSince returns false, because no message that a
// sent after the read arrived has been answered.
func TestControlVerifyLeaderIsStaleAndAckedSinceRefuses(t *testing.T) {
	const rounds = 5
	stale := 0
	for round := range uint64(rounds) {
		synctest.Test(t, func(t *testing.T) {
			passed, acked := readAtDeposedLeader(t, round)
			if passed {
				stale++
			}
			if acked {
				t.Error("AckedSince accepted a read at a deposed leader")
			}
		})
	}
	t.Logf("%d of %d reads at a deposed leader passed VerifyLeader", stale, rounds)
	if stale == 0 {
		t.Error("VerifyLeader refused every time: either raft has fixed it, then remove AckedSince, or " +
			"this schedule no longer shows it, then fix the schedule")
	}
}

// readAtDeposedLeader plays one round. It reports whether VerifyLeader passed the stale read and whether AckedSince
// did.
func readAtDeposedLeader(t *testing.T, seed uint64) (passed, acked bool) {
	t.Helper()
	c := newCluster(t, seed)
	defer c.close()
	c.net.SetDelay(func(_, to raft.ServerID) time.Duration {
		if to == "a" {
			return 9 * time.Second
		}
		return 0
	})
	sent := c.a.raft.VerifyLeader() // makes a send heartbeats now
	time.Sleep(time.Millisecond)
	c.net.CutOneWay("a", "b")
	c.net.CutOneWay("a", "c")
	c.eventually("b or c takes over", func() bool { return c.leaderOf(c.b, c.c) != nil })
	c.mustWrite(c.leaderOf(c.b, c.c), "new")

	arrived, term := time.Now(), c.a.raft.CurrentTerm()
	passed = c.a.raft.VerifyLeader().Error() == nil
	acked = c.ackedNow(c.a, term, arrived)
	if passed && c.a.fsm.hasCommand("new") {
		t.Error("the read is not stale, so this round shows nothing")
	}
	c.mustSucceed(sent.Error()) // rightly so: a was the leader when it was asked
	return passed, acked
}

// ackedNow asks the guard as the node does: for a majority of a, b and c.
func (c *cluster) ackedNow(n *node, term uint64, since time.Time) bool {
	return n.transport.AckedSince(term, since, []raft.ServerID{"a", "b", "c"}, n.id)
}

func TestAckedSinceAcceptsAHealthyLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		defer c.close()
		c.net.SetDelay(func(_, _ raft.ServerID) time.Duration { return 10 * time.Millisecond })
		time.Sleep(10 * time.Second)
		arrived, term := time.Now(), c.a.raft.CurrentTerm()
		if c.ackedNow(c.a, term, arrived) {
			t.Error("accepted before anything was sent")
		}
		verifications := 0
		for ; !c.ackedNow(c.a, term, arrived) && verifications < 10; verifications++ {
			c.mustSucceed(c.a.raft.VerifyLeader().Error())
		}
		if verifications == 10 {
			t.Error("a healthy leader is refused after 10 verifications")
		}
		if took := time.Since(arrived); took > 100*time.Millisecond {
			t.Errorf("a read at a healthy leader took %v on a network with round trips of 20 ms", took)
		}
	})
}
