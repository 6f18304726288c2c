package ordmap

import (
	"math/bits"
	"slices"
)

// bucketKeys is the number of neighbouring keys that share a bucket: as many as a word has bits.
const bucketKeys = 64

// A bucket is dense, with a slot for each of its keys, or sparse, with a slot for each key that is present. It becomes
// dense with more than mostSparse keys and sparse again with fewer than fewestDense, so that a bucket with one key of
// 64 does not cost 64 slots. A change of a dense bucket moves no other value.
const (
	mostSparse  = 16
	fewestDense = 8
)

type bucket[V any] struct {
	owner   *owner
	number  uint64 // key / bucketKeys
	present uint64 // a bit for each key
	slots   []V    // in the order of keys; bucketKeys slots if the bucket is dense
}

func (b *bucket[V]) isDense() bool { return len(b.slots) == bucketKeys }

// slot is the index of the slot of a key that is present, or of where it would be inserted.
func (b *bucket[V]) slot(key uint64) int {
	place := key % bucketKeys
	if b.isDense() {
		return int(place)
	}
	return bits.OnesCount64(b.present & (1<<place - 1))
}

func (b *bucket[V]) has(key uint64) bool { return b.present&(1<<(key%bucketKeys)) != 0 }

func (b *bucket[V]) get(key uint64) (value V, found bool) {
	if b.has(key) {
		return b.slots[b.slot(key)], true
	}
	return value, false
}

// set stores a value in an owned bucket, and returns the previous one if there was one.
func (b *bucket[V]) set(key uint64, value V) (before V, replaced bool) {
	if b.has(key) {
		at := b.slot(key)
		before, b.slots[at] = b.slots[at], value
		return before, true
	}
	if !b.isDense() && len(b.slots) == mostSparse {
		b.makeDense()
	}
	if b.isDense() {
		b.slots[key%bucketKeys] = value
	} else {
		b.slots = slices.Insert(b.slots, b.slot(key), value)
	}
	b.present |= 1 << (key % bucketKeys)
	return before, false
}

func (b *bucket[V]) makeDense() {
	dense := make([]V, bucketKeys)
	for i, rest := 0, b.present; rest != 0; i, rest = i+1, rest&(rest-1) {
		dense[bits.TrailingZeros64(rest)] = b.slots[i]
	}
	b.slots = dense
}

// delete expects an owned bucket, and a key that is present.
func (b *bucket[V]) delete(key uint64) V {
	at := b.slot(key)
	before := b.slots[at]
	b.present &^= 1 << (key % bucketKeys)
	if !b.isDense() {
		b.slots = slices.Delete(b.slots, at, at+1)
		return before
	}
	var none V
	b.slots[at] = none
	if bits.OnesCount64(b.present) < fewestDense {
		b.makeSparse()
	}
	return before
}

func (b *bucket[V]) makeSparse() {
	sparse := make([]V, 0, fewestDense)
	for rest := b.present; rest != 0; rest &= rest - 1 {
		sparse = append(sparse, b.slots[bits.TrailingZeros64(rest)])
	}
	b.slots = sparse
}

func (b *bucket[V]) copyFor(o *owner) *bucket[V] {
	return &bucket[V]{owner: o, number: b.number, present: b.present, slots: slices.Clone(b.slots)}
}

// ascend yields the entries that are not below key and reports whether to continue.
func (b *bucket[V]) ascend(key uint64, yield func(uint64, V) bool) bool {
	rest := b.present
	if first := b.number * bucketKeys; key > first {
		rest &^= 1<<(key-first) - 1
	}
	for ; rest != 0; rest &= rest - 1 {
		at := b.number*bucketKeys + uint64(bits.TrailingZeros64(rest))
		if !yield(at, b.slots[b.slot(at)]) {
			return false
		}
	}
	return true
}

// descend yields all entries and reports whether to continue.
func (b *bucket[V]) descend(yield func(uint64, V) bool) bool {
	for rest := b.present; rest != 0; {
		place := uint64(bits.Len64(rest) - 1)
		at := b.number*bucketKeys + place
		if !yield(at, b.slots[b.slot(at)]) {
			return false
		}
		rest &^= 1 << place
	}
	return true
}
