package ledger

import (
	"slices"
	"sort"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// cancellation ends reservations that are not confirmed, and restores what they displaced.
type cancellation struct{ *Ledger }

// restoreDisplaced takes back what a reservation has displaced: a is the one that was cancelled or has lapsed, whose own claims are
// booked no more. All that it had moved sits again where it was, in the seats of then, and all that it had preempted holds
// again under the old fences; or nothing is put back, if anything of that was moved, ended or forgotten since, or would
// put a node over its limit. It answers the ids of those that hold again, in the order in which they had been preempted. If
// nothing is put back, others slide down into the freed room as after a release.
func (c cancellation) restoreDisplaced(a *Allocation) (restored []string) {
	again := newRestoring(c.Ledger, a)
	if a.more != nil && len(a.more.displaced) > 0 && again.restoreAll(a.more.displaced) {
		return again.commit()
	}
	again.rollback()
	for i := range a.claims {
		c.allocations.reclaimAt(a.claims[i].at)
	}
	return nil
}

// restoration is a trial of putting back.
type restoration struct {
	undoList
	ledger   *Ledger
	by       *Allocation
	restored map[string]restoredVictim
	before   map[*node][]quota.Amount // what the nodes concerned held before
	places   map[claimPlace]displacement
	nodes    map[uint64]*node // that have been looked for, by identity
	// exact is true if nothing came in between; then no limit is asked.
	exact bool
}

func newRestoring(l *Ledger, by *Allocation) *restoration {
	return &restoration{ledger: l, by: by, restored: map[string]restoredVictim{}, nodes: map[uint64]*node{}}
}

// restoredVictim is an allocation that holds again, and its tombstone.
type restoredVictim struct{ tombstone, again *Allocation }

// claimPlace names one claim of an allocation.
type claimPlace struct {
	id    string
	claim int
}

func (r *restoration) restoreAll(displaced []displacement) bool {
	r.before, r.places = map[*node][]quota.Amount{}, make(map[claimPlace]displacement, len(displaced))
	for _, d := range displaced {
		r.places[claimPlace{d.id, d.claim}] = d
	}
	for _, d := range slices.Backward(displaced) {
		if d.newSeq == 0 && !r.restoreVictim(d) || d.newSeq != 0 && !r.moveBack(d) {
			return false
		}
	}
	return r.exact || r.ledger.allocations.held.Len() <= r.ledger.bounds.Held && r.fitsLimits() && r.fitsInBytes()
}

// moveBack gives a claim that still has the seat that it got the place that it had.
func (r *restoration) moveBack(d displacement) bool {
	l := r.ledger
	was := l.allocations.byID[d.id]
	if was == nil || was.ended != nil || d.claim >= len(was.claims) || was.claims[d.claim].arrivalSeq() != d.newSeq {
		return false
	}
	c := &was.claims[d.claim]
	from := r.findNode(c.at.tree, d.from)
	if from == nil || !c.home().borrowsFrom(from) {
		return false
	}
	r.noteUsageBefore(c.at)
	r.noteUsageBefore(from)
	is := was.withClaimAt(d.claim, from, d.fromSeq)
	l.allocations.refundNode(was, d.claim)
	l.allocations.replaceRecord(is)
	l.allocations.chargeNode(is, d.claim)
	r.onUndo(func() {
		l.allocations.refundNode(is, d.claim)
		l.allocations.replaceRecord(was)
		l.allocations.chargeNode(was, d.claim)
	})
	return true
}

// restoreVictim makes a victim hold again, with all its claims at once; they are next to each other in the list.
func (r *restoration) restoreVictim(last displacement) bool {
	l := r.ledger
	if _, done := r.restored[last.id]; done {
		return true
	}
	tombstone := r.findTombstone(last.id)
	if tombstone == nil || tombstone.ended == nil || tombstone.ended.state != quota.WasPreempted || tombstone.ended.by != r.by.id {
		return false
	}
	again := *tombstone
	a := &again
	if b := tombstone.lease(); b.ttl > 0 {
		a = a.withLease(r.leaseAgain(b))
	}
	a.ended, a.claims = nil, make([]placedClaim, len(tombstone.claims))
	for i := range a.claims {
		d, known := r.places[claimPlace{a.id, i}]
		if !known || !r.placeAgain(&a.claims[i], &tombstone.claims[i], d) {
			return false
		}
		if retake := r.retaker(); !retake(a, i, tombstone.claims[i].heldItems()) {
			return false
		}
		a.claims[i].trackPrincipal(a.principal())
		r.noteUsageBefore(a.claims[i].at)
	}
	if !r.exact && len(l.checkPrincipals(a)) > 0 {
		return false
	}
	l.allocations.held.Set(a.fence, a)
	r.onUndo(func() { l.allocations.held.Delete(a.fence) })
	for i := range a.claims {
		l.allocations.chargeClaim(a, i)
		r.onUndo(func() { l.allocations.refundClaim(a, i) })
	}
	r.restored[a.id] = restoredVictim{tombstone, a}
	return true
}

// placeAgain makes the claim of a tombstone one that is counted where it was when it was displaced; false if a node or a
// resource is no longer there under its name. The record of a tombstone may have been loaded, and then knows names only.
func (r *restoration) placeAgain(c, ended *placedClaim, d displacement) bool {
	t := r.ledger.forest.trees[ended.asked.treeName]
	if t == nil {
		return false
	}
	c.at = r.findNode(t, d.from)
	if c.at == nil || (d.fromSeq != 0) != (c.at.borrows == policy.BorrowSoft) {
		return false
	}
	c.asked, c.placed = ended.asked, c.at.address
	if ended.more != nil || d.fromSeq != 0 {
		c.more = &claimDetails{Standing: ended.standing(), arrivalSeq: d.fromSeq}
	}
	if ended.more != nil {
		c.more.forced, c.more.group = ended.more.forced, ended.more.group
		if len(ended.picks()) > 0 {
			c.setItems(ended.picks(), nil)
		}
	}
	if d.home != 0 {
		c.more.home = r.findNode(t, d.home)
		if c.more.home == nil || !c.more.home.borrowsFrom(c.at) {
			return false
		}
	}
	for _, p := range ended.amounts {
		r := t.resource(p.resource.Name)
		if r == nil || (r.Unit == quota.Items) != (p.resource.Unit == quota.Items) {
			return false
		}
		c.amounts = append(c.amounts, placedAmount{r, p.amount})
	}
	return true
}

// retakeItems gives a claim the items again that it held; false if one was taken by somebody else since, or changed, or is gone.
func (r *restoration) retakeItems(a *Allocation, i int, names []heldItem) bool {
	l, c := r.ledger, &a.claims[i]
	for _, h := range names {
		s := c.at.tree.resource(h.resource).stock
		it := s.byName[h.name]
		if it == nil || it.owner != 0 || it.state != s.resource.Items.ExpiredState() {
			return false
		}
		turn := l.inventory.lastStateSeq
		is := l.inventory.withNewState(it, c.pickOf(h.resource).StateWhileHeld(), a.fence)
		l.inventory.changeItem(it, is)
		r.onUndo(func() {
			l.inventory.changeItem(is, it)
			l.inventory.lastStateSeq = turn
		})
		c.more.items.held = append(c.more.items.held, heldItem{h.resource, h.name, is})
	}
	return true
}

// noteUsageBefore remembers what a node and all above it hold before anything is put back there.
func (r *restoration) noteUsageBefore(n *node) {
	if r.exact {
		return
	}
	for ; n != nil && r.before[n] == nil; n = n.parent {
		r.before[n] = slices.Clone(n.subtree)
	}
}

// fitsLimits is true if no node concerned has got more than it held before and is over its limit.
func (r *restoration) fitsLimits() bool {
	for n, before := range r.before {
		for i, held := range before {
			if n.overBy(i, n.subtree[i]) > 0 && n.subtree[i] > held {
				return false
			}
		}
	}
	return true
}

// fitsInBytes is true if the ledger has no more bytes than it may.
func (r *restoration) fitsInBytes() bool {
	l := r.ledger
	return !l.boundsBytes() || l.currentSizes().Live() <= l.bounds.LiveBytes
}

// commit takes the tombstones of those that hold again away.
func (r *restoration) commit() []string {
	l := r.ledger
	numbers := r.tombstoneNumbers()
	var restored []string
	for _, p := range r.by.more.preempted {
		is := r.restored[p.ID]
		l.allocations.removeTombstone(numbers[is.tombstone], is.tombstone)
		l.allocations.byID[p.ID] = is.again
		l.deadlines.add(is.again)
		l.journal.noteEvent(quota.Event{Kind: quota.EventRestored, ID: p.ID, By: r.by.id})
		l.journal.noteFact(FactRestored, is.again)
		if !r.exact {
			l.forest.markChangedBy(is.again)
		}
		l.queue.unblockGranted(is.again)
		l.queue.countRevocation(is.again, 1)
		restored = append(restored, p.ID)
	}
	return restored
}

// tombstoneNumbers are those under which the tombstones are kept. They are in the order of their ends, which are one after the other,
// when the reservation was made.
func (r *restoration) tombstoneNumbers() map[*Allocation]uint64 {
	l, numbers := r.ledger, make(map[*Allocation]uint64, len(r.restored))
	first, _, _ := l.allocations.ended.Min()
	from := sort.Search(int(l.allocations.endings-first)+1, func(i int) bool {
		for _, other := range l.allocations.ended.From(first + uint64(i)) {
			return other.ended.At >= r.by.granted.At
		}
		return true
	})
	for number, a := range l.allocations.ended.From(first + uint64(from)) {
		if len(numbers) == len(r.restored) {
			break
		}
		if is, known := r.restored[a.id]; known && is.tombstone == a {
			numbers[a] = number
		}
	}
	return numbers
}

// findNode finds a node of a tree by its identity, nil if it is not there any more. The first time it costs the tree.
func (r *restoration) findNode(t *tree, id uint64) *node {
	n, known := r.nodes[id]
	if !known {
		t.root.walk(func(at *node) bool {
			if at.id == id {
				n = at
			}
			return n == nil
		})
		r.nodes[id] = n
	}
	return n
}

// unchangedSince is true if nothing came between a reservation and now: all trees concerned have the version that it left,
// all items concerned are where it left them, and all of its victims are remembered. Then its end restores what was before
// it, also where that is over a limit, and nobody else moves.
func (c cancellation) unchangedSince(a *Allocation) bool {
	if a.more == nil || a.more.undo == nil {
		return false
	}
	for _, v := range a.more.undo.trees {
		if t := c.forest.trees[v.tree]; t == nil || t.version != v.after {
			return false
		}
	}
	for _, b := range a.more.undo.items {
		if !b.isUntouched(c.Ledger) {
			return false
		}
	}
	room := c.bounds.Held - c.allocations.held.Len() + 1 - len(a.more.preempted)
	return room >= 0 && c.forest.nodes+len(a.more.undo.nodes) <= c.bounds.Nodes && c.hasBytesFor(a)
}

// hasBytesFor is true if the ledger has no more bytes than it may, or than before the reservation, once its victims hold again.
func (c cancellation) hasBytesFor(a *Allocation) bool {
	live := c.currentSizes().Live() - c.countedSize(a)
	for _, p := range a.more.preempted {
		if victim := c.allocations.byID[p.ID]; victim != nil {
			live += c.countedSize(victim)
		}
	}
	return live <= max(c.bounds.LiveBytes, a.more.undo.liveBytes)
}

// restoreExactly restores what was before a reservation that has ended now and whose trees are unchanged since. It answers the ids
// of those that hold again; false if a victim is no longer remembered, and then nothing is restored.
func (c cancellation) restoreExactly(a *Allocation) (restored []string, ok bool) {
	again := newRestoring(c.Ledger, a)
	again.exact = true
	again.recreateNodes()
	again.restoreItems()
	if !again.restoreAll(a.more.displaced) {
		again.rollback()
		return nil, false
	}
	restored = again.commit()
	for _, v := range a.more.undo.trees {
		c.forest.trees[v.tree].version = v.before
	}
	c.announceRestored(a)
	return restored, true
}

// announceRestored lets requests be tried that wait for the items. Items on demand that went again are made anew only if
// somebody may have come to wait for them meanwhile.
func (c cancellation) announceRestored(a *Allocation) {
	if a.more.undo.arrival != c.queue.arrival {
		c.inventory.announceReturned(a)
		return
	}
	for _, b := range a.more.undo.items {
		s, it := b.find(c.Ledger)
		switch {
		case it == nil:
			c.queue.unblockItems(s.resource, s.resource.Items.InitialState(), "")
		case it.owner == 0:
			c.queue.unblockItems(s.resource, it.state, it.name)
		}
	}
}

// recreateNodes makes the dynamic nodes again that went with the victims, under their old identities.
func (r *restoration) recreateNodes() {
	l := r.ledger
	for _, d := range r.by.more.undo.nodes {
		t := l.forest.trees[d.tree]
		if t.byPath[d.path] != nil {
			continue
		}
		n := t.blank(&quota.NodeSpec{Path: d.path})
		n.id, n.dynamic, n.parent = d.id, true, t.byPath[quota.ParentPath(d.path)]
		n.deriveSettings()
		n.attachTo(n.parent)
		l.forest.nodes++
		l.forest.bytes += n.bytes()
		l.forest.noteIdle(n)
		r.onUndo(func() { l.forest.detachNode(n) })
	}
}

// leaseAgain is the lease of one that holds again. It could not be renewed meanwhile: if nothing came in between, it goes on as
// if the time had stood still, or else from the beginning. One that has to give way keeps its end.
func (r *restoration) leaseAgain(b lease) lease {
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
func (r *restoration) retaker() func(a *Allocation, i int, names []heldItem) bool {
	if r.exact {
		return r.keepRestored
	}
	return r.retakeItems
}

// keepRestored lists the items that restoreItems has given to a claim.
func (r *restoration) keepRestored(a *Allocation, i int, names []heldItem) bool {
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

// findTombstone finds the record of a victim. Since LevelFive it is kept until the reservation ends, which it has now.
func (r *restoration) findTombstone(id string) *Allocation {
	if r.ledger.level >= quota.LevelFive {
		return r.ledger.allocations.byID[id]
	}
	return r.ledger.allocations.findByID(id)
}
