package keystone

import (
	"cmp"
	"fmt"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// checkLevel: in the model strict_two_level, a limit is at most that of the project or domain above, or else the
// default. The flat model has one level.
func (c *converter) checkLevel(what string, l projectLimit) {
	id := cmp.Or(textOf(l.Project), textOf(l.Domain))
	s, place := c.services[l.Service], c.places[id]
	if s == nil || place == nil || place.parent == "" {
		return
	}
	name := c.registered[key{l.Service, textOf(l.Region), l.Resource}]
	own, given := s.limits[id][name]
	most, origin := s.limits[place.parent][name], fmt.Sprintf("that of %q above it", place.parent)
	if most == nil {
		most, origin = s.tree.GetDefaults()[name], fmt.Sprintf("the default, which %q above it has", place.parent)
	}
	if given && most != nil && exceeds(own, most) {
		c.problems.Add(
			"%s: the limit of %q is %s, above %s, %s: in the model strict_two_level a limit is at most the one above; "+
				"in the flat model, leave the projects out",
			what,
			id,
			limitText(own),
			limitText(most),
			origin,
		)
	}
}

// exceeds: unlimited is above every amount.
func exceeds(own, most *quoratev1.Limit) bool {
	if most.GetUnlimited() {
		return false
	}
	return own.GetUnlimited() || own.GetAmount() > most.GetAmount()
}

func limitText(l *quoratev1.Limit) string {
	if l.GetUnlimited() {
		return "unlimited"
	}
	return fmt.Sprint(l.GetAmount())
}
