package ledger

import (
	"encoding/binary"
	"iter"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/ordmap"
)

// borrowIndex indexes the claims that are counted at a node with soft borrowing: by arrival, by priority group for
// preemption and, if they belong to a leaf below, by branch for reclaiming. Its maps are iterated only where the order
// has no effect.
type borrowIndex struct {
	groups map[quota.Standing]*priorityGroup
	// reclaims are by the child that leads to the leaf that the claims belong to. Claims that belong to the node itself,
	// or to a node that is not a leaf, are in none.
	reclaims map[*node]*reclaimIndex
}

// priorityGroup is the claims at a node with equal standing, with the sum of their amounts by resource index.
type priorityGroup struct {
	quota.Standing
	holds  []quota.Amount
	claims seqIndex
}

// claimRef identifies a claim of a held allocation.
type claimRef struct {
	fence uint64
	claim int
}

// addBorrower adds a claim to the index of its node. It keeps the claim's arrival number, or assigns the next one.
func (s *allocations) addBorrower(a *Allocation, i int) {
	c := &a.claims[i]
	if c.arrivalSeq() == 0 {
		if c.more == nil {
			c.more = &claimDetails{}
		}
		s.lastArrivalSeq++
		c.more.arrivalSeq = s.lastArrivalSeq
	}
	if c.at.borrowers == nil {
		c.at.borrowers = newBorrowIndex()
	}
	c.at.borrowers.addClaim(c, claimRef{a.fence, i})
}

// removeBorrower removes a claim from the index of its node.
func (s *allocations) removeBorrower(a *Allocation, i int) {
	c := &a.claims[i]
	c.at.borrowers.removeClaim(c)
}

func newBorrowIndex() *borrowIndex {
	return &borrowIndex{groups: map[quota.Standing]*priorityGroup{}, reclaims: map[*node]*reclaimIndex{}}
}

func (b *borrowIndex) addClaim(c *placedClaim, s claimRef) {
	alike := b.groups[c.standing()]
	if alike == nil {
		alike = &priorityGroup{Standing: c.standing(), holds: make([]quota.Amount, len(c.at.subtree))}
		b.groups[c.standing()] = alike
	}
	alike.claims.set(c.arrivalSeq(), s)
	alike.countAmounts(c, 1)
	branch := c.branchBelow()
	if branch == nil {
		return
	}
	if b.reclaims[branch] == nil {
		b.reclaims[branch] = &reclaimIndex{buckets: map[string]*bucket{}}
	}
	b.reclaims[branch].addClaim(c, s)
}

func (b *borrowIndex) removeClaim(c *placedClaim) {
	alike := b.groups[c.standing()]
	alike.claims.free(c.arrivalSeq())
	alike.countAmounts(c, -1)
	if alike.claims.count() == 0 {
		delete(b.groups, c.standing())
	}
	branch := c.branchBelow()
	if branch == nil {
		return
	}
	b.reclaims[branch].removeClaim(c)
	if len(b.reclaims[branch].buckets) == 0 {
		delete(b.reclaims, branch)
	}
}

func (d *priorityGroup) countAmounts(c *placedClaim, sign quota.Amount) {
	for _, p := range c.amounts {
		d.holds[p.resource.index] += sign * p.amount
	}
}

// groupsWhere returns the groups that pass, in no particular order.
func (b *borrowIndex) groupsWhere(pass func(*priorityGroup) bool) []*priorityGroup {
	if b == nil {
		return nil
	}
	var list []*priorityGroup
	for _, alike := range b.groups {
		if pass(alike) {
			list = append(list, alike)
		}
	}
	return list
}

// branchBelow is the child of the claim's node that leads to the leaf that the claim belongs to, or nil.
func (c *placedClaim) branchBelow() *node {
	n := c.home()
	if n == c.at || len(n.children) > 0 {
		return nil
	}
	for n != nil && n.parent != c.at {
		n = n.parent
	}
	return n
}

// arrivalSeq is the claim's place in the order of arrival; 0 if it has none.
func (c *placedClaim) arrivalSeq() uint64 {
	if c.more == nil {
		return 0
	}
	return c.more.arrivalSeq
}

// hasRoomFor is true if the node has capacity for the amounts. A node that is over its limit in any resource has none,
// even for other resources.
func (n *node) hasRoomFor(amounts []placedAmount) bool { return n.hasRoomAfter(amounts, nil) }

// hasRoomAfter is hasRoomFor without the claims of the given groups.
func (n *node) hasRoomAfter(amounts []placedAmount, gone []*priorityGroup) bool {
	for r, limit := range n.ceilings {
		used := n.subtree[r] + amountOf(amounts, r)
		for _, g := range gone {
			used -= g.holds[r]
		}
		if used > limit {
			return false
		}
	}
	return true
}

// amountOf is the amount of a resource in a short sorted list.
func amountOf(amounts []placedAmount, r int) quota.Amount {
	for _, p := range amounts {
		if p.resource.index == r {
			return p.amount
		}
	}
	return 0
}

// reclaimIndex has the claims at a node that belong to a leaf below one of its children and may be reclaimed there.
// Claims with the same amounts are in one bucket. The buckets are a treap, ordered by the arrival of their first
// claims, in which each knows the least amounts in its subtree. The next claim that fits is therefore found without
// visiting all.
type reclaimIndex struct {
	buckets map[string]*bucket // by amounts
	top     *bucket
}

// bucket is the claims of a reclaimIndex with the same amounts.
type bucket struct {
	amounts []placedAmount
	claims  seqIndex
	// The position in the treap: the arrival of the first claim, and the subtrees before and after it.
	seat          uint64
	before, after *bucket
	least         []quota.Amount // by resource index
}

func (d *reclaimIndex) addClaim(c *placedClaim, s claimRef) {
	var space [64]byte
	key := c.appendAmounts(space[:0])
	r := d.buckets[string(key)]
	if r == nil {
		r = &bucket{amounts: c.amounts, least: make([]quota.Amount, len(c.at.subtree))}
		d.buckets[string(key)] = r
	}
	d.reseat(r, func() { r.claims.set(c.arrivalSeq(), s) })
}

func (d *reclaimIndex) removeClaim(c *placedClaim) {
	var space [64]byte
	key := c.appendAmounts(space[:0])
	r := d.buckets[string(key)]
	d.reseat(r, func() { r.claims.free(c.arrivalSeq()) })
	if r.claims.count() == 0 {
		delete(d.buckets, string(key))
	}
}

// reseat changes the claims of a bucket, and moves the bucket in the treap if its first claim changes.
func (d *reclaimIndex) reseat(r *bucket, change func()) {
	was, _, had := r.claims.first()
	change()
	is, _, has := r.claims.first()
	if had && has && was == is {
		return
	}
	if had {
		before, from := d.top.cut(was)
		_, after := from.cut(was + 1)
		d.top = before.join(after)
	}
	if has {
		r.seat, r.before, r.after = is, nil, nil
		r.sum()
		before, after := d.top.cut(is)
		d.top = before.join(r).join(after)
	}
}

// firstFitting returns the first claim, in the order of arrival, that fits at a node.
func (d *reclaimIndex) firstFitting(n *node) (claimRef, bool) {
	if d == nil {
		return claimRef{}, false
	}
	r := d.top.firstFitting(n)
	if r == nil {
		return claimRef{}, false
	}
	_, who, _ := r.claims.first()
	return who, true
}

func (r *bucket) firstFitting(n *node) *bucket {
	if r == nil || !n.hasCapacity(r.least) {
		return nil
	}
	if before := r.before.firstFitting(n); before != nil {
		return before
	}
	if n.hasRoomFor(r.amounts) {
		return r
	}
	return r.after.firstFitting(n)
}

// hasCapacity is hasRoomFor with amounts by resource index.
func (n *node) hasCapacity(amounts []quota.Amount) bool {
	for r, limit := range n.ceilings {
		if n.subtree[r]+amounts[r] > limit {
			return false
		}
	}
	return true
}

// cut splits a treap into the buckets that arrived before seat, and the others.
func (r *bucket) cut(seat uint64) (before, from *bucket) {
	switch {
	case r == nil:
		return nil, nil
	case r.seat < seat:
		r.after, from = r.after.cut(seat)
		before = r
	default:
		before, r.before = r.before.cut(seat)
		from = r
	}
	r.sum()
	return before, from
}

// join concatenates two treaps; all buckets of the first come before those of the other.
func (r *bucket) join(other *bucket) *bucket {
	switch {
	case r == nil:
		return other
	case other == nil:
		return r
	case r.rank() > other.rank():
		r.after = r.after.join(other)
		r.sum()
		return r
	default:
		other.before = r.join(other.before)
		other.sum()
		return other
	}
}

// rank is the heap priority of a bucket. It is a hash of the arrival number, which keeps the treap shallow for every
// order of arrival and gives it the same shape on all replicas.
func (r *bucket) rank() uint64 {
	x := r.seat * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// sum recomputes the least amounts of the subtree.
func (r *bucket) sum() {
	for i := range r.least {
		r.least[i] = amountOf(r.amounts, i)
		if r.before != nil {
			r.least[i] = min(r.least[i], r.before.least[i])
		}
		if r.after != nil {
			r.least[i] = min(r.least[i], r.after.least[i])
		}
	}
}

// appendAmounts appends a canonical encoding of the nonzero amounts.
func (c *placedClaim) appendAmounts(text []byte) []byte {
	for _, p := range c.amounts {
		if p.amount != 0 {
			text = binary.AppendUvarint(text, uint64(p.resource.index))
			text = binary.AppendUvarint(text, uint64(p.amount))
		}
	}
	return text
}

// seqIndex has the claims of a bucket by arrival. Most buckets have few, for which a page of an ordered map would be
// too large.
type seqIndex struct {
	few  []seqEntry // by arrival; nil if there are many
	many *ordmap.Map[claimRef]
}

type seqEntry struct {
	seat uint64
	who  claimRef
}

// smallSeqIndex is the number of claims from which a map replaces the list.
const smallSeqIndex = 32

func (s *seqIndex) find(seat uint64) (int, bool) {
	return slices.BinarySearchFunc(s.few, seat, func(t seqEntry, seat uint64) int {
		switch {
		case t.seat < seat:
			return -1
		case t.seat > seat:
			return 1
		}
		return 0
	})
}

// set adds a claim under an unused arrival number.
func (s *seqIndex) set(seat uint64, who claimRef) {
	if s.many != nil {
		s.many.Set(seat, who)
		return
	}
	i, _ := s.find(seat)
	s.few = slices.Insert(s.few, i, seqEntry{seat, who})
	if len(s.few) > smallSeqIndex {
		s.many = &ordmap.Map[claimRef]{}
		for _, t := range s.few {
			s.many.Set(t.seat, t.who)
		}
		s.few = nil
	}
}

// free removes an arrival number.
func (s *seqIndex) free(seat uint64) {
	if s.many != nil {
		s.many.Delete(seat)
	} else if i, found := s.find(seat); found {
		s.few = slices.Delete(s.few, i, i+1)
	}
}

// get returns the claim with an arrival number.
func (s *seqIndex) get(seat uint64) (claimRef, bool) {
	if s.many != nil {
		return s.many.Get(seat)
	}
	if i, found := s.find(seat); found {
		return s.few[i].who, true
	}
	return claimRef{}, false
}

// first returns the claim that arrived first, and false if there is none.
func (s *seqIndex) first() (uint64, claimRef, bool) {
	if s.many != nil {
		return s.many.Min()
	}
	if len(s.few) == 0 {
		return 0, claimRef{}, false
	}
	return s.few[0].seat, s.few[0].who, true
}

func (s *seqIndex) count() int {
	if s.many != nil {
		return s.many.Len()
	}
	return len(s.few)
}

// all yields the claims in the order of arrival.
func (s *seqIndex) all() iter.Seq2[uint64, claimRef] {
	if s.many != nil {
		return s.many.All()
	}
	return func(yield func(uint64, claimRef) bool) {
		for _, t := range s.few {
			if !yield(t.seat, t.who) {
				return
			}
		}
	}
}
