package clustertest_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/quota"
)

// BenchmarkRenewals renews 100,000 leases every 30 s, each by a call of its own, on three nodes in one process. It
// reports the log entries per second, and the share of one core that all three nodes and the callers use together. An
// operation is a renewal.
func BenchmarkRenewals(b *testing.B) {
	const leases, perSecond = 100_000, 100_000 / 30
	for _, store := range []string{"memory", "bolt", "wal"} {
		b.Run("store="+store, func(b *testing.B) {
			c := clustertest.Start(b, 3, clustertest.WithParts(partsFor(b, store)))
			c.Network().SetDelay(nil)
			c.CreateTree()
			createLeases(b, c, leases, time.Hour)
			leader := c.Leader()
			before, cpu := leader.Status().LastIndex, processorTime(b)
			b.ResetTimer()
			var busy sync.WaitGroup
			var longest atomic.Int64
			for i := range b.N {
				if due := time.Duration(i) * time.Second / perSecond; due > b.Elapsed() {
					time.Sleep(due - b.Elapsed())
				}
				busy.Go(func() {
					began := time.Now()
					outcomes, _, err := leader.ProposeBatched(b.Context(), quota.Renew{ID: fmt.Sprint("l", i%leases)})
					if err != nil || outcomes[0].Refused != nil {
						b.Errorf("renewal %d: %+v, %v", i, outcomes, err)
					}
					took := int64(time.Since(began))
					for last := longest.Load(); took > last &&
						!longest.CompareAndSwap(last, took); last = longest.Load() {
					}
				})
			}
			busy.Wait()
			b.StopTimer()
			seconds := b.Elapsed().Seconds()
			b.ReportMetric(float64(b.N)/seconds, "renewals/s")
			b.ReportMetric(float64(leader.Status().LastIndex-before)/seconds, "entries/s")
			b.ReportMetric((processorTime(b)-cpu).Seconds()/seconds*100, "%core")
			b.ReportMetric(float64(longest.Load())/1e6, "ms-longest")
		})
	}
}
