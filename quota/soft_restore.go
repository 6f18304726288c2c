package quota

import (
	"slices"
	"sort"
)

// putBack takes back what a reservation has displaced: a is the one that was cancelled or has lapsed, whose own claims are
// booked no more. All that it had moved sits again where it was, in the seats of then, and all that it had preempted holds
// again under the old fences; or nothing is put back, if anything of that was moved, ended or forgotten since, or would
// put a node over its limit. It answers the ids of those that hold again, in the order in which they had been preempted. If
// nothing is put back, others slide down into the freed room as after a release.
func (l *Ledger) putBack(a *Allocation) (restored []string) {
	r := &restoring{trial: trial{ledger: l}, by: a}
	if a.more != nil && len(a.more.displaced) > 0 && r.all(a.more.displaced) {
		return r.commit()
	}
	r.rollback()
	for i := range a.claims {
		l.slideInto(a.claims[i].at)
	}
	return nil
}

// restoring is a trial of putting back.
type restoring struct {
	trial
	by      *Allocation
	buried  []*Allocation // tombstones of those that hold again
	revived []*Allocation
	before  map[*node][]Amount // what the nodes concerned held before
}

func (r *restoring) all(displaced []displacement) bool {
	r.before = map[*node][]Amount{}
	for _, d := range slices.Backward(displaced) {
		if d.seat == 0 && !r.revive(d, displaced) || d.seat != 0 && !r.moveBack(d) {
			return false
		}
	}
	return r.ledger.held.Len() <= r.ledger.bounds.Held && r.fits()
}

// moveBack gives a claim that still has the seat that it got the place that it had.
func (r *restoring) moveBack(d displacement) bool {
	l := r.ledger
	was := l.byID[d.id]
	if was == nil || was.ended != nil || d.claim >= len(was.claims) || was.claims[d.claim].seat() != d.seat {
		return false
	}
	c := &was.claims[d.claim]
	from := c.at.tree.byID(d.from)
	if from == nil || !c.home().borrowsFrom(from) {
		return false
	}
	r.concern(c.at)
	r.concern(from)
	is := was.moved(d.claim, from, d.fromSeat)
	l.depart(was, d.claim)
	l.put(is)
	l.arrive(is, d.claim)
	r.onUndo(func() {
		l.depart(is, d.claim)
		l.put(was)
		l.arrive(was, d.claim)
	})
	return true
}

// revive makes a victim hold again, with all its claims at once; they are next to each other in the list.
func (r *restoring) revive(last displacement, displaced []displacement) bool {
	l := r.ledger
	if slices.ContainsFunc(r.revived, func(a *Allocation) bool { return a.id == last.id }) {
		return true
	}
	tombstone := l.lookup(last.id)
	if tombstone == nil || tombstone.ended == nil || tombstone.ended.state != WasPreempted || tombstone.ended.by != r.by.id {
		return false
	}
	again := *tombstone
	a := &again
	if b := tombstone.lease(); b.ttl > 0 {
		b.revokedBy = ""
		b.begin(l.now) // it could not be renewed meanwhile
		a = a.withLease(b)
	}
	a.ended, a.claims = nil, make([]placedClaim, len(tombstone.claims))
	for i := range a.claims {
		d := slices.IndexFunc(displaced, func(d displacement) bool { return d.id == a.id && d.claim == i })
		if d < 0 || !l.placeAgain(&a.claims[i], &tombstone.claims[i], displaced[d]) {
			return false
		}
		if !r.retake(a, i, tombstone.claims[i].held()) {
			return false
		}
		a.claims[i].follow(a.principal())
		r.concern(a.claims[i].at)
	}
	if len(l.checkPrincipals(a)) > 0 {
		return false
	}
	l.held.Set(a.fence, a)
	r.onUndo(func() { l.held.Delete(a.fence) })
	for i := range a.claims {
		l.book(a, i)
		r.onUndo(func() { l.unbook(a, i) })
	}
	r.buried, r.revived = append(r.buried, tombstone), append(r.revived, a)
	return true
}

// placeAgain makes the claim of a tombstone one that is counted where it was when it was displaced; false if a node or a
// resource is no longer there under its name. The record of a tombstone may have been loaded, and then knows names only.
func (l *Ledger) placeAgain(c, ended *placedClaim, d displacement) bool {
	t := l.trees[ended.asked.treeName]
	if t == nil {
		return false
	}
	c.at = t.byID(d.from)
	if c.at == nil || (d.fromSeat != 0) != (c.at.borrows == BorrowSoftly) {
		return false
	}
	c.asked, c.placed = ended.asked, c.at.address
	if ended.more != nil || d.fromSeat != 0 {
		c.more = &claimParticulars{Standing: ended.standing(), seat: d.fromSeat}
	}
	if ended.more != nil {
		c.more.forced, c.more.group = ended.more.forced, ended.more.group
		if len(ended.picks()) > 0 {
			c.setItems(ended.picks(), nil)
		}
	}
	if d.home != 0 {
		c.more.home = t.byID(d.home)
		if c.more.home == nil || !c.more.home.borrowsFrom(c.at) {
			return false
		}
	}
	for _, p := range ended.amounts {
		r := t.resource(p.resource.Name)
		if r == nil || (r.Unit == Items) != (p.resource.Unit == Items) {
			return false
		}
		c.amounts = append(c.amounts, placedAmount{r, p.amount})
	}
	return true
}

// retake gives a claim the items again that it held; false if one was taken by somebody else since, or changed, or is gone.
func (r *restoring) retake(a *Allocation, i int, names []heldItem) bool {
	l, c := r.ledger, &a.claims[i]
	for _, h := range names {
		s := c.at.tree.resource(h.resource).stock
		it := s.byName[h.name]
		if it == nil || it.owner != 0 || it.state != s.resource.Items.expiredState() {
			return false
		}
		turn := l.turn
		is := l.aged(it, c.pickOf(h.resource).heldState(), a.fence)
		l.changeItem(it, is)
		r.onUndo(func() {
			l.changeItem(is, it)
			l.turn = turn
		})
		c.more.items.held = append(c.more.items.held, heldItem{h.resource, h.name, is})
	}
	return true
}

// concern remembers what a node and all above it hold before anything is put back there.
func (r *restoring) concern(n *node) {
	for ; n != nil && r.before[n] == nil; n = n.parent {
		r.before[n] = slices.Clone(n.subtree)
	}
}

// fits is true if no node concerned has got more than it held before and is over its limit.
func (r *restoring) fits() bool {
	for n, before := range r.before {
		for i, held := range before {
			if n.overBy(i, n.subtree[i]) > 0 && n.subtree[i] > held {
				return false
			}
		}
	}
	return true
}

// commit takes the tombstones of those that hold again away.
func (r *restoring) commit() []string {
	l := r.ledger
	var restored []string
	for _, p := range r.by.more.preempted {
		i := slices.IndexFunc(r.revived, func(a *Allocation) bool { return a.id == p.ID })
		l.unbury(l.numberOf(r.buried[i]), r.buried[i])
		l.byID[p.ID] = r.revived[i]
		l.due.add(r.revived[i])
		l.note(Event{Kind: EventRestored, ID: p.ID, By: r.by.id})
		l.fact(FactRestored, r.revived[i])
		l.took(r.revived[i])
		l.countRevoked(r.revived[i], 1)
		restored = append(restored, p.ID)
	}
	return restored
}

// numberOf finds the number under which a tombstone is kept: they are in the order of their ends.
func (l *Ledger) numberOf(a *Allocation) uint64 {
	first, _, _ := l.ended.Min()
	at := sort.Search(int(l.endings-first)+1, func(i int) bool {
		for _, other := range l.ended.From(first + uint64(i)) {
			return other.ended.At >= a.ended.At
		}
		return true
	})
	for number, other := range l.ended.From(first + uint64(at)) {
		if other == a {
			return number
		}
	}
	return 0
}

// byID finds a node by its identity. It costs the tree.
func (t *tree) byID(id uint64) *node {
	var found *node
	t.root.walk(func(n *node) bool {
		if n.id == id {
			found = n
		}
		return found == nil
	})
	return found
}
