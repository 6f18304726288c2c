package idindex

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
)

type person struct {
	id   string
	hash uint64
}

func (p *person) ID() string   { return p.id }
func (p *person) Hash() uint64 { return p.hash }

func newPerson(id string) *person { return &person{id, Hash(id)} }

// TestAgainstGoMap changes an index at random and compares it with a Go map.
func TestAgainstGoMap(t *testing.T) {
	verify.Check(t, func(t *rapid.T) {
		x, want := New[*person](), map[string]*person{}
		width := rapid.SampledFrom([]int{5, 300, 20_000}).Draw(t, "width")
		for range rapid.IntRange(1, 3000).Draw(t, "steps") {
			id := fmt.Sprint("id-", rapid.IntRange(0, width).Draw(t, "id"))
			if x.Find(id) != want[id] {
				t.Fatalf("Find(%s) is %v, want %v", id, x.Find(id), want[id])
			}
			switch rapid.IntRange(0, 4).Draw(t, "op") {
			case 0:
				if x.Remove(newPerson(id)) {
					t.Fatalf("Remove removed another element of %s", id)
				}
			case 1, 2:
				p := want[id]
				if p == nil {
					p = newPerson(id)
				}
				if x.Remove(p) != (want[id] != nil) {
					t.Fatalf("Remove(%s) did not report whether it was present", id)
				}
				delete(want, id)
			default:
				want[id] = newPerson(id)
				x.Put(want[id])
			}
			if x.Len() != len(want) {
				t.Fatalf("Len is %d, want %d", x.Len(), len(want))
			}
		}
		for id, p := range want {
			if x.Find(id) != p {
				t.Fatalf("Find(%s) is %v, want %v", id, x.Find(id), p)
			}
		}
	})
}

// TestCollisions fills one segment with elements of few hashes, more than may be near them, and compares it with a Go
// map. The hashes also wrap around the end of the segment.
func TestCollisions(t *testing.T) {
	verify.Check(t, func(t *rapid.T) {
		var s segment[*person]
		s.resize(1024) // slots, and never more: the load is not what is tested
		want, overflowed := map[string]*person{}, false
		hashOf := func(id int) uint32 { return []uint32{0, 1, 1000, 1023, 1024, 5000}[id%6] }
		for range rapid.IntRange(1, 3000).Draw(t, "steps") {
			number := rapid.IntRange(0, 700).Draw(t, "id")
			id, hash := fmt.Sprint(number), hashOf(number)
			if p := want[id]; p != nil && rapid.IntRange(0, 3).Draw(t, "op") == 0 {
				if s.remove(&person{id: id}, hash) {
					t.Fatalf("another element %s was removed", id)
				}
				if !s.remove(p, hash) {
					t.Fatalf("%s was not removed", id)
				}
				delete(want, id)
			} else {
				isNew := want[id] == nil
				want[id] = &person{id: id}
				if s.put(want[id], hash) != isNew {
					t.Fatalf("put did not report that %s is new: %v", id, isNew)
				}
			}
			overflowed = overflowed || s.overflow != nil
			if got := s.find(id, hash); got != want[id] {
				t.Fatalf("%s is %v, want %v", id, got, want[id])
			}
		}
		for number := range 701 {
			id := fmt.Sprint(number)
			if got := s.find(id, hashOf(number)); got != want[id] {
				t.Fatalf("%s is %v, want %v", id, got, want[id])
			}
		}
		if s.used+len(s.overflow) != len(want) || len(want) > 600 && !overflowed {
			t.Fatalf("%d slots and %d others for %d elements", s.used, len(s.overflow), len(want))
		}
	})
}

// TestHashSpreads: ids that differ in little are spread over segments and slots, so that hardly any overflows.
func TestHashSpreads(t *testing.T) {
	for name, id := range map[string]func(int) string{
		"numbers":      func(i int) string { return fmt.Sprint(i) },
		"padded":       func(i int) string { return fmt.Sprintf("job-%012d", i) },
		"long":         func(i int) string { return fmt.Sprintf("namespace/of-a-team/%d/the-same-end-of-all-of-them", i) },
		"zero bytes":   func(i int) string { return string(make([]byte, i%100)) + fmt.Sprint(i) },
		"short binary": func(i int) string { return string([]byte{byte(i), byte(i >> 8), byte(i >> 16)}) },
	} {
		x := New[*person]()
		for i := range 200_000 {
			x.Put(newPerson(id(i)))
		}
		for i := range x.segments {
			if s := &x.segments[i]; len(s.overflow) > 1 || s.used < 500 || s.used > 1100 {
				t.Errorf("%s: a segment has %d elements, and %d overflow", name, s.used, len(s.overflow))
			}
		}
	}
}

// TestShrinks empties a large index, which must give back its slots.
func TestShrinks(t *testing.T) {
	x := New[*person]()
	var in []*person
	for i := range 100_000 {
		in = append(in, newPerson(fmt.Sprint(i)))
		x.Put(in[i])
	}
	for _, p := range in {
		x.Remove(p)
	}
	for i := range x.segments {
		if n := len(x.segments[i].slots); n > smallest {
			t.Fatalf("an empty segment has %d slots", n)
		}
	}
}

func BenchmarkReplaceAMillionLive(b *testing.B) {
	const live = 1_000_000
	in := make([]*person, live)
	x := New[*person]()
	for i := range in {
		in[i] = newPerson(fmt.Sprintf("job-%012d", i))
		x.Put(in[i])
	}
	random := uint64(1)
	for b.Loop() {
		random = random*6364136223846793005 + 1442695040888963407
		p := in[random>>33%live]
		x.Remove(p)
		x.Put(p)
	}
}
