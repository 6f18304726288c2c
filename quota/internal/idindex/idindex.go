// Package idindex finds elements by the texts that identify them.
//
// It replaces a Go map from text to pointer where there are millions: a slot has a pointer and 32 bits of a hash, so a
// search touches one cache line of the index and one element, replacing an element touches no text, and removing one
// neither. docs/adr/0077-memory-layout-of-allocations.md has the figures.
package idindex

// Element is a pointer to what an index has. Its ID never changes, and its Hash is [Hash] of its ID: elements keep
// it, because a text that was not read for minutes is not in any cache.
type Element interface {
	comparable
	ID() string
	Hash() uint64
}

// segments divide an index by the upper bits of the hash. Each grows on its own, so no insertion moves more than a
// 256th of the elements.
const (
	segmentBits = 8
	segments    = 1 << segmentBits
)

// smallest is the number of slots of the smallest segment that is not empty.
const smallest = 8

// farthest bounds the distance of an element from where its hash would have it. Hashes that are not chosen to collide
// hardly ever reach it while a third of the slots is empty; what does goes to a Go map.
const farthest = 128

// Index has elements, at most one for each ID. Make one with New. It is not safe for concurrent use.
type Index[E Element] struct {
	segments [segments]segment[E]
	size     int
}

// segment is a hash table with linear probing. The number of its slots is a power of two, or 0.
type segment[E Element] struct {
	slots    []slot[E]
	used     int          // slots
	overflow map[string]E // what found no slot near enough; nil for most
}

// slot keeps the lower bits of the hash: they tell most elements apart without a call of ID.
type slot[E Element] struct {
	element E
	hash    uint32
}

// New returns an empty index.
func New[E Element]() *Index[E] { return &Index[E]{} }

// Len is the number of elements.
func (x *Index[E]) Len() int { return x.size }

func (x *Index[E]) segment(hash uint64) *segment[E] { return &x.segments[hash>>(64-segmentBits)] }

// Find returns the element with an ID, or the zero value.
func (x *Index[E]) Find(id string) E {
	hash := Hash(id)
	return x.segment(hash).find(id, uint32(hash))
}

func (s *segment[E]) find(id string, hash uint32) E {
	var none E
	mask := uint32(len(s.slots) - 1)
	for distance := range min(uint32(len(s.slots)), farthest) {
		found := &s.slots[(hash+distance)&mask]
		if found.element == none {
			break
		}
		if found.hash == hash && found.element.ID() == id {
			return found.element
		}
	}
	if s.overflow == nil {
		return none
	}
	return s.overflow[id]
}

// Put adds an element, replacing the one with the same ID.
func (x *Index[E]) Put(e E) {
	s := x.segment(e.Hash())
	if (s.used+1)*3 > len(s.slots)*2 {
		s.resize(max(smallest, 2*len(s.slots)))
	}
	if s.put(e, uint32(e.Hash())) {
		x.size++
	}
}

// put reports whether the ID is new.
func (s *segment[E]) put(e E, hash uint32) bool {
	if _, found := s.overflow[e.ID()]; found {
		s.overflow[e.ID()] = e
		return false
	}
	var none E
	mask := uint32(len(s.slots) - 1)
	for distance := range min(mask+1, farthest) {
		switch found := &s.slots[(hash+distance)&mask]; {
		case found.element == none:
			*found = slot[E]{e, hash}
			s.used++
			return true
		case found.hash == hash && found.element.ID() == e.ID():
			found.element = e
			return false
		}
	}
	if s.overflow == nil {
		s.overflow = map[string]E{}
	}
	s.overflow[e.ID()] = e
	return true
}

// Remove removes an element and reports whether it was present. Another element with the same ID stays.
func (x *Index[E]) Remove(e E) bool {
	s := x.segment(e.Hash())
	if !s.remove(e, uint32(e.Hash())) {
		return false
	}
	x.size--
	if len(s.slots) > smallest && s.used*8 < len(s.slots) {
		s.resize(len(s.slots) / 2)
	}
	return true
}

func (s *segment[E]) remove(e E, hash uint32) bool {
	var none E
	mask := uint32(len(s.slots) - 1)
	for distance := range min(uint32(len(s.slots)), farthest) {
		switch at := (hash + distance) & mask; s.slots[at].element {
		case e:
			s.clear(at)
			s.used--
			return true
		case none:
			return s.removeOverflow(e)
		}
	}
	return s.removeOverflow(e)
}

func (s *segment[E]) removeOverflow(e E) bool {
	if s.overflow == nil || s.overflow[e.ID()] != e {
		return false
	}
	delete(s.overflow, e.ID())
	if len(s.overflow) == 0 {
		s.overflow = nil
	}
	return true
}

// clear empties a slot and moves back the elements behind it that would not be found any more.
func (s *segment[E]) clear(at uint32) {
	var none E
	mask := uint32(len(s.slots) - 1)
	for next := (at + 1) & mask; s.slots[next].element != none; next = (next + 1) & mask {
		home := s.slots[next].hash & mask
		if (next-home)&mask >= (next-at)&mask {
			s.slots[at] = s.slots[next]
			at = next
		}
	}
	s.slots[at] = slot[E]{}
}

// resize moves all elements to another number of slots, which must be more than they are.
func (s *segment[E]) resize(slots int) {
	before, overflow := s.slots, s.overflow
	s.slots, s.used, s.overflow = make([]slot[E], slots), 0, nil
	var none E
	for _, moved := range before {
		if moved.element != none {
			s.put(moved.element, moved.hash)
		}
	}
	for _, e := range overflow { // the order decides which of them overflow again, not what the index answers
		s.put(e, uint32(e.Hash()))
	}
}
