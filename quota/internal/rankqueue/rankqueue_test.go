package rankqueue

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
)

// oracle is an unordered list: every question visits all elements.
type oracle []entry[int]

func (o oracle) sorted() []entry[int] {
	list := slices.Clone(o)
	slices.SortFunc(list, func(a, b entry[int]) int {
		if a.rank.Before(b.rank) {
			return -1
		}
		return 1
	})
	return list
}

func (o oracle) firstWithin(cost int64, from Rank) (int, bool) {
	for _, e := range o.sorted() {
		if !e.rank.Before(from) && e.cost <= cost {
			return e.value, true
		}
	}
	return 0, false
}

func (o oracle) from(r Rank) (values []int) {
	for _, e := range o.sorted() {
		if !e.rank.Before(r) {
			values = append(values, e.value)
		}
	}
	return values
}

func drawRank(t *rapid.T, width uint64) Rank {
	return Rank{rapid.Int64Range(-1, 1).Draw(t, "priority"), rapid.Uint64Range(0, width).Draw(t, "arrival")}
}

func compare(t *rapid.T, q *Queue[int], want oracle, at Rank) {
	t.Helper()
	if err := q.Check(); err != nil {
		t.Fatal(err)
	}
	if q.Len() != len(want) {
		t.Fatalf("Len is %d, want %d", q.Len(), len(want))
	}
	if got := slices.Collect(q.All()); !slices.Equal(got, want.from(First())) {
		t.Fatalf("All yields %v, want %v", got, want.from(First()))
	}
	rest := want.from(at)
	if got := slices.Collect(q.From(at)); !slices.Equal(got, rest) {
		t.Fatalf("From(%v) yields %v, want %v", at, got, rest)
	}
	if got := q.CountBefore(at); got != len(want)-len(rest) {
		t.Fatalf("CountBefore(%v) is %d, want %d", at, got, len(want)-len(rest))
	}
	head, found := q.Head()
	if wanted, any := want.firstWithin(math.MaxInt64, First()); head != wanted || found != any {
		t.Fatalf("Head is %d %v, want %d %v", head, found, wanted, any)
	}
	for cost := range int64(6) {
		got, found := q.FirstWithin(cost, at)
		if wanted, any := want.firstWithin(cost, at); got != wanted || found != any {
			t.Fatalf("FirstWithin(%d, %v) is %d %v, want %d %v", cost, at, got, found, wanted, any)
		}
	}
}

// TestAgainstList inserts and removes at random, more than one chunk at a time, and compares the queue with the list.
func TestAgainstList(t *testing.T) {
	verify.Check(t, func(t *rapid.T) {
		var q Queue[int]
		var want oracle
		width := rapid.SampledFrom([]uint64{5, 400}).Draw(t, "width")
		for value := range rapid.IntRange(1, 400).Draw(t, "steps") {
			r := drawRank(t, width)
			i := slices.IndexFunc(want, func(e entry[int]) bool { return e.rank == r })
			switch {
			case i < 0 && rapid.IntRange(0, 9).Draw(t, "absent") == 0:
				if q.Remove(r) {
					t.Fatalf("Remove(%v) found what was never inserted", r)
				}
			case i < 0:
				cost := rapid.Int64Range(0, 5).Draw(t, "cost")
				q.Insert(r, cost, value)
				want = append(want, entry[int]{r, cost, value})
			default:
				if !q.Remove(r) {
					t.Fatalf("Remove(%v) found nothing", r)
				}
				want = slices.Delete(want, i, i+1)
			}
			if value%50 == 0 {
				compare(t, &q, want, drawRank(t, width))
			}
		}
		compare(t, &q, want, drawRank(t, width))
	})
}

// TestChunks fills many chunks, finds the only cheap element in the last, and removes all from the front.
func TestChunks(t *testing.T) {
	const n = 10 * maxChunk
	var q Queue[int]
	for i := range n {
		q.Insert(Rank{Arrival: uint64(i)}, int64(n-i), i)
	}
	if got, found := q.FirstWithin(1, First()); !found || got != n-1 {
		t.Errorf("the first of cost 1 is %d %v, want %d", got, found, n-1)
	}
	if _, found := q.FirstWithin(0, First()); found {
		t.Error("no element costs 0")
	}
	for i := range n {
		if head, _ := q.Head(); head != i || !q.Remove(Rank{Arrival: uint64(i)}) {
			t.Fatalf("the head is %d, want %d", head, i)
		}
		if err := q.Check(); err != nil {
			t.Fatal(err)
		}
	}
	if len(q.chunks) != 0 {
		t.Errorf("an empty queue has %d chunks", len(q.chunks))
	}
}

func BenchmarkInsertRemove(b *testing.B) {
	var q Queue[*int]
	const n = 100_000
	for i := range uint64(n) {
		q.Insert(Rank{Arrival: i}, 2, nil)
	}
	random := uint64(1)
	for b.Loop() {
		random = random*6364136223846793005 + 1442695040888963407
		at := Rank{Arrival: random >> 33 % n}
		q.Remove(at)
		q.Insert(at, 2, nil)
		q.FirstWithin(2, at)
	}
}

func BenchmarkFirstWithinNone(b *testing.B) {
	var q Queue[*int]
	for i := range uint64(100_000) {
		q.Insert(Rank{Arrival: i}, 2, nil)
	}
	for b.Loop() {
		if _, found := q.FirstWithin(1, First()); found {
			b.Fatal("no element costs 1")
		}
	}
}
