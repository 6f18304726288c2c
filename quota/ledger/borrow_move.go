package ledger

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// withClaimAt is the record with one claim counted at another node, in another seat there.
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

// moveClaim counts a sitter's claim at another node, at the end of its order.
func (s *allocations) moveClaim(c claimRef, to *node) (was, is *Allocation) {
	was, _ = s.held.Get(c.fence)
	is = was.withClaimAt(c.claim, to, s.nextArrivalSeq(to))
	s.refundNode(was, c.claim)
	s.replaceRecord(is)
	s.chargeNode(is, c.claim)
	return was, is
}

// nextArrivalSeq is a new seat at a node; 0 if there are none.
func (s *allocations) nextArrivalSeq(at *node) uint64 {
	if at.borrows != policy.BorrowSoft {
		return 0
	}
	s.lastArrivalSeq++
	return s.lastArrivalSeq
}

// moveClaim is a step of the trial.
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

// removeClaim counts a claim of a victim nowhere.
func (t *staged) removeClaim(s claimRef) {
	t.noteDisplaced(s)
	a, _ := t.ledger.allocations.held.Get(s.fence)
	t.ledger.allocations.refundClaim(a, s.claim)
	t.onUndo(func() { t.ledger.allocations.chargeClaim(a, s.claim) })
}

// noteDisplaced notes for a reservation where a claim was before it was moved for the first time. Its own claims, which may
// slide down too when a victim in another tree loses all its places, have no place to go back to.
func (t *staged) noteDisplaced(s claimRef) {
	if s.fence == t.fence || t.displacedClaims[s] || t.newcomer().state() != quota.Reserved {
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

// completeDisplaced completes what remember noted with the seats that the claims have got in the end; before the victims
// are buried.
func (t *staged) completeDisplaced() []displacement {
	ended := make(map[uint64]bool, len(t.victims))
	for _, v := range t.victims {
		ended[v.fence] = true
	}
	for i := range t.displaced {
		d := &t.displaced[i]
		if a := t.ledger.allocations.byID[d.id]; !ended[a.fence] {
			d.newSeq = a.claims[d.claim].arrivalSeq()
		}
	}
	return t.displaced
}

// rehoming is a claim that a draft will count at its home again, and no more where it borrows; see reseat.
type rehoming struct {
	from, home *node // of the draft
	amounts    []placedAmount
}

// rehomeClaims finds the claims that will be counted at home again, and counts them there in the draft, so that whoever looks
// at it sees what will be held where. It answers the breaches where the draft would no longer let claims be counted above
// their nodes, although their nodes stay below: whoever lends to them would then be held to limits that he has not broken.
func (pl planner) rehomeClaims(s *treeTransition) []quota.Breach {
	if s.old == nil {
		return nil
	}
	var breaches []quota.Breach
	s.heldAtHome = map[*node][]quota.Amount{}
	s.old.root.walk(func(n *node) bool {
		stuck, at := 0, s.next[n]
		for _, sits := range n.borrowers.allClaims() {
			a, _ := pl.allocations.held.Get(sits.fence)
			c := &a.claims[sits.claim]
			home := s.next[c.home()]
			switch {
			case home == nil || at == nil || home == at:
			case home.within(at) && !home.borrowsFrom(at):
				stuck++
			case home.mustRehome(at, sits.slides):
				s.rehomings = append(s.rehomings, rehoming{at, home, c.amounts})
				s.noteAtHome(c)
			}
		}
		if stuck > 0 {
			breaches = append(breaches, quota.Breach{
				Tree: n.treeName, Node: n.path, Policy: at.policy.Name,
				Text: fmt.Sprintf("%d of the claims counted here belong to nodes below and borrow: release them, or keep policy %s from there up to here", stuck, n.policy.Name),
			})
		}
		return true
	})
	s.countRehomings(1)
	return breaches
}

// noteAtHome notes for the nodes that the claim has passed by what they would hold if it had stayed at home.
func (s *treeTransition) noteAtHome(c *placedClaim) {
	for n := c.home(); n != c.at; n = n.parent {
		if s.heldAtHome[n] == nil {
			s.heldAtHome[n] = make([]quota.Amount, len(n.subtree))
		}
		for _, p := range c.amounts {
			s.heldAtHome[n][p.resource.index] += p.amount
		}
	}
}

// countRehomings counts in the draft what will be held at home, or with -1 where it is now, as install wants it.
func (s *treeTransition) countRehomings(sign quota.Amount) {
	for _, h := range s.rehomings {
		for _, p := range h.amounts {
			r := s.draft.resource(p.resource.Name).index
			h.from.addUsage(r, -sign*p.amount)
			h.home.addUsage(r, sign*p.amount)
		}
	}
}

// borrowShape is what decides who may sit where in a tree: if it and the resources stay the same,
// everybody stays where he is.
type borrowShape struct {
	id, parent uint64
	borrows    policy.Borrowing
}

// borrowShapes lists the nodes as a walk visits them.
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

// rebuildBorrowIndexes settles who sits where after a change of a tree. Claims keep their seats; those that a node has counted before its
// policy became one of soft borrowing get seats in the order of their grants; those that can no longer be counted where
// they are, because their node was moved elsewhere or has got children, are counted at their node again. That may put it
// over its limits. If neither nodes nor resources nor borrowing have changed, it changes nothing. It costs the claims that
// sit in the tree, and if some have no seat yet, all held ones.
func (pl planner) rebuildBorrowIndexes(t *tree) {
	seated, unseated := t.clearBorrowIndexes()
	if unseated {
		seated = append(seated, pl.allocations.claimsWithoutSeq(t)...)
	}
	for _, s := range seated {
		pl.indexClaim(s.claimRef)
	}
	for _, s := range seated {
		a, _ := pl.allocations.held.Get(s.fence)
		c := &a.claims[s.claim]
		if home := c.home(); home != c.at && home.mustRehome(c.at, s.slides) {
			pl.allocations.moveClaim(s.claimRef, home)
		}
	}
}

// indexedClaim is a claim that sits in a tree which is settled anew.
type indexedClaim struct {
	claimRef
	seq    uint64
	slides bool // it belongs to a leaf below, or did
}

// clearBorrowIndexes empties all benches of the tree. It answers who sat there, by seat, and whether a node counts claims that
// should sit and do not.
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

// allClaims are the claims that sit here, in no order.
func (b *borrowIndex) allClaims() []indexedClaim {
	if b == nil {
		return nil
	}
	slides := map[claimRef]bool{}
	for _, d := range b.reclaims {
		for _, r := range d.buckets {
			for _, who := range r.claims.all() {
				slides[who] = true
			}
		}
	}
	var list []indexedClaim
	for _, c := range b.groups {
		for seat, who := range c.claims.all() {
			list = append(list, indexedClaim{claimRef: who, seq: seat, slides: slides[who]})
		}
	}
	return list
}

// claimsWithoutSeq are the claims that should sit in the tree and have no seat, by fence.
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

// indexClaim puts a claim that stands onto the bench of its node; a seat where none is needed any more is given up.
func (pl planner) indexClaim(s claimRef) {
	was, _ := pl.allocations.held.Get(s.fence)
	c := &was.claims[s.claim]
	soft := c.at.borrows == policy.BorrowSoft
	if soft == (c.arrivalSeq() != 0) {
		if soft {
			pl.allocations.addBorrower(was, s.claim)
		}
		return
	}
	is := was.withClaimAt(s.claim, c.at, pl.allocations.nextArrivalSeq(c.at))
	pl.allocations.replaceRecord(is)
	if soft {
		pl.allocations.addBorrower(is, s.claim)
	}
}

// borrowsFrom is true if every node from here up to another borrows softly.
func (n *node) borrowsFrom(other *node) bool {
	for ; n != nil && n.borrows == policy.BorrowSoft; n = n.parent {
		if n == other {
			return true
		}
	}
	return false
}

// mustRehome is true if a claim that belongs here and is counted at another node can no longer be counted there; slid says
// whether it could slide down before, which it could not if this had been no leaf.
func (n *node) mustRehome(at *node, slid bool) bool {
	return !n.borrowsFrom(at) || slid && len(n.children) > 0
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
