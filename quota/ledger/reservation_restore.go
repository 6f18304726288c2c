package ledger

import (
	"slices"
	"sort"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// cancellation ends reservations that are not confirmed, and restores what they displaced.
type cancellation struct{ ledger *Ledger }

// restoreDisplaced restores what a reservation has displaced. The reservation has ended, and its own claims are
// refunded. Moved claims return to their former nodes and arrival numbers, and preempted allocations are held again
// under their old fences. Nothing is restored if one of them was moved, ended or forgotten since, if its node or one of
// its items is no longer available, or if the limit of a node or principal or a bound of the ledger would be exceeded.
// Borrowed claims then reclaim the freed capacity as after a release. It returns the ids of the allocations that are
// held again, in the order in which they had been preempted.
func (c cancellation) restoreDisplaced(a *Allocation) (restored []string) {
	again := newRestoring(c.ledger, a)
	if a.more != nil && len(a.more.displaced) > 0 && again.restoreAll(a.more.displaced) {
		return again.commit()
	}
	again.rollback()
	for i := range a.claims {
		c.ledger.allocations.reclaimAt(a.claims[i].at)
	}
	return nil
}

// restoration is a tentative restoration.
type restoration struct {
	undoList
	ledger   *Ledger
	by       *Allocation
	restored map[string]restoredVictim
	before   map[*node][]quota.Amount // usage of the affected nodes before the restoration
	places   map[claimPlace]displacement
	nodes    map[uint64]*node // found so far, by identity
	// exact is true if the trees and items involved are unchanged since the reservation; then limits are not checked.
	exact bool
}

func newRestoring(l *Ledger, by *Allocation) *restoration {
	return &restoration{ledger: l, by: by, restored: map[string]restoredVictim{}, nodes: map[uint64]*node{}}
}

// restoredVictim is an allocation that is held again, with its tombstone.
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

// moveBack returns a moved claim to its former place, if it still has the arrival number that the reservation gave it.
func (r *restoration) moveBack(d displacement) bool {
	l := r.ledger
	was := l.allocations.byID.Find(d.id)
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

// restoreVictim restores a victim with all its claims, which are adjacent in the list.
func (r *restoration) restoreVictim(last displacement) bool {
	l := r.ledger
	if _, done := r.restored[last.id]; done {
		return true
	}
	tombstone := l.allocations.byID.Find(last.id) // kept until the reservation has ended
	if tombstone == nil || tombstone.ended == nil || tombstone.ended.state != quota.WasPreempted ||
		tombstone.ended.by != r.by.id {
		return false
	}
	again := *tombstone
	a := &again
	if b := tombstone.lease(); b.ttl > 0 || b.unclaimed {
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

// placeAgain binds the claim of a tombstone to the node where it was displaced; false if a node or a resource does not
// exist any more. The tombstone may have been restored from a snapshot, and then has names only.
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

// retakeItems assigns the former items to a claim again; false if one was taken by another allocation, changed or
// removed.
func (r *restoration) retakeItems(a *Allocation, i int, names []heldItem) bool {
	l, c := r.ledger, &a.claims[i]
	for _, h := range names {
		s := c.at.tree.resource(h.resource).stock
		it := s.byName[h.name]
		if it == nil || it.owner != 0 || it.state != s.resource.Items.ExpiredState() {
			return false
		}
		turn := l.inventory.lastStateSeq
		is := l.inventory.takenItem(it, c.pickOf(h.resource).StateWhileHeld(), a.fence)
		l.inventory.changeItem(it, is)
		r.onUndo(func() {
			l.inventory.changeItem(is, it)
			l.inventory.lastStateSeq = turn
		})
		c.more.items.held = append(c.more.items.held, heldItem{h.resource, h.name, is})
	}
	return true
}

// noteUsageBefore records the usage of a node and its ancestors before the restoration.
func (r *restoration) noteUsageBefore(n *node) {
	if r.exact {
		return
	}
	for ; n != nil && r.before[n] == nil; n = n.parent {
		r.before[n] = slices.Clone(n.subtree)
	}
}

// fitsLimits is true if no affected node has more usage than before and exceeds its limit.
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

// fitsInBytes is true if the ledger is within its bounds in bytes.
func (r *restoration) fitsInBytes() bool {
	l := r.ledger
	return !l.boundsBytes() || l.currentSizes().Live() <= l.bounds.LiveBytes
}

// commit removes the tombstones of the restored allocations.
func (r *restoration) commit() []string {
	l := r.ledger
	numbers := r.tombstoneNumbers()
	var restored []string
	for _, p := range r.by.more.preempted {
		is := r.restored[p.ID]
		l.allocations.removeTombstone(numbers[is.tombstone], is.tombstone)
		l.allocations.byID.Put(is.again)
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

// tombstoneNumbers returns the keys of the tombstones. The tombstones of one reservation are adjacent in the order of
// ends, from the time when it was granted.
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

// findNode returns a node of a tree by its identity, nil if it does not exist any more. The first call visits the whole
// tree.
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

// unchangedSince reports whether all trees and items that a reservation changed are as it left them, and what it
// displaced fits within the bounds of the ledger. If its victims are also remembered (see restoreExactly), its end
// restores the exact state from before it, even over a limit, and no other claim moves.
func (c cancellation) unchangedSince(a *Allocation) bool {
	if a.more == nil || a.more.undo == nil {
		return false
	}
	for _, v := range a.more.undo.trees {
		if t := c.ledger.forest.trees[v.tree]; t == nil || t.version != v.after {
			return false
		}
	}
	for _, b := range a.more.undo.items {
		if !b.isUntouched(c.ledger) {
			return false
		}
	}
	room := c.ledger.bounds.Held - c.ledger.allocations.held.Len() + 1 - len(a.more.preempted)
	return room >= 0 && c.ledger.forest.nodes+len(a.more.undo.nodes) <= c.ledger.bounds.Nodes && c.hasBytesFor(a)
}

// hasBytesFor is true if the ledger, with the victims restored, is within its bound in bytes, or not larger than before
// the reservation.
func (c cancellation) hasBytesFor(a *Allocation) bool {
	live := c.ledger.currentSizes().Live() - c.ledger.countedSize(a)
	for _, p := range a.more.preempted {
		if victim := c.ledger.allocations.byID.Find(p.ID); victim != nil {
			again := *victim
			again.ended = nil // the reason of its end is not restored
			live += c.ledger.countedSize(&again)
		}
	}
	return live <= max(c.ledger.bounds.LiveBytes, a.more.undo.liveBytes)
}

// restoreExactly restores the state from before a reservation that has just ended and whose trees are unchanged since.
// It returns the ids of the restored allocations; false if a victim is not remembered any more, and then nothing is
// restored.
func (c cancellation) restoreExactly(a *Allocation) (restored []string, ok bool) {
	again := newRestoring(c.ledger, a)
	again.exact = true
	again.recreateNodes()
	again.restoreItems()
	if !again.restoreAll(a.more.displaced) {
		again.rollback()
		return nil, false
	}
	restored = again.commit()
	for _, v := range a.more.undo.trees {
		c.ledger.forest.trees[v.tree].version = v.before
	}
	c.announceRestored(a)
	return restored, true
}

// announceRestored unblocks requests that wait for the items. Items on demand that were removed again are re-created
// only if a request may have started to wait for them meanwhile.
func (c cancellation) announceRestored(a *Allocation) {
	if a.more.undo.arrival != c.ledger.queue.arrival {
		c.ledger.inventory.announceReturned(a)
		return
	}
	for _, b := range a.more.undo.items {
		s, it := b.find(c.ledger)
		c.ledger.inventory.followExpiries(s)
		switch {
		case it == nil:
			c.ledger.queue.unblockItems(s.resource, s.resource.Items.InitialState(), "")
		case it.owner == 0:
			c.ledger.queue.unblockItems(s.resource, it.state, it.name)
		}
	}
}

// recreateNodes re-creates the dynamic nodes that were removed with the victims, under their old identities.
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

// leaseAgain is the lease of a restored allocation, which could not be renewed meanwhile. If nothing happened in
// between, it continues with its remaining time, otherwise it starts anew. A lease under revocation keeps its end.
func (r *restoration) leaseAgain(b lease) lease {
	switch {
	case b.unclaimed && b.ttl == 0:
		b.expires += r.ledger.now.At - r.by.granted.At
	case !r.exact:
		b.revokedBy, b.reason = "", nil
		if b.expires != 0 { // not just reserved
			b.begin(r.ledger.now)
		}
	case b.expires != 0 && b.revokedBy == "":
		b.expires += r.ledger.now.At - r.by.granted.At
	}
	return b
}

// retaker returns the function that assigns items to a restored claim.
func (r *restoration) retaker() func(a *Allocation, i int, names []heldItem) bool {
	if r.exact {
		return r.keepRestored
	}
	return r.retakeItems
}

// keepRestored lists the items that restoreItems has assigned to a claim.
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
