package admit

import (
	"sort"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

func checkRanges(request *quota.Allocate) *quota.Error {
	steps, first := quota.Amount(0), ""
	for i := range request.Claims {
		c := &request.Claims[i]
		for j, r := range c.Ranges {
			field := ClaimField(i, ".ranges["+quota.Clip(r.Resource)+"]")
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
	at, found := state.FindIn(c.Amounts, r.Resource)
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

func widenRequest(s *state.State, request *quota.Allocate, t Admission, d quota.Decision) (Admission, quota.Decision) {
	return widen(s, t, d, request.Steps(), func(step int) (*state.Allocation, *quota.Error) {
		a, refused := placeAtStep(s, request, step)
		if a != nil {
			a.Owner = t.Allocation.Owner
		}
		return a, refused
	})
}

// widen replaces the granted transaction for the least amounts by that for the most steps that fit. A request that ends
// others gets its least: it may not preempt for more than it needs.
//
// With limits on paths alone, fewer steps fit wherever more do, so the number is found by bisection. Where claims move
// others or are counted elsewhere that is not certain, and each number is tried, the largest first.
func widen(
	s *state.State, t Admission, d quota.Decision, steps int,
	place func(step int) (*state.Allocation, *quota.Error),
) (Admission, quota.Decision) {
	if len(t.victims()) > 0 {
		return t, d
	}
	isPlain := hasPlainClaims(t.Allocation)
	t.Rollback()
	begin := func(step int) (Admission, quota.Decision) {
		a, refused := place(step)
		if refused != nil {
			return Admission{State: s}, quota.Decision{}
		}
		t := Begin(s, a)
		return t, t.Decide()
	}
	fits := func(step int) bool {
		t, d := begin(step)
		defer t.Rollback()
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
