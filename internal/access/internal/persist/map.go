// Package persist has immutable containers whose versions share what is equal in them.
//
// A change returns a new version in logarithmic time and leaves the old one as it is, so a reader may keep a version
// for as long as it likes, and taking a change back is keeping the version before it. Equal content has equal structure
// after any order of changes, and iteration is in the order of the keys.
package persist

import "iter"

// Map is an immutable map from texts to values. The zero value is empty.
type Map[V any] struct {
	root *node[V]
	size int
}

// node belongs to a treap: keys are ordered from left to right, ranks decrease from the root down. Ranks are hashes of
// the keys, so that the shape depends on the content alone.
type node[V any] struct {
	key         string
	rank        uint64
	value       V
	left, right *node[V]
}

// Len is the number of keys.
func (m Map[V]) Len() int { return m.size }

// Get returns the value of a key and whether it is present.
func (m Map[V]) Get(key string) (V, bool) {
	for n := m.root; n != nil; {
		switch {
		case key == n.key:
			return n.value, true
		case key < n.key:
			n = n.left
		default:
			n = n.right
		}
	}
	var none V
	return none, false
}

// With returns the map with a value under a key.
func (m Map[V]) With(key string, value V) Map[V] {
	if _, found := m.Get(key); !found {
		m.size++
	}
	m.root = m.root.with(&node[V]{key: key, rank: rank(key), value: value})
	return m
}

// Without returns the map without a key, which may be absent.
func (m Map[V]) Without(key string) Map[V] {
	if _, found := m.Get(key); found {
		m.size--
		m.root = m.root.without(key)
	}
	return m
}

// All yields keys and values in the order of the keys.
func (m Map[V]) All() iter.Seq2[string, V] {
	return func(yield func(string, V) bool) { m.root.visit(yield) }
}

// with copies all nodes on the way; n may be nil.
func (n *node[V]) with(added *node[V]) *node[V] {
	if n == nil {
		return added
	}
	c := *n
	switch {
	case added.key == n.key:
		c.value = added.value
	case added.key < n.key:
		c.left = n.left.with(added)
		if up := c.left; isAbove(up, &c) {
			c.left, up.right = up.right, &c
			return up
		}
	default:
		c.right = n.right.with(added)
		if up := c.right; isAbove(up, &c) {
			c.right, up.left = up.left, &c
			return up
		}
	}
	return &c
}

// isAbove orders ranks, and keys of equal rank.
func isAbove[V any](a, b *node[V]) bool { return a.rank > b.rank || a.rank == b.rank && a.key < b.key }

// without expects that the tree has the key.
func (n *node[V]) without(key string) *node[V] {
	if key == n.key {
		return join(n.left, n.right)
	}
	c := *n
	if key < n.key {
		c.left = n.left.without(key)
	} else {
		c.right = n.right.without(key)
	}
	return &c
}

// join expects that all keys of left are smaller.
func join[V any](left, right *node[V]) *node[V] {
	switch {
	case left == nil:
		return right
	case right == nil:
		return left
	}
	if isAbove(left, right) {
		c := *left
		c.right = join(left.right, right)
		return &c
	}
	c := *right
	c.left = join(left, right.left)
	return &c
}

// visit returns false if yield did.
func (n *node[V]) visit(yield func(string, V) bool) bool {
	return n == nil || n.left.visit(yield) && yield(n.key, n.value) && n.right.visit(yield)
}

// rank is the FNV-1a hash of a key with its bits mixed.
func rank(key string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(key) {
		h = (h ^ uint64(key[i])) * 1099511628211
	}
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	return h ^ h>>33
}
