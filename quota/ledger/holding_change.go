package ledger

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/idindex"
)

// holdingChange replaces the claims of a held allocation, and splits parts from it, in one transaction: everything that
// it held is refunded, everything that it shall hold is charged, and then every level whose use has risen must be
// within its limit. So use never counts the old and the new amounts together, and what falls makes room for what rises.
type holdingChange struct {
	*staged
	was, is *Allocation
	parts   []*Allocation
	// made has the claims that go to other nodes, which may be dynamic nodes that are not in their trees yet. placed
	// counts those that have a node.
	made   *Allocation
	placed int
	// rising are the claims with soft borrowing that are new somewhere or ask for more.
	rising []placedClaim
	// toPlace are the claims whose node soft borrowing has to find, and inTheWay what each found full at its own.
	toPlace  []claimRef
	inTheWay []quota.Violation
	levels   *levelsBefore
	// growth is by how many bytes the records of the ledger grow.
	growth int64
}

// changeHolding gives an allocation the wanted claims, if they fit.
func (l *Ledger) changeHolding(want *wantedHolding, generation uint64, m mode) Outcome {
	a := want.of
	switch done, refused := want.repeats(generation); {
	case refused != nil:
		return Outcome{Refused: refused}
	case done:
		return repeatedChange(a, nil)
	}
	if refused := want.dropEmpty(); refused != nil {
		return Outcome{Refused: refused}
	}
	h, refused := l.newHoldingChange(want, generation)
	if refused == nil {
		refused = l.checkRequestGrowth(h.growth)
	}
	if refused != nil {
		return Outcome{Refused: refused}
	}
	decision := h.decide()
	switch {
	case decision.Granted && m == dryRun:
		decision.Placements = h.requester().currentInfo().Claims
		h.rollback()
		return Outcome{Decision: &decision, Allocation: a.withCurrentPlaces()}
	case !decision.Granted && want.resizes != nil && h.mayWait(decision):
		return l.enqueueResize(h, *want.resizes, decision, m)
	case !decision.Granted:
		return Outcome{Decision: &decision, Allocation: a.withCurrentPlaces()}
	}
	return Outcome{Decision: newDecision(&decision), Allocation: h.commit(0), Parts: h.parts}
}

// repeatedChange is the answer to a change that was carried out before.
func repeatedChange(a *Allocation, parts []*Allocation) Outcome {
	return Outcome{Decision: &granted, Allocation: a.withCurrentPlaces(), Parts: parts, Repeated: true}
}

// repeats is true if a command was carried out before. It refuses commands of earlier generations.
func (w *wantedHolding) repeats(generation uint64) (bool, *quota.Error) {
	is := w.of.generation()
	switch {
	case generation == 0:
		return w.isDone, nil
	case generation > is:
		return false, w.of.checkLater(generation)
	case generation < is:
		return false, quota.Errorf(quota.GenerationMismatch, "generation",
			"allocation %q was changed with generation %d already, and %d is earlier; look at what it holds, and name a "+
				"later generation", w.of.id, is, generation)
	case !w.isDone:
		return false, quota.Errorf(quota.GenerationMismatch, "generation",
			"allocation %q was changed otherwise with generation %d; look at what it holds, and name a later generation",
			w.of.id, is)
	}
	return true, nil
}

// checkLater refuses a generation that is not later than those of resizes that wait, or have waited in vain.
func (a *Allocation) checkLater(generation uint64) *quota.Error {
	known := a.knownGeneration()
	switch resize := a.waitingResize(); {
	case generation > known:
		return nil
	case resize != nil && known == resize.generation():
		return quota.Errorf(quota.GenerationMismatch, "generation",
			"a resize of allocation %q waits with generation %d, and %d is not later; look at what it waits for, and name a "+
				"later generation", a.id, known, generation)
	}
	return quota.Errorf(quota.GenerationMismatch, "generation",
		"a resize of allocation %q waited with generation %d and was not carried out, and %d is not later; ask again with "+
			"a later generation", a.id, known, generation)
}

// newHoldingChange checks the form of the wanted claims and finds their nodes. It changes nothing.
func (l *Ledger) newHoldingChange(want *wantedHolding, generation uint64) (*holdingChange, *quota.Error) {
	a := want.of
	h := &holdingChange{
		staged: &staged{ledger: l, fence: a.fence}, was: a,
		made: &Allocation{claims: make([]placedClaim, want.countMoved())},
	}
	if n := len(want.rest); n > l.bounds.Claims {
		return nil, quota.Errorf(quota.Invalid, "claims", "allocation %q would have %d claims; 1 to %d are allowed", a.id,
			n, l.bounds.Claims)
	}
	if n := l.allocations.held.Len() + len(want.parts); len(want.parts) > 0 && n > l.bounds.Held {
		return nil, l.errLedgerFull()
	}
	is, refused := h.newRecord(want.rest)
	if refused == nil {
		refused = h.checkNamesUser(is, want.rest, h.isRising)
	}
	if refused != nil {
		return nil, refused
	}
	is.more.resized = &resized{
		generation: max(generation, a.generation()), first: a.firstClaims(), splitFrom: a.splitFrom(),
		anyOf: a.anyOf(), given: a.given(),
		dropped: a.knownGeneration(), change: want.digest,
	}
	if is.more.resized.dropped <= is.more.resized.generation {
		is.more.resized.dropped = 0
	}
	h.growth = l.countedSize(is) - l.countedSize(a)
	for i, part := range want.parts {
		p, refused := h.newRecord(part.claims)
		if refused == nil {
			refused = h.checkNamesUser(p, part.claims, func(wantedClaim, placedClaim) bool { return true })
		}
		if refused != nil {
			return nil, refused
		}
		h.beginPart(p, part.id, i)
		h.parts = append(h.parts, p)
		h.growth += l.countedSize(p)
	}
	if refused := l.forest.checkDynamicNodes(h.made); refused != nil {
		return nil, refused
	}
	h.is = is
	for _, a := range h.records() {
		h.assignGroups(a)
	}
	return h, nil
}

// countMoved counts the claims that go to other nodes.
func (w *wantedHolding) countMoved() int {
	n := 0
	for _, list := range w.lists() {
		for _, c := range list {
			if c.isMoved {
				n++
			}
		}
	}
	return n
}

// lists are the wanted claims of the allocation and of each part.
func (w *wantedHolding) lists() [][]wantedClaim {
	lists := [][]wantedClaim{w.rest}
	for _, p := range w.parts {
		lists = append(lists, p.claims)
	}
	return lists
}

// newRecord is a record with the wanted claims; in all else it is a copy of the allocation.
func (h *holdingChange) newRecord(want []wantedClaim) (*Allocation, *quota.Error) {
	is, more := *h.was, details{}
	if is.more != nil {
		more = *is.more
	}
	more.resize = nil
	is.more, is.claims = &more, make([]placedClaim, len(want))
	for i, w := range want {
		c, refused := h.newClaim(w)
		if refused != nil {
			return nil, refused
		}
		if is.claims[i] = c; c.isSoft() && h.isRising(w, c) {
			h.rising = append(h.rising, c)
		}
	}
	if refused := is.checkTogether(); refused != nil {
		return nil, refused
	}
	return &is, is.checkMaxTTL(is.lease().ttl)
}

// checkNamesUser refuses claims without a user where a tree requires one, if they are new, as those of parts are. What
// was held before the tree required users may stay and become less.
func (h *holdingChange) checkNamesUser(
	a *Allocation, want []wantedClaim, isNew func(wantedClaim, placedClaim) bool,
) *quota.Error {
	if a.principal().User != "" {
		return nil
	}
	for i, w := range want {
		if c := a.claims[i]; c.needsUser() && isNew(w, c) {
			return quota.Errorf(quota.Invalid, cmp.Or(w.field, "id"),
				"allocation %q has no user, and tree %s requires one where users or groups are limited, as they are for "+
					"claims at %s; allocate it anew with a user", h.was.id, c.at.treeName,
				quota.Place(c.at.treeName, c.asked.path))
		}
	}
	return nil
}

// isRising is true for a claim at another node, or with more of something.
func (h *holdingChange) isRising(w wantedClaim, c placedClaim) bool {
	return w.isMoved || slices.ContainsFunc(c.amounts, func(p placedAmount) bool {
		return p.amount > amountOf(h.was.claims[w.from].amounts, p.resource.index)
	})
}

// newClaim is the wanted claim at its node: where it was counted, unless it moves.
func (h *holdingChange) newClaim(w wantedClaim) (placedClaim, *quota.Error) {
	if w.isMoved {
		return h.movedClaim(w)
	}
	c := h.keptClaim(w.from)
	c.placed = c.at.address
	if w.field == "" || len(c.picks()) > 0 {
		return c, nil
	}
	c.amounts = make([]placedAmount, len(w.amounts))
	refused := placeFor(w, func() *quota.Error { return c.at.tree.placeAmounts(c.amounts, w.amounts, 0) })
	if refused != nil {
		return c, refused
	}
	if c.more != nil {
		more := *c.more
		c.more = &more
	}
	return c, nil
}

// keptClaim is a claim that stays at its node. Snapshots say only of an allocation as a whole whether it was granted
// regardless of limits. So that counts for each of its claims, or a restored ledger would decide otherwise.
func (h *holdingChange) keptClaim(i int) placedClaim {
	c := h.was.claims[i]
	if forced := h.was.isForced(); c.isForced() != forced {
		more := claimDetails{}
		if c.more != nil {
			more = *c.more
		}
		more.forced, c.more = forced, &more
	}
	return c
}

// movedClaim is a claim at another node than before. It ranks, and counts for the group, as the one that it continues.
func (h *holdingChange) movedClaim(w wantedClaim) (placedClaim, *quota.Error) {
	from := &h.was.claims[max(0, w.from)]
	request := quota.Claim{Tree: w.tree, Node: w.node, Amounts: w.amounts, Standing: from.standing()}
	isItems := w.from >= 0 && len(from.picks()) > 0
	if isItems {
		request.Picks = from.picks()
	}
	i := h.placed
	h.placed++
	c := &h.made.claims[i]
	c.amounts = make([]placedAmount, countAmounts(&request))
	refused := placeFor(w, func() *quota.Error { return h.ledger.forest.placeClaim(h.made, &request, i) })
	if refused != nil {
		return *c, refused
	}
	if w.asked != nil {
		c.asked = w.asked
	}
	if isItems {
		c.amounts = from.amounts
		c.setItems(request.Picks, from.heldItems())
	}
	return *c, nil
}

// placeFor places a claim, and names its field in a refusal.
func placeFor(w wantedClaim, place func() *quota.Error) *quota.Error {
	err := place()
	if err == nil || w.field == "" {
		return err
	}
	_, rest, _ := strings.Cut(err.Field, ".") // behind claims[i]
	if rest == "node" {
		rest = w.nodeField
	}
	err.Field = w.field + "." + rest
	return err
}

// beginPart completes the record of the part with a number.
func (h *holdingChange) beginPart(p *Allocation, id string, number int) {
	l, of := h.ledger, *p.more
	p.id, p.hash = id, idindex.Hash(id)
	p.fence, p.granted = l.allocations.fence+1+uint64(number), l.now
	p.more = &details{
		principal: of.principal, forced: of.forced, endsAt: of.endsAt, priority: of.priority,
		resized: &resized{splitFrom: h.was.id},
	}
	if ttl := h.was.lease().ttl; ttl > 0 {
		p.more.lease = &lease{asked: ttl, ttl: ttl}
		p.more.lease.begin(l.now)
	}
}

// assignGroups gives the claims at other nodes the group of the allocation's claims in their tree, or chooses one.
func (h *holdingChange) assignGroups(a *Allocation) {
	p := a.principal()
	if p.User == "" {
		return
	}
	for i := range a.claims {
		c := &a.claims[i]
		if c.more != nil && c.more.track != nil {
			continue
		}
		at := slices.IndexFunc(h.was.claims, func(o placedClaim) bool { return o.at.tree == c.at.tree })
		if at >= 0 {
			c.ensureDetails().group = h.was.claims[at].group()
		} else {
			c.ensureDetails().group = a.groupOf(i, p)
		}
		c.trackPrincipal(p)
	}
}
