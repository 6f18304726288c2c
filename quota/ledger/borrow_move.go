package ledger

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// withClaimAt is a copy of the record with one claim counted at another node, under another arrival number.
func (a *Allocation) withClaimAt(i int, to *node, seat uint64) *Allocation {
	is := *a
	is.claims = slices.Clone(a.claims)
	c := &is.claims[i]
	home, more := c.home(), claimDetails{}
	if c.more != nil {
		more = *c.more
	}
	c.at, c.placed, c.more = to, to.address, &more
	more.home, more.arrivalSeq = nil, seat
	if home != to {
		more.home = home
	}
	return &is
}

// moveClaim counts a claim at another node, at the end of its order.
func (s *allocations) moveClaim(c claimRef, to *node) (was, is *Allocation) {
	was, _ = s.held.Get(c.fence)
	is = was.withClaimAt(c.claim, to, s.nextArrivalSeq(to))
	s.refundNode(was, c.claim)
	s.replaceRecord(is)
	s.chargeNode(is, c.claim)
	return was, is
}

// nextArrivalSeq assigns a new arrival number at a node; 0 if the node does not borrow softly.
func (s *allocations) nextArrivalSeq(at *node) uint64 {
	if at.borrows != policy.BorrowSoft {
		return 0
	}
	s.lastArrivalSeq++
	return s.lastArrivalSeq
}

// moveClaim moves a claim as a step of the transaction.
func (t *staged) moveClaim(s claimRef, to *node) {
	t.noteDisplaced(s)
	was, is := t.ledger.allocations.moveClaim(s, to)
	t.onUndo(func() {
		t.ledger.allocations.refundNode(is, s.claim)
		was.claims[s.claim].sameTrack(&is.claims[s.claim])
		t.ledger.allocations.replaceRecord(was)
		t.ledger.allocations.chargeNode(was, s.claim)
	})
}

// removeClaim removes a claim of a victim as a step of the transaction.
func (t *staged) removeClaim(s claimRef) {
	t.noteDisplaced(s)
	a, _ := t.ledger.allocations.held.Get(s.fence)
	t.ledger.allocations.refundClaim(a, s.claim)
	t.onUndo(func() { t.ledger.allocations.chargeClaim(a, s.claim) })
}

// noteDisplaced records for a reservation where a claim was before it was first moved. Claims of the reservation
// itself, which may be reclaimed when a victim in another tree loses all its claims, are not recorded: they end with
// it.
func (t *staged) noteDisplaced(s claimRef) {
	if s.fence == t.fence || t.displacedClaims[s] || t.requester().State() != quota.Reserved {
		return
	}
	if t.displacedClaims == nil {
		t.displacedClaims = map[claimRef]bool{}
	}
	t.displacedClaims[s] = true
	a, _ := t.ledger.allocations.held.Get(s.fence)
	c := &a.claims[s.claim]
	d := displacement{id: a.id, claim: s.claim, from: c.at.id, fromSeq: c.arrivalSeq()}
	if home := c.home(); home != c.at {
		d.home = home.id
	}
	t.displaced = append(t.displaced, d)
	for _, n := range []*node{c.at, c.home()} {
		if n.dynamic {
			t.displacedFrom = append(t.displacedFrom, n)
		}
	}
}

// completeDisplaced adds the final arrival numbers to the displacements. It must run before the tombstones of the
// victims are made.
func (t *staged) completeDisplaced() []displacement {
	ended := make(map[uint64]bool, len(t.victims))
	for _, v := range t.victims {
		ended[v.fence] = true
	}
	for i := range t.displaced {
		d := &t.displaced[i]
		if a := t.ledger.allocations.byID.Find(d.id); !ended[a.fence] {
			d.newSeq = a.claims[d.claim].arrivalSeq()
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

// borrowShapes lists the nodes in the order of walk.
func (t *tree) borrowShapes() []borrowShape {
	var nodes []borrowShape
	t.root.walk(func(n *node) bool {
		s := borrowShape{id: n.id, borrows: n.borrows}
		if n.parent != nil {
			s.parent = n.parent.id
		}
		nodes = append(nodes, s)
		return true
	})
	return nodes
}

// indexedClaim is a claim of a tree whose indexes are rebuilt.
type indexedClaim struct {
	claimRef
	seq    uint64
	slides bool // it belongs to a leaf below, or did
}

// clearBorrowIndexes empties all borrow indexes of the tree. It returns their claims by arrival, and whether a node
// counts claims that belong in an index but are in none.
func (t *tree) clearBorrowIndexes() (list []indexedClaim, unseated bool) {
	t.root.walk(func(n *node) bool {
		before := len(list)
		list = append(list, n.borrowers.allClaims()...)
		unseated = unseated || n.borrows == policy.BorrowSoft && n.claims > len(list)-before
		n.borrowers = nil
		return true
	})
	slices.SortFunc(list, func(a, b indexedClaim) int { return cmp.Compare(a.seq, b.seq) })
	return list, unseated
}

// allClaims are the claims of the index, in no particular order.
func (b *borrowIndex) allClaims() []indexedClaim {
	if b == nil {
		return nil
	}
	slides := map[claimRef]bool{}
	for _, d := range b.reclaims {
		for _, r := range d.byAmounts {
			for _, who := range r.claims.All() {
				slides[who] = true
			}
		}
	}
	var list []indexedClaim
	for _, c := range b.groups {
		for seat, who := range c.claims.All() {
			list = append(list, indexedClaim{claimRef: who, seq: seat, slides: slides[who]})
		}
	}
	return list
}

// claimsWithoutSeq are the claims that need an arrival number and have none, by fence.
func (s *allocations) claimsWithoutSeq(t *tree) []indexedClaim {
	var list []indexedClaim
	for fence, a := range s.held.All() {
		for i := range a.claims {
			if c := &a.claims[i]; c.at.tree == t && c.at.borrows == policy.BorrowSoft && c.arrivalSeq() == 0 {
				list = append(list, indexedClaim{claimRef: claimRef{fence, i}})
			}
		}
	}
	return list
}

// borrowsFrom is true if every node from n up to other borrows softly.
func (n *node) borrowsFrom(other *node) bool {
	for ; n != nil && n.borrows == policy.BorrowSoft; n = n.parent {
		if n == other {
			return true
		}
	}
	return false
}

// mustRehome is true if a claim that belongs to n can no longer be counted at another node. slid is whether the claim
// was reclaimable before, which needs n to be a leaf.
func (n *node) mustRehome(at *node, slid bool) bool {
	return !n.borrowsFrom(at) || slid && len(n.children) > 0
}
