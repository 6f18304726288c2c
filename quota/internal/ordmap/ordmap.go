// Package ordmap keeps values in the order of integer keys and can be cloned in constant time.
//
// It is a B+ tree with copy on write. [Map.Clone] shares all pages between the two maps; the first one to be changed
// copies the pages that it touches. A snapshot of a million allocations therefore stops the writer for microseconds,
// and the reader of the clone needs no lock.
package ordmap

// fanout is the number of keys in a full page. 64 keys are eight cache lines: one binary search stays cheap, and a copy
// on write copies little.
const fanout = 64

// Map is an ordered map from uint64 to V. The zero value is empty and ready. It is not safe for concurrent use, but
// different clones may be used by different goroutines.
type Map[V any] struct {
	root *page[V]
	size int
	// owner marks the pages that this map may change in place; all others are shared with a clone.
	owner *owner
}

// owner is an identity; it has a size so that two of them never share an address.
type owner struct{ _ byte }

// page is a leaf with values, or an inner page with children; children[i] holds the keys from keys[i] on.
type page[V any] struct {
	owner    *owner
	keys     []uint64
	values   []V
	children []*page[V]
	// keySpace and valueSpace hold keys and values inside the page, so that a search touches few cache lines.
	keySpace   [fanout]uint64
	valueSpace [fanout]V
}

func (p *page[V]) leaf() bool { return p.children == nil }

// Len is the number of keys.
func (m *Map[V]) Len() int { return m.size }

// Clone returns a map with the same content in constant time. Changes of one map do not affect the other.
func (m *Map[V]) Clone() Map[V] {
	m.owner = new(owner)
	return Map[V]{root: m.root, size: m.size, owner: new(owner)}
}

// Get returns the value of a key and whether it is present.
func (m *Map[V]) Get(key uint64) (V, bool) {
	p := m.root
	for p != nil && !p.leaf() {
		p = p.children[p.childFor(key)]
	}
	if p != nil {
		if i, found := p.search(key); found {
			return p.values[i], true
		}
	}
	var none V
	return none, false
}

// Min returns the smallest key with its value, and false if the map is empty.
func (m *Map[V]) Min() (uint64, V, bool) {
	for key, value := range m.From(0) {
		return key, value, true
	}
	var none V
	return 0, none, false
}

// search finds the position of key in the page and whether it is present.
func (p *page[V]) search(key uint64) (int, bool) {
	low, high := 0, len(p.keys)
	for low < high {
		middle := int(uint(low+high) >> 1)
		if p.keys[middle] < key {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, low < len(p.keys) && p.keys[low] == key
}

// childFor is the index of the child that may hold key.
func (p *page[V]) childFor(key uint64) int {
	i, found := p.search(key)
	if !found && i > 0 {
		i--
	}
	return i
}

// own returns p itself if owner may change it, or a copy that it may change.
func (p *page[V]) own(o *owner) *page[V] {
	if p.owner == o {
		return p
	}
	q := newPage[V](o, p.leaf())
	q.keys = append(q.keys, p.keys...)
	q.values = append(q.values, p.values...)
	q.children = append(q.children, p.children...)
	return q
}

func newPage[V any](o *owner, leaf bool) *page[V] {
	p := &page[V]{owner: o}
	p.keys, p.values = p.keySpace[:0], p.valueSpace[:0]
	if !leaf {
		p.children = make([]*page[V], 0, fanout)
	}
	return p
}
