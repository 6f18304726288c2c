package oracle

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/quota"
)

// widen tries every number of steps, the largest first, and returns the first with which the request fits without
// ending others; the request itself if it ends others already, or no more fits. before is where everything was counted
// without the request.
func (o *oracle) widen(a *allocation, t *placementTrial, before places) (*allocation, *placementTrial) {
	if firstRange(a.asked) == "" || len(t.victims) > 0 {
		return a, t
	}
	for steps := mostSteps(a.asked); steps >= 0; steps-- {
		o.restorePlaces(before)
		c := a.asked
		c.Claims = slices.Clone(c.Claims)
		for i := range c.Claims {
			c.Claims[i].Amounts = amountsAfter(c.Claims[i], steps)
		}
		wider := o.newAllocation(c, a.claimed)
		wider.asked, wider.steps, wider.whole, wider.alternative = a.asked, steps, a.whole, a.alternative
		wider.queueing = a.queueing
		violations, trial := o.admit(wider)
		if len(violations) == 0 && len(trial.victims) == 0 {
			return wider, trial
		}
	}
	panic("what has fitted does not fit any more")
}

// amountsAfter are the amounts of a claim after some steps.
func amountsAfter(c quota.Claim, steps int) quota.Vector {
	amounts := slices.Clone(c.Amounts)
	for i := range amounts {
		for _, r := range c.Ranges {
			for range steps {
				if r.Resource == amounts[i].Resource {
					amounts[i].Amount += r.Step
				}
			}
		}
	}
	return amounts
}

// mostSteps is the number of steps that leads to the end of the first range.
func mostSteps(c quota.Allocate) int {
	for _, claim := range c.Claims {
		for _, r := range claim.Ranges {
			for steps := 1; ; steps++ {
				if slices.Contains(amountsAfter(claim, steps), quota.Component{Resource: r.Resource, Amount: r.Most}) {
					return steps
				}
			}
		}
	}
	return 0
}

// firstRange is the field of the first range; empty if there is none.
func firstRange(c quota.Allocate) string {
	for i, claim := range c.Claims {
		for _, r := range claim.Ranges {
			return fmt.Sprintf("claims[%d].ranges[%s]", i, r.Resource)
		}
	}
	return ""
}

func rangesOf(c quota.Claim) []quota.RangeInfo {
	var list []quota.RangeInfo
	for _, r := range c.Ranges {
		for _, least := range c.Amounts {
			if least.Resource == r.Resource {
				list = append(list, quota.RangeInfo{AmountRange: r, Least: least.Amount})
			}
		}
	}
	return list
}
