package ledger

import (
	"encoding/binary"
	"iter"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/ordmap"
)

// borrowIndex keeps the claims that are counted at a node of a borrowing tree, by seat, and each where it is looked for: among
// those of its standing, who may be pushed out, and if it can slide down, in the descent of its branch. Its maps are looped
// over only where order cannot be seen.
type borrowIndex struct {
	groups map[quota.Standing]*priorityGroup
	// reclaims are by the child that leads to the leaf that the claims belong to. Who belongs to the bench's node, or to a node
	// that is no leaf, is in none.
	reclaims map[*node]*reclaimIndex
}

// priorityGroup is the claims on a bench that stand alike, with the sum of what they hold, by resource index.
type priorityGroup struct {
	quota.Standing
	holds  []quota.Amount
	claims seqIndex
}

// claimRef names a claim of a held allocation.
type claimRef struct {
	fence uint64
	claim int
}

// addBorrower takes a seat at the claim's node: the one that the claim has, or else the next.
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

// removeBorrower gives the seat up.
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

// groupsWhere are the crowds that pass, in no order.
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

// branchBelow is the child of the claim's node that leads to the leaf that it belongs to, or nil.
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

// hasRoomFor is true if the node has room for the amounts. A node that is over its limit in any resource takes nothing, also
// if nothing of that resource is asked for.
func (n *node) hasRoomFor(amounts []placedAmount) bool { return n.hasRoomAfter(amounts, nil) }

// hasRoomAfter is the same as if all of the crowds were gone.
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

// amountOf is what amounts, which are few and in order, have of a resource.
func amountOf(amounts []placedAmount, r int) quota.Amount {
	for _, p := range amounts {
		if p.resource.index == r {
			return p.amount
		}
	}
	return 0
}

// reclaimIndex is the claims at a node that belong to a leaf below one of its children, and may slide down there. Those that ask for
// the same amounts sit in one row. The rows are a search tree by the seats of their first sitters, in which each knows the
// least that it and those below it in the tree ask for: so who slides down next is found without asking everybody.
type reclaimIndex struct {
	buckets map[string]*bucket // by amounts
	top     *bucket
}

// bucket is the claims of a descent that ask for the same amounts.
type bucket struct {
	amounts []placedAmount
	claims  seqIndex
	// What follows is its place in the tree: the seat of the first sitter, and what is before and after it.
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

// reseat changes who sits in a row, and where the row is in the tree if its first sitter is another then.
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

// firstFitting is who has sat longest of those that a node has room for, if anybody.
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

// hasCapacity is the same as takes for amounts by resource index.
func (n *node) hasCapacity(amounts []quota.Amount) bool {
	for r, limit := range n.ceilings {
		if n.subtree[r]+amounts[r] > limit {
			return false
		}
	}
	return true
}

// cut parts a tree into the rows whose seats are before one, and the others.
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

// join puts a tree before another.
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

// rank decides who is above whom in the tree. It scatters seats, so that the tree is not deep in whatever order they are
// taken, and has the same shape everywhere.
func (r *bucket) rank() uint64 {
	x := r.seat * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// sum says again what is least.
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

// appendAmounts writes the amounts that are not zero, so that equal ones are equal texts.
func (c *placedClaim) appendAmounts(text []byte) []byte {
	for _, p := range c.amounts {
		if p.amount != 0 {
			text = binary.AppendUvarint(text, uint64(p.resource.index))
			text = binary.AppendUvarint(text, uint64(p.amount))
		}
	}
	return text
}

// seqIndex are the sitters of a row by seat. Most rows have few, for which a page of a map would be too much.
type seqIndex struct {
	few  []seqEntry // by seat; nil if there are many
	many *ordmap.Map[claimRef]
}

type seqEntry struct {
	seat uint64
	who  claimRef
}

// smallSeqIndex is how many sitters a list holds before it becomes a map.
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

// set gives a seat that is free to a sitter.
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

// free takes a seat away.
func (s *seqIndex) free(seat uint64) {
	if s.many != nil {
		s.many.Delete(seat)
	} else if i, found := s.find(seat); found {
		s.few = slices.Delete(s.few, i, i+1)
	}
}

// get answers who sits in a seat.
func (s *seqIndex) get(seat uint64) (claimRef, bool) {
	if s.many != nil {
		return s.many.Get(seat)
	}
	if i, found := s.find(seat); found {
		return s.few[i].who, true
	}
	return claimRef{}, false
}

// first is the seat that was taken first, and false if nobody sits.
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

// all yields everybody by seat.
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
