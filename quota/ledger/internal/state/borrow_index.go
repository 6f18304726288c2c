package state

import (
	"encoding/binary"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/ordmap"
	"github.com/quorate/quorate/quota/internal/treap"
	"github.com/quorate/quorate/quota/policy"
)

// BorrowIndex indexes the claims that are counted at a node with soft borrowing: by arrival, by priority group for
// preemption and, if they belong to a leaf below, by branch for reclaiming. Its maps are iterated only where the order
// has no effect.
type BorrowIndex struct {
	Groups map[quota.Standing]*PriorityGroup
	// Reclaims are by the child that leads to the leaf that the claims belong to. Claims that belong to the node itself,
	// or to a node that is not a leaf, are in none.
	Reclaims map[*Node]*ReclaimIndex
}

// PriorityGroup is the claims at a node with equal standing, with the sum of their amounts by resource index.
type PriorityGroup struct {
	quota.Standing
	Holds []quota.Amount
	// Claims are by arrival; most groups have few.
	Claims ordmap.Small[ClaimRef]
}

// ClaimRef identifies a claim of a held allocation.
type ClaimRef struct {
	Fence uint64
	Claim int
}

// AddBorrower adds a claim to the index of its node. It keeps the claim's arrival number, or assigns the next one.
func (s *Allocations) AddBorrower(a *Allocation, i int) {
	c := &a.Claims[i]
	if c.ArrivalSeq() == 0 {
		if c.More == nil {
			c.More = &ClaimDetails{}
		}
		s.LastArrivalSeq++
		c.More.ArrivalSeq = s.LastArrivalSeq
	}
	if c.At.Borrowers == nil {
		c.At.Borrowers = NewBorrowIndex()
	}
	c.At.Borrowers.AddClaim(c, ClaimRef{a.fence, i})
}

func (s *Allocations) removeBorrower(a *Allocation, i int) {
	c := &a.Claims[i]
	c.At.Borrowers.removeClaim(c)
}

func NewBorrowIndex() *BorrowIndex {
	return &BorrowIndex{Groups: map[quota.Standing]*PriorityGroup{}, Reclaims: map[*Node]*ReclaimIndex{}}
}

func (b *BorrowIndex) AddClaim(c *PlacedClaim, s ClaimRef) {
	alike := b.Groups[c.Standing()]
	if alike == nil {
		alike = &PriorityGroup{Standing: c.Standing(), Holds: make([]quota.Amount, len(c.At.Subtree))}
		b.Groups[c.Standing()] = alike
	}
	alike.Claims.Set(c.ArrivalSeq(), s)
	alike.countAmounts(c, 1)
	branch := c.branchBelow()
	if branch == nil {
		return
	}
	if b.Reclaims[branch] == nil {
		b.Reclaims[branch] = &ReclaimIndex{ByAmounts: map[string]*Bucket{}}
	}
	b.Reclaims[branch].addClaim(c, s)
}

func (b *BorrowIndex) removeClaim(c *PlacedClaim) {
	alike := b.Groups[c.Standing()]
	alike.Claims.Delete(c.ArrivalSeq())
	alike.countAmounts(c, -1)
	if alike.Claims.Len() == 0 {
		delete(b.Groups, c.Standing())
	}
	branch := c.branchBelow()
	if branch == nil {
		return
	}
	b.Reclaims[branch].removeClaim(c)
	if len(b.Reclaims[branch].ByAmounts) == 0 {
		delete(b.Reclaims, branch)
	}
}

func (d *PriorityGroup) countAmounts(c *PlacedClaim, sign quota.Amount) {
	for _, p := range c.Amounts {
		d.Holds[p.Resource.Index] += sign * p.Amount
	}
}

// GroupsWhere returns the groups that pass, in no particular order.
func (b *BorrowIndex) GroupsWhere(pass func(*PriorityGroup) bool) []*PriorityGroup {
	if b == nil {
		return nil
	}
	var list []*PriorityGroup
	for _, alike := range b.Groups {
		if pass(alike) {
			list = append(list, alike)
		}
	}
	return list
}

// branchBelow is the child of the claim's node that leads to the leaf that the claim belongs to, or nil.
func (c *PlacedClaim) branchBelow() *Node {
	n := c.Home()
	if n == c.At || len(n.Children) > 0 {
		return nil
	}
	for n != nil && n.Parent != c.At {
		n = n.Parent
	}
	return n
}

// ArrivalSeq is the claim's place in the order of arrival; 0 if it has none.
func (c *PlacedClaim) ArrivalSeq() uint64 {
	if c.More == nil {
		return 0
	}
	return c.More.ArrivalSeq
}

// HasRoomFor is true if the node has capacity for the amounts. A node that is over its limit in any resource has none,
// even for other resources.
func (n *Node) HasRoomFor(amounts []PlacedAmount) bool { return n.HasRoomAfter(amounts, nil) }

// HasRoomAfter is HasRoomFor without the claims of the given groups.
func (n *Node) HasRoomAfter(amounts []PlacedAmount, gone []*PriorityGroup) bool {
	for r, limit := range n.Ceilings {
		used := n.Subtree[r] + AmountOf(amounts, r)
		for _, g := range gone {
			used -= g.Holds[r]
		}
		if used > limit {
			return false
		}
	}
	return true
}

// AmountOf is the amount of a resource in a short sorted list.
func AmountOf(amounts []PlacedAmount, r int) quota.Amount {
	for _, p := range amounts {
		if p.Resource.Index == r {
			return p.Amount
		}
	}
	return 0
}

// ReclaimIndex has the claims at a node that belong to a leaf below one of its children and may be reclaimed there.
// Claims with the same amounts are in one bucket. The buckets are ordered by the arrival of their first claims, and the
// next claim that fits is found without visiting all.
type ReclaimIndex struct {
	ByAmounts map[string]*Bucket
	ByArrival treap.Tree[*Bucket, quota.Amount]
}

// Bucket is the claims of a ReclaimIndex with the same amounts.
type Bucket struct {
	Claims ordmap.Small[ClaimRef] // by arrival; most buckets have few
	place  treap.Node[*Bucket, quota.Amount]
}

func (d *ReclaimIndex) addClaim(c *PlacedClaim, s ClaimRef) {
	var space [64]byte
	key := c.appendAmounts(space[:0])
	r := d.ByAmounts[string(key)]
	if r == nil {
		r = newBucket(c)
		d.ByAmounts[string(key)] = r
	}
	first, _, hadClaims := r.Claims.Min()
	r.Claims.Set(c.ArrivalSeq(), s)
	d.moveBucket(r, first, hadClaims)
}

func (d *ReclaimIndex) removeClaim(c *PlacedClaim) {
	var space [64]byte
	key := c.appendAmounts(space[:0])
	r := d.ByAmounts[string(key)]
	first, _, hadClaims := r.Claims.Min()
	r.Claims.Delete(c.ArrivalSeq())
	d.moveBucket(r, first, hadClaims)
	if r.Claims.Len() == 0 {
		delete(d.ByAmounts, string(key))
	}
}

func newBucket(c *PlacedClaim) *Bucket {
	amounts := make([]quota.Amount, len(c.At.Subtree))
	for _, p := range c.Amounts {
		amounts[p.Resource.Index] = p.Amount
	}
	r := &Bucket{}
	r.place = treap.NewNode(r, amounts)
	return r
}

// moveBucket moves a bucket in the order of arrival if its first claim has changed; previous is the former one,
// if it had any.
func (d *ReclaimIndex) moveBucket(r *Bucket, previous uint64, hadClaims bool) {
	updated, _, hasClaims := r.Claims.Min()
	if hadClaims && hasClaims && previous == updated {
		return
	}
	if hadClaims {
		d.ByArrival.Delete(previous)
	}
	if hasClaims {
		d.ByArrival.Insert(updated, &r.place)
	}
}

// FirstFitting returns the first claim, in the order of arrival, that fits at a node.
func (d *ReclaimIndex) FirstFitting(n *Node) (ClaimRef, bool) {
	if d == nil {
		return ClaimRef{}, false
	}
	r, found := d.ByArrival.FirstFitting(n.hasCapacity)
	if !found {
		return ClaimRef{}, false
	}
	_, ref, _ := r.Claims.Min()
	return ref, true
}

// hasCapacity is HasRoomFor with amounts by resource index.
func (n *Node) hasCapacity(amounts []quota.Amount) bool {
	for r, limit := range n.Ceilings {
		if n.Subtree[r]+amounts[r] > limit {
			return false
		}
	}
	return true
}

func (c *PlacedClaim) appendAmounts(text []byte) []byte {
	for _, p := range c.Amounts {
		if p.Amount != 0 {
			text = binary.AppendUvarint(text, uint64(p.Resource.Index))
			text = binary.AppendUvarint(text, uint64(p.Amount))
		}
	}
	return text
}

// Rehoming is a claim that a draft counts at its home again instead of where it borrows; see rebuildBorrowIndexes.
type Rehoming struct {
	From, Home *Node // nodes of the draft
	Amounts    []PlacedAmount
}

// Within is true if the node is top or below it.
func (n *Node) Within(top *Node) bool {
	for ; n != nil; n = n.Parent {
		if n == top {
			return true
		}
	}
	return false
}

func (b *BorrowIndex) IsEmpty() bool { return b == nil || len(b.Groups)+len(b.Reclaims) == 0 }

// AllClaims are the claims of the index, in no particular order.
func (b *BorrowIndex) AllClaims() []IndexedClaim {
	if b == nil {
		return nil
	}
	slides := map[ClaimRef]bool{}
	for _, d := range b.Reclaims {
		for _, r := range d.ByAmounts {
			for _, ref := range r.Claims.All() {
				slides[ref] = true
			}
		}
	}
	var list []IndexedClaim
	for _, c := range b.Groups {
		for seq, ref := range c.Claims.All() {
			list = append(list, IndexedClaim{ClaimRef: ref, Seq: seq, Slides: slides[ref]})
		}
	}
	return list
}

// NextArrivalSeq assigns a new arrival number at a node; 0 if the node does not borrow softly.
func (s *Allocations) NextArrivalSeq(at *Node) uint64 {
	if at.Borrows != policy.BorrowSoft {
		return 0
	}
	s.LastArrivalSeq++
	return s.LastArrivalSeq
}

// IndexedClaim is a claim of a tree whose indexes are rebuilt.
type IndexedClaim struct {
	ClaimRef
	Seq    uint64
	Slides bool // it belongs to a leaf below, or did
}
