package ledger

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/quota"
)

// splitAllocation moves amounts of an allocation to new ones.
func (l *Ledger) splitAllocation(c quota.Split, m mode) Outcome {
	a, refused := l.allocations.checkChange(c.ID, c.Fence)
	if refused == nil {
		refused = l.checkCount(len(c.Parts), quota.MaxParts, "parts", "parts")
	}
	if refused != nil {
		return Outcome{Refused: refused}
	}
	done, refused := l.allocations.findParts(c)
	switch {
	case refused != nil:
		return Outcome{Refused: refused}
	case len(done) > 0:
		return repeatedChange(a, done)
	}
	want := wantedHolding{forest: &l.forest, of: a, rest: a.wantedClaims()}
	for i, part := range c.Parts {
		if refused = l.checkCount(len(part.Claims), l.bounds.Claims, partField(i, ".claims"), "claims"); refused == nil {
			refused = want.split(part, i)
		}
		if refused != nil {
			return Outcome{Refused: refused}
		}
	}
	return l.changeHolding(&want, c.Generation, m)
}

func partField(i int, rest string) string { return fmt.Sprintf("parts[%d]%s", i, rest) }

// findParts returns the parts if all of them are there from the same split; none if no id is in use.
func (s *allocations) findParts(c quota.Split) ([]*Allocation, *quota.Error) {
	var known []*Allocation
	for i, part := range c.Parts {
		if err := checkID(part.ID); err != nil {
			err.Field = partField(i, ".id")
			return nil, err
		}
		if part.ID == c.ID || slices.ContainsFunc(c.Parts[:i], func(p quota.Part) bool { return p.ID == part.ID }) {
			return nil, quota.Errorf(quota.Invalid, partField(i, ".id"),
				"the id %q is there twice; each part has an id of its own", part.ID)
		}
		if a := s.findByID(part.ID); a != nil {
			known = append(known, a)
		}
	}
	for i, part := range c.Parts {
		a := s.findByID(part.ID)
		switch {
		case a == nil:
		case len(known) < len(c.Parts) || !a.isPart(c.ID, part):
			return nil, quota.Errorf(quota.IDTaken, partField(i, ".id"),
				"allocation %q exists with other content; use another id, or repeat the split unchanged", a.id)
		case a.ended != nil:
			return nil, quota.Errorf(quota.Ended, partField(i, ".id"),
				"the part %q was split off once and has ended%s; use another id", a.id, a.describeEnd())
		}
	}
	return known, nil
}

// isPart is true if the allocation was split off as this part.
func (a *Allocation) isPart(of string, part quota.Part) bool {
	return a.splitFrom() == of && slices.EqualFunc(a.firstClaims(), part.Claims,
		func(c quota.Claim, p quota.PartClaim) bool {
			return c.Tree == p.Tree && c.Node == p.To && slices.Equal(c.Amounts, p.Amounts)
		})
}

// split takes the amounts of one part away.
func (w *wantedHolding) split(part quota.Part, i int) *quota.Error {
	made := wantedPart{id: part.ID}
	for j, c := range part.Claims {
		field := partField(i, "."+claimField(j, ""))
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
			nodeField: "to",
		})
	}
	w.parts = append(w.parts, made)
	return nil
}

// take takes amounts away from the claim at the place of a part, and returns the index of that claim.
func (w *wantedHolding) take(c quota.PartClaim, field string) (int, *quota.Error) {
	if len(c.Amounts) == 0 {
		return 0, quota.Errorf(quota.Invalid, field+".amounts", "a claim of a part names at least one resource")
	}
	if err := w.forest.checkAmounts(c.Tree, c.Amounts, field); err != nil {
		return 0, err
	}
	at := w.find(c.Tree, c.From)
	if at < 0 {
		return 0, w.noClaim(c.Tree, c.From, field+".from")
	}
	claim := &w.rest[at]
	claim.field = field
	for _, component := range c.Amounts {
		had := amountIn(claim.amounts, component.Resource)
		if component.Amount < 1 || component.Amount > had {
			return 0, quota.Errorf(quota.Invalid, field+".amounts["+component.Resource+"]",
				"a part takes 1 to %d %s, which is what is left of allocation %q at %s, not %d", had, component.Resource,
				w.of.id, quota.Place(c.Tree, c.From), component.Amount)
		}
		left := quota.Component{Resource: component.Resource, Amount: had - component.Amount}
		claim.amounts = withAmount(claim.amounts, left)
	}
	return claim.from, nil
}
