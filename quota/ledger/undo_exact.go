package ledger

import "github.com/quorate/quorate/quota"

// unchangedSince is true if nothing came between a reservation and now: all trees concerned have the version that it left,
// all items concerned are where it left them, and all of its victims are remembered. Then its end restores what was before
// it, also where that is over a limit, and nobody else moves.
func (l *Ledger) unchangedSince(a *Allocation) bool {
	if a.more == nil || a.more.undo == nil {
		return false
	}
	for _, v := range a.more.undo.trees {
		if t := l.forest.trees[v.tree]; t == nil || t.version != v.after {
			return false
		}
	}
	for _, b := range a.more.undo.items {
		if !b.isUntouched(l) {
			return false
		}
	}
	room := l.bounds.Held - l.allocations.held.Len() + 1 - len(a.more.preempted)
	return room >= 0 && l.forest.nodes+len(a.more.undo.nodes) <= l.bounds.Nodes && l.hasBytesFor(a)
}

// hasBytesFor is true if the ledger has no more bytes than it may, or than before the reservation, once its victims hold again.
func (l *Ledger) hasBytesFor(a *Allocation) bool {
	live := l.sizes().Live() - l.counted(a)
	for _, p := range a.more.preempted {
		if victim := l.allocations.byID[p.ID]; victim != nil {
			live += l.counted(victim)
		}
	}
	return live <= max(l.bounds.LiveBytes, a.more.undo.liveBytes)
}

// restoreExactly restores what was before a reservation that has ended now and whose trees are unchanged since. It answers the ids
// of those that hold again; false if a victim is no longer remembered, and then nothing is restored.
func (l *Ledger) restoreExactly(a *Allocation) (restored []string, ok bool) {
	r := newRestoring(l, a)
	r.exact = true
	r.recreateNodes()
	r.restoreItems()
	if !r.all(a.more.displaced) {
		r.rollback()
		return nil, false
	}
	restored = r.commit()
	for _, v := range a.more.undo.trees {
		l.forest.trees[v.tree].version = v.before
	}
	l.announceRestored(a)
	return restored, true
}

// announceRestored lets requests be tried that wait for the items. Items on demand that went again are made anew only if
// somebody may have come to wait for them meanwhile.
func (l *Ledger) announceRestored(a *Allocation) {
	if a.more.undo.arrival != l.queue.arrival {
		l.inventory.announce(a)
		return
	}
	for _, b := range a.more.undo.items {
		s, it := b.find(l)
		switch {
		case it == nil:
			l.queue.stirItems(s.resource, s.resource.Items.InitialState(), "")
		case it.owner == 0:
			l.queue.stirItems(s.resource, it.state, it.name)
		}
	}
}

// recreateNodes makes the dynamic nodes again that went with the victims, under their old identities.
func (r *restoring) recreateNodes() {
	l := r.ledger
	for _, d := range r.by.more.undo.nodes {
		t := l.forest.trees[d.tree]
		if t.byPath[d.path] != nil {
			continue
		}
		n := t.blank(&quota.NodeSpec{Path: d.path})
		n.id, n.made, n.parent = d.id, true, t.byPath[quota.ParentPath(d.path)]
		n.settle()
		n.hang(n.parent)
		l.forest.nodes++
		l.forest.bytes += n.bytes()
		l.forest.vacate(n)
		r.onUndo(func() { l.forest.detach(n) })
	}
}

// leaseAgain is the lease of one that holds again. It could not be renewed meanwhile: if nothing came in between, it goes on as
// if the time had stood still, or else from the beginning. One that has to give way keeps its end.
func (r *restoring) leaseAgain(b lease) lease {
	switch {
	case !r.exact:
		b.revokedBy = ""
		if b.expires != 0 { // it is more than reserved
			b.begin(r.ledger.now)
		}
	case b.expires != 0 && b.revokedBy == "":
		b.expires += r.ledger.now.At - r.by.granted.At
	}
	return b
}

// retaker is how items are given to a claim that holds again.
func (r *restoring) retaker() func(a *Allocation, i int, names []heldItem) bool {
	if r.exact {
		return r.keepRestored
	}
	return r.retake
}

// keepRestored lists the items that restoreItems has given to a claim.
func (r *restoring) keepRestored(a *Allocation, i int, names []heldItem) bool {
	c := &a.claims[i]
	for _, h := range names {
		it := c.at.tree.resource(h.resource).stock.byName[h.name]
		if it == nil || it.owner != a.fence {
			return false
		}
		c.more.items.held = append(c.more.items.held, heldItem{h.resource, h.name, it})
	}
	return true
}

// tombstone finds the record of a victim. Since LevelFive it is kept until the reservation ends, which it has now.
func (r *restoring) tombstone(id string) *Allocation {
	if r.ledger.level >= quota.LevelFive {
		return r.ledger.allocations.byID[id]
	}
	return r.ledger.allocations.lookup(id)
}
