package clustertest_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/quota"
)

// TestLargeEntriesAreBoundedInBytes writes 4 MB of large entries that leave nothing behind in the state, of which a
// snapshot is due after 256 KiB, long before the number of entries makes raft take one. No node keeps more than three
// times as much in its log, and what is written within a check, also after all nodes were started again.
func TestLargeEntriesAreBoundedInBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bound = 256 << 10
		c := clustertest.Start(t, 3, clustertest.WithConfig(func(c *cluster.Config) { c.SnapshotBytes = bound }))
		c.CreateTree()
		written := writeLargeEntries(t, c, 500)
		if written < 12*bound {
			t.Fatalf("only %d bytes were written", written)
		}
		wantShortLogs(t, c, 3*bound+bound/2)
		for _, id := range []string{"n1", "n2", "n3"} {
			c.Stop(id)
		}
		for _, id := range []string{"n1", "n2", "n3"} {
			c.StartNode(id)
		}
		c.Leader()
		writeLargeEntries(t, c, 100)
		wantShortLogs(t, c, 3*bound+bound/2)
		c.CheckEqual()
	})
}

// writeLargeEntries returns about how many bytes it wrote.
func writeLargeEntries(t *testing.T, c *clustertest.Cluster, entries int) (written int) {
	t.Helper()
	large := clustertest.NewAllocate("large", 1)
	for l := range 32 {
		large.Labels = append(large.Labels, quota.Label{Key: fmt.Sprintf("l%02d", l), Value: strings.Repeat("x", 256)})
	}
	for range entries {
		c.MustPropose(large)
		written += 32 * 256
		time.Sleep(100 * time.Millisecond)
	}
	time.Sleep(10 * time.Second)
	c.AwaitConverged()
	return written
}

func wantShortLogs(t *testing.T, c *clustertest.Cluster, most int) {
	t.Helper()
	for _, n := range c.Nodes() {
		id := n.Status().ID
		disk := c.Disk(id)
		first, err1 := disk.FirstIndex()
		last, err2 := disk.LastIndex()
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		held := 0
		for i := first; i <= last; i++ {
			var entry raft.Log
			if err := disk.GetLog(i, &entry); err != nil {
				t.Fatal(err)
			}
			held += len(entry.Data)
		}
		t.Logf("%s keeps %d entries of %d bytes", id, last-first+1, held)
		if held > most {
			t.Errorf("the log of %s has %d bytes, want at most %d", id, held, most)
		}
		list, err := disk.Snapshots.List()
		if err != nil || len(list) < 2 {
			t.Fatalf("%s has %d snapshots: %v", id, len(list), err)
		}
		if snapshotSize := int(list[0].Size); 4*snapshotSize > most/3 {
			t.Errorf("the state has %d bytes, so it decides the bound instead of the configuration", snapshotSize)
		}
		if before := list[1].Index; first > before+1 {
			t.Errorf("the log of %s begins at %d, and the second newest snapshot is of %d: if the newest one is damaged, "+
				"nothing replaces it", id, first, before)
		}
	}
}
