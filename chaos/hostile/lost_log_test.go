package hostile

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/verify"
)

// TestLostLogLosesNoAcknowledgedWrite: one follower is paused, the other two servers acknowledge 20 writes, all are
// killed, and the second follower loses its raft.db but keeps its snapshots. The paused server and the one without a
// log must not elect a leader: together they do not have the writes.
func TestLostLogLosesNoAcknowledgedWrite(t *testing.T) {
	verify.Only(t) // waits for several elections
	t.Parallel()
	c := startCluster(t, clusterOptions{args: []string{
		"--snapshot-every", "50", "--snapshot-check", "50ms",
		"--snapshot-trail", "5",
	}})
	c.applyTree(t, 1000)
	leader, damaged := c.findLeader(t)
	paused := c.thirdNode(leader, damaged)
	calls := c.allocationClient(t, leader)
	for i := range 60 {
		if _, err := calls.Allocate(t.Context(), requestCores(fmt.Sprint("before-", i), 1)); err != nil {
			t.Fatal(err)
		}
	}
	snapshots := filepath.Join(damaged.Data, "snapshots", "*", "meta.json")
	waitFor(t, "there is no snapshot", func() bool { found, _ := filepath.Glob(snapshots); return len(found) > 0 })
	paused.Signal(t, syscall.SIGSTOP)
	for i := range 20 {
		if _, err := calls.Allocate(t.Context(), requestCores(fmt.Sprint("precious-", i), 1)); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range c.nodes {
		n.Kill()
	}
	if err := os.Remove(filepath.Join(damaged.Data, "raft.db")); err != nil {
		t.Fatal(err)
	}
	paused.Start(t)
	damaged.Start(t)
	waitFor(t, damaged.ID+" does not say that it waits", func() bool {
		_, body := c.httpGet(t, damaged, "/readyz")
		return strings.Contains(body, "raft.db with its log, term and vote is gone") &&
			strings.Contains(body, "neither votes nor confirms")
	})
	for range 20 { // several elections
		for _, n := range []*node{paused, damaged} {
			if c.isReady(t, n) || strings.Contains(n.Stderr.String(), "leadership established") {
				t.Fatalf("%s serves, and no server that runs has the acknowledged writes", n.ID)
			}
		}
		time.Sleep(500 * time.Millisecond)
	}
	leader.Start(t)
	c.awaitReady(t)
	for i := range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
		answer, err := calls.Allocate(ctx, requestCores(fmt.Sprint("precious-", i), 1))
		cancel()
		if err != nil || !answer.GetWrite().GetRepetition() {
			t.Errorf("precious-%d was acknowledged and is gone: %v, %v", i, answer, err)
		}
	}
	end := runCommand(t, append([]string{"cluster", "wait", "--voters", "3", "--healthy", "--timeout", "2m"},
		c.clientFlags(leader)...)...)
	if end.code != 0 {
		t.Errorf("%s is not taken in again: %+v", damaged.ID, end)
	}
}

func (c *cluster) thirdNode(a, b *node) *node {
	for _, n := range c.nodes {
		if n != a && n != b {
			return n
		}
	}
	return nil
}
