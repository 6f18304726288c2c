package admit

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// mayWait is true for a denied change that could be granted later: unless it asks for more of a level than its limit,
// which it notes in the violations, or a hold denies what would wait.
func (h *holdingChange) mayWait(d quota.Decision) bool {
	h.markTooLarge(d.Violations)
	return !d.NeverFits() && !deniesWaiting(&h.state.Forest, d.Violations)
}

func (h *holdingChange) markTooLarge(violations []quota.Violation) {
	if InCohort(h.updated.Claims) {
		pooled := slices.Clone(violations)
		markTooLarge(pooled, h.updated.Claims)
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
	key := blockerFrom(&h.state.Queue, h.updated, *v)
	return key.Resource != nil && key.Node.Path == v.Node && askedWithin(key, h.updated.Claims) > v.Limit
}

// PlaceResize prepares a waiting resize for the present state. Of reasons for a refusal only bounds of the ledger are
// left, because a command that makes a resize invalid ends it.
func PlaceResize(s *state.State, alt *state.Alternative) (*holdingChange, *quota.Error) {
	a, _ := s.Allocations.Held.Get(alt.Of.Resizes)
	want := &wantedHolding{
		forest: &s.Forest, target: a, rest: wantedClaims(a), isDone: true, digest: alt.Resized.Change,
	}
	for i := range alt.Claims {
		asked, request := alt.Claims[i].Asked, &alt.Wanted[i]
		change := quota.ClaimChange{Tree: asked.TreeName, Node: asked.Path, Amounts: request.Amounts}
		isNew := ClaimAskedAt(a, asked) < 0
		if isNew {
			change.Node = request.Node
		}
		if isNew && want.find(change.Tree, change.Node) >= 0 {
			return nil, quota.Errorf(quota.Invalid, ClaimField(i, ".node"), "%s has become the place of another claim",
				quota.Place(change.Tree, change.Node))
		}
		if refused := want.resize(change, ClaimField(i, "")); refused != nil {
			return nil, refused
		}
		if isNew {
			want.rest[len(want.rest)-1].asked = asked
		}
	}
	if refused := want.dropEmpty(); refused != nil {
		return nil, refused
	}
	return newHoldingChange(s, want, alt.Resized.Generation)
}

// JudgeResize is JudgeAlternative for a resize.
func JudgeResize(s *state.State, alt *state.Alternative) (t Admission, d quota.Decision, full bool) {
	h, refused := PlaceResize(s, alt)
	if refused != nil {
		return Admission{State: s}, quota.Decision{}, true
	}
	d = h.Decide()
	h.markTooLarge(d.Violations)
	return h.asTx(), d, false
}

func (h *holdingChange) asTx() Admission {
	return Admission{State: h.state, Allocation: h.updated, staged: h.staged, Change: h}
}

// askedWithin sums what claims ask of the blocker's resource that belong at its node or below.
func askedWithin(key state.Blocker, claims []state.PlacedClaim) quota.Amount {
	var sum quota.Amount
	for i := range claims {
		if c := &claims[i]; c.Home().Within(key.Node) {
			for _, p := range c.Amounts {
				if p.Resource == key.Resource {
					sum = sum.Plus(p.Amount)
				}
			}
		}
	}
	return sum
}

// AmountNeeded is what a waiting request or resize needs of the blocker at least, see state.Blocker.AmountNeeded. A
// resize needs the difference, wherever its claims are counted.
func (t *Admission) AmountNeeded(key state.Blocker) quota.Amount {
	if h := t.Change; h != nil && key.Node != nil && key.Resource != nil {
		return max(0, askedWithin(key, h.updated.Claims)-askedWithin(key, h.Previous.Claims))
	}
	return key.AmountNeeded(t.Allocation)
}

// AwaitedAmounts are what one claim of a waiter waits for: of a resize what it asks for beyond what is held.
func AwaitedAmounts(s *state.State, alt *state.Alternative, claim int) quota.Vector {
	wanted := alt.Wanted[claim].Amounts
	if !alt.Of.IsResize() {
		return wanted
	}
	a, _ := s.Allocations.Held.Get(alt.Of.Resizes)
	held := ClaimAskedAt(a, alt.Claims[claim].Asked)
	if held < 0 {
		return wanted
	}
	var more quota.Vector
	for _, c := range wanted {
		if c.Amount -= state.AmountIn(a.Claims[held].Info().Amounts, c.Resource); c.Amount > 0 {
			more = append(more, c)
		}
	}
	return more
}
