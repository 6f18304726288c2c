// Package quotatest makes random commands for the tests of the ledger and of what is built on it, and has what these
// tests share: restores and texts of images, comparisons, and functions for oracles, of which package oracle is one.
//
// The names come from small pools, so that commands meet: ids are used again, trees come and go under what is held.
// Most commands are well formed; some are spoiled in one place.
package quotatest

import (
	"math"
	"slices"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/quota"
)

// The pools.
var (
	TreeNames = []string{"t", "u", "v"}
	// IDs are the same five in two namespaces.
	IDs = []string{
		"i0", "i1", "i2", "i3", "i4",
		"account/hans i0", "account/hans i1", "account/hans i2", "account/hans i3", "account/hans i4",
	}
	// itemIDs are those of commands about items.
	itemIDs   = []string{"i0", "i1", "i2", "account/hans i0", "account/hans i1"}
	paths     = []string{"a", "b", "a/x", "a/y", "a/x/p", "a+"}
	resources = []string{"cpu", "disk", "mem"}
)

// Bounds are either those of a release or so small that commands meet them; tombstones fade quickly in both.
func Bounds() *rapid.Generator[quota.Bounds] {
	large := quota.DefaultBounds()
	large.TombstoneSpan = 10
	small := quota.Bounds{
		Trees: 2, Nodes: 12, NodesPerTree: 7, Depth: 3, Resources: 3, Claims: 3, Labels: 2, Held: 5, Ended: 3,
		Revisions: 4, Events: 3,
		TreesPerChange: 2, Moves: 2, HistoryNodes: 12, Cells: 30, Items: 8, ItemsOfOne: 4, Picks: 3,
		Turns: 2, Data: 2, Policies: 2, TombstoneSpan: 10,
		LiveBytes: large.LiveBytes, EndedBytes: large.EndedBytes, HistoryBytes: large.HistoryBytes,
		EventBytes: large.EventBytes,
	}
	return rapid.SampledFrom([]quota.Bounds{large, small})
}

// Commands are of every type.
func Commands() *rapid.Generator[quota.Command] {
	return rapid.Custom(func(t *rapid.T) quota.Command {
		switch n := Die(t, 48, "type"); {
		case n < 23:
			return allocate(t)
		case n < 30:
			return quota.Release{ID: id(t), Fence: fence(t)}
		case n < 33:
			return applyTrees(t)
		case n < 39:
			return setLimits(t)
		case n < 42:
			return quota.Confirm{ID: id(t), Fence: fence(t)}
		case n < 45:
			return quota.Cancel{ID: id(t), Fence: fence(t)}
		case n < 47:
			return quota.Expire{Most: pick(t, []int{1, 1, 2, 1024, 0, 1025}, "most")}
		}
		return quota.DeleteTree{Meta: meta(t), Tree: treeName(t)}
	})
}

// Tree are well formed commands that declare one tree, though its policy may still refuse them.
func Tree(name string) *rapid.Generator[quota.ApplyTrees] {
	return rapid.Custom(func(t *rapid.T) quota.ApplyTrees {
		return quota.ApplyTrees{Trees: []quota.TreeSpec{treeSpec(t, name)}}
	})
}

// fence is mostly none, and else one that may be wrong.
func fence(t *rapid.T) uint64 {
	if !oneIn(t, 6, "fenced") {
		return 0
	}
	return rapid.Uint64Range(1, 20).Draw(t, "fence")
}

func oneIn(t *rapid.T, n int, what string) bool { return Die(t, n, what) == n-1 }

// Die answers 0 to n-1, all equally often, where rapid's own ranges prefer the small ones.
func Die(t *rapid.T, n int, what string) int {
	return rapid.Map(rapid.Uint64(), func(u uint64) int { return int(u * 0x9e3779b97f4a7c15 >> 33 % uint64(n)) }).Draw(
		t, what)
}

func pick[T any](t *rapid.T, from []T, what string) T { return from[Die(t, len(from), what)] }

func id(t *rapid.T) string {
	if oneIn(t, 40, "odd id") {
		return pick(t, []string{"", "has three words", "é", string(make([]byte, 129))}, "bad id")
	}
	return pick(t, IDs, "id")
}

func treeName(t *rapid.T) string {
	if oneIn(t, 40, "odd tree") {
		return pick(t, []string{"", "x/y", "-t", "w"}, "bad tree")
	}
	return pick(t, []string{"t", "t", "t", "t", "t", "u", "u", "v"}, "tree")
}

func path(t *rapid.T) string {
	if oneIn(t, 30, "odd path") {
		return pick(t, []string{"/", "a/", "a//x", "a/x/p/q", "-", "c d"}, "bad path")
	}
	return pick(t, append([]string{"", "c"}, paths...), "path")
}

// amount is mostly small, sometimes at the edge of what is allowed and beyond.
func amount(t *rapid.T) quota.Amount {
	switch n := Die(t, 30, "amount"); {
	case n < 26:
		return quota.Amount(n % 7)
	case n < 29:
		return pick(t, []quota.Amount{quota.MaxAmount, quota.MaxAmount - 3, quota.MaxAmount / 2}, "large")
	}
	return pick(t, []quota.Amount{-1, quota.MaxAmount + 1, math.MaxInt64, math.MinInt64}, "bad amount")
}

// subset picks some of a sorted list, in order, each with a chance in four.
func subset(t *rapid.T, from []string, chance int, atLeastOne bool, what string) []string {
	var some []string
	for _, s := range from {
		if Die(t, 4, what) < chance {
			some = append(some, s)
		}
	}
	if len(some) == 0 && atLeastOne {
		some = []string{pick(t, from, what)}
	}
	return some
}

func allocate(t *rapid.T) quota.Allocate { return withAlternatives(t, allocateOne(t), allocateOne) }

func allocateOne(t *rapid.T) quota.Allocate {
	c := quota.Allocate{ID: id(t), Labels: labels(t)}
	for range pick(t, []int{1, 1, 1, 2, 2, 3}, "claims") {
		claim := quota.Claim{Tree: treeName(t), Node: path(t), Standing: standing(t)}
		for _, r := range subset(t, resources, 1, true, "claims of") {
			claim.Amounts = append(claim.Amounts, quota.Component{Resource: r, Amount: amount(t)})
		}
		c.Claims = append(c.Claims, claim)
	}
	switch {
	case oneIn(t, 12, "forced"):
		c.Mode = quota.Force
	case oneIn(t, 4, "reserve"):
		c.Mode, c.ReserveFor = quota.Reserve, quota.Span(rapid.Int64Range(1, 9).Draw(t, "span"))
	}
	if oneIn(t, 15, "spoil") {
		spoilAllocate(t, &c)
		return c
	}
	return withRanges(t, c)
}

func standing(t *rapid.T) quota.Standing {
	if Die(t, 2, "stands") == 0 {
		return quota.Standing{}
	}
	return quota.Standing{
		Priority: int64(Die(t, 4, "priority") - 1), Type: int64(Die(t, 6, "type") / 5),
		Unpreemptable: oneIn(t, 8, "unpreemptable"),
	}
}

func spoilAllocate(t *rapid.T, c *quota.Allocate) {
	first := &c.Claims[0]
	switch Die(t, 9, "how") {
	case 7:
		c.Mode = quota.Wait + 1
	case 8:
		c.ReserveFor = pick(t, []quota.Span{0, -1, quota.MaxReserve + 1}, "bad span") + quota.Span(quota.Reserve-c.Mode)
	case 0:
		c.Claims = nil
	case 1:
		c.Claims = append(c.Claims, *first, *first)
	case 2:
		first.Amounts = nil
	case 3:
		first.Amounts = append(first.Amounts, first.Amounts[0])
	case 4:
		first.Amounts[0].Resource = "gpu"
	case 5:
		slices.Reverse(first.Amounts)
	case 6:
		c.Labels = badLabels(t)
	}
}

func labels(t *rapid.T) []quota.Label {
	var list []quota.Label
	if oneIn(t, 5, "labelled") {
		for _, key := range subset(t, []string{"k", "l"}, 2, false, "label") {
			list = append(list, quota.Label{Key: key, Value: pick(t, []string{"", "1", "2"}, "value")})
		}
	}
	return list
}

func badLabels(t *rapid.T) []quota.Label {
	return pick(t, [][]quota.Label{
		{{Key: ""}},
		{{Key: "k"}, {Key: "k"}},
		{{Key: "l"}, {Key: "k"}},
		{{Key: string(make([]byte, 64))}},
		{{Key: "k", Value: string(make([]byte, 257))}},
		{{Key: "k"}, {Key: "l"}, {Key: "m"}},
	}, "bad labels")
}

func meta(t *rapid.T) quota.ChangeMeta {
	m := quota.ChangeMeta{Actor: pick(t, []string{"", "eva", "adam"}, "actor")}
	if oneIn(t, 4, "request id") {
		m.RequestID = pick(t, []string{"r1", "r2"}, "request")
		m.Fingerprint = pick(t, []string{"f1", "f1", "f1", "f2"}, "print")
	}
	if oneIn(t, 20, "expects") {
		revision := rapid.Uint64Range(0, 8).Draw(t, "revision")
		m.ExpectedRevision = &revision
	}
	if oneIn(t, 40, "odd meta") {
		switch Die(t, 3, "how") {
		case 0:
			m.Actor = string(make([]byte, quota.MaxActor+1))
		case 1:
			m.Reason = string(make([]byte, quota.MaxReason+1))
		case 2:
			m.RequestID = "has three words"
		}
	}
	return m
}
