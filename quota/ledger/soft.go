package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// soft is true if the claim finds its place by borrowing softly.
func (c *placedClaim) soft() bool { return c.at.borrows == policy.BorrowSoft && !c.forced() }

// forced is true if the claim is held at its node whatever the limits say.
func (c *placedClaim) forced() bool { return c.more != nil && c.more.forced }

// checkSoft refuses requests that borrowing cannot decide: it finds the place of one claim in a tree at a time.
func (a *Allocation) checkSoft() *quota.Error {
	for i := range a.claims {
		c := &a.claims[i]
		if !c.soft() {
			continue
		}
		for j := range a.claims[:i] {
			if other := &a.claims[j]; other.soft() && other.at.tree == c.at.tree {
				return quota.Errorf(quota.Invalid, claimField(i, ".node"), "claims[%d] already borrows in tree %s, where a request may do so once; join the amounts, or make two requests", j, c.at.treeName)
			}
		}
	}
	return nil
}

// settling looks for the place of one claim of the newcomer, as the quota manager does.
type settling struct {
	*staged
	claim *placedClaim
	path  []*node // from the claimed node up to the top: the last of its ancestors, without a gap, that borrows softly
	// pushed are the claims that climb has pushed up, in that order, with the nodes where they sat before.
	pushed  []formerSeat
	touched map[sitter]bool
	// out are the claims of victims, in the order in which they were chosen, with the nodes where they stood in the way.
	out []formerSeat
}

// formerSeat is where a claim was.
type formerSeat struct {
	sitter
	node *node
}

// settle finds the place of a claim, books it there and makes its victims lose all their places; false if there is none.
func (t *staged) settle(i int) bool {
	s := &settling{staged: t, claim: &t.newcomer().claims[i]}
	for n := s.claim.at; n != nil && n.borrows == policy.BorrowSoft; n = n.parent {
		s.path = append(s.path, n)
	}
	at, stop := s.climb()
	for at == nil {
		if !s.makeWay(stop) {
			return false
		}
		at, stop = s.climb()
	}
	if len(s.claim.above(nil)) > 0 {
		return false
	}
	s.take(at, i)
	s.endVictims()
	return true
}

func (s *settling) top() *node { return s.path[len(s.path)-1] }

// climb looks for the lowest node from which everything up to the top has room, or can be given room by pushing others up:
// at the node itself those of lower priority, above it everybody, because there the newcomer claims the share of its own
// node. It answers that node, or nil and the node where the search stopped; then everybody sits where he sat, but those
// who had been pushed at the end of the order.
func (s *settling) climb() (at, stop *node) {
	s.pushed, s.touched = nil, nil
	hard := false
	for _, n := range s.path {
		stop = n
		hard = hard || n.spec.Hard
		switch {
		case n.takes(s.claim.amounts) || s.makeRoom(n, at == nil):
			if at == nil {
				at = n
			}
		case at != nil:
			s.stepBack()
			at = nil
			if hard {
				return nil, stop
			}
		case n.spec.Hard:
			return nil, stop
		}
	}
	return at, stop
}

// makeRoom pushes claims one node up, at the top out of the tree, those first who have sat longest, until the newcomer
// fits; false if it would not fit even then. Nobody is pushed out of a hard node but the top.
func (s *settling) makeRoom(n *node, onlyLower bool) bool {
	top := n == s.top()
	if n.bench == nil || n.spec.Hard && !top || top && n.policy.Preemption&policy.PreemptBorrowers == 0 {
		return false
	}
	crowds := n.bench.who(func(c *crowd) bool {
		return (!onlyLower || c.Priority < s.claim.standing().Priority) && (!top || s.mayEnd(c))
	})
	if !n.takesAfter(s.claim.amounts, crowds) {
		return false
	}
	for queue := turnsOf(crowds); !n.takes(s.claim.amounts); queue.next() {
		s.push(queue[0].who, n, top)
	}
	return true
}

// mayEnd is true if the claims of the crowd may be preempted by the newcomer.
func (s *settling) mayEnd(c *crowd) bool {
	return !c.Unpreemptable && c.Type == s.claim.standing().Type
}

func (s *settling) push(who sitter, from *node, top bool) {
	if !s.touched[who] {
		if s.touched == nil {
			s.touched = map[sitter]bool{}
		}
		s.touched[who] = true
		s.pushed = append(s.pushed, formerSeat{who, from})
	}
	if !top {
		s.move(who, from.parent)
		return
	}
	s.takeOut(who)
	s.out = append(s.out, formerSeat{who, from})
}

// stepBack gives everybody who has been pushed the node back where he sat, at the end of its order (as the quota manager
// does, in the order of pushing). Nobody is out of the tree yet: that happens at the top, after which nothing can fail.
func (s *settling) stepBack() {
	for _, o := range s.pushed {
		if a, _ := s.ledger.allocations.held.Get(o.fence); a.claims[o.claim].at != o.node {
			s.move(o.sitter, o.node)
		}
	}
}

// makeWay preempts claims of lower priority on the path from stop down to the claimed node, those first who have sat
// longest, until the newcomer fits at stop; false if it would not fit even then.
func (s *settling) makeWay(stop *node) bool {
	if s.claim.standing().Priority <= 0 || s.claim.at.policy.Preemption&policy.PreemptLower == 0 {
		return false
	}
	lower := func(c *crowd) bool { return c.Priority < s.claim.standing().Priority && s.mayEnd(c) }
	path := s.path[:slices.Index(s.path, stop)+1]
	var all []*crowd
	for _, n := range path {
		all = append(all, n.bench.who(lower)...)
	}
	if len(all) == 0 || !stop.takesAfter(s.claim.amounts, all) {
		return false
	}
	for _, n := range slices.Backward(path) {
		for queue := turnsOf(n.bench.who(lower)); len(queue) > 0; queue.next() {
			s.out = append(s.out, formerSeat{queue[0].who, n})
			s.takeOut(queue[0].who)
			if stop.takes(s.claim.amounts) {
				return true
			}
		}
	}
	return true
}

// take counts the newcomer's claim at a node.
func (s *settling) take(at *node, i int) {
	c, was := s.claim, *s.claim
	more := claimParticulars{}
	if c.more != nil {
		more = *c.more
	}
	if at != was.at {
		more.home = was.at
	}
	c.at, c.placed, c.more = at, at.address, &more
	s.onUndo(func() { *c = was })
	s.book(i)
}

// endVictims takes all other claims of the victims out too, and lets others slide down where those were.
func (s *settling) endVictims() {
	gone, ended := map[sitter]bool{}, map[uint64]bool{}
	for _, o := range s.out {
		gone[o.sitter] = true
	}
	for _, o := range s.out {
		if ended[o.fence] {
			continue
		}
		ended[o.fence] = true
		victim, _ := s.ledger.allocations.held.Get(o.fence)
		s.victims = append(s.victims, victim)
		s.giveBack(victim)
		s.preempted = append(s.preempted, quota.Preempted{ID: victim.id, Tree: o.node.treeName, Node: o.node.path})
		for j := range victim.claims {
			if other := (sitter{o.fence, j}); !gone[other] {
				s.takeOut(other)
			}
		}
		for j := range victim.claims {
			if !gone[sitter{o.fence, j}] {
				s.ledger.slide(victim.claims[j].at, s.move)
			}
		}
	}
}

// slideInto lets claims that are counted above a node and belong below it slide down into freed room.
func (l *Ledger) slideInto(n *node) {
	if n.special {
		l.slide(n, func(s sitter, to *node) { l.move(s, to) })
	}
}

// slide does so at the node and at every ancestor: each takes from its parent, in the order of seats, who belongs below it
// and fits. Nobody comes down more than one node.
func (l *Ledger) slide(n *node, move func(sitter, *node)) {
	for ; n.special && n.parent != nil; n = n.parent {
		if n.borrows != policy.BorrowSoft || n.parent.bench == nil {
			continue
		}
		for who, found := n.parent.bench.descents[n].first(n); found; who, found = n.parent.bench.descents[n].first(n) {
			move(who, n)
		}
	}
}
