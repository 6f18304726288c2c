package admit

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
	"github.com/quorate/quorate/quota/policy"
)

// WithClaimAt is a copy of the record with one claim counted at another node, under another arrival number.
func WithClaimAt(a *state.Allocation, i int, to *state.Node, arrivalSeq uint64) *state.Allocation {
	updated := *a
	updated.Claims = slices.Clone(a.Claims)
	c := &updated.Claims[i]
	home, more := c.Home(), state.ClaimDetails{}
	if c.More != nil {
		more = *c.More
	}
	c.At, c.Placed, c.More = to, to.Address, &more
	more.Home, more.ArrivalSeq = nil, arrivalSeq
	if home != to {
		more.Home = home
	}
	return &updated
}

// MoveClaim counts a claim at another node, at the end of its order.
func MoveClaim(s *state.Allocations, c state.ClaimRef, to *state.Node) (previous, updated *state.Allocation) {
	previous, _ = s.Held.Get(c.Fence)
	updated = WithClaimAt(previous, c.Claim, to, s.NextArrivalSeq(to))
	s.RefundNode(previous, c.Claim)
	s.ReplaceRecord(updated)
	s.ChargeNode(updated, c.Claim)
	return previous, updated
}

func (t *staged) moveClaim(s state.ClaimRef, to *state.Node) {
	t.noteDisplaced(s)
	previous, updated := MoveClaim(&t.state.Allocations, s, to)
	t.OnUndo(func() {
		t.state.Allocations.RefundNode(updated, s.Claim)
		previous.Claims[s.Claim].SameTrack(&updated.Claims[s.Claim])
		t.state.Allocations.ReplaceRecord(previous)
		t.state.Allocations.ChargeNode(previous, s.Claim)
	})
}

func (t *staged) removeClaim(s state.ClaimRef) {
	t.noteDisplaced(s)
	a, _ := t.state.Allocations.Held.Get(s.Fence)
	t.state.Allocations.RefundClaim(a, s.Claim)
	t.OnUndo(func() { t.state.Allocations.ChargeClaim(a, s.Claim) })
}

// noteDisplaced records for a reservation where a claim was before it was first moved. Claims of the reservation
// itself, which may be reclaimed when a victim in another tree loses all its claims, are not recorded: they end with
// it.
func (t *staged) noteDisplaced(s state.ClaimRef) {
	if s.Fence == t.fence || t.displacedClaims[s] || t.requester().State() != quota.Reserved {
		return
	}
	if t.displacedClaims == nil {
		t.displacedClaims = map[state.ClaimRef]bool{}
	}
	t.displacedClaims[s] = true
	a, _ := t.state.Allocations.Held.Get(s.Fence)
	c := &a.Claims[s.Claim]
	d := state.Displacement{ID: a.ID(), Claim: s.Claim, From: c.At.ID, FromSeq: c.ArrivalSeq()}
	if home := c.Home(); home != c.At {
		d.Home = home.ID
	}
	t.displaced = append(t.displaced, d)
	for _, n := range []*state.Node{c.At, c.Home()} {
		if n.Dynamic {
			t.displacedFrom = append(t.displacedFrom, n)
		}
	}
}

// completeDisplaced adds the final arrival numbers to the displacements. It must run before the tombstones of the
// victims are made.
func (t *staged) completeDisplaced() []state.Displacement {
	ended := make(map[uint64]bool, len(t.victims))
	for _, v := range t.victims {
		ended[v.Fence()] = true
	}
	for i := range t.displaced {
		d := &t.displaced[i]
		if a := t.state.Allocations.ByID.Find(d.ID); !ended[a.Fence()] {
			d.NewSeq = a.Claims[d.Claim].ArrivalSeq()
		}
	}
	return t.displaced
}

// borrowShape determines where claims of a tree may be counted: if it and the resources are unchanged, all claims stay
// at their nodes.
type borrowShape struct {
	id, parent uint64
	borrows    policy.Borrowing
}

// BorrowShapes lists the nodes in the order of Walk.
func BorrowShapes(t *state.Tree) []borrowShape {
	var nodes []borrowShape
	t.Root.Walk(func(n *state.Node) bool {
		s := borrowShape{id: n.ID, borrows: n.Borrows}
		if n.Parent != nil {
			s.parent = n.Parent.ID
		}
		nodes = append(nodes, s)
		return true
	})
	return nodes
}

// ClearBorrowIndexes empties all borrow indexes of the tree. It returns their claims by arrival, and whether a node
// counts claims that belong in an index but are in none.
func ClearBorrowIndexes(t *state.Tree) (list []state.IndexedClaim, isIncomplete bool) {
	t.Root.Walk(func(n *state.Node) bool {
		before := len(list)
		list = append(list, n.Borrowers.AllClaims()...)
		isIncomplete = isIncomplete || n.Borrows == policy.BorrowSoft && n.Claims > len(list)-before
		n.Borrowers = nil
		return true
	})
	slices.SortFunc(list, func(a, b state.IndexedClaim) int { return cmp.Compare(a.Seq, b.Seq) })
	return list, isIncomplete
}

// ClaimsWithoutSeq are the claims that need an arrival number and have none, by fence.
func ClaimsWithoutSeq(s *state.Allocations, t *state.Tree) []state.IndexedClaim {
	var list []state.IndexedClaim
	for fence, a := range s.Held.All() {
		for i := range a.Claims {
			if c := &a.Claims[i]; c.At.Tree == t && c.At.Borrows == policy.BorrowSoft && c.ArrivalSeq() == 0 {
				list = append(list, state.IndexedClaim{ClaimRef: state.ClaimRef{Fence: fence, Claim: i}})
			}
		}
	}
	return list
}

// BorrowsFrom is true if every node from n up to other borrows softly.
func BorrowsFrom(n, other *state.Node) bool {
	for ; n != nil && n.Borrows == policy.BorrowSoft; n = n.Parent {
		if n == other {
			return true
		}
	}
	return false
}

// MustRehome is true if a claim that belongs to n can no longer be counted at another node. slid is whether the claim
// was reclaimable before, which needs n to be a leaf.
func MustRehome(n, at *state.Node, slid bool) bool {
	return !BorrowsFrom(n, at) || slid && len(n.Children) > 0
}
