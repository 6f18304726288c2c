// Package ordmap keeps values in the order of integer keys and can be cloned in constant time.
//
// Neighbouring keys share a bucket of 64 slots, which a B+ tree finds. [Map.Clone] shares all buckets and pages between
// the two maps; the first one to be changed copies those that it touches. A snapshot of a million allocations therefore
// stops the writer for microseconds, and the reader of the clone needs no lock. It is ours because libraries that can
// do so were slower to write to; docs/adr/0016-ordered-map.md and 0077-memory-layout-of-allocations.md have figures.
package ordmap

// Map is an ordered map from uint64 to V. The zero value is empty and ready. It is not safe for concurrent use, but
// different clones may be used by different goroutines.
type Map[V any] struct {
	buckets tree[*bucket[V]] // by key / bucketKeys
	size    int
	// owner marks the buckets that this map may change in place; all others are shared with a clone.
	owner *owner
	// recent is the bucket of the last Set, nil if there is none: keys mostly arrive in ascending order.
	recent *bucket[V]
}

// Len is the number of keys.
func (m *Map[V]) Len() int { return m.size }

// Clone returns a map with the same content in constant time. Changes of one map do not affect the other.
func (m *Map[V]) Clone() Map[V] {
	m.owner, m.recent = new(owner), nil
	return Map[V]{buckets: m.buckets.clone(), size: m.size, owner: new(owner)}
}

// Get returns the value of a key and whether it is present.
func (m *Map[V]) Get(key uint64) (V, bool) {
	if b, found := m.buckets.get(key / bucketKeys); found {
		return b.get(key)
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

// Set stores value under key, replacing the previous value, which it returns if there was one.
func (m *Map[V]) Set(key uint64, value V) (before V, replaced bool) {
	b := m.recent
	if b == nil || b.number != key/bucketKeys {
		b = m.ownBucket(key / bucketKeys)
		m.recent = b
	}
	if before, replaced = b.set(key, value); !replaced {
		m.size++
	}
	return before, replaced
}

// ownBucket makes a bucket if there is none.
func (m *Map[V]) ownBucket(number uint64) *bucket[V] {
	if m.owner == nil {
		m.owner = new(owner)
	}
	b, found := m.buckets.get(number)
	switch {
	case !found:
		b = &bucket[V]{owner: m.owner, number: number}
	case b.owner == m.owner:
		return b
	default:
		b = b.copyFor(m.owner)
	}
	m.buckets.set(number, b)
	return b
}

// Delete removes a key and returns its value, and whether it was present.
func (m *Map[V]) Delete(key uint64) (before V, found bool) {
	b, found := m.buckets.get(key / bucketKeys)
	if !found || !b.has(key) {
		return before, false
	}
	if b.owner != m.owner {
		b = b.copyFor(m.owner)
		m.buckets.set(b.number, b)
	}
	before = b.delete(key)
	m.size--
	if b.present == 0 {
		m.buckets.remove(b.number)
		if m.recent == b {
			m.recent = nil
		}
	}
	return before, true
}
