package quotatest

import (
	"pgregory.net/rapid"

	"github.com/quorate/quorate/quota"
)

// withAlternatives takes the claims of other requests of their kind.
func withAlternatives(t *rapid.T, c quota.Allocate, draw func(*rapid.T) quota.Allocate) quota.Allocate {
	if !oneIn(t, 4, "alternatives") {
		return c
	}
	c.AnyOf = [][]quota.Claim{c.Claims}
	for range 1 + Die(t, 3, "others") {
		c.AnyOf = append(c.AnyOf, draw(t).Claims)
	}
	if c.Claims = nil; c.Mode == quota.Force && Die(t, 4, "refused") > 0 {
		c.Mode = quota.Hold
	}
	return c
}

// WithAlternatives is a request that has alternatives now and then.
func WithAlternatives(c quota.Allocate, draw func(*rapid.T) quota.Allocate) *rapid.Generator[quota.Allocate] {
	return rapid.Custom(func(t *rapid.T) quota.Allocate { return withAlternatives(t, c, draw) })
}
