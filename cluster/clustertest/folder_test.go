package clustertest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/cluster/host"
	"github.com/quorate/quorate/internal/verify"
)

const preciousWrites = 20

func onFolders(t *testing.T, root, logStore string) clustertest.Option {
	t.Helper()
	return clustertest.WithParts(func(id string) cluster.Parts {
		parts, err := openFolder(root, id, logStore)
		if err != nil {
			t.Fatalf("open the folder of %s: %v", id, err)
		}
		return parts
	})
}

func openFolder(root, id, logStore string) (cluster.Parts, error) {
	return host.OpenStores(cluster.Config{
		LogStore: logStore, ID: id, ClusterName: "test", DataDir: filepath.Join(root, id), RaftAddr: id + ":1",
		HTTPAdvertise: id + ":2",
	})
}

// TestEverySubsetOfADataFolderInACluster: only a leader and one follower have twenty writes; all nodes stop, and the
// follower's folder loses a part. Together with the third node, which missed the writes, the follower must not lead:
// the writes are on a majority and would be lost for all. With a complete folder the two of them continue.
func TestEverySubsetOfADataFolderInACluster(t *testing.T) {
	logs := map[string]func(*cluster.Config){"long logs": func(*cluster.Config) {}, "short logs": shortLogs}
	for _, logStore := range []string{cluster.LogStoreBolt, cluster.LogStoreWAL} {
		parts := []string{"identity.json", "raft.db", "snapshots"}
		if logStore == cluster.LogStoreWAL {
			parts = append(parts, "wal")
		}
		for name, change := range logs {
			for gone := range 1 << len(parts) {
				var names []string
				for i, part := range parts {
					if gone&(1<<i) != 0 {
						names = append(names, part)
					}
				}
				t.Run(fmt.Sprintf("%s, %s, without %v", logStore, name, names), func(t *testing.T) {
					if isQuick := len(names) < 2 && name == "long logs" || len(names) == 2 && name == "short logs" &&
						logStore == cluster.LogStoreBolt; !isQuick {
						verify.Only(t)
					}
					root := t.TempDir()
					synctest.Test(t, func(t *testing.T) {
						c := clustertest.Start(t, 3, onFolders(t, root, logStore), clustertest.WithConfig(change))
						loseParts(t, c, lossOf{root: root, logStore: logStore, names: names, all: len(names) == len(parts)})
					})
				})
			}
		}
	}
}

// TestAPartThatWasSetBackInACluster is the same with a part that is replaced by a copy of before the precious writes.
func TestAPartThatWasSetBackInACluster(t *testing.T) {
	for _, c := range []struct{ logStore, part string }{
		{cluster.LogStoreWAL, "wal"},
		{cluster.LogStoreWAL, "raft.db"},
		{cluster.LogStoreWAL, "identity.json"},
		{cluster.LogStoreBolt, "raft.db"},
	} {
		t.Run(fmt.Sprint(c.logStore, ", ", c.part), func(t *testing.T) {
			root := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				cl := clustertest.Start(t, 3, onFolders(t, root, c.logStore))
				loseParts(t, cl, lossOf{root: root, logStore: c.logStore, names: []string{c.part}, setBack: t.TempDir()})
			})
		})
	}
}

// lossOf says which parts of a folder are lost.
type lossOf struct {
	root, logStore string
	names          []string
	all            bool
	// setBack is a folder for earlier copies of the parts, which replace them; empty to remove them.
	setBack string
}

// copyEarlier copies the parts of a node that is stopped for a moment.
func (l lossOf) copyEarlier(t *testing.T, c *clustertest.Cluster, id string) {
	t.Helper()
	if l.setBack == "" {
		return
	}
	c.Stop(id)
	for _, name := range l.names {
		copyPart(t, filepath.Join(l.setBack, name), filepath.Join(l.root, id, name))
	}
	c.StartNode(id)
	c.AwaitConverged()
}

func (l lossOf) damage(t *testing.T, id string) {
	t.Helper()
	for _, name := range l.names {
		part := filepath.Join(l.root, id, name)
		if err := os.RemoveAll(part); err != nil {
			t.Fatal(err)
		}
		if l.setBack != "" {
			copyPart(t, part, filepath.Join(l.setBack, name))
		}
	}
}

func copyPart(t *testing.T, to, from string) {
	t.Helper()
	info, err := os.Stat(from)
	if err != nil {
		t.Fatal(err)
	}
	if info.IsDir() {
		err = os.CopyFS(to, os.DirFS(from))
	} else {
		var data []byte
		if data, err = os.ReadFile(from); err == nil {
			err = os.WriteFile(to, data, 0o600)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

func loseParts(t *testing.T, c *clustertest.Cluster, loss lossOf) {
	t.Helper()
	c.CreateTree()
	leader := c.Leader().Status().ID
	behind, damaged := c.Followers()[0].Status().ID, c.Followers()[1].Status().ID
	for i := range preciousWrites {
		c.MustPropose(clustertest.NewAllocate(fmt.Sprint("before-", i), 1))
	}
	time.Sleep(5 * time.Second) // for snapshots
	loss.copyEarlier(t, c, damaged)
	c.Isolate(behind)
	for i := range preciousWrites {
		c.MustPropose(clustertest.NewAllocate(fmt.Sprint("precious-", i), 1))
	}
	time.Sleep(5 * time.Second)
	for _, id := range []string{leader, damaged, behind} {
		c.Stop(id)
	}
	c.Heal()
	loss.damage(t, damaged)
	c.StartNode(behind)
	parts, refused := openFolder(loss.root, damaged, loss.logStore)
	lost := refused != nil || parts.Lost != "" || loss.all
	if refused == nil {
		if err := parts.Close(); err != nil {
			t.Fatal(err)
		}
		c.StartNode(damaged)
	}
	time.Sleep(2 * time.Minute)
	for _, n := range c.Nodes() {
		if lost && n.IsLeader() {
			t.Fatalf("%s leads, and the only other node has lost what it promised", n.Status().ID)
		}
	}
	if !lost {
		wantAcknowledged(t, c)
	}
	c.StartNode(leader)
	if refused != nil { // the way out that the refusal names
		if err := os.RemoveAll(filepath.Join(loss.root, damaged)); err != nil {
			t.Fatal(err)
		}
		c.StartNode(damaged)
	}
	c.Leader()
	// An election of few may take many rounds, and a vote comes 10 s after the admission. Which round decides depends on
	// the order of timers, so a bound for all orders must be generous.
	time.Sleep(2 * time.Minute)
	awaitVoters(c, 3)
	wantAcknowledged(t, c)
	c.AwaitConverged()
	log := slices.Contains(loss.names, "raft.db") || slices.Contains(loss.names, "wal")
	if lost && len(loss.names) == 0 || !lost && log {
		t.Errorf("the folder without %v: lost is %v", loss.names, lost)
	}
}

func wantAcknowledged(t *testing.T, c *clustertest.Cluster) {
	t.Helper()
	if used, _, err := clustertest.ReadUsed(c.Leader(), cluster.ReadOptions{}); err != nil || used != 2*preciousWrites {
		t.Errorf("the leader reads %d, %v; want %d: acknowledged writes are gone", used, err, 2*preciousWrites)
	}
}
