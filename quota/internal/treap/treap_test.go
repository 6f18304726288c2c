package treap

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
)

// oracle has the weights by key; a search visits all keys in order.
type oracle map[uint64][]int64

func (o oracle) firstFitting(fits func([]int64) bool) (uint64, bool) {
	for _, key := range slices.Sorted(maps.Keys(o)) {
		if fits(o[key]) {
			return key, true
		}
	}
	return 0, false
}

func fitsIn(room []int64) func([]int64) bool {
	return func(weights []int64) bool {
		for i, most := range room {
			if weights[i] > most {
				return false
			}
		}
		return true
	}
}

// TestAgainstGoMap inserts and deletes at random, and compares every search with one that visits all.
func TestAgainstGoMap(t *testing.T) {
	verify.Check(t, func(t *rapid.T) {
		var tree Tree[uint64, int64]
		want := oracle{}
		width := rapid.IntRange(0, 3).Draw(t, "resources")
		vector := rapid.SliceOfN(rapid.Int64Range(0, 4), width, width)
		keys := rapid.SampledFrom([]uint64{5, 300}).Draw(t, "keys")
		nodes := map[uint64]*Node[uint64, int64]{}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			key := rapid.Uint64Range(0, keys).Draw(t, "key")
			if want[key] != nil {
				tree.Delete(key)
				delete(want, key)
			} else {
				if nodes[key] == nil || rapid.Bool().Draw(t, "new") {
					n := NewNode(key, vector.Draw(t, "weights"))
					nodes[key] = &n
				}
				want[key] = append([]int64{}, nodes[key].weights...)
				tree.Insert(key, nodes[key])
			}
			room := vector.Draw(t, "room")
			got, found := tree.FirstFitting(fitsIn(room))
			if wanted, any := want.firstFitting(fitsIn(room)); got != wanted || found != any {
				t.Fatalf("the first that fits in %v is %d %v, want %d %v", room, got, found, wanted, any)
			}
		}
		var visited []uint64
		sound := tree.IsSound(func(key, value uint64) bool {
			visited = append(visited, key)
			return key == value
		})
		if !sound || !slices.Equal(visited, slices.Sorted(maps.Keys(want))) {
			t.Fatalf("the tree is sound: %v, and has %v, want %v", sound, visited, want)
		}
	})
}

// TestDeleteAbsent deletes keys that are not there.
func TestDeleteAbsent(t *testing.T) {
	var tree Tree[string, int64]
	n := NewNode("only", []int64{1})
	tree.Insert(7, &n)
	for _, key := range []uint64{0, 6, 8} {
		tree.Delete(key)
	}
	if value, found := tree.FirstFitting(fitsIn([]int64{1})); !found || value != "only" {
		t.Errorf("found %q %v after absent keys were deleted", value, found)
	}
}

// TestIsSound shows that a wrong sum and a wrong order are found.
func TestIsSound(t *testing.T) {
	visit := func(uint64, int) bool { return true }
	build := func() (*Tree[int, int64], *Node[int, int64]) {
		var tree Tree[int, int64]
		for i := range 10 {
			n := NewNode(i, []int64{int64(i)})
			tree.Insert(uint64(i), &n)
		}
		return &tree, tree.top
	}
	tree, top := build()
	if !tree.IsSound(visit) {
		t.Error("a tree as built is not sound")
	}
	if top.least[0]--; tree.IsSound(visit) {
		t.Error("a wrong sum was not found")
	}
	tree, top = build()
	if top.key = 100; tree.IsSound(visit) {
		t.Error("a wrong order was not found")
	}
}

func BenchmarkReplaceAndFind(b *testing.B) {
	var tree Tree[int, int64]
	const n = 100_000
	nodes := make([]Node[int, int64], n)
	for i := range nodes {
		nodes[i] = NewNode(i, []int64{int64(i + 1), 1})
		tree.Insert(uint64(i), &nodes[i])
	}
	fits := fitsIn([]int64{n / 2, 1})
	for i := uint64(0); b.Loop(); i++ {
		tree.Delete(i)
		tree.Insert(i+n, &nodes[i%n])
		tree.FirstFitting(fits)
	}
}
