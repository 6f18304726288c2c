package ledger_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

func manyLeases(b *testing.B, live int) (*ledger.Ledger, []string) {
	b.Helper()
	l := ledger.New(quota.DefaultBounds())
	l.Apply(quota.Stamp{}, quota.ApplyTrees{Trees: []quota.TreeSpec{deepTree("t", 4)}})
	ids := make([]string, live)
	for i := range ids {
		ids[i] = jobID(i)
		out := l.Apply(quota.Stamp{At: quota.Instant(i / 100)},
			quota.Allocate{ID: ids[i], TTL: 60_000, Claims: claimsAt(i%leaves, 4, "t")})
		if out.Allocation == nil {
			b.Fatalf("%+v", out)
		}
	}
	return l, ids
}

// BenchmarkRenew renews 100,000 live leases one after the other, as heartbeats do.
func BenchmarkRenew(b *testing.B) {
	l, ids := manyLeases(b, 100_000)
	now := l.Reader().Now()
	runtime.GC()
	b.ReportAllocs()
	b.ResetTimer()
	begin := cpuTime()
	for i := range b.N {
		out := l.Apply(quota.Stamp{At: now + quota.Instant(i/100)}, quota.Renew{ID: ids[i%len(ids)]})
		if out.Allocation == nil {
			b.Fatalf("%+v", out)
		}
	}
	b.ReportMetric(float64(cpuTime()-begin)/float64(b.N), "cpu-ns/op")
}

// BenchmarkExpire ends 100,000 leases that are due at once, 512 in each entry, and reports the longest entry.
func BenchmarkExpire(b *testing.B) {
	const live = 100_000
	for b.Loop() {
		b.StopTimer()
		l, _ := manyLeases(b, live)
		runtime.GC()
		b.StartTimer()
		longest, entries := time.Duration(0), 0
		for ended := 0; ended < live; entries++ {
			begin := time.Now()
			out := l.Apply(quota.Stamp{At: 10_000_000}, quota.Expire{Most: 512})
			longest = max(longest, time.Since(begin))
			if ended += out.Expired; out.Expired == 0 {
				b.Fatalf("%d have ended: %+v", ended, out)
			}
		}
		b.ReportMetric(float64(longest.Microseconds()), "µs-longest")
		b.ReportMetric(float64(entries), "entries")
	}
}

// BenchmarkItemPair takes an item of a pool and gives it back, whatever the size of the pool.
func BenchmarkItemPair(b *testing.B) {
	for _, size := range []int{100, 2_000, 10_000} {
		b.Run(fmt.Sprintf("items=%d", size), func(b *testing.B) {
			l := ledger.New(quota.DefaultBounds())
			spec := &quota.ItemSpec{Max: size, Min: size}
			l.Apply(quota.Stamp{}, quota.ApplyTrees{Trees: []quota.TreeSpec{{
				Name: "t", Resources: []quota.Resource{{Name: "r", Unit: quota.Items, Items: spec}},
				Nodes: []quota.NodeSpec{{}, {Path: "a"}},
			}}})
			claims := []quota.Claim{{Tree: "t", Node: "a", Picks: []quota.Pick{{Resource: "r", Count: 1}}}}
			ids := make([]string, b.N)
			for i := range ids {
				ids[i] = jobID(i)
			}
			b.ReportAllocs()
			b.ResetTimer()
			begin := cpuTime()
			for _, id := range ids {
				if out := l.Apply(quota.Stamp{},
					quota.Allocate{ID: id, Claims: claims, TTL: 60_000}); out.Allocation == nil {
					b.Fatalf("%+v", out)
				}
				l.Apply(quota.Stamp{}, quota.Release{ID: id})
			}
			b.ReportMetric(float64(cpuTime()-begin)/float64(b.N), "cpu-ns/op")
		})
	}
}
