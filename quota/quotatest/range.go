package quotatest

import (
	"pgregory.net/rapid"

	"github.com/quorate/quorate/quota"
)

// withRanges gives some requests ranges, with equally many steps.
func withRanges(t *rapid.T, c quota.Allocate) quota.Allocate {
	if !oneIn(t, 3, "ranged") {
		return c
	}
	steps := quota.Amount(1 + Die(t, 4, "steps"))
	for i := range c.Claims {
		for _, least := range c.Claims[i].Amounts {
			if least.Amount >= 0 && least.Amount < 1000 && Die(t, 3, "range") > 0 {
				step := quota.Amount(1 + Die(t, 3, "step"))
				c.Claims[i].Ranges = append(c.Claims[i].Ranges, quota.AmountRange{
					Resource: least.Resource, Most: least.Amount + steps*step, Step: step,
				})
			}
		}
	}
	return c
}

// WithRanges is a request that has ranges now and then.
func WithRanges(c quota.Allocate) *rapid.Generator[quota.Allocate] {
	return rapid.Custom(func(t *rapid.T) quota.Allocate { return withRanges(t, c) })
}
