package ledger

import (
	"slices"
	"sort"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// putBack takes back what a reservation has displaced: a is the one that was cancelled or has lapsed, whose own claims are
// booked no more. All that it had moved sits again where it was, in the seats of then, and all that it had preempted holds
// again under the old fences; or nothing is put back, if anything of that was moved, ended or forgotten since, or would
// put a node over its limit. It answers the ids of those that hold again, in the order in which they had been preempted. If
// nothing is put back, others slide down into the freed room as after a release.
func (l *Ledger) putBack(a *Allocation) (restored []string) {
	r := newRestoring(l, a)
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
	undoList
	ledger  *Ledger
	by      *Allocation
	revived map[string]revival
	before  map[*node][]quota.Amount // what the nodes concerned held before
	places  map[place]displacement
	nodes   map[uint64]*node // that have been looked for, by identity
	// exact is true if nothing came in between; then no limit is asked.
	exact bool
}

func newRestoring(l *Ledger, by *Allocation) *restoring {
	return &restoring{ledger: l, by: by, revived: map[string]revival{}, nodes: map[uint64]*node{}}
}

// revival is an allocation that holds again, and its tombstone.
type revival struct{ tombstone, again *Allocation }

// place names one claim of an allocation.
type place struct {
	id    string
	claim int
}

func (r *restoring) all(displaced []displacement) bool {
	r.before, r.places = map[*node][]quota.Amount{}, make(map[place]displacement, len(displaced))
	for _, d := range displaced {
		r.places[place{d.id, d.claim}] = d
	}
	for _, d := range slices.Backward(displaced) {
		if d.seat == 0 && !r.revive(d) || d.seat != 0 && !r.moveBack(d) {
			return false
		}
	}
	return r.exact || r.ledger.allocations.held.Len() <= r.ledger.bounds.Held && r.fits() && r.fitsInBytes()
}

// moveBack gives a claim that still has the seat that it got the place that it had.
func (r *restoring) moveBack(d displacement) bool {
	l := r.ledger
	was := l.allocations.byID[d.id]
	if was == nil || was.ended != nil || d.claim >= len(was.claims) || was.claims[d.claim].seat() != d.seat {
		return false
	}
	c := &was.claims[d.claim]
	from := r.node(c.at.tree, d.from)
	if from == nil || !c.home().borrowsFrom(from) {
		return false
	}
	r.concern(c.at)
	r.concern(from)
	is := was.moved(d.claim, from, d.fromSeat)
	l.depart(was, d.claim)
	l.allocations.put(is)
	l.arrive(is, d.claim)
	r.onUndo(func() {
		l.depart(is, d.claim)
		l.allocations.put(was)
		l.arrive(was, d.claim)
	})
	return true
}

// revive makes a victim hold again, with all its claims at once; they are next to each other in the list.
func (r *restoring) revive(last displacement) bool {
	l := r.ledger
	if _, done := r.revived[last.id]; done {
		return true
	}
	tombstone := r.tombstone(last.id)
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
		d, known := r.places[place{a.id, i}]
		if !known || !r.placeAgain(&a.claims[i], &tombstone.claims[i], d) {
			return false
		}
		if retake := r.retaker(); !retake(a, i, tombstone.claims[i].held()) {
			return false
		}
		a.claims[i].follow(a.principal())
		r.concern(a.claims[i].at)
	}
	if !r.exact && len(l.checkPrincipals(a)) > 0 {
		return false
	}
	l.allocations.held.Set(a.fence, a)
	r.onUndo(func() { l.allocations.held.Delete(a.fence) })
	for i := range a.claims {
		l.book(a, i)
		r.onUndo(func() { l.unbook(a, i) })
	}
	r.revived[a.id] = revival{tombstone, a}
	return true
}

// placeAgain makes the claim of a tombstone one that is counted where it was when it was displaced; false if a node or a
// resource is no longer there under its name. The record of a tombstone may have been loaded, and then knows names only.
func (r *restoring) placeAgain(c, ended *placedClaim, d displacement) bool {
	t := r.ledger.forest.trees[ended.asked.treeName]
	if t == nil {
		return false
	}
	c.at = r.node(t, d.from)
	if c.at == nil || (d.fromSeat != 0) != (c.at.borrows == policy.BorrowSoft) {
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
		c.more.home = r.node(t, d.home)
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

// retake gives a claim the items again that it held; false if one was taken by somebody else since, or changed, or is gone.
func (r *restoring) retake(a *Allocation, i int, names []heldItem) bool {
	l, c := r.ledger, &a.claims[i]
	for _, h := range names {
		s := c.at.tree.resource(h.resource).stock
		it := s.byName[h.name]
		if it == nil || it.owner != 0 || it.state != s.resource.Items.ExpiredState() {
			return false
		}
		turn := l.inventory.turn
		is := l.inventory.aged(it, c.pickOf(h.resource).StateWhileHeld(), a.fence)
		l.inventory.changeItem(it, is)
		r.onUndo(func() {
			l.inventory.changeItem(is, it)
			l.inventory.turn = turn
		})
		c.more.items.held = append(c.more.items.held, heldItem{h.resource, h.name, is})
	}
	return true
}

// concern remembers what a node and all above it hold before anything is put back there.
func (r *restoring) concern(n *node) {
	if r.exact {
		return
	}
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

// fitsInBytes is true if the ledger has no more bytes than it may.
func (r *restoring) fitsInBytes() bool {
	l := r.ledger
	return !l.boundsBytes() || l.sizes().Live() <= l.bounds.LiveBytes
}

// commit takes the tombstones of those that hold again away.
func (r *restoring) commit() []string {
	l := r.ledger
	numbers := r.numbers()
	var restored []string
	for _, p := range r.by.more.preempted {
		is := r.revived[p.ID]
		l.allocations.unbury(numbers[is.tombstone], is.tombstone)
		l.allocations.byID[p.ID] = is.again
		l.deadlines.add(is.again)
		l.journal.note(quota.Event{Kind: quota.EventRestored, ID: p.ID, By: r.by.id})
		l.journal.fact(FactRestored, is.again)
		if !r.exact {
			l.forest.markChangedBy(is.again)
		}
		l.queue.took(is.again)
		l.queue.countRevoked(is.again, 1)
		restored = append(restored, p.ID)
	}
	return restored
}

// numbers are those under which the tombstones are kept. They are in the order of their ends, which are one after the other,
// when the reservation was made.
func (r *restoring) numbers() map[*Allocation]uint64 {
	l, numbers := r.ledger, make(map[*Allocation]uint64, len(r.revived))
	first, _, _ := l.allocations.ended.Min()
	from := sort.Search(int(l.allocations.endings-first)+1, func(i int) bool {
		for _, other := range l.allocations.ended.From(first + uint64(i)) {
			return other.ended.At >= r.by.granted.At
		}
		return true
	})
	for number, a := range l.allocations.ended.From(first + uint64(from)) {
		if len(numbers) == len(r.revived) {
			break
		}
		if is, known := r.revived[a.id]; known && is.tombstone == a {
			numbers[a] = number
		}
	}
	return numbers
}

// node finds a node of a tree by its identity, nil if it is not there any more. The first time it costs the tree.
func (r *restoring) node(t *tree, id uint64) *node {
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
