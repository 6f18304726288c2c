package ordmap

import "slices"

// fanout is the number of keys in a full page. 64 keys are eight cache lines: one binary search stays cheap, and a copy
// on write copies little.
const fanout = 64

// tree is a B+ tree with copy on write.
type tree[V any] struct {
	root *page[V]
	// owner marks the pages that this tree may change in place; all others are shared with a clone.
	owner *owner
}

// owner is an identity; it has a size so that two of them never share an address.
type owner struct{ _ byte }

// page is a leaf with values, or an inner page with children; children[i] has the keys from keys[i] on.
type page[V any] struct {
	owner    *owner
	keys     []uint64
	values   []V
	children []*page[V]
	// keySpace and valueSpace keep keys and values inside the page, so that a search touches few cache lines.
	keySpace   [fanout]uint64
	valueSpace [fanout]V
}

func (p *page[V]) leaf() bool { return p.children == nil }

// clone takes constant time.
func (m *tree[V]) clone() tree[V] {
	m.owner = new(owner)
	return tree[V]{root: m.root, owner: new(owner)}
}

func (m *tree[V]) get(key uint64) (V, bool) {
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

func (p *page[V]) childFor(key uint64) int {
	i, found := p.search(key)
	if !found && i > 0 {
		i--
	}
	return i
}

// own returns p itself if owner may change it, or else a copy.
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
