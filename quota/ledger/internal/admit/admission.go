package admit

import (
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
	"github.com/quorate/quorate/quota/policy"
)

// Allocate decides a request and charges it if it is granted.
//
// A known id is a repetition, and gets its first answer. A new request is placed: its form is checked, and each claim
// gets its node, perhaps one that does not exist yet. An admission then decides: it compares every node up to the root
// with its limits, and makes room where the policy says that others give way. Everything that it changes for that can
// be rolled back, until commit makes it last. A denial names every limit in the way, and waits for the first one if the
// request says so. A dry run takes the same way and ends before commit.
func Allocate(s *state.State, request *quota.Allocate, m state.Mode) state.Outcome {
	if known := s.Allocations.FindByID(request.ID); known != nil {
		return answerRepeat(s, known, request, m)
	}
	if len(request.AnyOf) > 0 {
		return allocateAny(s, request, m)
	}
	a, refused := PlaceClaims(s, request)
	if refused != nil {
		return state.Outcome{Refused: refused}
	}
	a.Owner = s.OwnerName()
	if refused = s.CheckRequestGrowth(s.CountedSize(a)); refused != nil {
		return state.Outcome{Refused: refused}
	}
	if m == state.CarryOut && request.Mode == quota.Reserve {
		traceItems(s, request)
		defer endTrace(&s.Inventory)
	}
	t := Begin(s, a)
	decision := t.Decide()
	if decision.Granted && a.HasRanges() {
		t, decision = widenRequest(s, request, t, decision)
	}
	if !decision.Granted {
		return deny(s, request, decision, []deniedList{{tx: t, violations: decision.Violations}}, m)
	}
	return t.conclude(&decision, m)
}

func allocateAny(s *state.State, request *quota.Allocate, m state.Mode) state.Outcome {
	if refused := checkAlternatives(request); refused != nil {
		return state.Outcome{Refused: refused}
	}
	for number := range request.AnyOf {
		a, refused := PlaceList(s, request, number+1, 0)
		if refused == nil {
			refused = s.CheckRequestGrowth(s.CountedSize(a))
		}
		if refused != nil {
			return state.Outcome{Refused: refused}
		}
	}
	if m == state.CarryOut && request.Mode == quota.Reserve {
		traceItems(s, request)
		defer endTrace(&s.Inventory)
	}
	t, decision, denied := decideAny(s, request)
	if !decision.Granted {
		return deny(s, request, decision, denied, m)
	}
	return t.conclude(&decision, m)
}

func (t *Admission) conclude(d *quota.Decision, m state.Mode) state.Outcome {
	switch {
	case !t.HasRoom():
		t.Rollback()
		return state.Outcome{Refused: errLedgerFull(&t.State.Environment)}
	case m == state.DryRun:
		return t.preview(*d)
	}
	return state.Outcome{Decision: newDecision(d), Allocation: t.commit(0)}
}

// deny lets a denied request wait for those of its lists that waiting could help, or ends it.
func deny(s *state.State, request *quota.Allocate, d quota.Decision, lists []deniedList, m state.Mode) state.Outcome {
	if request.Mode == quota.Wait {
		if waiting := listsToWait(&s.Forest, lists); len(waiting) > 0 {
			return enqueue(s, request, waiting, d, m)
		}
	}
	if m == state.DryRun {
		return state.Outcome{Decision: &d}
	}
	for i := range lists {
		createWanted(&s.Inventory, lists[i].tx.Allocation, lists[i].violations)
	}
	s.Journal.NoteDenial(request, d, s.OwnerName(), s.HasShare())
	return state.Outcome{Decision: newDecision(&d)}
}

// granted is the decision of most requests. They share it, so that a grant does not allocate one; it must not be
// changed.
var granted = quota.Decision{Granted: true}

func newDecision(d *quota.Decision) *quota.Decision {
	if d.Granted && len(d.Preempted) == 0 && d.Placements == nil && d.Alternative == 0 {
		return &granted
	}
	kept := *d // so that only this path allocates
	return &kept
}

// preview ends a transaction without its commit, and says where the claims of a granted one would be counted.
func (t *Admission) preview(d quota.Decision) state.Outcome {
	if d.Granted {
		d.Placements = t.placements()
		t.Rollback()
	}
	return state.Outcome{Decision: &d}
}

// heardFrom records a repeated request of a waiting caller, which keeps it in the queue, or claims a lease that was
// granted from the queue.
func heardFrom(s *state.State, a *state.Allocation) *state.Allocation {
	if !a.IsWaiting() {
		return takeOverLease(s, a)
	}
	w := s.Queue.WaiterOf(a)
	Touch(&s.Queue, w)
	return w.Record
}

func errLedgerFull(e *state.Environment) *quota.Error {
	return quota.Errorf(quota.Full, "", "the ledger holds %d allocations, as many as it may; release some",
		e.Bounds.Held)
}

// answerRepeat answers a request whose id is known, and records that its caller is there.
func answerRepeat(s *state.State, known *state.Allocation, request *quota.Allocate, m state.Mode) state.Outcome {
	out := answerToRepeat(s, known, request)
	if m == state.CarryOut && out.Allocation != nil {
		out.Allocation = heardFrom(s, out.Allocation)
	}
	return out
}

func answerToRepeat(s *state.State, a *state.Allocation, request *quota.Allocate) state.Outcome {
	switch {
	case !s.MatchesRequest(a, request):
		return state.Outcome{Refused: quota.Errorf(quota.IDTaken, "id",
			"allocation %q exists with other content; use another id, or repeat the request unchanged", a.ID())}
	case a.Ended != nil:
		return state.Outcome{Refused: quota.Errorf(quota.Ended, "id",
			"allocation %q %s has ended%s; nothing was charged again; use another id", a.ID(), describeStart(a),
			describeEnd(a))}
	case a.IsWaiting():
		decision := state.WaitingDecision(PreviewWaiter(s, s.Queue.WaiterOf(a)))
		return state.Outcome{Decision: decision, Allocation: a, Repeated: true}
	}
	decision := quota.Decision{Granted: true, Alternative: a.Given()}
	if a.More != nil {
		decision.Preempted = a.More.Preempted
	}
	return state.Outcome{Decision: &decision, Allocation: withCurrentPlaces(a), Repeated: true}
}

// describeStart says in words what an ended allocation had been.
func describeStart(a *state.Allocation) string {
	if a.Fence() == 0 {
		return "waited once and"
	}
	return "was granted once and"
}

func hasPlainClaims(a *state.Allocation) bool {
	if a.More != nil && a.More.Forced {
		return false
	}
	for i := range a.Claims {
		if a.Claims[i].At.Special {
			return false
		}
	}
	return true
}

// fitsAtHome is true if no claim has to be moved. It is the common case, also for claims that may borrow.
func fitsAtHome(a *state.Allocation) bool {
	if a.IsForced() || a.Principal().User != "" || !sharesNoNode(a.Claims) || a.AnyQueued() {
		return false
	}
	for i := range a.Claims {
		c := &a.Claims[i]
		if c.IsForced() || c.At.Special && !c.IsSoft() || len(limitsAbove(c, nil)) > 0 {
			return false
		}
		for n := c.At; n != nil && n.Borrows == policy.BorrowSoft; n = n.Parent {
			if !n.HasRoomFor(c.Amounts) {
				return false
			}
		}
	}
	return true
}

// placeSoftClaims finds nodes for the claims with soft borrowing, in the order of the request, and charges them there.
// It returns the first that has no place.
func (t *staged) placeSoftClaims() *state.PlacedClaim {
	for i := range t.requester().Claims {
		if c := &t.requester().Claims[i]; c.IsSoft() && !t.placeSoftClaim(i) {
			return c
		}
	}
	return nil
}

func (t *staged) checkRest() []quota.Violation {
	a := t.requester()
	violations := violationsOf(t.state.AskerFor(a), plainClaims(a))
	violations = append(violations, uncountableViolations(a)...)
	violations = append(violations, checkBounded(a)...)
	violations = append(violations, t.checkPrincipals(a)...)
	return append(violations, checkItems(&t.state.Inventory, a)...)
}

// checkPrincipals checks the limits of principals without the claims that placeSoftClaims has charged already.
func (t *staged) checkPrincipals(a *state.Allocation) []quota.Violation {
	countSoft(a, -1)
	defer countSoft(a, 1)
	return checkPrincipals(&t.state.Environment, a)
}

// countSoft refunds the claims with soft borrowing to the accounts of their principal, or charges them again.
func countSoft(a *state.Allocation, sign quota.Amount) {
	for i := range a.Claims {
		if c := &a.Claims[i]; c.IsSoft() && c.More != nil && c.More.Track != nil {
			c.More.Track.Add(c, sign)
		}
	}
}

func (t *staged) chargePlain() {
	for i := range t.requester().Claims {
		if !t.requester().Claims[i].IsSoft() {
			t.chargeClaim(i)
		}
	}
}

// everyViolation lists all violations of a denied request on the ledger without it. lost are the claims that find no
// place. Only if there are none, the violations of the transaction count: claims that would have been moved caused
// them.
func everyViolation(
	s *state.State, a *state.Allocation, lost []*state.PlacedClaim, tried []quota.Violation,
) []quota.Violation {
	all := violationsOf(s.AskerFor(a), plainClaims(a))
	for _, c := range lost {
		all = append(all, inTheWay(c)...)
	}
	all = append(all, s.AskerFor(a).SoftOvertakeViolations(a.Claims)...)
	all = append(all, uncountableViolations(a)...)
	all = append(all, checkBounded(a)...)
	all = append(all, checkPrincipals(&s.Environment, a)...)
	all = append(all, checkItems(&s.Inventory, a)...)
	if len(all) == 0 {
		return tried
	}
	return all
}

// plainClaims are the claims to which all limits on their paths apply. None applies to forced claims.
func plainClaims(a *state.Allocation) []state.PlacedClaim {
	var list []state.PlacedClaim
	for i := range a.Claims {
		if c := &a.Claims[i]; !c.IsForced() && !c.IsSoft() {
			list = append(list, *c)
		}
	}
	return list
}

// violationsOf checks every limit on every path from the claimed nodes up to the roots, and the requests that must not
// be overtaken there, and returns all violations. Its cost is the depth of the tree times the amounts of the request,
// independent of what else is held.
func violationsOf(asker state.Asker, claims []state.PlacedClaim) []quota.Violation {
	if sharesNoNode(claims) {
		return violationsApart(asker, claims)
	}
	return violationsTogether(asker, claims)
}

// sharesNoNode is surely true if every claim is in a tree of its own.
func sharesNoNode(claims []state.PlacedClaim) bool {
	for i := range claims {
		for j := range i {
			if claims[i].At.Tree == claims[j].At.Tree {
				return false
			}
		}
	}
	return true
}

func violationsApart(asker state.Asker, claims []state.PlacedClaim) []quota.Violation {
	var violations []quota.Violation
	for i := range claims {
		c := &claims[i]
		for n := c.At; n != nil; n = n.Parent {
			for _, p := range c.Amounts {
				violations = fits(n, violations, p.Resource, p.Amount)
				if n.Queues != nil {
					violations = asker.AppendOvertaking(violations, n, p.Resource)
				}
			}
		}
	}
	return violations
}

// fits appends a violation if there is no capacity for amount more.
func fits(n *state.Node, violations []quota.Violation, r *state.Resource, amount quota.Amount) []quota.Violation {
	return fitsIn(n, n.Ceilings[r.Index], violations, r, amount)
}

func fitsIn(n *state.Node, limit quota.Amount, violations []quota.Violation, r *state.Resource,
	amount quota.Amount,
) []quota.Violation {
	used := n.Subtree[r.Index]
	if used+amount <= limit && amount <= quota.MaxAmount {
		return violations
	}
	return append(violations, quota.Violation{
		Tree: n.TreeName, Node: n.Path, Resource: r.Name, Limit: limit, Used: used, Requested: amount,
	})
}

// Demand is what a whole request asks of one node: by resource index, only what is asked.
type Demand struct {
	Node    *state.Node
	Amounts []state.PlacedAmount // by resource index
}

// violationsTogether checks a common ancestor of several claims once, for their sum.
func violationsTogether(asker state.Asker, claims []state.PlacedClaim) []quota.Violation {
	var violations []quota.Violation
	for _, d := range DemandsOf(claims, func(c *state.PlacedClaim) *state.Node { return c.At }) {
		for _, p := range d.Amounts {
			violations = asker.AppendOvertaking(fits(d.Node, violations, p.Resource, p.Amount), d.Node, p.Resource)
		}
	}
	return violations
}

// DemandsOf sums the claims for every node on their paths, starting at the node that begin returns.
func DemandsOf(claims []state.PlacedClaim, begin func(*state.PlacedClaim) *state.Node) []Demand {
	var demands []Demand
	place := map[*state.Node]int{}
	for i := range claims {
		c := &claims[i]
		for n := begin(c); n != nil; n = n.Parent {
			i, known := place[n]
			if !known {
				i = len(demands)
				place[n] = i
				demands = append(demands, Demand{Node: n})
			}
			for _, p := range c.Amounts {
				demands[i].addAmount(p)
			}
		}
	}
	return demands
}

// addAmount keeps the resources in their order.
func (d *Demand) addAmount(p state.PlacedAmount) {
	for i, have := range d.Amounts {
		switch {
		case have.Resource == p.Resource:
			d.Amounts[i].Amount = have.Amount.Plus(p.Amount)
			return
		case have.Resource.Index > p.Resource.Index:
			d.Amounts = append(d.Amounts, state.PlacedAmount{})
			copy(d.Amounts[i+1:], d.Amounts[i:])
			d.Amounts[i] = p
			return
		}
	}
	d.Amounts = append(d.Amounts, p)
}

// uncountableViolations lists the trees in which forced claims would exceed MaxAmount. No other limit applies to them.
func uncountableViolations(a *state.Allocation) []quota.Violation {
	var forced []state.PlacedClaim
	for i := range a.Claims {
		if a.Claims[i].IsForced() {
			forced = append(forced, a.Claims[i])
		}
	}
	var violations []quota.Violation
	for _, d := range DemandsOf(forced, func(c *state.PlacedClaim) *state.Node { return c.At.Tree.Root }) {
		for _, p := range d.Amounts {
			violations = fitsIn(d.Node, quota.MaxAmount, violations, p.Resource, p.Amount)
		}
	}
	return violations
}
