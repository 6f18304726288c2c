package keystone

import (
	"cmp"
	"fmt"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// checkLevel: in the model strict_two_level, a limit is at most that of the project or domain above, or else the
// default. In the flat model nobody is above.
func (c *converter) checkLevel(what string, l projectLimit) {
	id := cmp.Or(deref(l.Project), deref(l.Domain))
	s, place := c.services[l.Service], c.places[id]
	if s == nil || place == nil || place.parent == "" {
		return
	}
	name := c.registered[key{l.Service, deref(l.Region), l.Resource}]
	own, given := s.limits[id][name]
	most, whose := s.limits[place.parent][name], fmt.Sprintf("that of %q above it", place.parent)
	if most == nil {
		most, whose = s.tree.GetDefaults()[name], fmt.Sprintf("the default, which %q above it has", place.parent)
	}
	if given && most != nil && over(own, most) {
		c.problems.Add("%s: the limit of %q is %s, above %s, %s: in the model strict_two_level a limit is at most the one above; "+
			"in the flat model, leave the projects out", what, id, shown(own), shown(most), whose)
	}
}

// over: unlimited is above every amount.
func over(own, most *quoratev1.Limit) bool {
	if most.GetUnlimited() {
		return false
	}
	return own.GetUnlimited() || own.GetAmount() > most.GetAmount()
}

func shown(l *quoratev1.Limit) string {
	if l.GetUnlimited() {
		return "unlimited"
	}
	return fmt.Sprint(l.GetAmount())
}
