package ledger

import (
	"encoding/binary"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/ordmap"
	"github.com/quorate/quorate/quota/internal/treap"
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
	holds []quota.Amount
	// claims are by arrival; most groups have few.
	claims ordmap.Small[claimRef]
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
	alike.claims.Set(c.arrivalSeq(), s)
	alike.countAmounts(c, 1)
	branch := c.branchBelow()
	if branch == nil {
		return
	}
	if b.reclaims[branch] == nil {
		b.reclaims[branch] = &reclaimIndex{byAmounts: map[string]*bucket{}}
	}
	b.reclaims[branch].addClaim(c, s)
}

func (b *borrowIndex) removeClaim(c *placedClaim) {
	alike := b.groups[c.standing()]
	alike.claims.Delete(c.arrivalSeq())
	alike.countAmounts(c, -1)
	if alike.claims.Len() == 0 {
		delete(b.groups, c.standing())
	}
	branch := c.branchBelow()
	if branch == nil {
		return
	}
	b.reclaims[branch].removeClaim(c)
	if len(b.reclaims[branch].byAmounts) == 0 {
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
// Claims with the same amounts are in one bucket. The buckets are ordered by the arrival of their first claims, and the
// next claim that fits is found without visiting all.
type reclaimIndex struct {
	byAmounts map[string]*bucket
	byArrival treap.Tree[*bucket, quota.Amount]
}

// bucket is the claims of a reclaimIndex with the same amounts.
type bucket struct {
	claims ordmap.Small[claimRef] // by arrival; most buckets have few
	place  treap.Node[*bucket, quota.Amount]
}

func (d *reclaimIndex) addClaim(c *placedClaim, s claimRef) {
	var space [64]byte
	key := c.appendAmounts(space[:0])
	r := d.byAmounts[string(key)]
	if r == nil {
		r = newBucket(c)
		d.byAmounts[string(key)] = r
	}
	first, _, had := r.claims.Min()
	r.claims.Set(c.arrivalSeq(), s)
	d.moveBucket(r, first, had)
}

func (d *reclaimIndex) removeClaim(c *placedClaim) {
	var space [64]byte
	key := c.appendAmounts(space[:0])
	r := d.byAmounts[string(key)]
	first, _, had := r.claims.Min()
	r.claims.Delete(c.arrivalSeq())
	d.moveBucket(r, first, had)
	if r.claims.Len() == 0 {
		delete(d.byAmounts, string(key))
	}
}

func newBucket(c *placedClaim) *bucket {
	amounts := make([]quota.Amount, len(c.at.subtree))
	for _, p := range c.amounts {
		amounts[p.resource.index] = p.amount
	}
	r := &bucket{}
	r.place = treap.NewNode(r, amounts)
	return r
}

// moveBucket moves a bucket in the order of arrival if its first claim has changed; was is the former one, if it had
// any.
func (d *reclaimIndex) moveBucket(r *bucket, was uint64, had bool) {
	is, _, has := r.claims.Min()
	if had && has && was == is {
		return
	}
	if had {
		d.byArrival.Delete(was)
	}
	if has {
		d.byArrival.Insert(is, &r.place)
	}
}

// firstFitting returns the first claim, in the order of arrival, that fits at a node.
func (d *reclaimIndex) firstFitting(n *node) (claimRef, bool) {
	if d == nil {
		return claimRef{}, false
	}
	r, found := d.byArrival.FirstFitting(n.hasCapacity)
	if !found {
		return claimRef{}, false
	}
	_, who, _ := r.claims.Min()
	return who, true
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

// rehoming is a claim that a draft counts at its home again instead of where it borrows; see rebuildBorrowIndexes.
type rehoming struct {
	from, home *node // nodes of the draft
	amounts    []placedAmount
}

// within is true if the node is top or below it.
func (n *node) within(top *node) bool {
	for ; n != nil; n = n.parent {
		if n == top {
			return true
		}
	}
	return false
}
