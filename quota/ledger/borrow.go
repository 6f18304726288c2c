package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/heap"
	"github.com/quorate/quorate/quota/policy"
)

// checkSoft refuses requests with several claims in a tree with soft borrowing, which places one claim of a tree at a
// time.
func (a *Allocation) checkSoft() *quota.Error {
	for i := range a.claims {
		c := &a.claims[i]
		if !c.isSoft() {
			continue
		}
		for j := range a.claims[:i] {
			if other := &a.claims[j]; other.isSoft() && other.at.tree == c.at.tree {
				return quota.Errorf(quota.Invalid, claimField(i, ".node"),
					"claims[%d] already borrows in tree %s, where a request may do so once; join the amounts, or "+
						"make two requests", j, c.at.treeName)
			}
		}
	}
	return nil
}

// softPlacement searches the node of one claim of a new request, like the quota manager.
type softPlacement struct {
	*staged
	claim *placedClaim
	path  []*node // from the claimed node up to the last of its contiguous ancestors that borrow softly
	// pushed are the claims that findPlacement has pushed up, in that order, with their former nodes.
	pushed  []formerPlace
	touched map[claimRef]bool
	// out are the claims of victims, in the order in which they were chosen, with the nodes where they competed.
	out []evictedClaim
}

// evictedClaim is a claim of a victim, with the reason for which it was chosen.
type evictedClaim struct {
	formerPlace
	reason *quota.Reason
}

// formerPlace is a claim with its former node.
type formerPlace struct {
	claimRef
	node *node
}

// placeSoftClaim finds a node for a claim, charges it there and removes all claims of its victims; false if there is no
// such node.
func (t *staged) placeSoftClaim(i int) bool {
	s := &softPlacement{staged: t, claim: &t.requester().claims[i]}
	for n := s.claim.at; n != nil && n.borrows == policy.BorrowSoft; n = n.parent {
		s.path = append(s.path, n)
	}
	at, stop := s.findPlacement()
	for at == nil {
		if !s.preemptLower(stop) {
			return false
		}
		at, stop = s.findPlacement()
	}
	if len(s.claim.limitsAbove(nil)) > 0 {
		return false
	}
	s.chargeAt(at, i)
	s.endVictims()
	return true
}

func (s *softPlacement) topNode() *node { return s.path[len(s.path)-1] }

// findPlacement finds the lowest node from which every node up to the top has capacity, or gets it by pushing other
// claims up: at the claimed node only claims of lower priority, above it all claims, because the request uses the share
// of its own node there. It returns that node, or nil and the node where the search stopped; then every claim is back
// at its node, but pushed ones are last in its order.
func (s *softPlacement) findPlacement() (at, stop *node) {
	s.pushed, s.touched = nil, nil
	hard := false
	for _, n := range s.path {
		stop = n
		hard = hard || n.spec.Hard
		switch {
		case n.hasRoomFor(s.claim.amounts) || s.pushBorrowers(n, at):
			if at == nil {
				at = n
			}
		case at != nil:
			s.undoPush()
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

// pushBorrowers pushes claims one node up, at the top out of the tree, the longest counted ones first, until the new
// claim fits; false if it would not fit even then. Only the top pushes claims out of a hard node. share is the node
// below where the new claim has a place; nil if there is none yet, and then only claims of lower priority are pushed.
func (s *softPlacement) pushBorrowers(n, share *node) bool {
	top, onlyLower := n == s.topNode(), share == nil
	if n.borrowers == nil || n.spec.Hard && !top || top && n.policy.Preemption&policy.PreemptBorrowers == 0 {
		return false
	}
	crowds := n.borrowers.groupsWhere(func(c *priorityGroup) bool {
		return (!onlyLower || c.Priority < s.claim.standing().Priority) && (!top || s.mayPreempt(c))
	})
	if !n.hasRoomAfter(s.claim.amounts, crowds) {
		return false
	}
	for victims := newVictimOrder(crowds); !n.hasRoomFor(s.claim.amounts); victims.next() {
		s.pushUp(formerPlace{victims.first(), n}, share)
	}
	return true
}

// mayPreempt is true if the new claim may preempt the claims of the group.
func (s *softPlacement) mayPreempt(c *priorityGroup) bool {
	return !c.Unpreemptable && c.Type == s.claim.standing().Type
}

func (s *softPlacement) pushUp(who formerPlace, share *node) {
	if !s.touched[who.claimRef] {
		if s.touched == nil {
			s.touched = map[claimRef]bool{}
		}
		s.touched[who.claimRef] = true
		s.pushed = append(s.pushed, who)
	}
	if who.node == s.topNode() {
		s.evict(who, who.node, share)
		return
	}
	s.moveClaim(who.claimRef, who.node.parent)
}

// undoPush returns all pushed claims to their former nodes, at the end of their order, in the order of pushing, like
// the quota manager. No claim is out of the tree yet: that happens only at the top, after which the search cannot fail.
func (s *softPlacement) undoPush() {
	for _, o := range s.pushed {
		if a, _ := s.ledger.allocations.held.Get(o.fence); a.claims[o.claim].at != o.node {
			s.moveClaim(o.claimRef, o.node)
		}
	}
}

// preemptLower preempts claims of lower priority on the path from stop down to the claimed node, the longest counted
// ones first, until the new claim fits at stop; false if it would not fit even then.
func (s *softPlacement) preemptLower(stop *node) bool {
	if s.claim.standing().Priority <= 0 || s.claim.at.policy.Preemption&policy.PreemptLower == 0 {
		return false
	}
	lower := func(c *priorityGroup) bool { return c.Priority < s.claim.standing().Priority && s.mayPreempt(c) }
	path := s.path[:slices.Index(s.path, stop)+1]
	var all []*priorityGroup
	for _, n := range path {
		all = append(all, n.borrowers.groupsWhere(lower)...)
	}
	if len(all) == 0 || !stop.hasRoomAfter(s.claim.amounts, all) {
		return false
	}
	for _, n := range slices.Backward(path) {
		for victims := newVictimOrder(n.borrowers.groupsWhere(lower)); !victims.isEmpty(); victims.next() {
			s.evict(formerPlace{victims.first(), n}, stop, nil)
			if stop.hasRoomFor(s.claim.amounts) {
				return true
			}
		}
	}
	return true
}

// chargeAt counts the new claim at a node.
func (s *softPlacement) chargeAt(at *node, i int) {
	c, was := s.claim, *s.claim
	more := claimDetails{}
	if c.more != nil {
		more = *c.more
	}
	if at != was.at {
		more.home = was.at
	}
	c.at, c.placed, c.more = at, at.address, &more
	s.onUndo(func() { *c = was })
	s.chargeClaim(i)
}

// endVictims removes all other claims of the victims too, and reclaims the freed capacity.
func (s *softPlacement) endVictims() {
	gone, ended := map[claimRef]bool{}, map[uint64]bool{}
	for _, o := range s.out {
		gone[o.claimRef] = true
	}
	for _, o := range s.out {
		if ended[o.fence] {
			continue
		}
		ended[o.fence] = true
		victim, _ := s.ledger.allocations.held.Get(o.fence)
		s.victims = append(s.victims, victim)
		s.returnItems(victim)
		s.preempted = append(s.preempted, quota.Preempted{
			ID: victim.id, Tree: o.node.treeName, Node: o.node.path, Reason: o.reason,
		})
		for j := range victim.claims {
			if other := (claimRef{o.fence, j}); !gone[other] {
				s.removeClaim(other)
			}
		}
		for j := range victim.claims {
			if !gone[claimRef{o.fence, j}] {
				s.ledger.allocations.reclaimPath(victim.claims[j].at, s.moveClaim)
			}
		}
	}
}

// reclaimAt moves claims that are counted above a node and belong below it down into freed capacity.
func (s *allocations) reclaimAt(n *node) {
	if n.special {
		s.reclaimPath(n, func(c claimRef, to *node) { s.moveClaim(c, to) })
	}
}

// reclaimPath does so at the node and at every ancestor: each takes from its parent, in the order of arrival, the
// claims that belong below it and fit. A claim moves down one node at most.
func (s *allocations) reclaimPath(n *node, move func(claimRef, *node)) {
	for ; n.special && n.parent != nil; n = n.parent {
		if n.borrows != policy.BorrowSoft || n.parent.borrowers == nil {
			continue
		}
		for who, found := n.parent.borrowers.reclaims[n].firstFitting(
			n); found; who, found = n.parent.borrowers.reclaims[n].firstFitting(n) {
			move(who, n)
		}
	}
}

// inTheWay returns the violations of a claim that has no place, from its node up. A soft node that could never fit the
// claim is listed only if a hard one below it keeps the claim from borrowing further up; otherwise raising its limit
// would not be needed.
func (c *placedClaim) inTheWay() []quota.Violation {
	var violations []quota.Violation
	hard := false
	for n := c.at; n != nil && n.borrows == policy.BorrowSoft; n = n.parent {
		hard = hard || n.spec.Hard
		last := hard || n.parent == nil || n.parent.borrows != policy.BorrowSoft
		for r, limit := range n.ceilings {
			used, amount := n.subtree[r], amountOf(c.amounts, r)
			if used+amount > limit && (last || amount <= limit) {
				violations = append(violations, quota.Violation{
					Tree: n.treeName, Node: n.path, Resource: n.tree.resources[r].Name, Limit: limit, Used: used,
					Requested: amount,
				})
			}
		}
	}
	return c.limitsAbove(violations)
}

// limitsAbove appends the violations above the nodes with soft borrowing, where plain limits apply.
func (c *placedClaim) limitsAbove(violations []quota.Violation) []quota.Violation {
	n := c.at
	for n != nil && n.borrows == policy.BorrowSoft {
		n = n.parent
	}
	for ; n != nil; n = n.parent {
		for _, p := range c.amounts {
			violations = n.fits(violations, p.resource, p.amount)
		}
	}
	return violations
}

// victimOrder yields the borrowed claims of some groups in the order of arrival.
type victimOrder struct{ groups *heap.Heap[*victimGroup] }

// victimGroup is a group with the earliest of its claims that are left.
type victimGroup struct {
	*priorityGroup
	arrivalSeq uint64
	claim      claimRef
	place      int // in the heap
}

func newVictimOrder(groups []*priorityGroup) victimOrder {
	order := heap.New(
		func(a, b *victimGroup) bool { return a.arrivalSeq < b.arrivalSeq },
		func(g *victimGroup) *int { return &g.place },
	)
	for _, g := range groups {
		seq, claim, _ := g.claims.Min()
		order.Push(&victimGroup{priorityGroup: g, arrivalSeq: seq, claim: claim})
	}
	return victimOrder{order}
}

// isEmpty is true if no claims are left.
func (v victimOrder) isEmpty() bool { return v.groups.Len() == 0 }

// first is the earliest claim that is left.
func (v victimOrder) first() claimRef { return v.groups.First().claim }

// next goes on after the first claim has left its group.
func (v victimOrder) next() {
	g := v.groups.First()
	var more bool
	if g.arrivalSeq, g.claim, more = g.claims.Min(); more {
		v.groups.Push(g)
	} else {
		v.groups.Remove(g)
	}
}

// evict removes a claim in favour of the new one, for which a node lacks capacity. share is the node whose share the
// new claim fits into; nil if its priority is the reason.
func (s *softPlacement) evict(victim formerPlace, full, share *node) {
	s.out = append(s.out, evictedClaim{victim, s.reasonToEvict(victim, full, share)})
	s.removeClaim(victim.claimRef)
}

func (s *softPlacement) reasonToEvict(victim formerPlace, full, share *node) *quota.Reason {
	a, _ := s.ledger.allocations.held.Get(victim.fence)
	c := &a.claims[victim.claim]
	r := &quota.Reason{
		Kind: quota.ByPriority, Tree: full.treeName, Node: full.path, Priority: c.standing().Priority,
		RequestPriority: s.claim.standing().Priority, Amounts: full.amountsMissing(s.claim, c),
	}
	home := c.home()
	// A claim below the share may have been pushed out of it in this search, by priority.
	if share != nil && (r.Priority >= r.RequestPriority || !home.within(share)) {
		r.Kind, r.Share = quota.ByShare, share.path
		if home != c.at {
			r.Borrower = home.path
		}
	}
	return r
}
