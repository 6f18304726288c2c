package ledger_test

import (
	"fmt"
	"testing"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// crowdedQueue is a full tree with two tenants, at which as many requests wait as said, each for so much.
func crowdedQueue(b testing.TB, waiting int, amount quota.Amount, node string) *ledger.Ledger {
	b.Helper()
	l := ledger.New(quota.DefaultBounds())
	most := func(a quota.Amount) []quota.ResourceLimit {
		return []quota.ResourceLimit{{Resource: "cpu", Limit: quota.AtMost(a)}}
	}
	l.Apply(quota.Stamp{At: 1}, quota.ApplyTrees{Trees: []quota.TreeSpec{{
		Name: "t", Resources: []quota.Resource{{Name: "cpu", Unit: quota.Count}},
		Nodes: []quota.NodeSpec{{Limits: most(1000)}, {Path: "a", Limits: most(900)}, {Path: "b", Limits: most(100)}},
	}}})
	for i := range 1000 {
		l.Apply(quota.Stamp{At: 1}, quota.Allocate{
			ID:     fmt.Sprint("held-", i),
			Claims: cpuAt([]string{"a", "b"}[i/900], 1),
		})
	}
	for i := range waiting {
		out := l.Apply(quota.Stamp{At: 1}, quota.Allocate{ID: jobID(i), Claims: cpuAt(node, amount), Mode: quota.Wait})
		if !out.Decision.Waiting {
			b.Fatalf("%+v", out)
		}
	}
	return l
}

func cpuAt(node string, amount quota.Amount) []quota.Claim {
	return []quota.Claim{{Tree: "t", Node: node, Amounts: quota.Vector{{Resource: "cpu", Amount: amount}}}}
}

// BenchmarkQueueHandOver: one op is a release that wakes the first of those who wait, and another that comes to wait.
func BenchmarkQueueHandOver(b *testing.B) {
	for _, waiting := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprint("waiting=", waiting), func(b *testing.B) {
			l := crowdedQueue(b, waiting, 1, "a")
			ids := make([]string, 0, 900+waiting+b.N)
			for i := range 900 {
				ids = append(ids, fmt.Sprint("held-", i))
			}
			for i := range waiting + b.N {
				ids = append(ids, jobID(i))
			}
			timed(b, func(i int) {
				l.Apply(quota.Stamp{At: 1}, quota.Release{ID: ids[i]})
				l.Apply(quota.Stamp{At: 1}, quota.Allocate{
					ID: ids[900+waiting+i], Claims: cpuAt("a", 1),
					Mode: quota.Wait,
				})
			})
			if held := l.Reader().Counts().Held; held != 1000 {
				b.Fatalf("%d are held", held)
			}
		})
	}
}

// BenchmarkQueueVain: one op is a release that can grant no request, because all want more, and an allocation that
// overtakes.
func BenchmarkQueueVain(b *testing.B) {
	for _, waiting := range []int{0, 1, 10_000} {
		b.Run(fmt.Sprint("waiting=", waiting), func(b *testing.B) {
			l := crowdedQueue(b, waiting, 2, "a")
			timed(b, func(i int) {
				id := fmt.Sprint("held-", i)
				if i >= 900 {
					id = fmt.Sprint("new-", i-900)
				}
				l.Apply(quota.Stamp{At: 1}, quota.Release{ID: id})
				l.Apply(quota.Stamp{At: 1}, quota.Allocate{ID: fmt.Sprint("new-", i), Claims: cpuAt("a", 1)})
			})
			if c := l.Reader().Counts(); c.Held != 1000 || c.Waiting != waiting {
				b.Fatalf("%+v", c)
			}
		})
	}
}

// BenchmarkQueueLongLine: one op is a release, the grant to the only one in a long line who is small enough, at its
// end, and a small one that comes again.
func BenchmarkQueueLongLine(b *testing.B) {
	l := crowdedQueue(b, 10_000, 5, "a")
	last := "held-0"
	timed(b, func(i int) {
		next := fmt.Sprint("small-", i)
		l.Apply(quota.Stamp{At: 1}, quota.Allocate{ID: next, Claims: cpuAt("a", 1), Mode: quota.Wait})
		l.Apply(quota.Stamp{At: 1}, quota.Release{ID: last})
		last = next
	})
	if c := l.Reader().Counts(); c.Held != 1000 || c.Waiting != 10_000 {
		b.Fatalf("%+v", c)
	}
}

// BenchmarkQueueRaise: one op is the raise of a limit that grants 10,000 at once.
func BenchmarkQueueRaise(b *testing.B) {
	for i := range b.N {
		b.StopTimer()
		l := crowdedQueue(b, 10_000, 1, "a")
		l.Apply(quota.Stamp{At: 1}, quota.SetLimits{
			Tree:   "t",
			Limits: []quota.ResourceLimit{{Resource: "cpu", Limit: quota.AtMost(100_000)}},
		})
		b.StartTimer()
		l.Apply(quota.Stamp{At: 1}, quota.SetLimits{
			Tree: "t", Node: "a",
			Limits: []quota.ResourceLimit{{Resource: "cpu", Limit: quota.AtMost(90_000)}},
		})
		if c := l.Reader().Counts(); c.Waiting != 0 {
			b.Fatalf("%d: %+v", i, c)
		}
	}
}

// BenchmarkQueueFreeze is the pause of the writer for an image with as many as may wait.
func BenchmarkQueueFreeze(b *testing.B) {
	l := crowdedQueue(b, 50_000, 1, "a")
	for b.Loop() {
		l.Snapshot()
	}
}
