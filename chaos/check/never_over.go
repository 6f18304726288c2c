package check

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/chaos/history"
)

// neverOver (P1): at every grant, what was held for certain at each node on the way up, with the grant itself, is within
// the highest limit that may have been in force there. And no read shows use above a limit that was never lowered.
func (s *story) neverOver() *Verdict {
	v := &Verdict{Promise: "P1", Title: "never over a limit", Saw: map[string]int{}}
	var held []*life
	for _, l := range s.byFence {
		held = slices.DeleteFunc(held, func(h *life) bool { return h.until <= l.by })
		if l.restored || slices.ContainsFunc(l.sightings, func(s sighting) bool { return s.claims == nil && s.holds() }) {
			continue
		}
		s.fits(v, l, held)
		held = append(held, l)
	}
	for i := range s.ops {
		if o := &s.ops[i]; o.Kind == history.ReadUsage {
			s.usageWithin(v, o.Usage, o.Index)
		}
	}
	for _, state := range s.finals.States {
		s.usageWithin(v, state.Usage, state.Index)
	}
	return v
}

// holds is what a life holds: what its last sighting as held says, or else what was asked for.
func (l *life) claims() []history.Claim {
	for _, s := range slices.Backward(l.sightings) {
		if s.holds() && s.claims != nil {
			return s.claims
		}
	}
	return l.ask().Claims
}

func (s *story) fits(v *Verdict, l *life, held []*life) {
	v.saw("grants", 1)
	for _, claim := range l.claims() {
		for resource := range claim.Amounts {
			for _, node := range upward(claim.Node) {
				at := place{claim.Tree, node, resource}
				limit, known := s.limits.most(at, l.from, l.by)
				if !known || limit == history.Unlimited {
					continue
				}
				v.saw("limits", 1)
				used := amountAt(l.claims(), at)
				for _, other := range held {
					used += amountAt(other.claims(), at)
				}
				if used > limit {
					v.broken("with %s (fence %d, index %d to %d) at least %d %s are held at %s:%s, where at most %d are allowed",
						l.id, l.fence, l.from, l.by, used, resource, at.tree, at.node, limit)
				}
			}
		}
	}
}

// upward lists a node and everything above it, the root last.
func upward(node string) []string {
	var all []string
	for ; node != ""; node = node[:max(strings.LastIndex(node, "/"), 0)] {
		all = append(all, node)
	}
	return append(all, "")
}

// within tells whether a node is another one or below it.
func within(node, above string) bool {
	return above == "" || node == above || strings.HasPrefix(node, above+"/")
}

func amountAt(claims []history.Claim, at place) int64 {
	var sum int64
	for _, claim := range claims {
		if claim.Tree == at.tree && within(claim.Node, at.node) {
			sum += claim.Amounts[at.resource]
		}
	}
	return sum
}

func (s *story) usageWithin(v *Verdict, usage []history.Usage, index uint64) {
	for _, u := range usage {
		v.saw("usages", 1)
		if u.Limit != history.Unlimited && u.Over != max(0, u.Used-u.Limit) {
			v.broken("at index %d %s:%s uses %d of %d %s and says that it is over by %d", index, u.Tree, u.Node, u.Used, u.Limit, u.Resource, u.Over)
		}
		if s.limits.fixed(place{u.Tree, u.Node, u.Resource}) && u.Limit != history.Unlimited && u.Used > u.Limit {
			v.broken("at index %d %s:%s uses %d of %d %s", index, u.Tree, u.Node, u.Used, u.Limit, u.Resource)
		}
	}
}
