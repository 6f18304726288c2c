package ledger_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// The shapes are those in which the quota manager was measured: a root, nine areas, and ten times as many nodes on each
// further level; two resources, claims of one each, spread evenly over the leaves. What is live is held before the
// clock starts.

var softSizes = []softSize{
	{10, 100},
	{10, 10_000},
	{10, 100_000},
	{100, 100},
	{100, 10_000},
	{100, 100_000},
	{1000, 100},
	{1000, 10_000},
	{1000, 100_000},
}

type softSize struct{ nodes, live int }

func (s softSize) String() string { return fmt.Sprintf("nodes=%d/live=%d", s.nodes, s.live) }

// softTree has a root, nine areas and levels of ten below them; the leaves are limited to leaf, everything else to
// inner, and the root to top.
func softTree(nodes int, leaf, inner, top quota.Amount) (spec quota.TreeSpec, leaves []string) {
	limited := func(path string, most quota.Amount) quota.NodeSpec {
		return quota.NodeSpec{Path: path, Limits: []quota.ResourceLimit{
			{Resource: "cpu", Limit: quota.AtMost(most)}, {Resource: "memory", Limit: quota.AtMost(most)},
		}}
	}
	spec = quota.TreeSpec{
		Name: "t", Resources: []quota.Resource{{Name: "cpu", Unit: quota.Count}, {Name: "memory", Unit: quota.Count}},
	}
	spec.Nodes = []quota.NodeSpec{limited("", top)}
	spec.Nodes[0].Policy = "borrowing"
	for area := range 9 {
		leaves = append(leaves, fmt.Sprintf("n%d", area))
	}
	for size := 10; size < nodes; size *= 10 {
		var below []string
		for _, path := range leaves {
			spec.Nodes = append(spec.Nodes, limited(path, inner))
			for i := range 10 {
				below = append(below, fmt.Sprintf("%s/n%d", path, i))
			}
		}
		leaves = below
	}
	for _, path := range leaves {
		spec.Nodes = append(spec.Nodes, limited(path, leaf))
	}
	return spec, leaves
}

func softClaim(leaf string, amount quota.Amount, standing quota.Standing) []quota.Claim {
	return []quota.Claim{{
		Tree: "t", Node: leaf, Standing: standing,
		Amounts: quota.Vector{{Resource: "cpu", Amount: amount}, {Resource: "memory", Amount: amount}},
	}}
}

func softLedger(b *testing.B, spec quota.TreeSpec, leaves []string, live int) *ledger.Ledger {
	b.Helper()
	bounds := quota.DefaultBounds()
	bounds.Ended = 1000
	l := ledger.New(bounds)
	if out := l.Apply(quota.Stamp{}, quota.ApplyTrees{Trees: []quota.TreeSpec{spec}}); out.Refused != nil {
		b.Fatal(out.Refused)
	}
	for i := range live {
		hold(b, l, jobID(i), leaves[i%len(leaves)], 1, quota.Standing{})
	}
	return l
}

func hold(b *testing.B, l *ledger.Ledger, id, leaf string, amount quota.Amount,
	standing quota.Standing,
) ledger.Outcome {
	b.Helper()
	out := l.Apply(quota.Stamp{}, quota.Allocate{ID: id, Claims: softClaim(leaf, amount, standing)})
	if out.Allocation == nil {
		b.Fatalf("%s at %s: %+v", id, leaf, out)
	}
	return out
}

func timed(b *testing.B, operation func(i int)) {
	b.Helper()
	runtime.GC()
	b.ReportAllocs()
	b.ResetTimer()
	begin := cpuTime()
	for i := range b.N {
		operation(i)
	}
	b.ReportMetric(float64(cpuTime()-begin)/float64(b.N), "cpu-ns/op")
}

// pairsAt claims and releases at the leaves in turn. All requests are made beforehand.
func pairsAt(b *testing.B, l *ledger.Ledger, leaves []string) {
	b.Helper()
	requests := make([]quota.Command, b.N)
	releases := make([]quota.Command, b.N)
	for i := range requests {
		id := fmt.Sprintf("new-%d", i)
		requests[i], releases[i] = quota.Allocate{
			ID:     id,
			Claims: softClaim(leaves[i%len(leaves)], 1, quota.Standing{}),
		}, quota.Release{ID: id}
	}
	timed(b, func(i int) {
		if out := l.Apply(quota.Stamp{}, requests[i]); out.Allocation == nil {
			b.Fatalf("%+v", out)
		}
		l.Apply(quota.Stamp{}, releases[i])
	})
}

// BenchmarkSoftRoom: one op is a claim with room in its leaf, and its release.
func BenchmarkSoftRoom(b *testing.B) {
	for _, s := range softSizes {
		b.Run(s.String(), func(b *testing.B) {
			spec, leaves := softTree(s.nodes, quota.MaxAmount, quota.MaxAmount, quota.MaxAmount)
			l := softLedger(b, spec, leaves, s.live)
			pairsAt(b, l, leaves)
		})
	}
}

// crowded has leaves that are full and a tenth of the live claims borrowing at the root, where there is room; they
// belong to the last leaves, as many as said.
func crowded(b *testing.B, nodes, live, borrowing int) (*ledger.Ledger, []string) {
	b.Helper()
	_, leaves := softTree(nodes, 0, 0, 0)
	share := quota.Amount(max(1, live*9/10/len(leaves)))
	inner := share * quota.Amount(max(1, len(leaves)/9))
	if nodes > 100 {
		inner = share * 10 // of the lower level; areas are set below
	}
	spec, leaves := softTree(nodes, share, inner, quota.MaxAmount)
	for i := range spec.Nodes {
		n := &spec.Nodes[i]
		if nodes > 100 && len(n.Path) == 2 {
			n.Limits = []quota.ResourceLimit{
				{Resource: "cpu", Limit: quota.AtMost(share * 100)},
				{Resource: "memory", Limit: quota.AtMost(share * 100)},
			}
		}
	}
	filled := int(share) * len(leaves)
	l := softLedger(b, spec, leaves, filled)
	for i := range live / 10 {
		hold(b, l, jobID(filled+i), leaves[len(leaves)-1-i%borrowing], 1, quota.Standing{})
	}
	return l, leaves
}

// BenchmarkSoftBorrow: one op is a claim that borrows at the root, and its release.
func BenchmarkSoftBorrow(b *testing.B) {
	for _, s := range softSizes {
		b.Run(s.String(), func(b *testing.B) {
			l, leaves := crowded(b, s.nodes, s.live, 9)
			pairsAt(b, l, leaves)
		})
	}
}

// BenchmarkSoftTenth: one op is the release of a live claim, picked at random, and a new one for it, while a tenth of
// them borrows at the root.
func BenchmarkSoftTenth(b *testing.B) {
	for _, s := range softSizes {
		b.Run(s.String(), func(b *testing.B) {
			l, leaves := crowded(b, s.nodes, s.live, 9)
			held := l.Reader().Counts().Held
			ids := make([]string, held)
			for i := range ids {
				ids[i] = jobID(i)
			}
			random := uint64(1)
			timed(b, func(i int) {
				random = random*6364136223846793005 + 1442695040888963407
				at := int(random >> 33 % uint64(held))
				l.Apply(quota.Stamp{}, quota.Release{ID: ids[at]})
				ids[at] = jobID(held + i)
				hold(b, l, ids[at], leaves[at%len(leaves)], 1, quota.Standing{})
			})
		})
	}
}

// BenchmarkSoftUnlike: one op is a claim with room in its leaf, and its release, while many borrow at the root who
// belong to that leaf. No two of them hold the same, and none fits when the room is free again.
func BenchmarkSoftUnlike(b *testing.B) {
	for _, borrowers := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprintf("borrowers=%d", borrowers), func(b *testing.B) {
			spec, leaves := softTree(10, 1, 0, quota.MaxAmount)
			l := softLedger(b, spec, leaves, 0)
			for i := range borrowers {
				hold(b, l, jobID(i), leaves[0], quota.Amount(2+i), quota.Standing{})
			}
			pairsAt(b, l, leaves[:1])
		})
	}
}

// BenchmarkSoftReclaim: one op is a claim of a free share that preempts a borrower at the root, its release, and the
// borrower again.
func BenchmarkSoftReclaim(b *testing.B) {
	for _, s := range softSizes {
		b.Run(s.String(), func(b *testing.B) {
			l, leaves := crowded(b, s.nodes, s.live, 1)
			held := quota.AtMost(quota.Amount(l.Reader().Counts().Held))
			l.Apply(quota.Stamp{}, quota.SetLimits{
				Tree:   "t",
				Limits: []quota.ResourceLimit{{Resource: "cpu", Limit: held}, {Resource: "memory", Limit: held}},
			})
			raise(b, l, leaves[0])
			timed(b, func(i int) {
				owner, next := fmt.Sprintf("owner-%d", i), fmt.Sprintf("again-%d", i)
				out := hold(b, l, owner, leaves[0], 1, quota.Standing{})
				if len(out.Decision.Preempted) != 1 {
					b.Fatalf("%+v", out.Decision)
				}
				l.Apply(quota.Stamp{}, quota.Release{ID: owner})
				hold(b, l, next, leaves[len(leaves)-1], 1, quota.Standing{})
			})
		})
	}
}

// raise gives the path of a leaf room for one more, but for the root.
func raise(b *testing.B, l *ledger.Ledger, leaf string) {
	b.Helper()
	spec, refused := l.Reader().Tree("t")
	if refused != nil {
		b.Fatal(refused)
	}
	for _, n := range spec.Nodes {
		if n.Path != "" && len(n.Path) <= len(leaf) && leaf[:len(n.Path)] == n.Path {
			page, _ := l.Reader().Usage(quota.UsageQuery{Tree: "t", Node: n.Path, Max: 1})
			most := quota.AtMost(page.Nodes[0].Resources[0].Subtree + 1)
			l.Apply(quota.Stamp{}, quota.SetLimits{
				Tree: "t", Node: n.Path,
				Limits: []quota.ResourceLimit{{Resource: "cpu", Limit: most}, {Resource: "memory", Limit: most}},
			})
		}
	}
}

// BenchmarkSoftPriority: one op is a claim of a higher priority that preempts one in a full tree of soft nodes, its
// release, and a claim of the lower one again.
func BenchmarkSoftPriority(b *testing.B) {
	for _, s := range softSizes {
		b.Run(s.String(), func(b *testing.B) {
			_, leaves := softTree(s.nodes, 0, 0, 0)
			share := quota.Amount(max(1, s.live/len(leaves)))
			count := int(share) * len(leaves)
			spec, leaves := softTree(s.nodes, share, quota.MaxAmount, quota.Amount(count))
			l := softLedger(b, spec, leaves, count)
			timed(b, func(i int) {
				high, low := fmt.Sprintf("high-%d", i), fmt.Sprintf("low-%d", i)
				out := hold(b, l, high, leaves[i%len(leaves)], 1, quota.Standing{Priority: 1})
				if len(out.Decision.Preempted) != 1 {
					b.Fatalf("%+v", out.Decision)
				}
				l.Apply(quota.Stamp{}, quota.Release{ID: high})
				hold(b, l, low, leaves[i%len(leaves)], 1, quota.Standing{})
			})
		})
	}
}

// BenchmarkSoftUndo: one op is a reservation that preempts many at once, and its cancellation, which puts them all
// back.
func BenchmarkSoftUndo(b *testing.B) {
	for _, many := range []int{1000, 16_000} {
		b.Run(fmt.Sprintf("victims=%d", many), func(b *testing.B) { undoMany(b, many) })
	}
}

func undoMany(b *testing.B, many int) {
	b.Helper()
	most := quota.Amount(many)
	spec, leaves := softTree(10, 0, 0, most)
	spec.Nodes[1].Limits = []quota.ResourceLimit{
		{Resource: "cpu", Limit: quota.AtMost(most)},
		{Resource: "memory", Limit: quota.AtMost(most)},
	}
	l := ledger.New(quota.DefaultBounds())
	l.Apply(quota.Stamp{}, quota.ApplyTrees{Trees: []quota.TreeSpec{spec}})
	for i := range many {
		hold(b, l, jobID(i), leaves[1], 1, quota.Standing{})
	}
	timed(b, func(i int) {
		id := fmt.Sprintf("big-%d", i)
		l.Apply(quota.Stamp{}, quota.Allocate{
			ID: id, Mode: quota.Reserve, ReserveFor: 1,
			Claims: softClaim(leaves[0], most, quota.Standing{}),
		})
		if l.Apply(quota.Stamp{}, quota.Cancel{ID: id}); l.Reader().Counts().Held != many {
			b.Fatalf("%d hold again", l.Reader().Counts().Held)
		}
	})
}

// BenchmarkSoftUpdate changes a limit of a tree of a thousand nodes in which a hundred thousand claims sit, or adds and
// removes a node, after which every claim finds its node again.
func BenchmarkSoftUpdate(b *testing.B) {
	for _, change := range []string{"limit", "node"} {
		b.Run(change, func(b *testing.B) {
			l, _ := crowded(b, 1000, 100_000, 9)
			spec, refused := l.Reader().Tree("t")
			if refused != nil {
				b.Fatal(refused)
			}
			root, last := spec.Nodes[0].Limits[1], spec.Nodes[len(spec.Nodes)-1]
			timed(b, func(i int) {
				update := spec
				if change == "limit" {
					spec.Nodes[0].Limits = []quota.ResourceLimit{
						{Resource: "cpu", Limit: quota.AtMost(quota.MaxAmount - quota.Amount(i%2) - 1)}, root,
					}
				} else if i%2 == 0 {
					last.Path = "new"
					update.Nodes = append(slices.Clone(spec.Nodes), last)
				}
				if out := l.Apply(quota.Stamp{},
					quota.ApplyTrees{Trees: []quota.TreeSpec{update}}); out.Configuration == nil {
					b.Fatalf("%+v", out)
				}
			})
		})
	}
}
