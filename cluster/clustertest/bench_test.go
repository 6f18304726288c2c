package clustertest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/cluster/logstoretest"
	"github.com/quorate/quorate/cluster/simnet"
)

// BenchmarkPropose measures acknowledged writes on three nodes in one process, over a network without delay: with
// stores in memory the cost of the software, with files that of three syncing nodes on one disk. Each write is an
// allocation of its own.
func BenchmarkPropose(b *testing.B) {
	for _, store := range []string{"memory", "bolt", "wal"} {
		for _, callers := range []int{1, 16, 64, 256} {
			b.Run(fmt.Sprintf("store=%s/callers=%d", store, callers), func(b *testing.B) {
				c := clustertest.Start(b, 3, clustertest.WithParts(partsFor(b, store)))
				c.Network().SetDelay(nil)
				c.CreateTree()
				leader := c.Leader()
				before := leader.Status().LastIndex
				b.ResetTimer()
				callInParallel(b, leader, callers)
				b.StopTimer()
				entries := leader.Status().LastIndex - before
				b.ReportMetric(float64(b.N)/float64(max(entries, 1)), "writes/entry")
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
			})
		}
	}
}

func callInParallel(b *testing.B, leader *cluster.Node, callers int) {
	b.Helper()
	var next atomic.Int64
	var busy sync.WaitGroup
	for range callers {
		busy.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				if _, err := clustertest.Propose(leader, clustertest.NewAllocate(fmt.Sprint("a", i), 0)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	busy.Wait()
}

func partsFor(b *testing.B, store string) func(id string) cluster.Parts {
	b.Helper()
	folder := b.TempDir()
	return func(id string) cluster.Parts {
		snapshots := simnet.NewSnapshotStore(1)
		if store == "memory" {
			logs := raft.NewInmemStore()
			return cluster.Parts{Logs: logs, Stable: logs, Snapshots: snapshots}
		}
		own := filepath.Join(folder, id)
		if err := os.MkdirAll(own, 0o700); err != nil {
			b.Fatal(err)
		}
		for _, kind := range logstoretest.Kinds() {
			if kind.Name != store {
				continue
			}
			stores, err := kind.Open(own, 0)
			if err != nil {
				b.Fatal(err)
			}
			return cluster.Parts{Logs: stores.Logs, Stable: stores.Stable, Snapshots: snapshots, Close: stores.Close}
		}
		b.Fatalf("there is no log store %q", store)
		return cluster.Parts{}
	}
}

// BenchmarkRead measures linearizable reads on the leader and on a follower.
func BenchmarkRead(b *testing.B) {
	for _, where := range []string{"leader", "follower"} {
		for _, callers := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/callers=%d", where, callers), func(b *testing.B) {
				c := clustertest.Start(b, 3)
				c.Network().SetDelay(nil)
				c.CreateTree()
				n := c.Leader()
				if where == "follower" {
					n = c.Followers()[0]
				}
				var next atomic.Int64
				var busy sync.WaitGroup
				b.ResetTimer()
				for range callers {
					busy.Go(func() {
						for next.Add(1) <= int64(b.N) {
							if _, _, err := clustertest.ReadUsed(n, cluster.ReadOptions{}); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				busy.Wait()
			})
		}
	}
}
