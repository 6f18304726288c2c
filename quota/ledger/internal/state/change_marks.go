package state

import "slices"

// nodeMark is a node's place in the list of its tree.
type nodeMark struct {
	// Changed is the index of the last entry that changed the node, 0 for none; only then it is in the list. queued is
	// that of the last one that changed a request which waits there.
	Changed, Queued uint64
	Newer, Older    *Node
}

// treeMarks lists the changed nodes of a tree.
type treeMarks struct {
	Newest *Node
	// Many is the index of the last entry after which any node may have changed; the list has none from before it. queued
	// is the last index of its nodes.
	Many, Queued uint64
}

func (m *treeMarks) remove(n *Node) {
	if n.Mark.Changed == 0 {
		return
	}
	if n.Mark.Newer != nil {
		n.Mark.Newer.Mark.Older = n.Mark.Older
	} else {
		m.Newest = n.Mark.Older
	}
	if n.Mark.Older != nil {
		n.Mark.Older.Mark.Newer = n.Mark.Newer
	}
	n.Mark = nodeMark{}
}

func (m *treeMarks) putFirst(n *Node, index uint64) {
	if m.Newest != n {
		queued := n.Mark.Queued
		m.remove(n)
		n.Mark = nodeMark{Queued: queued, Older: m.Newest}
		if m.Newest != nil {
			m.Newest.Mark.Newer = n
		}
		m.Newest = n
	}
	n.Mark.Changed = index
}

// MarkNode notes that the present entry changes a node, which must be in its tree.
func (f *Forest) MarkNode(n *Node) {
	if n.Mark.Changed < f.Index {
		n.Tree.Marks.putFirst(n, f.Index)
	}
}

// markQueue notes that the present entry changes how a request waits, or whether it does.
func (f *Forest) markQueue(alt *Alternative) {
	for i := range alt.Claims {
		n := alt.Claims[i].At
		if n.Mark.Queued < f.Index && n.Tree.ByPath[n.Path] == n {
			f.MarkNode(n)
			n.Mark.Queued, n.Tree.Marks.Queued = f.Index, f.Index
		}
	}
}

// MarkChanged notes that the entry at an index changes an item; a dry run has the index 0.
func (s *Stock) MarkChanged(index uint64) { s.Changed = max(s.Changed, index) }

// Clear empties the list.
func (m *treeMarks) Clear() {
	for n := m.Newest; n != nil; {
		older := n.Mark.Older
		n.Mark = nodeMark{}
		n = older
	}
	m.Newest = nil
}

// ChangedAfter is true if an entry after an index has changed a node or an item of the tree.
func (t *Tree) ChangedAfter(index uint64) bool {
	return t.Marks.changedAfter(index) || slices.ContainsFunc(t.Resources, func(r *Resource) bool {
		return r.Stock != nil && r.Stock.Changed > index
	})
}

func (m *treeMarks) changedAfter(index uint64) bool {
	return m.Many > index || m.Newest != nil && m.Newest.Mark.Changed > index
}
