package ordmap

import (
	"iter"
	"slices"
)

// From yields keys and values in ascending order, starting with the first key that is not below the given one. The map
// must not be changed during the loop.
func (m *Map[V]) From(key uint64) iter.Seq2[uint64, V] {
	return func(yield func(uint64, V) bool) {
		if m.root != nil {
			m.root.ascend(key, yield)
		}
	}
}

// All yields all keys and values in ascending order.
func (m *Map[V]) All() iter.Seq2[uint64, V] { return m.From(0) }

// ascend yields the entries that are not below key and reports whether to continue.
func (p *page[V]) ascend(key uint64, yield func(uint64, V) bool) bool {
	if p.leaf() {
		first, _ := p.search(key)
		for i := first; i < len(p.keys); i++ {
			if !yield(p.keys[i], p.values[i]) {
				return false
			}
		}
		return true
	}
	for i := p.childFor(key); i < len(p.children); i++ {
		if !p.children[i].ascend(key, yield) {
			return false
		}
	}
	return true
}

// Backward yields all keys and values in descending order. The map must not be changed during the loop.
func (m *Map[V]) Backward() iter.Seq2[uint64, V] {
	return func(yield func(uint64, V) bool) {
		if m.root != nil {
			m.root.descend(yield)
		}
	}
}

// descend yields all entries and reports whether to continue.
func (p *page[V]) descend(yield func(uint64, V) bool) bool {
	for i := len(p.keys) - 1; p.leaf() && i >= 0; i-- {
		if !yield(p.keys[i], p.values[i]) {
			return false
		}
	}
	for _, child := range slices.Backward(p.children) {
		if !child.descend(yield) {
			return false
		}
	}
	return true
}
