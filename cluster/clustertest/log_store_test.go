package clustertest_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/cluster/logstoretest"
	"github.com/quorate/quorate/internal/verify"
)

var logStores = []string{cluster.LogStoreBolt, cluster.LogStoreWAL}

// TestEveryLogStoreFollowsASnapshot gives a follower that missed 300 entries a snapshot, so that its log continues
// after a gap, and restarts it.
func TestEveryLogStoreFollowsASnapshot(t *testing.T) {
	for _, logStore := range logStores {
		t.Run(logStore, func(t *testing.T) {
			root := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				c := clustertest.Start(t, 3, onFolders(t, root, logStore), clustertest.WithConfig(shortLogs))
				c.CreateTree()
				late := c.Followers()[0].Status().ID
				c.Isolate(late)
				for i := range 300 {
					c.MustPropose(clustertest.NewAllocate(fmt.Sprint("a", i), 1))
				}
				time.Sleep(time.Minute)
				c.Heal()
				c.AwaitConverged()
				for i := range 3 {
					c.MustPropose(clustertest.NewAllocate(fmt.Sprint("b", i), 1))
				}
				c.AwaitConverged()
				c.Stop(late)
				if first, last := logBounds(t, filepath.Join(root, late)); last < 300 ||
					logStore == cluster.LogStoreWAL && first < 100 {
					t.Errorf("the log of the late node reaches from %d to %d", first, last)
				}
				c.StartNode(late)
				c.AwaitConverged()
				if used, _, err := clustertest.ReadUsed(c.Node(late), cluster.ReadOptions{}); err != nil || used != 303 {
					t.Errorf("the late node reads %d, %v; want 303", used, err)
				}
				wantSameState(t, c)
			})
		})
	}
}

func logBounds(t *testing.T, folder string) (first, last uint64) {
	t.Helper()
	stores, err := logstoretest.OpenFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	if first, err = stores.Logs.FirstIndex(); err == nil {
		last, err = stores.Logs.LastIndex()
	}
	if closed := stores.Close(); err != nil || closed != nil {
		t.Fatal(err, closed)
	}
	return first, last
}

// TestEveryLogStoreDropsAConflictingSuffix lets a leader without a majority append entries that the next leader
// replaces, and restarts it.
func TestEveryLogStoreDropsAConflictingSuffix(t *testing.T) {
	for _, logStore := range logStores {
		t.Run(logStore, func(t *testing.T) {
			root := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				c := clustertest.Start(t, 3, onFolders(t, root, logStore))
				c.CreateTree()
				for i := range 10 {
					c.MustPropose(clustertest.NewAllocate(fmt.Sprint("a", i), 1))
				}
				old := c.Leader()
				id, before := old.Status().ID, old.Status().LastIndex
				c.Isolate(id)
				for i := range 5 {
					go func() { _, _ = clustertest.Propose(old, clustertest.NewAllocate(fmt.Sprint("lost", i), 1)) }()
					time.Sleep(50 * time.Millisecond)
				}
				if last := old.Status().LastIndex; last <= before {
					t.Fatalf("the old leader appended nothing: its last entry is %d", last)
				}
				for i := range 20 {
					c.MustPropose(clustertest.NewAllocate(fmt.Sprint("b", i), 1))
				}
				c.Heal()
				c.AwaitConverged()
				c.Stop(id)
				c.StartNode(id)
				c.AwaitConverged()
				if used, _, err := clustertest.ReadUsed(c.Node(id), cluster.ReadOptions{}); err != nil || used != 30 {
					t.Errorf("the old leader reads %d, %v; want 30", used, err)
				}
				wantSameState(t, c)
			})
		})
	}
}

// TestRandomFaultsOnFolders repeats TestRandomFaults on data folders, with another log store on each node.
func TestRandomFaultsOnFolders(t *testing.T) {
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3, clustertest.WithConfig(shortLogs), clustertest.WithParts(
			func(id string) cluster.Parts {
				parts, err := openFolder(root, id, logStores[int(id[1]-'0')%2])
				if err != nil {
					t.Fatalf("open the folder of %s: %v", id, err)
				}
				return parts
			}))
		c.CreateTree()
		load := c.StartLoad(4)
		faults := &faultSchedule{t: t, c: c, random: rand.New(rand.NewPCG(72, 72))}
		for range verify.Scale(25, 100) {
			faults.injectFault()
			time.Sleep(time.Duration(faults.random.IntN(3000)) * time.Millisecond)
		}
		faults.repairAll()
		c.Leader()
		time.Sleep(10 * time.Second)
		if acknowledged, unknown := load.Stop(); acknowledged < 100 {
			t.Errorf("only %d writes were acknowledged, %d are unknown", acknowledged, unknown)
		}
		load.Check()
		c.AwaitConverged()
		wantSameState(t, c)
	})
}

func wantSameState(t *testing.T, c *clustertest.Cluster) {
	t.Helper()
	index, digest := c.Nodes()[0].Digest()
	for _, n := range c.Nodes()[1:] {
		if at, other := n.Digest(); at != index || other != digest {
			t.Errorf("%s has another state than %s: at %d and %d", n.Status().ID, c.Nodes()[0].Status().ID, at, index)
		}
	}
}
