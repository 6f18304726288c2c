package admit

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/heap"
	"github.com/quorate/quorate/quota/ledger/internal/state"
	"github.com/quorate/quorate/quota/policy"
)

// checkSoft refuses requests with several claims in a tree with soft borrowing, which places one claim of a tree at a
// time.
func checkSoft(a *state.Allocation) *quota.Error {
	for i := range a.Claims {
		c := &a.Claims[i]
		if !c.IsSoft() {
			continue
		}
		for j := range a.Claims[:i] {
			if other := &a.Claims[j]; other.IsSoft() && other.At.Tree == c.At.Tree {
				return quota.Errorf(quota.Invalid, ClaimField(i, ".node"),
					"claims[%d] already borrows in tree %s, where a request may do so once; join the amounts, or "+
						"make two requests", j, c.At.TreeName)
			}
		}
	}
	return nil
}

// softPlacement searches the node of one claim of a new request, like the quota manager.
type softPlacement struct {
	*staged
	claim *state.PlacedClaim
	path  []*state.Node // from the claimed node up to the last of its contiguous ancestors that borrow softly
	// pushed are the claims that place has pushed up on its present way, in that order, with their former nodes.
	pushed  []formerPlace
	touched map[state.ClaimRef]bool
	// out are the claims of victims, in the order in which they were chosen, with the nodes where they competed.
	out []evictedClaim
}

// evictedClaim is a claim of a victim, with the reason for which it was chosen.
type evictedClaim struct {
	formerPlace
	reason *quota.Reason
}

type formerPlace struct {
	state.ClaimRef
	node *state.Node
}

// placeSoftClaim charges the claim and removes all claims of its victims; false if no node has a place.
func (t *staged) placeSoftClaim(i int) bool {
	s := &softPlacement{staged: t, claim: &t.requester().Claims[i]}
	for n := s.claim.At; n != nil && n.Borrows == policy.BorrowSoft; n = n.Parent {
		s.path = append(s.path, n)
	}
	at := s.place()
	if at == nil || len(limitsAbove(s.claim, nil)) > 0 {
		return false
	}
	s.chargeAt(at, i)
	s.endVictims()
	return true
}

// place finds the lowest node from which everything up to the top has room for the claim, and makes that room; nil if
// there is none.
//
// A claim belongs to one node, its home, and is counted there or at a node above, where it borrows. There are three
// ways to a place, tried in this order:
//
//  1. Every node from some node up has room: that node counts the claim. Lower ones are full, so it borrows.
//  2. A node lacks room, and claims that borrow there can be pushed one node up, or at the top out of the tree. At the
//     home only claims of lower priority are pushed. Above it all are, because there the request uses the share of the
//     node below, which the others only borrow.
//  3. No push makes the way up whole: claims of lower priority are ended, from where the search stopped down to the
//     home, and the search begins again.
//
// Pushing comes before ending, because what is pushed goes on running. A hard node keeps the claim from borrowing above
// it, so the search ends there.
func (s *softPlacement) place() *state.Node {
	for {
		var at, stop *state.Node // the place on the present way, and how far up the way is known
		hard := false
		s.pushed, s.touched = nil, nil
		for _, n := range s.path {
			stop, hard = n, hard || n.Spec.Hard
			if n.HasRoomFor(s.claim.Amounts) || s.pushBorrowers(n, at) {
				if at == nil {
					at = n
				}
				continue
			}
			isWay := at != nil
			if isWay { // it ends here; pushed claims return, and the next node up may begin another
				s.undoPush()
				at = nil
			}
			if isWay && hard || n.Spec.Hard {
				break
			}
		}
		if at != nil {
			return at
		}
		if !s.preemptLower(stop) {
			return nil
		}
	}
}

func (s *softPlacement) topNode() *state.Node { return s.path[len(s.path)-1] }

// pushBorrowers pushes claims one node up, at the top out of the tree, the longest counted ones first, until the new
// claim fits; false if it would not fit even then. Only the top pushes claims out of a hard node. share is the node
// below where the new claim has a place; nil if there is none yet, and then only claims of lower priority are pushed.
func (s *softPlacement) pushBorrowers(n, share *state.Node) bool {
	top, onlyLower := n == s.topNode(), share == nil
	if n.Borrowers == nil || n.Spec.Hard && !top || top && n.Policy.Preemption&policy.PreemptBorrowers == 0 {
		return false
	}
	movable := n.Borrowers.GroupsWhere(func(c *state.PriorityGroup) bool {
		return (!onlyLower || c.Priority < s.claim.Standing().Priority) && (!top || s.mayPreempt(c))
	})
	if !n.HasRoomAfter(s.claim.Amounts, movable) {
		return false
	}
	for order := newVictimOrder(movable); !n.HasRoomFor(s.claim.Amounts); order.next() {
		pushed := formerPlace{order.first(), n}
		if !s.touched[pushed.ClaimRef] {
			if s.touched == nil {
				s.touched = map[state.ClaimRef]bool{}
			}
			s.touched[pushed.ClaimRef] = true
			s.pushed = append(s.pushed, pushed)
		}
		if top {
			s.evict(pushed, n, share)
		} else {
			s.moveClaim(pushed.ClaimRef, n.Parent)
		}
	}
	return true
}

func (s *softPlacement) mayPreempt(c *state.PriorityGroup) bool {
	return !c.Unpreemptable && c.Type == s.claim.Standing().Type
}

// undoPush returns all pushed claims to their former nodes, at the end of their order, in the order of pushing, like
// the quota manager. No claim is out of the tree yet: that happens only at the top, after which the search cannot fail.
func (s *softPlacement) undoPush() {
	for _, o := range s.pushed {
		if a, _ := s.state.Allocations.Held.Get(o.Fence); a.Claims[o.Claim].At != o.node {
			s.moveClaim(o.ClaimRef, o.node)
		}
	}
}

// preemptLower preempts claims of lower priority on the path from stop down to the claimed node, the longest counted
// ones first, until the new claim fits at stop; false if it would not fit even then.
func (s *softPlacement) preemptLower(stop *state.Node) bool {
	if s.claim.Standing().Priority <= 0 || s.claim.At.Policy.Preemption&policy.PreemptLower == 0 {
		return false
	}
	lower := func(c *state.PriorityGroup) bool { return c.Priority < s.claim.Standing().Priority && s.mayPreempt(c) }
	path := s.path[:slices.Index(s.path, stop)+1]
	var all []*state.PriorityGroup
	for _, n := range path {
		all = append(all, n.Borrowers.GroupsWhere(lower)...)
	}
	if len(all) == 0 || !stop.HasRoomAfter(s.claim.Amounts, all) {
		return false
	}
	for _, n := range slices.Backward(path) {
		for victims := newVictimOrder(n.Borrowers.GroupsWhere(lower)); !victims.isEmpty(); victims.next() {
			s.evict(formerPlace{victims.first(), n}, stop, nil)
			if stop.HasRoomFor(s.claim.Amounts) {
				return true
			}
		}
	}
	return true
}

func (s *softPlacement) chargeAt(at *state.Node, i int) {
	c, previous := s.claim, *s.claim
	more := state.ClaimDetails{}
	if c.More != nil {
		more = *c.More
	}
	if at != previous.At {
		more.Home = previous.At
	}
	c.At, c.Placed, c.More = at, at.Address, &more
	s.OnUndo(func() { *c = previous })
	s.chargeClaim(i)
}

// endVictims removes all other claims of the victims too, and reclaims the freed capacity.
func (s *softPlacement) endVictims() {
	gone, ended := map[state.ClaimRef]bool{}, map[uint64]bool{}
	for _, o := range s.out {
		gone[o.ClaimRef] = true
	}
	for _, o := range s.out {
		if ended[o.Fence] {
			continue
		}
		ended[o.Fence] = true
		victim, _ := s.state.Allocations.Held.Get(o.Fence)
		s.victims = append(s.victims, victim)
		s.returnItems(victim)
		s.preempted = append(s.preempted, quota.Preempted{
			ID: victim.ID(), Tree: o.node.TreeName, Node: o.node.Path, Reason: o.reason,
		})
		for j := range victim.Claims {
			if other := (state.ClaimRef{Fence: o.Fence, Claim: j}); !gone[other] {
				s.removeClaim(other)
			}
		}
		for j := range victim.Claims {
			if !gone[state.ClaimRef{Fence: o.Fence, Claim: j}] {
				ReclaimPath(&s.state.Allocations, victim.Claims[j].At, s.moveClaim)
			}
		}
	}
}

// reclaimAt moves claims that are counted above a node and belong below it down into freed capacity.
func reclaimAt(s *state.Allocations, n *state.Node) {
	if n.Special {
		ReclaimPath(s, n, func(c state.ClaimRef, to *state.Node) { MoveClaim(s, c, to) })
	}
}

// ReclaimPath does so at the node and at every ancestor: each takes from its parent, in the order of arrival, the
// claims that belong below it and fit. A claim moves down one node at most.
func ReclaimPath(s *state.Allocations, n *state.Node, move func(state.ClaimRef, *state.Node)) {
	for ; n.Special && n.Parent != nil; n = n.Parent {
		if n.Borrows != policy.BorrowSoft || n.Parent.Borrowers == nil {
			continue
		}
		for ref, found := n.Parent.Borrowers.Reclaims[n].FirstFitting(
			n); found; ref, found = n.Parent.Borrowers.Reclaims[n].FirstFitting(n) {
			move(ref, n)
		}
	}
}

// inTheWay returns the violations of a claim that has no place, from its node up. A soft node that could never fit the
// claim is listed only if a hard one below it keeps the claim from borrowing further up; otherwise raising its limit
// would not be needed.
func inTheWay(c *state.PlacedClaim) []quota.Violation {
	var violations []quota.Violation
	hard := false
	for n := c.At; n != nil && n.Borrows == policy.BorrowSoft; n = n.Parent {
		hard = hard || n.Spec.Hard
		last := hard || n.Parent == nil || n.Parent.Borrows != policy.BorrowSoft
		for r, limit := range n.Ceilings {
			used, amount := n.Subtree[r], state.AmountOf(c.Amounts, r)
			if used+amount > limit && (last || amount <= limit) {
				violations = append(violations, quota.Violation{
					Tree: n.TreeName, Node: n.Path, Resource: n.Tree.Resources[r].Name, Limit: limit, Used: used,
					Requested: amount,
				})
			}
		}
	}
	return limitsAbove(c, violations)
}

// limitsAbove appends the violations above the nodes with soft borrowing, where plain limits apply.
func limitsAbove(c *state.PlacedClaim, violations []quota.Violation) []quota.Violation {
	n := c.At
	for n != nil && n.Borrows == policy.BorrowSoft {
		n = n.Parent
	}
	for ; n != nil; n = n.Parent {
		for _, p := range c.Amounts {
			violations = fits(n, violations, p.Resource, p.Amount)
		}
	}
	return violations
}

// victimOrder yields the borrowed claims of some groups in the order of arrival.
type victimOrder struct{ groups *heap.Heap[*victimGroup] }

type victimGroup struct {
	*state.PriorityGroup
	arrivalSeq uint64
	claim      state.ClaimRef
	place      int // in the heap
}

func newVictimOrder(groups []*state.PriorityGroup) victimOrder {
	order := heap.New(
		func(a, b *victimGroup) bool { return a.arrivalSeq < b.arrivalSeq },
		func(g *victimGroup) *int { return &g.place },
	)
	for _, g := range groups {
		seq, claim, _ := g.Claims.Min()
		order.Push(&victimGroup{PriorityGroup: g, arrivalSeq: seq, claim: claim})
	}
	return victimOrder{order}
}

func (v victimOrder) isEmpty() bool { return v.groups.Len() == 0 }

func (v victimOrder) first() state.ClaimRef { return v.groups.First().claim }

// next must be called after the first claim has left its group.
func (v victimOrder) next() {
	g := v.groups.First()
	var more bool
	if g.arrivalSeq, g.claim, more = g.Claims.Min(); more {
		v.groups.Push(g)
	} else {
		v.groups.Remove(g)
	}
}

// evict removes a claim for which a node lacks capacity. share is the node whose share the new claim fits into; nil if
// its priority is the reason.
func (s *softPlacement) evict(victim formerPlace, full, share *state.Node) {
	s.out = append(s.out, evictedClaim{victim, s.reasonToEvict(victim, full, share)})
	s.removeClaim(victim.ClaimRef)
}

func (s *softPlacement) reasonToEvict(victim formerPlace, full, share *state.Node) *quota.Reason {
	a, _ := s.state.Allocations.Held.Get(victim.Fence)
	c := &a.Claims[victim.Claim]
	r := &quota.Reason{
		Kind: quota.ByPriority, Tree: full.TreeName, Node: full.Path, Priority: c.Standing().Priority,
		RequestPriority: s.claim.Standing().Priority, Amounts: full.AmountsMissing(s.claim, c),
	}
	home := c.Home()
	// A claim below the share may have been pushed out of it in this search, by priority.
	if share != nil && (r.Priority >= r.RequestPriority || !home.Within(share)) {
		r.Kind, r.Share = quota.ByShare, share.Path
		if home != c.At {
			r.Borrower = home.Path
		}
	}
	return r
}
