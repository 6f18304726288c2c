package ordmap

import "iter"

// From yields keys and values in ascending order, starting with the first key that is not below the given one. The map
// must not be changed during the loop.
func (m *Map[V]) From(key uint64) iter.Seq2[uint64, V] {
	return func(yield func(uint64, V) bool) {
		if m.buckets.root == nil {
			return
		}
		m.buckets.root.ascend(key/bucketKeys, func(_ uint64, b *bucket[V]) bool { return b.ascend(key, yield) })
	}
}

// All yields all keys and values in ascending order.
func (m *Map[V]) All() iter.Seq2[uint64, V] { return m.From(0) }

// Backward yields all keys and values in descending order. The map must not be changed during the loop.
func (m *Map[V]) Backward() iter.Seq2[uint64, V] {
	return func(yield func(uint64, V) bool) {
		if m.buckets.root == nil {
			return
		}
		m.buckets.root.descend(func(_ uint64, b *bucket[V]) bool { return b.descend(yield) })
	}
}
