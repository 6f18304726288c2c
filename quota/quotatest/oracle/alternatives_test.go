package oracle

import (
	"fmt"
	"strings"

	"github.com/quorate/quorate/quota"
)

// allocateAny tries every list of claims: the first that fits without ending others is granted, else the first that
// fits.
func (o *oracle) allocateAny(c quota.Allocate) verdict {
	switch {
	case len(c.Claims) > 0:
		return refusal(quota.Invalid, "claims")
	case len(c.AnyOf) > 8 || c.Mode == quota.Force:
		return refusal(quota.Invalid, "any_of")
	}
	var tries []*allocation
	for i, list := range c.AnyOf {
		one := c
		one.Claims, one.AnyOf = list, nil
		claimed, refused := o.findNodes(one)
		if refused.refused != 0 {
			if strings.HasPrefix(refused.field, "claims") {
				refused.field = fmt.Sprintf("any_of[%d].%s", i, refused.field)
			}
			return refused
		}
		a := o.newAllocation(one, claimed)
		a.whole, a.alternative = c, i+1
		tries = append(tries, a)
	}
	before := o.savePlaces()
	for _, mayEndOthers := range []bool{false, true} {
		for _, a := range tries {
			violations, t := o.admit(a)
			if len(violations) == 0 && (mayEndOthers || len(t.victims) == 0) {
				return o.grant(a, t, before)
			}
			o.restorePlaces(before)
		}
	}
	return o.denyAll(c, tries)
}

// denyAll says what is in the way of each list.
func (o *oracle) denyAll(c quota.Allocate, tries []*allocation) verdict {
	each := make([][]quota.Violation, len(tries))
	for i, a := range tries {
		each[i], _ = o.admit(a)
		for j := range each[i] {
			each[i][j].Alternative = i + 1
		}
	}
	return o.deny(c, tries, each)
}
