package ordmap

import "slices"

func (m *tree[V]) set(key uint64, value V) {
	if m.owner == nil {
		m.owner = new(owner)
	}
	if m.root == nil {
		m.root = newPage[V](m.owner, true)
	}
	m.root = m.root.own(m.owner)
	m.root.set(m.owner, key, value)
	if len(m.root.keys) == fanout {
		left := m.root
		right := left.split(m.owner)
		m.root = newPage[V](m.owner, false)
		m.root.keys = append(m.root.keys, left.keys[0], right.keys[0])
		m.root.children = append(m.root.children, left, right)
	}
}

// set expects an owned page that is not full.
func (p *page[V]) set(o *owner, key uint64, value V) {
	if p.leaf() {
		i, found := p.search(key)
		if found {
			p.values[i] = value
			return
		}
		p.keys = slices.Insert(p.keys, i, key)
		p.values = slices.Insert(p.values, i, value)
		return
	}
	i := p.childFor(key)
	child := p.children[i].own(o)
	p.children[i] = child
	p.keys[i] = min(p.keys[i], key)
	child.set(o, key, value)
	if len(child.keys) == fanout {
		right := child.split(o)
		p.keys = slices.Insert(p.keys, i+1, right.keys[0])
		p.children = slices.Insert(p.children, i+1, right)
	}
}

// split moves the upper part of a full owned page to a new one. It moves only an eighth: keys mostly arrive in
// ascending order, and the left page then stays as full as it is.
func (p *page[V]) split(o *owner) *page[V] {
	at := fanout * 7 / 8
	right := newPage[V](o, p.leaf())
	right.keys = append(right.keys, p.keys[at:]...)
	p.keys = p.keys[:at]
	if p.leaf() {
		right.values = append(right.values, p.values[at:]...)
		clear(p.values[at:])
		p.values = p.values[:at]
	} else {
		right.children = append(right.children, p.children[at:]...)
		clear(p.children[at:])
		p.children = p.children[:at]
	}
	return right
}

// remove expects that the key is present.
func (m *tree[V]) remove(key uint64) {
	m.root = m.root.own(m.owner)
	m.root.delete(m.owner, key)
	for m.root != nil && !m.root.leaf() && len(m.root.children) == 1 {
		m.root = m.root.children[0]
	}
	if m.root != nil && len(m.root.keys) == 0 {
		m.root = nil
	}
}

func (p *page[V]) delete(o *owner, key uint64) {
	if p.leaf() {
		i, _ := p.search(key)
		p.keys = slices.Delete(p.keys, i, i+1)
		p.values = slices.Delete(p.values, i, i+1)
		return
	}
	i := p.childFor(key)
	child := p.children[i].own(o)
	p.children[i] = child
	child.delete(o, key)
	switch {
	case len(child.keys) == 0:
		p.removeChild(i)
	case len(child.keys) < fanout/4:
		p.mergeAround(o, i)
	}
}

// mergeAround joins child i with a neighbour if both fit in three quarters of a page, which prevents almost empty
// pages.
func (p *page[V]) mergeAround(o *owner, i int) {
	for _, left := range [...]int{i - 1, i} {
		if left < 0 || left+1 >= len(p.children) {
			continue
		}
		if len(p.children[left].keys)+len(p.children[left+1].keys) > fanout*3/4 {
			continue
		}
		joined, right := p.children[left].own(o), p.children[left+1]
		joined.keys = append(joined.keys, right.keys...)
		joined.values = append(joined.values, right.values...)
		joined.children = append(joined.children, right.children...)
		p.children[left] = joined
		p.removeChild(left + 1)
		return
	}
}

func (p *page[V]) removeChild(i int) {
	p.keys = slices.Delete(p.keys, i, i+1)
	p.children = slices.Delete(p.children, i, i+1)
}
