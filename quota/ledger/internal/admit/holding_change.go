package admit

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// holdingChange replaces the claims of a held allocation, and splits parts from it, in one transaction: everything that
// it held is refunded, everything that it shall hold is charged, and then every level whose use has risen must be
// within its limit. So use never counts the old and the new amounts together, and what falls makes room for what rises.
type holdingChange struct {
	*staged
	Previous, updated *state.Allocation
	parts             []*state.Allocation
	// made has the claims that go to other nodes, which may be dynamic nodes that are not in their trees yet. placed
	// counts those that have a node.
	made   *state.Allocation
	placed int
	// rising are the claims with soft borrowing that are new somewhere or ask for more.
	rising []state.PlacedClaim
	// toPlace are the claims whose node soft borrowing has to find, and inTheWay what each found full at its own.
	toPlace  []state.ClaimRef
	inTheWay []quota.Violation
	levels   *levelsBefore
	// growth is by how many bytes the records of the ledger grow.
	growth int64
}

func changeHolding(s *state.State, want *wantedHolding, generation uint64, m state.Mode) state.Outcome {
	a := want.target
	switch done, refused := want.repeats(generation); {
	case refused != nil:
		return state.Outcome{Refused: refused}
	case done:
		return repeatedChange(a, nil)
	}
	if refused := want.dropEmpty(); refused != nil {
		return state.Outcome{Refused: refused}
	}
	h, refused := newHoldingChange(s, want, generation)
	if refused == nil {
		refused = s.CheckRequestGrowth(h.growth)
	}
	if refused != nil {
		return state.Outcome{Refused: refused}
	}
	decision := h.Decide()
	switch {
	case decision.Granted && m == state.DryRun:
		decision.Placements = h.requester().CurrentInfo().Claims
		h.rollback()
		return state.Outcome{Decision: &decision, Allocation: withCurrentPlaces(a)}
	case !decision.Granted && want.resizes != nil && h.mayWait(decision):
		return enqueueResize(s, h, *want.resizes, decision, m)
	case !decision.Granted:
		return state.Outcome{Decision: &decision, Allocation: withCurrentPlaces(a)}
	}
	return state.Outcome{Decision: newDecision(&decision), Allocation: h.commit(0), Parts: h.parts}
}

func repeatedChange(a *state.Allocation, parts []*state.Allocation) state.Outcome {
	return state.Outcome{Decision: &granted, Allocation: withCurrentPlaces(a), Parts: parts, Repeated: true}
}

// repeats refuses commands of earlier generations.
func (w *wantedHolding) repeats(generation uint64) (bool, *quota.Error) {
	current := w.target.Generation()
	switch {
	case generation == 0:
		return w.isDone, nil
	case generation > current:
		return false, checkLater(w.target, generation)
	case generation < current:
		return false, quota.Errorf(quota.GenerationMismatch, "generation",
			"allocation %q was changed with generation %d already, and %d is earlier; look at what it holds, and name a "+
				"later generation", w.target.ID(), current, generation)
	case !w.isDone:
		return false, quota.Errorf(quota.GenerationMismatch, "generation",
			"allocation %q was changed otherwise with generation %d; look at what it holds, and name a later generation",
			w.target.ID(), current)
	}
	return true, nil
}

// checkLater refuses a generation that is not later than those of resizes that wait, or have waited in vain.
func checkLater(a *state.Allocation, generation uint64) *quota.Error {
	known := knownGeneration(a)
	switch resize := a.WaitingResize(); {
	case generation > known:
		return nil
	case resize != nil && known == resize.Generation():
		return quota.Errorf(quota.GenerationMismatch, "generation",
			"a resize of allocation %q waits with generation %d, and %d is not later; look at what it waits for, and name a "+
				"later generation", a.ID(), known, generation)
	}
	return quota.Errorf(quota.GenerationMismatch, "generation",
		"a resize of allocation %q waited with generation %d and was not carried out, and %d is not later; ask again with "+
			"a later generation", a.ID(), known, generation)
}

// newHoldingChange checks the form of the wanted claims and finds their nodes. It changes nothing.
func newHoldingChange(s *state.State, want *wantedHolding, generation uint64) (*holdingChange, *quota.Error) {
	a := want.target
	h := &holdingChange{
		staged: &staged{state: s, fence: a.Fence()}, Previous: a,
		made: &state.Allocation{Claims: make([]state.PlacedClaim, want.countMoved())},
	}
	if n := len(want.rest); n > s.Bounds.Claims {
		return nil, quota.Errorf(quota.Invalid, "claims", "allocation %q would have %d claims; 1 to %d are allowed", a.ID(),
			n, s.Bounds.Claims)
	}
	if n := s.Allocations.Held.Len() + len(want.parts); len(want.parts) > 0 && n > s.Bounds.Held {
		return nil, errLedgerFull(&s.Environment)
	}
	updated, refused := h.newRecord(want.rest)
	if refused == nil {
		refused = h.checkNamesUser(updated, want.rest, h.isRising)
	}
	if refused != nil {
		return nil, refused
	}
	updated.More.Resized = &state.Resized{
		Generation: max(generation, a.Generation()), First: firstClaims(a), SplitFrom: a.SplitFrom(),
		AnyOf: a.AnyOf(), Given: a.Given(),
		Dropped: knownGeneration(a), Change: want.digest,
	}
	if updated.More.Resized.Dropped <= updated.More.Resized.Generation {
		updated.More.Resized.Dropped = 0
	}
	h.growth = s.CountedSize(updated) - s.CountedSize(a)
	for i, part := range want.parts {
		p, refused := h.newRecord(part.claims)
		if refused == nil {
			refused = h.checkNamesUser(p, part.claims, func(wantedClaim, state.PlacedClaim) bool { return true })
		}
		if refused != nil {
			return nil, refused
		}
		h.beginPart(p, part.id, i)
		h.parts = append(h.parts, p)
		h.growth += s.CountedSize(p)
	}
	if refused := s.Forest.CheckDynamicNodes(h.made); refused != nil {
		return nil, refused
	}
	h.updated = updated
	for _, a := range h.records() {
		h.assignGroups(a)
	}
	return h, nil
}

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

func (w *wantedHolding) lists() [][]wantedClaim {
	lists := [][]wantedClaim{w.rest}
	for _, p := range w.parts {
		lists = append(lists, p.claims)
	}
	return lists
}

// newRecord copies all but the claims.
func (h *holdingChange) newRecord(want []wantedClaim) (*state.Allocation, *quota.Error) {
	updated, more := *h.Previous, state.Details{}
	if updated.More != nil {
		more = *updated.More
	}
	more.Resize = nil
	updated.More, updated.Claims = &more, make([]state.PlacedClaim, len(want))
	for i, w := range want {
		c, refused := h.newClaim(w)
		if refused != nil {
			return nil, refused
		}
		if updated.Claims[i] = c; c.IsSoft() && h.isRising(w, c) {
			h.rising = append(h.rising, c)
		}
	}
	if refused := checkTogether(&updated); refused != nil {
		return nil, refused
	}
	return &updated, checkMaxTTL(&updated, updated.Lease().TTL)
}

// checkNamesUser refuses claims without a user where a tree requires one, if they are new, as those of parts are. What
// was held before the tree required users may stay and become less.
func (h *holdingChange) checkNamesUser(
	a *state.Allocation, want []wantedClaim, isNew func(wantedClaim, state.PlacedClaim) bool,
) *quota.Error {
	if a.Principal().User != "" {
		return nil
	}
	for i, w := range want {
		if c := a.Claims[i]; needsUser(&c) && isNew(w, c) {
			return quota.Errorf(quota.Invalid, cmp.Or(w.field, "id"),
				"allocation %q has no user, and tree %s requires one where users or groups are limited, as they are for "+
					"claims at %s; allocate it anew with a user", h.Previous.ID(), c.At.TreeName,
				quota.Place(c.At.TreeName, c.Asked.Path))
		}
	}
	return nil
}

func (h *holdingChange) isRising(w wantedClaim, c state.PlacedClaim) bool {
	return w.isMoved || slices.ContainsFunc(c.Amounts, func(p state.PlacedAmount) bool {
		return p.Amount > state.AmountOf(h.Previous.Claims[w.from].Amounts, p.Resource.Index)
	})
}

// newClaim is the wanted claim at its node: where it was counted, unless it moves.
func (h *holdingChange) newClaim(w wantedClaim) (state.PlacedClaim, *quota.Error) {
	if w.isMoved {
		return h.movedClaim(w)
	}
	c := h.keptClaim(w.from)
	c.Placed = c.At.Address
	if w.field == "" || len(c.Picks()) > 0 {
		return c, nil
	}
	c.Amounts = make([]state.PlacedAmount, len(w.amounts))
	refused := placeFor(w, func() *quota.Error { return placeAmounts(c.At.Tree, c.Amounts, w.amounts, 0) })
	if refused != nil {
		return c, refused
	}
	if c.More != nil {
		more := *c.More
		c.More = &more
	}
	return c, nil
}

// keptClaim is a claim that stays at its node. Snapshots say only of an allocation as a whole whether it was granted
// regardless of limits. So that counts for each of its claims, or a restored ledger would decide otherwise.
func (h *holdingChange) keptClaim(i int) state.PlacedClaim {
	c := h.Previous.Claims[i]
	if forced := h.Previous.IsForced(); c.IsForced() != forced {
		more := state.ClaimDetails{}
		if c.More != nil {
			more = *c.More
		}
		more.Forced, c.More = forced, &more
	}
	return c
}

// movedClaim is a claim at another node than before. It ranks, and counts for the group, as the one that it continues.
func (h *holdingChange) movedClaim(w wantedClaim) (state.PlacedClaim, *quota.Error) {
	from := &h.Previous.Claims[max(0, w.from)]
	request := quota.Claim{Tree: w.tree, Node: w.node, Amounts: w.amounts, Standing: from.Standing()}
	isItems := w.from >= 0 && len(from.Picks()) > 0
	if isItems {
		request.Picks = from.Picks()
	}
	i := h.placed
	h.placed++
	c := &h.made.Claims[i]
	c.Amounts = make([]state.PlacedAmount, state.CountAmounts(&request))
	refused := placeFor(w, func() *quota.Error { return placeClaim(&h.state.Forest, h.made, &request, i) })
	if refused != nil {
		return *c, refused
	}
	if w.asked != nil {
		c.Asked = w.asked
	}
	if isItems {
		c.Amounts = from.Amounts
		c.SetItems(request.Picks, from.HeldItems())
	}
	return *c, nil
}

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

func (h *holdingChange) beginPart(p *state.Allocation, id string, number int) {
	s, details := h.state, *p.More
	p.SetID(id)
	p.SetGrant(s.Allocations.Fence+1+uint64(number), s.Now)
	p.More = &state.Details{
		Principal: details.Principal, Forced: details.Forced, EndsAt: details.EndsAt, Priority: details.Priority,
		Resized: &state.Resized{SplitFrom: h.Previous.ID()},
	}
	if ttl := h.Previous.Lease().TTL; ttl > 0 {
		p.More.Lease = &state.Lease{Asked: ttl, TTL: ttl}
		p.More.Lease.Begin(s.Now)
	}
}

// assignGroups prefers the group of the allocation's claims in the tree.
func (h *holdingChange) assignGroups(a *state.Allocation) {
	p := a.Principal()
	if p.User == "" {
		return
	}
	for i := range a.Claims {
		c := &a.Claims[i]
		if c.More != nil && c.More.Track != nil {
			continue
		}
		at := slices.IndexFunc(h.Previous.Claims, func(o state.PlacedClaim) bool { return o.At.Tree == c.At.Tree })
		if at >= 0 {
			c.EnsureDetails().Group = h.Previous.Claims[at].Group()
		} else {
			c.EnsureDetails().Group = groupOf(a, i, p)
		}
		c.TrackPrincipal(p)
	}
}
