package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// moved is the record with one claim counted at another node, in another seat there.
func (a *Allocation) moved(i int, to *node, seat uint64) *Allocation {
	is := *a
	is.claims = slices.Clone(a.claims)
	c := &is.claims[i]
	home, more := c.home(), claimParticulars{}
	if c.more != nil {
		more = *c.more
	}
	c.at, c.placed, c.more = to, to.address, &more
	more.home, more.seat = nil, seat
	if home != to {
		more.home = home
	}
	return &is
}

// move counts a sitter's claim at another node, at the end of its order.
func (l *Ledger) move(s sitter, to *node) (was, is *Allocation) {
	was, _ = l.allocations.held.Get(s.fence)
	is = was.moved(s.claim, to, l.allocations.nextSeat(to))
	l.depart(was, s.claim)
	l.allocations.put(is)
	l.arrive(is, s.claim)
	return was, is
}

// nextSeat is a new seat at a node; 0 if there are none.
func (s *allocations) nextSeat(at *node) uint64 {
	if at.borrows != policy.BorrowSoft {
		return 0
	}
	s.seat++
	return s.seat
}

// move is a step of the trial.
func (t *staged) move(s sitter, to *node) {
	t.remember(s)
	was, is := t.ledger.move(s, to)
	t.onUndo(func() {
		t.ledger.depart(is, s.claim)
		was.claims[s.claim].sameTrack(&is.claims[s.claim])
		t.ledger.allocations.put(was)
		t.ledger.arrive(was, s.claim)
	})
}

// takeOut counts a claim of a victim nowhere.
func (t *staged) takeOut(s sitter) {
	t.remember(s)
	a, _ := t.ledger.allocations.held.Get(s.fence)
	t.ledger.unbook(a, s.claim)
	t.onUndo(func() { t.ledger.book(a, s.claim) })
}

// remember notes for a reservation where a claim was before it was moved for the first time. Its own claims, which may
// slide down too when a victim in another tree loses all its places, have no place to go back to.
func (t *staged) remember(s sitter) {
	if s.fence == t.fence || t.known[s] || t.newcomer().state() != quota.Reserved {
		return
	}
	if t.known == nil {
		t.known = map[sitter]bool{}
	}
	t.known[s] = true
	a, _ := t.ledger.allocations.held.Get(s.fence)
	c := &a.claims[s.claim]
	d := displacement{id: a.id, claim: s.claim, from: c.at.id, fromSeat: c.seat()}
	if home := c.home(); home != c.at {
		d.home = home.id
	}
	t.displaced = append(t.displaced, d)
	for _, n := range []*node{c.at, c.home()} {
		if n.made {
			t.dynamic = append(t.dynamic, n)
		}
	}
}

// settleDisplaced completes what remember noted with the seats that the claims have got in the end; before the victims
// are buried.
func (t *staged) settleDisplaced() []displacement {
	ended := make(map[uint64]bool, len(t.victims))
	for _, v := range t.victims {
		ended[v.fence] = true
	}
	for i := range t.displaced {
		d := &t.displaced[i]
		if a := t.ledger.allocations.byID[d.id]; !ended[a.fence] {
			d.seat = a.claims[d.claim].seat()
		}
	}
	return t.displaced
}
