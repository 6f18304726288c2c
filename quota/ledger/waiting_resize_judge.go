package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
)

// mayWait is true for a denied change that could be granted later: unless it asks for more of a level than its limit,
// which it notes in the violations, or a hold denies what would wait.
func (h *holdingChange) mayWait(d quota.Decision) bool {
	h.markTooLarge(d.Violations)
	return !d.NeverFits() && !h.ledger.forest.deniesWaiting(d.Violations)
}

// markTooLarge notes which limits the allocation would exceed if nothing else were held.
func (h *holdingChange) markTooLarge(violations []quota.Violation) {
	if inCohort(h.is.claims) {
		pooled := slices.Clone(violations)
		markTooLarge(pooled, h.is.claims)
		for i, v := range pooled {
			isPool := v.Kind == quota.OfBorrowing || v.Kind == quota.OfResource && v.Holder.Kind == quota.TheNode
			violations[i].TooLarge = violations[i].TooLarge || isPool && v.TooLarge
		}
	}
	for i := range violations {
		v := &violations[i]
		v.TooLarge = v.TooLarge || h.isTooLarge(v)
	}
}

// isTooLarge is true if the claims alone are beyond a limit. The amount that the violation says is requested is the
// difference only.
func (h *holdingChange) isTooLarge(v *quota.Violation) bool {
	if v.Kind != quota.OfResource {
		return false
	}
	key := h.ledger.queue.blockerFrom(h.is, *v)
	return key.resource != nil && key.node.path == v.Node && key.askedWithin(h.is.claims) > v.Limit
}

// placeResize prepares a waiting resize for the present state. Of reasons for a refusal only bounds of the ledger are
// left, because a command that makes a resize invalid ends it.
func (l *Ledger) placeResize(alt *alternative) (*holdingChange, *quota.Error) {
	a, _ := l.allocations.held.Get(alt.of.resizes)
	want := &wantedHolding{
		forest: &l.forest, of: a, rest: a.wantedClaims(), isDone: true, digest: alt.resized.change,
	}
	for i := range alt.claims {
		asked, request := alt.claims[i].asked, &alt.wanted[i]
		change := quota.ClaimChange{Tree: asked.treeName, Node: asked.path, Amounts: request.Amounts}
		isNew := a.claimAskedAt(asked) < 0
		if isNew {
			change.Node = request.Node
		}
		if isNew && want.find(change.Tree, change.Node) >= 0 {
			return nil, quota.Errorf(quota.Invalid, claimField(i, ".node"), "%s has become the place of another claim",
				quota.Place(change.Tree, change.Node))
		}
		if refused := want.resize(change, claimField(i, "")); refused != nil {
			return nil, refused
		}
		if isNew {
			want.rest[len(want.rest)-1].asked = asked
		}
	}
	if refused := want.dropEmpty(); refused != nil {
		return nil, refused
	}
	return l.newHoldingChange(want, alt.resized.generation)
}

// judgeResize is judgeAlternative for a resize.
func (l *Ledger) judgeResize(alt *alternative) (t tx, d quota.Decision, full bool) {
	h, refused := l.placeResize(alt)
	if refused != nil {
		return tx{ledger: l}, quota.Decision{}, true
	}
	d = h.decide()
	h.markTooLarge(d.Violations)
	return h.asTx(), d, false
}

// asTx is the decided change as a transaction of the queue.
func (h *holdingChange) asTx() tx {
	return tx{ledger: h.ledger, allocation: h.is, staged: h.staged, change: h}
}

// askedWithin sums what claims ask of the blocker's resource that belong at its node or below.
func (key blocker) askedWithin(claims []placedClaim) quota.Amount {
	var sum quota.Amount
	for i := range claims {
		if c := &claims[i]; c.home().within(key.node) {
			for _, p := range c.amounts {
				if p.resource == key.resource {
					sum = sum.Plus(p.amount)
				}
			}
		}
	}
	return sum
}

// amountNeeded is what a waiting request or resize needs of the blocker at least, see [blocker.amountNeeded]. A resize
// needs the difference, wherever its claims are counted.
func (t *tx) amountNeeded(key blocker) quota.Amount {
	if h := t.change; h != nil && key.node != nil && key.resource != nil {
		return max(0, key.askedWithin(h.is.claims)-key.askedWithin(h.was.claims))
	}
	return key.amountNeeded(t.allocation)
}

// awaitedAmounts are what one claim of a waiter waits for: of a resize what it asks for beyond what is held.
func (l *Ledger) awaitedAmounts(alt *alternative, claim int) quota.Vector {
	wanted := alt.wanted[claim].Amounts
	if !alt.of.isResize() {
		return wanted
	}
	a, _ := l.allocations.held.Get(alt.of.resizes)
	held := a.claimAskedAt(alt.claims[claim].asked)
	if held < 0 {
		return wanted
	}
	var more quota.Vector
	for _, c := range wanted {
		if c.Amount -= amountIn(a.claims[held].info().Amounts, c.Resource); c.Amount > 0 {
			more = append(more, c)
		}
	}
	return more
}
