package persist

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
)

// TestMapAgainstGoMap compares random changes with a Go map, checks that older versions stay as they were, and that
// equal content has equal structure.
func TestMapAgainstGoMap(t *testing.T) {
	verify.Check(t, func(t *rapid.T) {
		var m Map[int]
		want := map[string]int{}
		type version struct {
			m    Map[int]
			want map[string]int
		}
		var versions []version
		for step := range rapid.IntRange(1, 60).Draw(t, "steps") {
			key := rapid.StringMatching("[a-c]{0,2}").Draw(t, "key")
			if rapid.Bool().Draw(t, "remove") {
				m = m.Without(key)
				delete(want, key)
			} else {
				m = m.With(key, step)
				want[key] = step
			}
			versions = append(versions, version{m, maps.Clone(want)})
		}
		for _, v := range versions {
			keys := slices.Sorted(maps.Keys(v.want))
			var got []string
			var fresh Map[int]
			for key, value := range v.m.All() {
				got = append(got, key)
				fresh = fresh.With(key, value)
				if found, ok := v.m.Get(key); !ok || found != value || value != v.want[key] {
					t.Fatalf("%q is %d, %v; want %d", key, found, ok, v.want[key])
				}
			}
			if !slices.Equal(got, keys) || v.m.Len() != len(keys) {
				t.Fatalf("%d keys %q, want %q", v.m.Len(), got, keys)
			}
			if !reflect.DeepEqual(fresh, v.m) {
				t.Fatalf("the structure of %q depends on the order of changes", keys)
			}
		}
	})
}

// TestTrieAgainstGoMap is the same for tries, with keys that share many bits.
func TestTrieAgainstGoMap(t *testing.T) {
	verify.Check(t, func(t *rapid.T) {
		var trie Trie[int]
		want := map[uint64]int{}
		keys := rapid.SampledFrom([]uint64{0, 1, 2, 16, 17, 1 << 60, 1<<60 | 1, 1 << 63, 1<<64 - 1, 1<<64 - 2})
		for step := range rapid.IntRange(1, 60).Draw(t, "steps") {
			key, before, old := keys.Draw(t, "key"), trie, maps.Clone(want)
			if rapid.Bool().Draw(t, "remove") {
				trie = trie.Without(key)
				delete(want, key)
			} else {
				trie = trie.With(key, step)
				want[key] = step
			}
			compareTrie(t, before, old)
			compareTrie(t, trie, want)
		}
	})
}

func compareTrie(t *rapid.T, trie Trie[int], want map[uint64]int) {
	keys := slices.Sorted(maps.Keys(want))
	var got []uint64
	var fresh Trie[int]
	for key, value := range trie.All() {
		got = append(got, key)
		fresh = fresh.With(key, value)
		if found, ok := trie.Get(key); !ok || found != value || value != want[key] {
			t.Fatalf("%d is %d, %v; want %d", key, found, ok, want[key])
		}
	}
	if !slices.Equal(got, keys) || trie.Len() != len(keys) {
		t.Fatalf("%d keys %d, want %d", trie.Len(), got, keys)
	}
	if !reflect.DeepEqual(fresh, trie) {
		t.Fatalf("the structure of %d depends on the order of changes", keys)
	}
	if _, found := trie.Get(99); found {
		t.Fatal("99 was found")
	}
}

// TestAllStops checks that iterations end when their caller ends them.
func TestAllStops(t *testing.T) {
	var m Map[int]
	var trie Trie[int]
	for i := range 20 {
		m, trie = m.With(fmt.Sprint(i), i), trie.With(uint64(i), i)
	}
	visited := 0
	for range m.All() {
		if visited++; visited == 3 {
			break
		}
	}
	for range trie.All() {
		if visited++; visited == 6 {
			break
		}
	}
	if visited != 6 {
		t.Errorf("%d keys were visited, want 6", visited)
	}
}

func BenchmarkTrieGet(b *testing.B) {
	var trie Trie[int]
	keys := make([]uint64, 80_000)
	state := uint64(1)
	for i := range keys {
		state = state*6364136223846793005 + 1442695040888963407
		keys[i] = state ^ state>>29
		trie = trie.With(keys[i], i)
	}
	for i := 0; b.Loop(); i++ {
		if _, found := trie.Get(keys[i%len(keys)]); !found {
			b.Fatal("lost")
		}
	}
}

func BenchmarkTrieWith(b *testing.B) {
	var trie Trie[int]
	for i := range 80_000 {
		trie = trie.With(rank(fmt.Sprint(i)), i)
	}
	for i := 0; b.Loop(); i++ {
		trie.With(rank(fmt.Sprint(i)), i)
	}
}

func BenchmarkMapWith(b *testing.B) {
	var m Map[int]
	for i := range 10_000 {
		m = m.With(fmt.Sprint(i), i)
	}
	for i := 0; b.Loop(); i++ {
		m.With("5000", i)
	}
}
