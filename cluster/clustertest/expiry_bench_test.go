package clustertest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/quota"
)

// BenchmarkExpiry expires 100,000 leases at one instant on three nodes in one process while one caller continues to
// allocate and release. It reports how many log entries and how much time this takes, and the longest wait of the
// caller.
func BenchmarkExpiry(b *testing.B) {
	const leases = 100_000
	for _, store := range []string{"memory", "bolt", "wal"} {
		b.Run("store="+store, func(b *testing.B) {
			for b.Loop() {
				c := clustertest.Start(b, 3, clustertest.WithParts(partsFor(b, store)))
				c.Network().SetDelay(nil)
				c.CreateTree()
				due := createLeasesUntil(b, c, leases, 15*time.Second)
				leader := c.Leader()
				for ledgerTime(b, leader) < due-200 {
					time.Sleep(10 * time.Millisecond)
				}
				before := leader.Status().LastIndex
				calls, slowest := 0, time.Duration(0)
				var ended time.Duration
				for began := time.Now(); ended == 0; calls++ {
					slowest = max(slowest, allocateAndRelease(b, leader, calls))
					if heldAmount(b, leader) == 0 {
						ended = time.Since(began) - 200*time.Millisecond
					}
				}
				b.ReportMetric(ended.Seconds()*1000, "ms-all-ended")
				b.ReportMetric(float64(leader.Status().LastIndex-before)-2*float64(calls), "entries")
				b.ReportMetric(float64(slowest)/1e6, "ms-slowest-call")
			}
		})
	}
}

func createLeasesUntil(b *testing.B, c *clustertest.Cluster, n int, in time.Duration) quota.Instant {
	b.Helper()
	due := ledgerTime(b, c.Leader()) + quota.Instant(in.Milliseconds())
	for from := 0; from < n; from += 1000 {
		var commands []quota.Command
		for i := from; i < from+1000; i++ {
			commands = append(commands, leaseRequest(fmt.Sprint("l", i), in))
		}
		outcomes, _, err := c.Leader().Propose(b.Context(), commands...)
		if err != nil {
			b.Fatal(err)
		}
		for i, o := range outcomes { // now it is known when they were granted
			left := due - o.Allocation.Info().GrantedAt
			commands[i] = quota.Renew{ID: o.Allocation.ID(), TTL: quota.Span(left)}
		}
		if _, _, err = c.Leader().Propose(b.Context(), commands...); err != nil {
			b.Fatal(err)
		}
	}
	return due
}

func ledgerTime(b *testing.B, n *cluster.Node) quota.Instant {
	b.Helper()
	if _, err := clustertest.Propose(n, quota.Release{ID: "tick"}); err != nil {
		b.Fatal(err)
	}
	_, info, err := clustertest.ReadUsed(n, cluster.ReadOptions{Stale: true})
	if err != nil {
		b.Fatal(err)
	}
	return info.Now
}

func heldAmount(b *testing.B, n *cluster.Node) quota.Amount {
	b.Helper()
	used, _, err := clustertest.ReadUsed(n, cluster.ReadOptions{Stale: true})
	if err != nil {
		b.Fatal(err)
	}
	return used
}

// allocateAndRelease returns the duration of the longer of the two calls.
func allocateAndRelease(b *testing.B, n *cluster.Node, i int) time.Duration {
	b.Helper()
	id, slowest := fmt.Sprint("other", i), time.Duration(0)
	for _, command := range []quota.Command{clustertest.NewAllocate(id, 1), quota.Release{ID: id}} {
		began := time.Now()
		if _, err := clustertest.Propose(n, command); err != nil {
			b.Fatal(err)
		}
		slowest = max(slowest, time.Since(began))
	}
	return slowest
}
