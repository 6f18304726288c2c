package ledger

import (
	"sort"

	"github.com/quorate/quorate/quota"
)

// checkRanges refuses ranges that do not go together, or not with the mode of the request.
func checkRanges(request *quota.Allocate) *quota.Error {
	steps, first := quota.Amount(0), ""
	for i := range request.Claims {
		c := &request.Claims[i]
		for j, r := range c.Ranges {
			field := claimField(i, ".ranges["+quota.Clip(r.Resource)+"]")
			n, err := stepsOf(c, j, field)
			switch {
			case err != nil:
				return err
			case request.Mode == quota.Force:
				return quota.Errorf(quota.Invalid, field,
					"a forced request holds its amounts whatever the limits are, so it has no range; name one amount")
			case steps == 0:
				steps, first = n, field
			case n != steps:
				return quota.Errorf(quota.Invalid, field,
					"the ranges of one request take their steps together, but this one has %d and %s has %d; give all of them "+
						"equally many", n, first, steps)
			}
		}
	}
	return nil
}

// stepsOf returns the number of steps of one range of a claim, or what is wrong with the range.
func stepsOf(c *quota.Claim, i int, field string) (quota.Amount, *quota.Error) {
	r := c.Ranges[i]
	if i > 0 && c.Ranges[i-1].Resource >= r.Resource {
		return 0, quota.Errorf(quota.Invalid, field, "the range of %s is not in order, or there twice",
			quota.Clip(r.Resource))
	}
	at, found := findIn(c.Amounts, r.Resource)
	if !found {
		return 0, quota.Errorf(quota.Invalid, field,
			"the claim has no amount of %s, which is the least of its range; name it (items have no ranges)",
			quota.Clip(r.Resource))
	}
	least := max(0, c.Amounts[at].Amount) // that of a negative amount is refused with the amount
	switch {
	case r.Most <= least || r.Most > quota.MaxAmount:
		return 0, quota.Errorf(quota.Invalid, field,
			"a range from %d cannot end at %d; let it end higher than it begins, at most at %d", least, r.Most,
			quota.MaxAmount)
	case r.Step < 1:
		return 0, quota.Errorf(quota.Invalid, field, "a range has steps of at least 1, not of %d", r.Step)
	case (r.Most-least)%r.Step != 0:
		below := r.Most - (r.Most-least)%r.Step
		return 0, quota.Errorf(quota.Invalid, field,
			"steps of %d lead from %d to %d and %d, not to %d; let the range end at one of them", r.Step, least, below,
			below+r.Step, r.Most)
	case (r.Most-least)/r.Step > quota.MaxSteps:
		return 0, quota.Errorf(quota.Invalid, field, "the range has %d steps of %d; 1 to %d are allowed, so take larger ones",
			(r.Most-least)/r.Step, r.Step, quota.MaxSteps)
	}
	return (r.Most - least) / r.Step, nil
}

// widenRequest is widen for a new request.
func (l *Ledger) widenRequest(request *quota.Allocate, t tx, d quota.Decision) (tx, quota.Decision) {
	return l.widen(t, d, request.Steps(), func(step int) (*Allocation, *quota.Error) {
		a, refused := l.placeAtStep(request, step)
		if a != nil {
			a.owner = t.allocation.owner
		}
		return a, refused
	})
}

// widen replaces the granted transaction for the least amounts by that for the most steps that fit. A request that ends
// others gets its least: it may not preempt for more than it needs.
//
// With limits on paths alone, fewer steps fit wherever more do, so the number is found by bisection. Where claims move
// others or are counted elsewhere that is not certain, and each number is tried, the largest first.
func (l *Ledger) widen(t tx, d quota.Decision, steps int, place func(step int) (*Allocation, *quota.Error),
) (tx, quota.Decision) {
	if len(t.victims()) > 0 {
		return t, d
	}
	isPlain := t.allocation.isPlain()
	t.rollback()
	begin := func(step int) (tx, quota.Decision) {
		a, refused := place(step)
		if refused != nil {
			return tx{ledger: l}, quota.Decision{}
		}
		t := l.beginTx(a)
		return t, t.decide()
	}
	fits := func(step int) bool {
		t, d := begin(step)
		defer t.rollback()
		return d.Granted && len(t.victims()) == 0
	}
	step := steps
	switch {
	case fits(steps):
	case isPlain:
		step = sort.Search(steps-1, func(i int) bool { return !fits(i + 1) })
	default:
		for step--; step > 0 && !fits(step); {
			step--
		}
	}
	return begin(step)
}
