package ledger

import (
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// allocate decides a request and charges it if it is granted.
func (l *Ledger) allocate(request *quota.Allocate, m mode) Outcome {
	if known := l.allocations.findByID(request.ID); known != nil {
		return l.repeat(known, request, m)
	}
	if len(request.AnyOf) > 0 {
		return l.allocateAny(request, m)
	}
	a, refused := l.placeClaims(request)
	if refused != nil {
		return Outcome{Refused: refused}
	}
	a.owner = l.ownerName()
	if refused = l.checkRequestGrowth(l.countedSize(a)); refused != nil {
		return Outcome{Refused: refused}
	}
	if m == carryOut && request.Mode == quota.Reserve {
		l.traceItems(request)
		defer l.inventory.endTrace()
	}
	t := l.beginTx(a)
	decision := t.decide()
	if decision.Granted && a.hasRanges() {
		t, decision = l.widenRequest(request, t, decision)
	}
	if !decision.Granted {
		return l.deny(request, decision, []deniedList{{tx: t, violations: decision.Violations}}, m)
	}
	return t.conclude(&decision, m)
}

// allocateAny is allocate for a request with alternatives.
func (l *Ledger) allocateAny(request *quota.Allocate, m mode) Outcome {
	if refused := checkAlternatives(request); refused != nil {
		return Outcome{Refused: refused}
	}
	for number := range request.AnyOf {
		a, refused := l.placeList(request, number+1, 0)
		if refused == nil {
			refused = l.checkRequestGrowth(l.countedSize(a))
		}
		if refused != nil {
			return Outcome{Refused: refused}
		}
	}
	if m == carryOut && request.Mode == quota.Reserve {
		l.traceItems(request)
		defer l.inventory.endTrace()
	}
	t, decision, denied := l.decideAny(request)
	if !decision.Granted {
		return l.deny(request, decision, denied, m)
	}
	return t.conclude(&decision, m)
}

// conclude holds what was granted, or shows it.
func (t *tx) conclude(d *quota.Decision, m mode) Outcome {
	switch {
	case !t.hasRoom():
		t.rollback()
		return Outcome{Refused: t.ledger.errLedgerFull()}
	case m == dryRun:
		return t.preview(*d)
	}
	return Outcome{Decision: newDecision(d), Allocation: t.commit(0)}
}

// deny lets a denied request wait for those of its lists that waiting could help, or ends it.
func (l *Ledger) deny(request *quota.Allocate, d quota.Decision, lists []deniedList, m mode) Outcome {
	if request.Mode == quota.Wait {
		if waiting := l.forest.listsToWait(lists); len(waiting) > 0 {
			return l.enqueue(request, waiting, d, m)
		}
	}
	if m == dryRun {
		return Outcome{Decision: &d}
	}
	for i := range lists {
		l.inventory.createWanted(lists[i].tx.allocation, lists[i].violations)
	}
	l.journal.noteDenial(request, d, l.ownerName(), l.hasShare())
	return Outcome{Decision: newDecision(&d)}
}

// granted is the decision of most requests. They share it, so that a grant does not allocate one; it must not be
// changed.
var granted = quota.Decision{Granted: true}

// newDecision returns a decision for an outcome.
func newDecision(d *quota.Decision) *quota.Decision {
	if d.Granted && len(d.Preempted) == 0 && d.Placements == nil && d.Alternative == 0 {
		return &granted
	}
	kept := *d // so that only this path allocates
	return &kept
}

// preview ends a transaction without its commit, and says where the claims of a granted one would be counted.
func (t *tx) preview(d quota.Decision) Outcome {
	if d.Granted {
		d.Placements = t.placements()
		t.rollback()
	}
	return Outcome{Decision: &d}
}

// heardFrom records a repeated request of a waiting caller, which keeps it in the queue, or claims a lease that was
// granted from the queue.
func (l *Ledger) heardFrom(a *Allocation) *Allocation {
	if !a.isWaiting() {
		return l.takeOverLease(a)
	}
	w := l.queue.waiterOf(a)
	l.queue.touch(w)
	return w.record
}

func (e *environment) errLedgerFull() *quota.Error {
	return quota.Errorf(quota.Full, "", "the ledger holds %d allocations, as many as it may; release some",
		e.bounds.Held)
}

// repeat answers a request whose id is known, and records that its caller is there.
func (l *Ledger) repeat(known *Allocation, request *quota.Allocate, m mode) Outcome {
	out := l.repeatOf(known, request)
	if m == carryOut && out.Allocation != nil {
		out.Allocation = l.heardFrom(out.Allocation)
	}
	return out
}

// repeatOf is the answer to a request whose id is known: the first grant again, its place in the queue, or a refusal.
func (l *Ledger) repeatOf(a *Allocation, request *quota.Allocate) Outcome {
	switch {
	case !l.matchesRequest(a, request):
		return Outcome{Refused: quota.Errorf(quota.IDTaken, "id",
			"allocation %q exists with other content; use another id, or repeat the request unchanged", a.id)}
	case a.ended != nil:
		return Outcome{Refused: quota.Errorf(quota.Ended, "id",
			"allocation %q %s has ended%s; nothing was charged again; use another id", a.id, a.describeStart(),
			a.describeEnd())}
	case a.isWaiting():
		return Outcome{Decision: waitingDecision(l.previewWaiter(l.queue.waiterOf(a))), Allocation: a, Repeated: true}
	}
	decision := quota.Decision{Granted: true, Alternative: a.given()}
	if a.more != nil {
		decision.Preempted = a.more.preempted
	}
	return Outcome{Decision: &decision, Allocation: a.withCurrentPlaces(), Repeated: true}
}

// describeStart says in words what an ended allocation had been.
func (a *Allocation) describeStart() string {
	if a.fence == 0 {
		return "waited once and"
	}
	return "was granted once and"
}

// findByID returns a held, waiting or ended allocation; nil if there is none.
func (s *allocations) findByID(id string) *Allocation {
	a := s.byID.Find(id)
	if a != nil && a.ended != nil && s.tombstoneOver(a) {
		return nil
	}
	return a
}

// isPlain is true if nothing but limits of nodes and of principals decides.
func (a *Allocation) isPlain() bool {
	if a.more != nil && a.more.forced {
		return false
	}
	for i := range a.claims {
		if a.claims[i].at.special {
			return false
		}
	}
	return true
}

// fitsAtHome is true if every claim has room at its node and everything above, so that no other claim has to be moved.
// It is the common case, also for claims that may borrow.
func (a *Allocation) fitsAtHome() bool {
	if a.isForced() || a.principal().User != "" || !sharesNoNode(a.claims) || a.anyQueued() {
		return false
	}
	for i := range a.claims {
		c := &a.claims[i]
		if c.isForced() || c.at.special && !c.isSoft() || len(c.limitsAbove(nil)) > 0 {
			return false
		}
		for n := c.at; n != nil && n.borrows == policy.BorrowSoft; n = n.parent {
			if !n.hasRoomFor(c.amounts) {
				return false
			}
		}
	}
	return true
}

// placeSoftClaims finds nodes for the claims with soft borrowing, in the order of the request, and charges them there.
// It stops at the first that has no place, and returns it.
func (t *staged) placeSoftClaims() *placedClaim {
	for i := range t.requester().claims {
		if c := &t.requester().claims[i]; c.isSoft() && !t.placeSoftClaim(i) {
			return c
		}
	}
	return nil
}

// checkRest checks every limit that placeSoftClaims has not checked.
func (t *staged) checkRest() []quota.Violation {
	a := t.requester()
	violations := t.ledger.askerFor(a).decide(a.plainClaims())
	violations = append(violations, a.uncountableViolations()...)
	violations = append(violations, t.ledger.checkBounded(a)...)
	violations = append(violations, t.checkPrincipals(a)...)
	return append(violations, t.ledger.inventory.checkItems(a)...)
}

// checkPrincipals checks the limits of principals without the claims that placeSoftClaims has charged already.
func (t *staged) checkPrincipals(a *Allocation) []quota.Violation {
	a.countSoft(-1)
	defer a.countSoft(1)
	return t.ledger.checkPrincipals(a)
}

// countSoft refunds the claims with soft borrowing to the accounts of their principal, or charges them again.
func (a *Allocation) countSoft(sign quota.Amount) {
	for i := range a.claims {
		if c := &a.claims[i]; c.isSoft() && c.more != nil && c.more.track != nil {
			c.more.track.add(c, sign)
		}
	}
}

// chargePlain charges the claims that placeSoftClaims has not charged.
func (t *staged) chargePlain() {
	for i := range t.requester().claims {
		if !t.requester().claims[i].isSoft() {
			t.chargeClaim(i)
		}
	}
}

// everyViolation lists all violations of a denied request on the ledger without it. lost are the claims that find no
// place. Only if there are none, the violations of the transaction count: claims that would have been moved caused
// them.
func (l *Ledger) everyViolation(a *Allocation, lost []*placedClaim, tried []quota.Violation) []quota.Violation {
	all := l.askerFor(a).decide(a.plainClaims())
	for _, c := range lost {
		all = append(all, c.inTheWay()...)
	}
	all = append(all, l.askerFor(a).softOvertakeViolations(a.claims)...)
	all = append(all, a.uncountableViolations()...)
	all = append(all, l.checkBounded(a)...)
	all = append(all, l.checkPrincipals(a)...)
	all = append(all, l.inventory.checkItems(a)...)
	if len(all) == 0 {
		return tried
	}
	return all
}

// plainClaims are the claims to which all limits on their paths apply. None applies to forced claims.
func (a *Allocation) plainClaims() []placedClaim {
	var list []placedClaim
	for i := range a.claims {
		if c := &a.claims[i]; !c.isForced() && !c.isSoft() {
			list = append(list, *c)
		}
	}
	return list
}

// decide checks every limit on every path from the claimed nodes up to the roots, and the requests that must not be
// overtaken there, and returns all violations. Its cost is the depth of the tree times the amounts of the request,
// independent of what else is held.
func (by asker) decide(claims []placedClaim) []quota.Violation {
	if sharesNoNode(claims) {
		return by.decideApart(claims)
	}
	return by.decideTogether(claims)
}

// sharesNoNode is true if no node is on the way of two claims; surely so if every claim is in a tree of its own.
func sharesNoNode(claims []placedClaim) bool {
	for i := range claims {
		for j := range i {
			if claims[i].at.tree == claims[j].at.tree {
				return false
			}
		}
	}
	return true
}

// decideApart checks claims whose paths share no node.
func (by asker) decideApart(claims []placedClaim) []quota.Violation {
	var violations []quota.Violation
	for i := range claims {
		c := &claims[i]
		for n := c.at; n != nil; n = n.parent {
			for _, p := range c.amounts {
				violations = n.fits(violations, p.resource, p.amount)
				if n.queues != nil {
					violations = by.appendOvertaking(violations, n, p.resource)
				}
			}
		}
	}
	return violations
}

// fits appends a violation if the node's subtree has no capacity for amount more.
func (n *node) fits(violations []quota.Violation, r *resource, amount quota.Amount) []quota.Violation {
	return n.fitsIn(n.ceilings[r.index], violations, r, amount)
}

// fitsIn is fits for a given limit.
func (n *node) fitsIn(limit quota.Amount, violations []quota.Violation, r *resource,
	amount quota.Amount,
) []quota.Violation {
	used := n.subtree[r.index]
	if used+amount <= limit && amount <= quota.MaxAmount {
		return violations
	}
	return append(violations, quota.Violation{
		Tree: n.treeName, Node: n.path, Resource: r.Name, Limit: limit, Used: used, Requested: amount,
	})
}

// demand is what a whole request asks of one node: by resource index, only what is asked.
type demand struct {
	node    *node
	amounts []placedAmount // by resource index
}

// decideTogether checks a common ancestor of several claims once, for their sum.
func (by asker) decideTogether(claims []placedClaim) []quota.Violation {
	var violations []quota.Violation
	for _, d := range demandsOf(claims, func(c *placedClaim) *node { return c.at }) {
		for _, p := range d.amounts {
			violations = by.appendOvertaking(d.node.fits(violations, p.resource, p.amount), d.node, p.resource)
		}
	}
	return violations
}

// demandsOf sums the claims for every node on their paths, starting at the node that begin returns.
func demandsOf(claims []placedClaim, begin func(*placedClaim) *node) []demand {
	var demands []demand
	place := map[*node]int{}
	for i := range claims {
		c := &claims[i]
		for n := begin(c); n != nil; n = n.parent {
			i, known := place[n]
			if !known {
				i = len(demands)
				place[n] = i
				demands = append(demands, demand{node: n})
			}
			for _, p := range c.amounts {
				demands[i].addAmount(p)
			}
		}
	}
	return demands
}

// addAmount joins an amount, keeping the resources in their order.
func (d *demand) addAmount(p placedAmount) {
	for i, have := range d.amounts {
		switch {
		case have.resource == p.resource:
			d.amounts[i].amount = have.amount.Plus(p.amount)
			return
		case have.resource.index > p.resource.index:
			d.amounts = append(d.amounts, placedAmount{})
			copy(d.amounts[i+1:], d.amounts[i:])
			d.amounts[i] = p
			return
		}
	}
	d.amounts = append(d.amounts, p)
}

// uncountableViolations lists the trees in which forced claims would exceed MaxAmount. No other limit applies to them.
func (a *Allocation) uncountableViolations() []quota.Violation {
	var forced []placedClaim
	for i := range a.claims {
		if a.claims[i].isForced() {
			forced = append(forced, a.claims[i])
		}
	}
	var violations []quota.Violation
	for _, d := range demandsOf(forced, func(c *placedClaim) *node { return c.at.tree.root }) {
		for _, p := range d.amounts {
			violations = d.node.fitsIn(quota.MaxAmount, violations, p.resource, p.amount)
		}
	}
	return violations
}
