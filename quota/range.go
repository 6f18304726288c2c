package quota

import "slices"

// MaxSteps is the largest number of steps of a range.
const MaxSteps = 64

// AmountRange lets a claim hold more than its least amount of one resource. The ranges of a request take their steps
// together: if it gets three steps, each of its ranges has its least amount and three times its step.
type AmountRange struct {
	Resource string
	// Most is the largest amount: the least one and 1 to MaxSteps times Step. All ranges of a request have equally many
	// steps.
	Most Amount
	// Step is at least 1.
	Step Amount
}

// Steps is the number of steps of the ranges of a valid request; 0 if it has none.
func (a *Allocate) Steps() int {
	for i := range a.Claims {
		c := &a.Claims[i]
		if len(c.Ranges) > 0 {
			r := c.Ranges[0]
			return int((r.Most - c.leastOf(r.Resource)) / r.Step)
		}
	}
	return 0
}

func (c *Claim) leastOf(resource string) Amount {
	for _, component := range c.Amounts {
		if component.Resource == resource {
			return component.Amount
		}
	}
	return 0
}

// AtStep is a valid claim with the amounts after so many steps of its ranges, and without ranges.
func (c Claim) AtStep(step int) Claim {
	ranges := c.Ranges
	c.Ranges = nil
	if step == 0 || len(ranges) == 0 {
		return c
	}
	c.Amounts = slices.Clone(c.Amounts)
	for _, r := range ranges {
		for i := range c.Amounts {
			if c.Amounts[i].Resource == r.Resource {
				c.Amounts[i].Amount += Amount(step) * r.Step
			}
		}
	}
	return c
}
