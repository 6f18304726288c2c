package ledger_test

import (
	"fmt"
	"testing"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// BenchmarkCohort is an allocate and a release at a leaf that lives on what its siblings lend. Neither their number nor
// what is held should be felt.
func BenchmarkCohort(b *testing.B) {
	for _, depth := range []int{2, 4, 8} {
		for _, siblings := range []int{10, 10_000} {
			b.Run(fmt.Sprintf("depth=%d/siblings=%d", depth, siblings), func(b *testing.B) {
				l := ledger.New(quota.DefaultBounds())
				spec := deepTree("t", depth-1)
				for i := range spec.Nodes {
					spec.Nodes[i].Limits = nil
				}
				spec.Nodes[0].Policy = "cohort"
				for i := range siblings {
					spec.Nodes = append(spec.Nodes, quota.NodeSpec{
						Path: fmt.Sprintf("lender-%d", i), Limits: deepTree("t", 1).Nodes[0].Limits,
					})
				}
				if out := l.Apply(quota.Stamp{}, quota.ApplyTrees{Trees: []quota.TreeSpec{spec}}); out.Refused != nil {
					b.Fatal(out.Refused)
				}
				request := quota.Allocate{Claims: claimsAt(0, depth-1, "t")}
				ids := make([]string, b.N)
				for i := range ids {
					ids[i] = jobID(i)
				}
				b.ReportAllocs()
				b.ResetTimer()
				begin := cpuTime()
				for _, request.ID = range ids {
					if out := l.Apply(quota.Stamp{}, request); out.Allocation == nil {
						b.Fatalf("%+v", out)
					}
					l.Apply(quota.Stamp{}, quota.Release{ID: request.ID})
				}
				b.ReportMetric(float64(b.N)/(cpuTime()-begin).Seconds(), "pairs/cpu-s")
			})
		}
	}
}
