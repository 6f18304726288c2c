package persist

import "iter"

// Trie is an immutable map from 64-bit keys to values. A look-up visits one branch for each 4 bits that other keys
// share, at most 16: for keys that were drawn at random, about 4 with 80,000 keys. The zero value is empty.
type Trie[V any] struct {
	root branch[V]
	size int
}

// branch has a child for each value of 4 bits, the highest bits first.
type branch[V any] struct {
	children [16]child[V]
}

// child is nothing, a single key, or a branch with at least two keys.
type child[V any] struct {
	leaf   *leaf[V]
	branch *branch[V]
}

type leaf[V any] struct {
	key   uint64
	value V
}

// Len is the number of keys.
func (t *Trie[V]) Len() int { return t.size }

// Get returns the value of a key and whether it is present.
func (t *Trie[V]) Get(key uint64) (V, bool) {
	b := &t.root
	for shift := 60; ; shift -= 4 {
		c := &b.children[key>>shift&15]
		if c.leaf != nil && c.leaf.key == key {
			return c.leaf.value, true
		}
		if c.branch == nil {
			var none V
			return none, false
		}
		b = c.branch
	}
}

// With returns the trie with a value under a key.
func (t Trie[V]) With(key uint64, value V) Trie[V] {
	if _, found := t.Get(key); !found {
		t.size++
	}
	t.root = *t.root.with(60, &leaf[V]{key: key, value: value})
	return t
}

// Without returns the trie without a key, which may be absent.
func (t Trie[V]) Without(key uint64) Trie[V] {
	if _, found := t.Get(key); found {
		t.size--
		t.root = *t.root.without(60, key)
	}
	return t
}

// All yields keys and values in the order of the keys.
func (t Trie[V]) All() iter.Seq2[uint64, V] {
	return func(yield func(uint64, V) bool) { t.root.visit(yield) }
}

func (b *branch[V]) with(shift int, added *leaf[V]) *branch[V] {
	changed := *b
	switch c := &changed.children[added.key>>shift&15]; {
	case c.branch != nil:
		c.branch = c.branch.with(shift-4, added)
	case c.leaf != nil && c.leaf.key != added.key:
		c.branch = new(branch[V]).with(shift-4, c.leaf).with(shift-4, added)
		c.leaf = nil
	default:
		c.leaf = added
	}
	return &changed
}

// without removes a key that the branch has. A branch with a single key becomes that key, as if no other had been.
func (b *branch[V]) without(shift int, key uint64) *branch[V] {
	changed := *b
	c := &changed.children[key>>shift&15]
	if c.branch == nil {
		c.leaf = nil
		return &changed
	}
	c.branch = c.branch.without(shift-4, key)
	if single := c.branch.single(); single != nil {
		c.leaf, c.branch = single, nil
	}
	return &changed
}

// single is nil if the branch has several keys.
func (b *branch[V]) single() *leaf[V] {
	var found *leaf[V]
	for _, c := range b.children {
		if c.branch != nil || c.leaf != nil && found != nil {
			return nil
		}
		if c.leaf != nil {
			found = c.leaf
		}
	}
	return found
}

// visit returns false if yield did.
func (b *branch[V]) visit(yield func(uint64, V) bool) bool {
	for _, c := range b.children {
		if c.leaf != nil && !yield(c.leaf.key, c.leaf.value) || c.branch != nil && !c.branch.visit(yield) {
			return false
		}
	}
	return true
}
