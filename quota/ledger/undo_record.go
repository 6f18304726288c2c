package ledger

import "github.com/quorate/quorate/quota"

// undoRecord is what a reservation needs, beside the list of what it displaced, so that its end can restore the state from
// before it: nil unless the allocation is reserved, and was reserved since LevelFive. It is bounded by what the reservation
// touched: an entry for each tree, for each item that changed hands, and for each dynamic node that lost a claim.
type undoRecord struct {
	trees []treeVersion
	nodes []dynamicNode // parents before children
	items []itemBefore
	// arrival is the last one given in the queue when the reservation was made.
	arrival uint64
	// liveBytes is what the ledger had of what cannot be forgotten before the reservation.
	liveBytes int64
}

// treeVersion says which version of a tree a reservation found, and which one it left.
type treeVersion struct {
	tree          string
	before, after uint64
}

// dynamicNode is a node made on demand. It vanishes when a victim was the last to hold there.
type dynamicNode struct {
	tree, path string
	id         uint64
}

// markChanged gives a tree a new version: what is held in it, or its configuration, is not what it was. Equal versions of a
// tree mean equal placements, so a cancellation that finds the version that its reservation left knows that nothing came in
// between. Below LevelFive nothing has a version.
func (f *forest) markChanged(t *tree) {
	if f.level >= quota.LevelFive {
		f.version++
		t.version = f.version
	}
}

// markChangedBy marks the trees in which an allocation holds something.
func (f *forest) markChangedBy(a *Allocation) {
	for i := range a.claims {
		f.markChanged(a.claims[i].at.tree)
	}
}

// markGranted marks the trees that a grant has changed: its own, and those of its victims. It answers the versions from before
// and after if the grant is a reservation.
func (l *Ledger) markGranted(a *Allocation, victims []*Allocation) []treeVersion {
	if l.level < quota.LevelFive {
		return nil
	}
	var versions []treeVersion
	first := l.forest.version
	mark := func(a *Allocation, keep bool) {
		for i := range a.claims {
			t := a.claims[i].at.tree
			if t.version > first {
				continue
			}
			before := t.version
			l.forest.markChanged(t)
			if keep {
				versions = append(versions, treeVersion{t.name, before, t.version})
			}
		}
	}
	reserved := a.state() == quota.Reserved
	mark(a, reserved)
	for _, v := range victims {
		mark(v, reserved)
	}
	return versions
}

// rememberUndo completes the record of a reservation that was granted now.
func (t *tx) rememberUndo(a *Allocation) {
	l := t.ledger
	versions := l.markGranted(a, t.victims())
	if len(versions) == 0 {
		return
	}
	a.more.undo = &undoRecord{trees: versions, items: l.inventory.trace.changes(), arrival: l.queue.arrival, liveBytes: l.inventory.trace.liveBytes}
	if t.staged != nil {
		a.more.undo.nodes = t.staged.dynamicNodes()
	}
}

// dynamicNodes are those where claims that were displaced had been counted or belonged, with those above them.
func (t *staged) dynamicNodes() []dynamicNode {
	var list []dynamicNode
	seen := map[*node]bool{}
	var add func(n *node)
	add = func(n *node) {
		if n == nil || !n.made || seen[n] {
			return
		}
		seen[n] = true
		add(n.parent)
		list = append(list, dynamicNode{n.treeName, n.path, n.id})
	}
	for _, n := range t.dynamic {
		add(n)
	}
	return list
}

// forgetUndo drops what only the end of a reservation needs, unless the allocation may yet be put back as a reservation.
func (a *Allocation) forgetUndo() {
	if a.more == nil || a.more.undo == nil || a.ended.state == quota.WasPreempted {
		return
	}
	more := *a.more
	more.displaced, more.undo = nil, nil
	a.more = &more
}
