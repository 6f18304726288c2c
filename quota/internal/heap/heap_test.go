package heap_test

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/quota/internal/heap"
)

type element struct{ rank, id, place int }

// TestAgainstASortedList changes a heap at random and compares it with a list that is sorted anew each time.
func TestAgainstASortedList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		compare := func(a, b *element) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.id, b.id)) }
		h := heap.New(func(a, b *element) bool { return compare(a, b) < 0 }, func(e *element) *int { return &e.place })
		var list []*element
		next := 0
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				next++
				e := &element{rank: rapid.IntRange(0, 9).Draw(t, "rank"), id: next}
				h.Push(e)
				list = append(list, e)
			},
			"change": func(t *rapid.T) {
				if len(list) == 0 {
					return
				}
				e := rapid.SampledFrom(list).Draw(t, "element")
				e.rank = rapid.IntRange(0, 9).Draw(t, "rank")
				h.Push(e)
			},
			"remove": func(t *rapid.T) {
				if len(list) == 0 {
					return
				}
				e := rapid.SampledFrom(list).Draw(t, "element")
				h.Remove(e)
				h.Remove(e)
				list = slices.DeleteFunc(list, func(other *element) bool { return other == e })
				if h.Contains(e) {
					t.Fatal("an element that was removed is still in the heap")
				}
			},
			"": func(t *rapid.T) {
				if h.Len() != len(list) {
					t.Fatalf("%d elements, want %d", h.Len(), len(list))
				}
				slices.SortFunc(list, compare)
				if len(list) > 0 && (h.First() != list[0] || !h.Contains(list[0])) {
					t.Fatalf("the first is %v, want %v", h.First(), list[0])
				}
			},
		})
	})
}
