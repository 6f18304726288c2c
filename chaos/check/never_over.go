package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quorate/quorate/chaos/history"
)

// checkNeverOver (P1): at every grant, and at every change that raises what is held, what is certainly held at each
// node on the path to the root, the new amounts included, is within the highest limit that may have been in force
// there. No read shows usage above a limit that was never lowered.
func (s *timeline) checkNeverOver() *Verdict {
	v := &Verdict{Promise: "P1", Title: "never over a limit", Counts: map[string]int{}}
	var held []*allocationHistory
	for _, l := range s.byFence {
		held = slices.DeleteFunc(held, func(h *allocationHistory) bool { return h.heldIndex <= l.maxGrantIndex })
		if l.restored || slices.ContainsFunc(l.observations,
			func(s observation) bool { return s.claims == nil && s.isHeld() }) {
			continue
		}
		if l.splitBy == nil { // a split is checked as the change that it is
			s.checkGrant(v, l, held)
		}
		held = append(held, l)
	}
	s.checkChangesInLimits(v)
	for i := range s.ops {
		if o := &s.ops[i]; o.Kind == history.ReadUsage {
			s.checkUsage(v, o.Usage, o.Index)
		}
	}
	for _, state := range s.finals.States {
		s.checkUsage(v, state.Usage, state.Index)
	}
	return v
}

// heldClaims returns the claims of the last observation that shows the allocation held, or else those that were
// requested.
func (l *allocationHistory) heldClaims() []history.Claim {
	for _, s := range slices.Backward(l.observations) {
		if s.isHeld() && s.claims != nil {
			return s.claims
		}
	}
	return l.firstRequest().Claims
}

func (s *timeline) checkGrant(v *Verdict, l *allocationHistory, held []*allocationHistory) {
	v.Count("grants", 1)
	claims := l.versions[0].claims
	for _, at := range levelsOf(claims) {
		limit, known := s.limits.highestBetween(at, l.minGrantIndex, l.maxGrantIndex)
		if !known || limit == history.Unlimited {
			continue
		}
		v.Count("limits", 1)
		used := amountAt(claims, at)
		for _, other := range held {
			used += other.leastHeld(at, l.minGrantIndex, l.maxGrantIndex)
		}
		if used > limit {
			v.AddViolation("with %s (fence %d, index %d to %d) %s", l.id, l.fence, l.minGrantIndex, l.maxGrantIndex,
				at.describeExcess(used, limit))
		}
	}
}

func (at limitKey) describeExcess(used, limit int64) string {
	if at.resource == history.OnHold {
		return fmt.Sprintf("something new is held at %s:%s or below, which is on hold", at.tree, at.node)
	}
	return fmt.Sprintf("%d %s are held at %s:%s, above the limit of %d", used, at.resource, at.tree, at.node, limit)
}

// levelsOf returns the limits that apply to claims: those of the claimed nodes and of everything above them, and holds
// there.
func levelsOf(claims []history.Claim) []limitKey {
	var all []limitKey
	for _, claim := range claims {
		for _, resource := range append(slices.Collect(maps.Keys(claim.Amounts)), history.OnHold) {
			for _, node := range pathToRoot(claim.Node) {
				if at := (limitKey{claim.Tree, node, resource}); !slices.Contains(all, at) {
					all = append(all, at)
				}
			}
		}
	}
	return all
}

func pathToRoot(node string) []string {
	var all []string
	for ; node != ""; node = node[:max(strings.LastIndex(node, "/"), 0)] {
		all = append(all, node)
	}
	return append(all, "")
}

func isWithin(node, above string) bool {
	return above == "" || node == above || strings.HasPrefix(node, above+"/")
}

func amountAt(claims []history.Claim, at limitKey) int64 {
	var sum int64
	for _, claim := range claims {
		switch {
		case claim.Tree != at.tree || !isWithin(claim.Node, at.node):
		case at.resource == history.OnHold:
			for _, amount := range claim.Amounts {
				sum += amount
			}
		default:
			sum += claim.Amounts[at.resource]
		}
	}
	return sum
}

func (s *timeline) checkUsage(v *Verdict, usage []history.Usage, index uint64) {
	for _, u := range usage {
		v.Count("usages", 1)
		if u.Limit != history.Unlimited && u.Over != max(0, u.Used-u.Limit) {
			v.AddViolation("at index %d %s:%s uses %d of %d %s and claims to be over by %d", index, u.Tree, u.Node,
				u.Used, u.Limit, u.Resource, u.Over)
		}
		if s.limits.isFixed(limitKey{u.Tree, u.Node, u.Resource}) && u.Limit != history.Unlimited && u.Used > u.Limit {
			v.AddViolation("at index %d %s:%s uses %d of %d %s", index, u.Tree, u.Node, u.Used, u.Limit, u.Resource)
		}
	}
}
