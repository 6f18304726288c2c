package ordmap

import (
	"iter"
	"slices"
)

// Small is a map like Map without clones, for the case that most maps have few entries: a page of a Map would be too
// large for them. Up to 32 entries are a sorted list, in which a change costs their number. More are in a Map, and stay
// there after most have been deleted. The zero value is empty and ready. It is not safe for concurrent use.
type Small[V any] struct {
	few  []entry[V] // by key; nil if there are many
	many *Map[V]
}

type entry[V any] struct {
	key   uint64
	value V
}

// mostInList is the largest number of entries in a list.
const mostInList = 32

func (s *Small[V]) search(key uint64) (int, bool) {
	low, high := 0, len(s.few)
	for low < high {
		middle := int(uint(low+high) >> 1)
		if s.few[middle].key < key {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, low < len(s.few) && s.few[low].key == key
}

// Set stores value under key, replacing the previous value.
func (s *Small[V]) Set(key uint64, value V) {
	if s.many != nil {
		s.many.Set(key, value)
		return
	}
	i, found := s.search(key)
	if found {
		s.few[i].value = value
		return
	}
	s.few = slices.Insert(s.few, i, entry[V]{key, value})
	if len(s.few) > mostInList {
		s.many = &Map[V]{}
		for _, e := range s.few {
			s.many.Set(e.key, e.value)
		}
		s.few = nil
	}
}

// Delete removes a key and reports whether it was present.
func (s *Small[V]) Delete(key uint64) bool {
	if s.many != nil {
		_, found := s.many.Delete(key)
		return found
	}
	i, found := s.search(key)
	if found {
		s.few = slices.Delete(s.few, i, i+1)
	}
	return found
}

// Get returns the value of a key and whether it is present.
func (s *Small[V]) Get(key uint64) (value V, found bool) {
	if s.many != nil {
		return s.many.Get(key)
	}
	if i, found := s.search(key); found {
		return s.few[i].value, true
	}
	return value, false
}

// Min returns the smallest key with its value, and false if the map is empty.
func (s *Small[V]) Min() (key uint64, value V, found bool) {
	if s.many != nil {
		return s.many.Min()
	}
	if len(s.few) == 0 {
		return 0, value, false
	}
	return s.few[0].key, s.few[0].value, true
}

// Len is the number of keys.
func (s *Small[V]) Len() int {
	if s.many != nil {
		return s.many.Len()
	}
	return len(s.few)
}

// All yields all keys and values in ascending order. The map must not be changed during the loop.
func (s *Small[V]) All() iter.Seq2[uint64, V] {
	if s.many != nil {
		return s.many.All()
	}
	return func(yield func(uint64, V) bool) {
		for _, e := range s.few {
			if !yield(e.key, e.value) {
				return
			}
		}
	}
}
