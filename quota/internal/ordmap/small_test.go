package ordmap

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
)

// TestSmallAgainstGoMap changes a small map at random, also beyond the size of its list, and compares it with a Go map.
func TestSmallAgainstGoMap(t *testing.T) {
	verify.Check(t, func(t *rapid.T) {
		var m Small[int]
		want := oracle{}
		width := rapid.SampledFrom([]uint64{10, mostInList + 1, 200}).Draw(t, "width")
		for i := range rapid.IntRange(1, 200).Draw(t, "steps") {
			key := rapid.Uint64Range(0, width).Draw(t, "key")
			previous, existed := want[key]
			if got, found := m.Get(key); got != previous || found != existed {
				t.Fatalf("Get(%d) is %d %v, want %d %v", key, got, found, previous, existed)
			}
			if rapid.IntRange(0, 2).Draw(t, "op") > 0 {
				m.Set(key, i)
				want[key] = i
			} else if delete(want, key); m.Delete(key) != existed {
				t.Fatalf("Delete(%d) did not answer %v", key, existed)
			}
			compareSmall(t, &m, want)
		}
	})
}

func compareSmall(t *rapid.T, m *Small[int], want oracle) {
	t.Helper()
	sorted := want.sorted()
	got := oracle{}
	var keys []uint64
	for key, value := range m.All() {
		keys = append(keys, key)
		got[key] = value
	}
	if m.Len() != len(want) || !slices.Equal(keys, sorted) || !maps.Equal(got, want) {
		t.Fatalf("the map has %d entries %v %v, want %v", m.Len(), keys, got, want)
	}
	key, value, found := m.Min()
	switch {
	case found != (len(want) > 0):
		t.Fatalf("Min found a key: %v, of %d", found, len(want))
	case found && (key != sorted[0] || value != want[key]):
		t.Fatalf("Min is %d with %d, want %d with %d", key, value, sorted[0], want[sorted[0]])
	}
}

func BenchmarkSmall(b *testing.B) {
	var m Small[int]
	for i := range uint64(8) {
		m.Set(i, 0)
	}
	for i := uint64(8); b.Loop(); i++ {
		m.Set(i, 0)
		first, _, _ := m.Min()
		m.Delete(first)
	}
}
