package ledger

// nodeMark is a node's place in the list of its tree.
type nodeMark struct {
	// changed is the index of the last entry that changed the node, 0 for none; only then it is in the list. queued is
	// that of the last one that changed a request which waits there.
	changed, queued uint64
	newer, older    *node
}

// treeMarks lists the changed nodes of a tree.
type treeMarks struct {
	newest *node
	// many is the index of the last entry after which any node may have changed; the list has none from before it. queued
	// is the last index of its nodes.
	many, queued uint64
}

// remove takes a node out of the list.
func (m *treeMarks) remove(n *node) {
	if n.mark.changed == 0 {
		return
	}
	if n.mark.newer != nil {
		n.mark.newer.mark.older = n.mark.older
	} else {
		m.newest = n.mark.older
	}
	if n.mark.older != nil {
		n.mark.older.mark.newer = n.mark.newer
	}
	n.mark = nodeMark{}
}

// putFirst moves a node to the front.
func (m *treeMarks) putFirst(n *node, index uint64) {
	if m.newest != n {
		queued := n.mark.queued
		m.remove(n)
		n.mark = nodeMark{queued: queued, older: m.newest}
		if m.newest != nil {
			m.newest.mark.newer = n
		}
		m.newest = n
	}
	n.mark.changed = index
}

// markNode notes that the present entry changes a node, which must be in its tree.
func (f *forest) markNode(n *node) {
	if n.mark.changed < f.index {
		n.tree.marks.putFirst(n, f.index)
	}
}

// markQueue notes that the present entry changes how a request waits, or whether it does.
func (f *forest) markQueue(alt *alternative) {
	for i := range alt.claims {
		n := alt.claims[i].at
		if n.mark.queued < f.index && n.tree.byPath[n.path] == n {
			f.markNode(n)
			n.mark.queued, n.tree.marks.queued = f.index, f.index
		}
	}
}

// markChanged notes that the entry at an index changes an item; a dry run has the index 0.
func (s *stock) markChanged(index uint64) { s.changed = max(s.changed, index) }

// clear empties the list.
func (m *treeMarks) clear() {
	for n := m.newest; n != nil; {
		older := n.mark.older
		n.mark = nodeMark{}
		n = older
	}
	m.newest = nil
}
