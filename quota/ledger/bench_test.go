package ledger_test

import (
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// leaves is how many nodes share the live allocations of a benchmark.
const leaves = 10

func deepTree(name string, depth int) quota.TreeSpec {
	most := []quota.ResourceLimit{
		{Resource: "cpu", Limit: quota.AtMost(quota.MaxAmount)},
		{Resource: "memory", Limit: quota.AtMost(quota.MaxAmount)},
	}
	spec := quota.TreeSpec{
		Name: name, Resources: []quota.Resource{{Name: "cpu", Unit: quota.Milli}, {Name: "memory", Unit: quota.Bytes}},
	}
	path := ""
	for level := range depth {
		spec.Nodes = append(spec.Nodes, quota.NodeSpec{Path: strings.TrimPrefix(path, "/"), Limits: most})
		path += fmt.Sprintf("/level-%d", level)
	}
	for leaf := range leaves {
		spec.Nodes = append(spec.Nodes, quota.NodeSpec{Path: leafPath(depth, leaf), Limits: most})
	}
	return spec
}

func leafPath(depth, leaf int) string {
	path := ""
	for level := range depth - 1 {
		path += fmt.Sprintf("level-%d/", level)
	}
	return path + fmt.Sprintf("leaf-%d", leaf)
}

func claimsAt(leaf, depth int, trees ...string) []quota.Claim {
	var claims []quota.Claim
	for _, tree := range trees {
		claims = append(claims, quota.Claim{
			Tree: tree, Node: leafPath(depth, leaf),
			Amounts: quota.Vector{{Resource: "cpu", Amount: 1}, {Resource: "memory", Amount: 1}},
		})
	}
	return claims
}

func jobID(i int) string { return fmt.Sprintf("job-%012d", i) }

// filled is a ledger with live allocations, of which few tombstones are kept, so that the live ones make the size.
func filled(b *testing.B, live, depth int, trees ...string) *ledger.Ledger {
	b.Helper()
	bounds := quota.DefaultBounds()
	bounds.Ended = 1000
	l := ledger.New(bounds)
	for _, name := range trees {
		l.Apply(quota.Stamp{}, quota.ApplyTrees{Trees: []quota.TreeSpec{deepTree(name, depth)}})
	}
	for i := range live {
		out := l.Apply(quota.Stamp{}, quota.Allocate{ID: jobID(i), Claims: claimsAt(i%leaves, depth, trees...)})
		if out.Allocation == nil {
			b.Fatalf("%+v", out)
		}
	}
	return l
}

// pairs replaces a live allocation, picked at random, by a new one: one op is a release and an allocate.
func pairs(b *testing.B, live, depth int, trees ...string) {
	b.Helper()
	l := filled(b, live, depth, trees...)
	ids := make([]string, live+b.N)
	for i := range ids {
		ids[i] = jobID(i)
	}
	var claims [leaves][]quota.Claim
	for leaf := range claims {
		claims[leaf] = claimsAt(leaf, depth, trees...)
	}
	random := uint64(1)
	runtime.GC()
	b.ReportAllocs()
	b.ResetTimer()
	begin := cpuTime()
	for i := range b.N {
		random = random*6364136223846793005 + 1442695040888963407
		victim := int(random >> 33 % uint64(live))
		entry := ledger.Origin{Index: uint64(2 + 2*i)} // each command is in an entry of its own
		l.ApplyFrom(quota.Stamp{}, entry, quota.Release{ID: ids[victim]})
		ids[victim] = ids[live+i]
		entry.Index++
		out := l.ApplyFrom(quota.Stamp{}, entry, quota.Allocate{ID: ids[victim], Claims: claims[i%leaves]})
		if out.Allocation == nil {
			b.Fatalf("%+v", out)
		}
	}
	b.ReportMetric(float64(cpuTime()-begin)/float64(b.N), "cpu-ns/op")
}

// cpuTime is what the process has used: on a shared machine it tells more than the clock.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func BenchmarkPair(b *testing.B) {
	for _, depth := range []int{1, 4, 8} {
		for _, live := range []int{1_000, 10_000, 100_000, 1_000_000} {
			b.Run(fmt.Sprintf("depth=%d/live=%d", depth, live), func(b *testing.B) { pairs(b, live, depth, "t") })
		}
	}
}

func BenchmarkPairOverTwoTrees(b *testing.B) {
	for _, live := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprintf("depth=4/live=%d", live), func(b *testing.B) { pairs(b, live, 4, "t", "u") })
	}
}

// BenchmarkDenial is an allocate that three of four levels refuse.
func BenchmarkDenial(b *testing.B) {
	l := filled(b, 1000, 4, "t")
	for _, path := range []string{"level-0", "level-0/level-1", "level-0/level-1/level-2"} {
		l.Apply(quota.Stamp{}, quota.SetLimits{
			Tree: "t", Node: path,
			Limits: []quota.ResourceLimit{{Resource: "cpu", Limit: quota.AtMost(5)}},
		})
	}
	next := quota.Allocate{ID: "next", Claims: claimsAt(0, 4, "t")}
	b.ReportAllocs()
	for b.Loop() {
		if out := l.Apply(quota.Stamp{}, next); len(out.Decision.Violations) != 3 {
			b.Fatalf("%+v", out)
		}
	}
}

// BenchmarkFreeze reports the longest pause of the writer for an image, and what the first pairs after it cost.
func BenchmarkFreeze(b *testing.B) {
	for name, wide := range map[string]int{"nodes=14": 0, "nodes=20000": 19_980} {
		b.Run("live=1000000/"+name, func(b *testing.B) {
			l := filled(b, 1_000_000, 4, "t")
			spec := deepTree("wide", 1)
			for i := range wide {
				spec.Nodes = append(spec.Nodes, quota.NodeSpec{Path: fmt.Sprintf("node-%d", i)})
			}
			l.Apply(quota.Stamp{}, quota.ApplyTrees{Trees: []quota.TreeSpec{spec}})
			longest := time.Duration(0)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				begin := time.Now()
				image := l.Snapshot()
				longest = max(longest, time.Since(begin))
				b.StopTimer()
				for j := range 100 {
					l.Apply(quota.Stamp{}, quota.Release{ID: jobID((i*100 + j) % 1_000_000)})
				}
				runtime.KeepAlive(image)
				b.StartTimer()
			}
			b.ReportMetric(float64(longest.Microseconds()), "µs-longest")
		})
	}
}

// BenchmarkApplyTrees changes one limit of a tree of a thousand nodes in which a hundred thousand allocations are held.
func BenchmarkApplyTrees(b *testing.B) {
	l := filled(b, 100_000, 4, "t")
	spec := deepTree("t", 4)
	for i := range 1000 - len(spec.Nodes) {
		spec.Nodes = append(spec.Nodes, quota.NodeSpec{Path: fmt.Sprintf("node-%d", i)})
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		spec.Nodes[1].Limits = []quota.ResourceLimit{
			{Resource: "cpu", Limit: quota.AtMost(quota.MaxAmount - quota.Amount(i%2))},
		}
		if out := l.Apply(quota.Stamp{}, quota.ApplyTrees{Trees: []quota.TreeSpec{spec}}); out.Configuration == nil {
			b.Fatalf("%+v", out)
		}
	}
}

func wideTree(nodes int) quota.TreeSpec {
	spec := quota.TreeSpec{
		Name: "wide", Resources: []quota.Resource{
			{Name: "cpu", Unit: quota.Milli},
			{Name: "memory", Unit: quota.Bytes},
		},
	}
	spec.Nodes = append(spec.Nodes, quota.NodeSpec{
		Policy:   "capped",
		Defaults: []quota.ResourceLimit{{Resource: "cpu", Limit: quota.AtMost(9)}},
	})
	for i := range nodes - 1 {
		path := fmt.Sprintf("department-%d", i/100)
		if i%100 > 0 {
			path += fmt.Sprintf("/team-%d", i%100)
		}
		n := quota.NodeSpec{Path: path}
		if i%2 == 0 {
			n.Limits = []quota.ResourceLimit{{Resource: "cpu", Limit: quota.AtMost(5)}}
		}
		spec.Nodes = append(spec.Nodes, n)
	}
	return spec
}

// BenchmarkConfigure changes a tree of as many nodes as there may be.
func BenchmarkConfigure(b *testing.B) {
	spec := wideTree(20_000)
	revision := uint64(0)
	for name, change := range map[string]func(i int) quota.Command{
		"apply": func(i int) quota.Command {
			spec.Nodes[1].Limits = []quota.ResourceLimit{{Resource: "cpu", Limit: quota.AtMost(5 + quota.Amount(i%2))}}
			return quota.ApplyTrees{Trees: []quota.TreeSpec{spec}}
		},
		"move": func(i int) quota.Command {
			names := [2]string{"department-7", "department-x"}
			return quota.MoveNode{Tree: "wide", From: names[i%2], To: names[1-i%2]}
		},
		"limits": func(i int) quota.Command {
			return quota.SetLimits{
				Tree: "wide", Node: "department-7",
				Limits: []quota.ResourceLimit{{Resource: "memory", Limit: quota.AtMost(quota.Amount(i % 2))}},
			}
		},
		"rollback": func(int) quota.Command {
			revision++
			return quota.RollBack{Revision: revision - 1}
		},
	} {
		b.Run(name, func(b *testing.B) {
			l := ledger.New(quota.DefaultBounds())
			l.Apply(quota.Stamp{}, quota.ApplyTrees{Trees: []quota.TreeSpec{spec}})
			l.Apply(quota.Stamp{}, quota.SetLimits{
				Tree:   "wide",
				Limits: []quota.ResourceLimit{{Resource: "memory", Limit: quota.AtMost(1)}},
			})
			revision = 1
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if out := l.Apply(quota.Stamp{}, change(i)); out.Configuration == nil ||
					len(out.Configuration.Changes) == 0 {
					b.Fatalf("%+v %+v", out.Refused, out)
				}
			}
		})
	}
}

// BenchmarkRefusalOf asks whether a caller may allocate and release, as a leader does before each command.
func BenchmarkRefusalOf(b *testing.B) {
	g := newGuarded(b, cernTree(), "anna", "peter", "hans", "heidi", "carl")
	g.must("hans", claimCores("held", higgs, 1))
	view, callers := g.ledger.Reader(), [...]quota.Command{claimCores("asked", higgs, 1), quota.Release{ID: "held"}}
	b.ReportAllocs()
	for i := range b.N {
		if _, refused := view.RefusalOf(callerOf("hans"), callers[i%2]); refused {
			b.Fatal("refused")
		}
	}
}
