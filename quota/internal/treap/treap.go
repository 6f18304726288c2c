// Package treap is an ordered index that finds the first value whose amounts fit.
//
// It is ours because no general tree keeps the least amounts of its subtrees, of several resources at once: without
// them, finding the first value that fits would visit every value before it.
package treap

import "slices"

// Tree has values by unique uint64 keys in ascending order, so there are no ties. Each value has a vector of weights,
// all of the same length in one tree. The zero value is empty and ready. It is not safe for concurrent use.
//
// It is a treap: a binary tree by key, and a heap by a hash of the key. The hash keeps it shallow for every order of
// insertion and gives it the same shape on all replicas. With n values, an insertion and a removal cost a logarithm of
// n on average. A search visits only subtrees whose least weights fit; with one resource this is a logarithm of n too.
type Tree[V any, W ~int64] struct {
	top *Node[V, W]
}

// Node is the place of one value in a tree. The caller allocates it, as a part of the value perhaps, and may insert it
// again, under any key, after it was deleted.
type Node[V any, W ~int64] struct {
	Value         V
	key           uint64
	before, after *Node[V, W]
	weights       []W
	least         []W // of the subtree, by index
}

// NewNode returns a node that is in no tree. It keeps the weights, which must not change.
func NewNode[V any, W ~int64](value V, weights []W) Node[V, W] {
	return Node[V, W]{Value: value, weights: weights, least: slices.Clone(weights)}
}

// Insert adds a node that is in no tree. The key must not be in the tree.
func (t *Tree[V, W]) Insert(key uint64, n *Node[V, W]) {
	n.key, n.before, n.after = key, nil, nil
	n.sum()
	before, after := t.top.cut(key)
	t.top = before.join(n).join(after)
}

// Delete removes the node with a key, if there is one.
func (t *Tree[V, W]) Delete(key uint64) {
	before, from := t.top.cut(key)
	_, after := from.cut(key + 1)
	t.top = before.join(after)
}

// FirstFitting returns the value with the lowest key whose weights fit, and false if there is none. If fits is true for
// some weights, it must be true for all that are nowhere larger.
func (t *Tree[V, W]) FirstFitting(fits func([]W) bool) (value V, found bool) {
	if n := t.top.firstFitting(fits); n != nil {
		return n.Value, true
	}
	return value, false
}

func (n *Node[V, W]) firstFitting(fits func([]W) bool) *Node[V, W] {
	if n == nil || !fits(n.least) {
		return nil
	}
	if before := n.before.firstFitting(fits); before != nil {
		return before
	}
	if fits(n.weights) {
		return n
	}
	return n.after.firstFitting(fits)
}

// cut splits a subtree into the nodes before a key, and the others.
func (n *Node[V, W]) cut(key uint64) (before, from *Node[V, W]) {
	switch {
	case n == nil:
		return nil, nil
	case n.key < key:
		n.after, from = n.after.cut(key)
		before = n
	default:
		before, n.before = n.before.cut(key)
		from = n
	}
	n.sum()
	return before, from
}

// join needs that all keys of the first subtree are below those of the other.
func (n *Node[V, W]) join(other *Node[V, W]) *Node[V, W] {
	switch {
	case n == nil:
		return other
	case other == nil:
		return n
	case hash(n.key) > hash(other.key):
		n.after = n.after.join(other)
		n.sum()
		return n
	default:
		other.before = n.join(other.before)
		other.sum()
		return other
	}
}

// hash is the heap priority of a key: the finalizer of splitmix64.
func hash(key uint64) uint64 {
	x := key * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (n *Node[V, W]) sum() {
	for i, least := range n.weights {
		if n.before != nil {
			least = min(least, n.before.least[i])
		}
		if n.after != nil {
			least = min(least, n.after.least[i])
		}
		n.least[i] = least
	}
}

// IsSound verifies that the keys are in order and every node knows the least weights of its subtree, and calls visit
// with every key and value, in order, until it answers false.
func (t *Tree[V, W]) IsSound(visit func(key uint64, value V) bool) bool {
	last, some := uint64(0), false
	return t.top.isSound(func(n *Node[V, W]) bool {
		if some && n.key <= last {
			return false
		}
		last, some = n.key, true
		return visit(n.key, n.Value)
	})
}

func (n *Node[V, W]) isSound(visit func(*Node[V, W]) bool) bool {
	if n == nil {
		return true
	}
	again := *n
	again.least = slices.Clone(n.least)
	again.sum()
	return slices.Equal(again.least, n.least) && n.before.isSound(visit) && visit(n) && n.after.isSound(visit)
}
