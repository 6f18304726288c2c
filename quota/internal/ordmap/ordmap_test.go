package ordmap

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
)

type oracle map[uint64]int

func (o oracle) sorted() []uint64 { return slices.Sorted(maps.Keys(o)) }

func compare(t *rapid.T, m *Map[int], want oracle) {
	t.Helper()
	if m.Len() != len(want) {
		t.Fatalf("Len is %d, want %d", m.Len(), len(want))
	}
	var keys []uint64
	for key, value := range m.All() {
		keys = append(keys, key)
		if value != want[key] {
			t.Fatalf("key %d has value %d, want %d", key, value, want[key])
		}
	}
	if !slices.Equal(keys, want.sorted()) {
		t.Fatalf("keys are %v, want %v", keys, want.sorted())
	}
	var backward []uint64
	for key, value := range m.Backward() {
		backward = append(backward, key)
		if value != want[key] {
			t.Fatalf("key %d has value %d backward, want %d", key, value, want[key])
		}
	}
	slices.Reverse(backward)
	if !slices.Equal(backward, keys) {
		t.Fatalf("the keys backward are those of %v, want %v", backward, keys)
	}
	from := rapid.Uint64Range(0, 5000).Draw(t, "from")
	keys = slices.DeleteFunc(keys, func(key uint64) bool { return key < from })
	for key, value := range m.From(from) {
		if len(keys) == 0 || key != keys[0] || value != want[key] {
			t.Fatalf("from %d on, key %d has value %d, want the keys %v", from, key, value, keys)
		}
		keys = keys[1:]
	}
	if len(keys) > 0 {
		t.Fatalf("from %d on, the keys %v are missing", from, keys)
	}
	if key, _, ok := m.Min(); ok && key != want.sorted()[0] {
		t.Fatalf("Min is %d, want %d", key, want.sorted()[0])
	}
}

// TestAgainstGoMap changes a map and its clones at random and compares every one of them with a Go map at the end.
func TestAgainstGoMap(t *testing.T) {
	verify.Check(t, func(t *rapid.T) {
		type pair struct {
			m    *Map[int]
			want oracle
		}
		pairs := []pair{{new(Map[int]), oracle{}}}
		width := rapid.SampledFrom([]uint64{10, 300, 5000, 100_000}).Draw(t, "width")
		for i := range rapid.IntRange(1, 40).Draw(t, "rounds") {
			p := pairs[rapid.IntRange(0, len(pairs)-1).Draw(t, "which")]
			for range rapid.IntRange(1, 200).Draw(t, "steps") {
				key := rapid.Uint64Range(0, width).Draw(t, "key")
				if rapid.IntRange(0, 2).Draw(t, "op") > 0 {
					previous, existed := p.want[key]
					if value, replaced := p.m.Set(key, i); replaced != existed || value != previous {
						t.Fatalf("Set(%d) replaced %d %v, want %d %v", key, value, replaced, previous, existed)
					}
					p.want[key] = i
					continue
				}
				previous, existed := p.want[key]
				if value, found := p.m.Delete(key); found != existed || value != previous {
					t.Fatalf("Delete(%d) is %d %v, want %d %v", key, value, found, previous, existed)
				}
				delete(p.want, key)
			}
			clone := p.m.Clone()
			pairs = append(pairs, pair{&clone, maps.Clone(p.want)})
		}
		for _, p := range pairs {
			compare(t, p.m, p.want)
		}
	})
}

func TestGetAndFrom(t *testing.T) {
	var m Map[string]
	if _, ok := m.Get(7); ok {
		t.Error("an empty map has no key 7")
	}
	for key := uint64(10); key < 5000; key += 10 {
		m.Set(key, "x")
	}
	if _, ok := m.Get(4990); !ok {
		t.Error("key 4990 was set")
	}
	if _, ok := m.Get(4991); ok {
		t.Error("key 4991 was never set")
	}
	for key := range m.From(4981) {
		if key != 4990 {
			t.Errorf("the first key from 4981 on is %d, want 4990", key)
		}
		break
	}
}

// TestDrain deletes from the front, as tombstones go, and from the back, and must end empty.
func TestDrain(t *testing.T) {
	var m Map[int]
	const n = 10_000
	for i := range uint64(n) {
		m.Set(i, int(i))
	}
	for i := range uint64(n / 2) {
		m.Delete(i)
		m.Delete(n - 1 - i)
	}
	if m.Len() != 0 || m.buckets.root != nil {
		t.Errorf("Len is %d after everything was deleted", m.Len())
	}
}

func BenchmarkInsertDeleteAMillionLive(b *testing.B) {
	var m Map[int]
	const live = 1_000_000
	for i := range uint64(live) {
		m.Set(i, 0)
	}
	next, random := uint64(live), uint64(1)
	for b.Loop() {
		m.Set(next, 0)
		random = random*6364136223846793005 + 1442695040888963407
		m.Delete(next - live + random>>33%(live/2))
		next++
	}
}
