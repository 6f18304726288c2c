package admit

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// Split moves amounts of an allocation to new ones.
func Split(s *state.State, c quota.Split, m state.Mode) state.Outcome {
	a, refused := checkHoldingChange(&s.Allocations, c.ID, c.Fence)
	if refused == nil {
		refused = checkCount(len(c.Parts), quota.MaxParts, "parts", "parts")
	}
	if refused != nil {
		return state.Outcome{Refused: refused}
	}
	done, refused := findParts(&s.Allocations, c)
	switch {
	case refused != nil:
		return state.Outcome{Refused: refused}
	case len(done) > 0:
		return repeatedChange(a, done)
	}
	want := wantedHolding{forest: &s.Forest, target: a, rest: wantedClaims(a)}
	for i, part := range c.Parts {
		if refused = checkCount(len(part.Claims), s.Bounds.Claims, PartField(i, ".claims"), "claims"); refused == nil {
			refused = want.split(part, i)
		}
		if refused != nil {
			return state.Outcome{Refused: refused}
		}
	}
	return changeHolding(s, &want, c.Generation, m)
}

func PartField(i int, rest string) string { return fmt.Sprintf("parts[%d]%s", i, rest) }

// findParts returns the parts if all of them are there from the same split; none if no id is in use.
func findParts(s *state.Allocations, c quota.Split) ([]*state.Allocation, *quota.Error) {
	var known []*state.Allocation
	for i, part := range c.Parts {
		if err := CheckID(part.ID); err != nil {
			err.Field = PartField(i, ".id")
			return nil, err
		}
		if quota.NamespaceOf(part.ID) != quota.NamespaceOf(c.ID) {
			return nil, quota.Errorf(quota.Invalid, PartField(i, ".id"),
				"the part %q is not in the namespace of the allocation that it is split from", quota.Clip(part.ID))
		}
		if part.ID == c.ID || slices.ContainsFunc(c.Parts[:i], func(p quota.Part) bool { return p.ID == part.ID }) {
			return nil, quota.Errorf(quota.Invalid, PartField(i, ".id"),
				"the id %q is there twice; each part has an id of its own", part.ID)
		}
		if a := s.FindByID(part.ID); a != nil {
			known = append(known, a)
		}
	}
	for i, part := range c.Parts {
		a := s.FindByID(part.ID)
		switch {
		case a == nil:
		case len(known) < len(c.Parts) || !isPart(a, c.ID, part):
			return nil, quota.Errorf(quota.IDTaken, PartField(i, ".id"),
				"allocation %q exists with other content; use another id, or repeat the split unchanged", a.ID())
		case a.Ended != nil:
			return nil, quota.Errorf(quota.Ended, PartField(i, ".id"),
				"the part %q was split off once and has ended%s; use another id", a.ID(), describeEnd(a))
		}
	}
	return known, nil
}

// isPart is false for an allocation of the same id that was not split off as this part.
func isPart(a *state.Allocation, source string, part quota.Part) bool {
	return a.SplitFrom() == source && slices.EqualFunc(firstClaims(a), part.Claims,
		func(c quota.Claim, p quota.PartClaim) bool {
			return c.Tree == p.Tree && c.Node == p.To && slices.Equal(c.Amounts, p.Amounts)
		})
}

func (w *wantedHolding) split(part quota.Part, i int) *quota.Error {
	made := wantedPart{id: part.ID}
	for j, c := range part.Claims {
		field := PartField(i, "."+ClaimField(j, ""))
		from, err := w.take(c, field)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(made.claims, func(o wantedClaim) bool { return o.tree == c.Tree && o.node == c.To }) {
			return quota.Errorf(quota.Invalid, field+".to", "%s is claimed twice in one part; join the amounts in one claim",
				quota.Place(c.Tree, c.To))
		}
		made.claims = append(made.claims, wantedClaim{
			from: from, tree: c.Tree, node: c.To, isMoved: true, amounts: c.Amounts, field: field,
			nodeField: "new_node",
		})
	}
	w.parts = append(w.parts, made)
	return nil
}

// take returns the index of the claim.
func (w *wantedHolding) take(c quota.PartClaim, field string) (int, *quota.Error) {
	if len(c.Amounts) == 0 {
		return 0, quota.Errorf(quota.Invalid, field+".amounts", "a claim of a part names at least one resource")
	}
	if err := checkAmounts(w.forest, c.Tree, c.Amounts, field); err != nil {
		return 0, err
	}
	at := w.find(c.Tree, c.From)
	if at < 0 {
		return 0, w.noClaim(c.Tree, c.From, field+".node")
	}
	claim := &w.rest[at]
	claim.field = field
	for _, component := range c.Amounts {
		had := state.AmountIn(claim.amounts, component.Resource)
		if component.Amount < 1 || component.Amount > had {
			return 0, quota.Errorf(quota.Invalid, field+".amounts["+component.Resource+"]",
				"a part takes 1 to %d %s, which is what is left of allocation %q at %s, not %d", had, component.Resource,
				w.target.ID(), quota.Place(c.Tree, c.From), component.Amount)
		}
		left := quota.Component{Resource: component.Resource, Amount: had - component.Amount}
		claim.amounts = withAmount(claim.amounts, left)
	}
	return claim.from, nil
}
