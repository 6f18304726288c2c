package ledger_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// limitedTree is deepTree with 50 named groups and a limit for every user at each level.
func limitedTree(depth int) quota.TreeSpec {
	most := quota.Vector{{Resource: "cpu", Amount: quota.MaxAmount}, {Resource: "memory", Amount: quota.MaxAmount}}
	spec := deepTree("t", depth)
	for i := range spec.Nodes {
		n := &spec.Nodes[i]
		for g := range 50 {
			n.Principals = append(n.Principals,
				quota.PrincipalLimit{Groups: []string{groupName(g)}, Limits: most, Applications: quota.AtMost(1 << 30)})
		}
		n.Principals = append(
			n.Principals,
			quota.PrincipalLimit{Users: []string{quota.Wildcard}, Limits: most, Applications: quota.AtMost(1 << 30)})
	}
	return spec
}

func groupName(i int) string { return fmt.Sprintf("group-%02d", i) }

// BenchmarkPrincipals is an allocate and a release of an application that goes on running, checked against the limits
// of every level; users take turns at random. Depth counts levels with the root.
func BenchmarkPrincipals(b *testing.B) {
	for _, who := range []string{"user", "user and group"} {
		for _, users := range []int{100, 10_000} {
			for _, depth := range []int{2, 4, 8} {
				b.Run(fmt.Sprintf("%s/users=%d/depth=%d", who, users, depth), func(b *testing.B) {
					principalPairs(b, users, depth-1, who != "user")
				})
			}
		}
	}
}

func principalPairs(b *testing.B, users, depth int, groups bool) {
	b.Helper()
	bounds := quota.DefaultBounds()
	bounds.Ended = 1000
	l := ledger.New(bounds)
	if out := l.Apply(quota.Stamp{}, quota.ApplyTrees{
		Trees: []quota.TreeSpec{limitedTree(depth)},
	}); out.Refused != nil {
		b.Fatal(out.Refused)
	}
	requests := make([]quota.Allocate, users)
	for i := range requests {
		requests[i] = quota.Allocate{
			ID: fmt.Sprintf("user-%d", i), Claims: claimsAt(i%leaves, depth, "t"),
			Principal: quota.Principal{User: fmt.Sprintf("user-%d", i), Application: fmt.Sprintf("application-%d", i)},
		}
		if groups {
			requests[i].Principal.Groups = []string{groupName(i % 50)}
		}
		if out := l.Apply(quota.Stamp{}, requests[i]); out.Allocation == nil {
			b.Fatalf("%+v", out)
		}
	}
	ids := make([]string, b.N)
	for i := range ids {
		ids[i] = jobID(i)
	}
	random := rand.New(rand.NewPCG(1, 2))
	runtime.GC()
	b.ReportAllocs()
	b.ResetTimer()
	begin := cpuTime()
	for i := range b.N {
		request := requests[random.IntN(users)]
		request.ID = ids[i]
		if out := l.Apply(quota.Stamp{}, request); out.Allocation == nil {
			b.Fatalf("%+v", out)
		}
		l.Apply(quota.Stamp{}, quota.Release{ID: ids[i]})
	}
	b.ReportMetric(float64(b.N)/(cpuTime()-begin).Seconds(), "pairs/cpu-s")
}
