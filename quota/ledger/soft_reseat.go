package ledger

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/quota/policy"
)

// seating is what decides who may sit where in a tree: if it and the resources stay the same,
// everybody stays where he is.
type seating struct {
	id, parent uint64
	borrows    policy.Borrowing
}

// seating lists the nodes as a walk visits them.
func (t *tree) seating() []seating {
	var nodes []seating
	t.root.walk(func(n *node) bool {
		s := seating{id: n.id, borrows: n.borrows}
		if n.parent != nil {
			s.parent = n.parent.id
		}
		nodes = append(nodes, s)
		return true
	})
	return nodes
}

// reseat settles who sits where after a change of a tree. Claims keep their seats; those that a node has counted before its
// policy became one of soft borrowing get seats in the order of their grants; those that can no longer be counted where
// they are, because their node was moved elsewhere or has got children, are counted at their node again. That may put it
// over its limits. If neither nodes nor resources nor borrowing have changed, it changes nothing. It costs the claims that
// sit in the tree, and if some have no seat yet, all held ones.
func (pl planner) reseat(t *tree) {
	seated, unseated := t.clearBenches()
	if unseated {
		seated = append(seated, pl.allocations.unseated(t)...)
	}
	for _, s := range seated {
		pl.keepOrGiveSeat(s.sitter)
	}
	for _, s := range seated {
		a, _ := pl.allocations.held.Get(s.fence)
		c := &a.claims[s.claim]
		if home := c.home(); home != c.at && home.callsBack(c.at, s.slides) {
			pl.move(s.sitter, home)
		}
	}
}

// seated is a claim that sits in a tree which is settled anew.
type seated struct {
	sitter
	seat   uint64
	slides bool // it belongs to a leaf below, or did
}

// clearBenches empties all benches of the tree. It answers who sat there, by seat, and whether a node counts claims that
// should sit and do not.
func (t *tree) clearBenches() (list []seated, unseated bool) {
	t.root.walk(func(n *node) bool {
		before := len(list)
		list = append(list, n.bench.all()...)
		unseated = unseated || n.borrows == policy.BorrowSoft && n.claims > len(list)-before
		n.bench = nil
		return true
	})
	slices.SortFunc(list, func(a, b seated) int { return cmp.Compare(a.seat, b.seat) })
	return list, unseated
}

// all are the claims that sit here, in no order.
func (b *bench) all() []seated {
	if b == nil {
		return nil
	}
	slides := map[sitter]bool{}
	for _, d := range b.descents {
		for _, r := range d.rows {
			for _, who := range r.sitters.all() {
				slides[who] = true
			}
		}
	}
	var list []seated
	for _, c := range b.crowds {
		for seat, who := range c.sitters.all() {
			list = append(list, seated{sitter: who, seat: seat, slides: slides[who]})
		}
	}
	return list
}

// unseated are the claims that should sit in the tree and have no seat, by fence.
func (s *allocations) unseated(t *tree) []seated {
	var list []seated
	for fence, a := range s.held.All() {
		for i := range a.claims {
			if c := &a.claims[i]; c.at.tree == t && c.at.borrows == policy.BorrowSoft && c.seat() == 0 {
				list = append(list, seated{sitter: sitter{fence, i}})
			}
		}
	}
	return list
}

// keepOrGiveSeat puts a claim that stands onto the bench of its node; a seat where none is needed any more is given up.
func (pl planner) keepOrGiveSeat(s sitter) {
	was, _ := pl.allocations.held.Get(s.fence)
	c := &was.claims[s.claim]
	soft := c.at.borrows == policy.BorrowSoft
	if soft == (c.seat() != 0) {
		if soft {
			pl.allocations.sit(was, s.claim)
		}
		return
	}
	is := was.moved(s.claim, c.at, pl.allocations.nextSeat(c.at))
	pl.allocations.put(is)
	if soft {
		pl.allocations.sit(is, s.claim)
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

// callsBack is true if a claim that belongs here and is counted at another node can no longer be counted there; slid says
// whether it could slide down before, which it could not if this had been no leaf.
func (n *node) callsBack(at *node, slid bool) bool {
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
