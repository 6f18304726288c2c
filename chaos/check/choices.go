package check

import (
	"slices"

	"github.com/quorate/quorate/chaos/history"
)

// A request with ranges is granted for as many steps as fit, and one with alternatives the first that fits. Callers
// learn from the answer which. Both are choices: lists of claims in order, of which the first that fits is granted. In
// the model each choice is a version of what the allocation holds. What was requested with choices is not changed
// afterwards in trees that are searched.

// maxSteps is 0 for requests without ranges.
func (l *allocationHistory) maxSteps() int64 {
	if claims := l.firstRequest().Claims; len(claims) > 0 {
		return claims[0].Steps
	}
	return 0
}

// hasChoices reports whether one of several lists of claims is granted.
func (l *allocationHistory) hasChoices() bool {
	return l.maxSteps() > 0 || len(l.firstRequest().AnyOf) > 0
}

// choices are in the order of the request.
func (l *allocationHistory) choices() (all [][]history.Claim) {
	switch ask := l.firstRequest(); {
	case len(ask.AnyOf) > 0:
		return ask.AnyOf
	case l.maxSteps() == 0:
		return [][]history.Claim{ask.Claims}
	}
	for steps := l.maxSteps(); steps >= 0; steps-- {
		all = append(all, history.Widened(l.firstRequest().Claims, steps))
	}
	return all
}

// choiceGranted returns -1 if no answer shows what was granted.
func (l *allocationHistory) choiceGranted() int {
	for _, s := range l.observations {
		if s.fence == 0 || len(s.claims) == 0 || s.generation > 0 {
			continue
		}
		isShown := func(claims []history.Claim) bool { return claimDifference(claims, s.claims) == "" }
		if i := slices.IndexFunc(l.choices(), isShown); i >= 0 {
			return i
		}
	}
	return -1
}

// grantedClaims returns what was granted, or what certainly was: the least amounts of ranges, or nothing if no answer
// shows which alternative.
func (l *allocationHistory) grantedClaims() []history.Claim {
	choices := l.choices()
	switch i := l.choiceGranted(); {
	case i >= 0:
		return choices[i]
	case len(l.firstRequest().AnyOf) > 0:
		return nil
	}
	return choices[len(choices)-1]
}

// possibleClaims are those of all versions of what the allocation may hold.
func (l *allocationHistory) possibleClaims() (all [][]history.Claim) {
	if l.hasChoices() {
		return l.choices()
	}
	for _, v := range l.versions {
		all = append(all, v.claims)
	}
	return all
}

// grantChoice grants the first choice that fits, if that is the one that an answer shows.
func (g *modelContext) grantChoice(to *modelState, s *modelStep) bool {
	choices := g.versions[s.tracked-1]
	first := slices.IndexFunc(choices, func(amounts []int64) bool { return g.hasRoom(*to, amounts) })
	if first < 0 || s.version >= 0 && s.version != first {
		return false
	}
	to.used = addAmounts(to.used, choices[first], 1)
	to.setVersion(s.tracked, first)
	return true
}

// hasRoom takes one amount for each limit.
func (g *modelContext) hasRoom(state modelState, amounts []int64) bool {
	for i, more := range amounts {
		if more > 0 && state.limits[i] != history.Unlimited && state.used[i]+more > state.limits[i] {
			return false
		}
	}
	return true
}

// isDenied reports whether nothing that a step asks for fits, and the reasons are those of all alternatives.
func (g *modelContext) isDenied(state modelState, s *modelStep) bool {
	if s.kind == opDenyChange && state.versionOf(s) < 0 {
		return false
	}
	for number, claims := range s.alternatives() {
		one := *s
		one.claims, one.reasons = claims, reasonsOf(s.reasons, number)
		why := g.exceededLimits(state, &one)
		if len(why) == 0 || g.checkReasons && !g.hasReasons(state, &one, why) {
			return false
		}
	}
	return true
}

// alternatives has one list under the number 0 if the step asks for one list.
func (s *modelStep) alternatives() map[int][]history.Claim {
	if len(s.anyOf) == 0 {
		return map[int][]history.Claim{0: s.claims}
	}
	all := map[int][]history.Claim{}
	for i, claims := range s.anyOf {
		all[i+1] = claims
	}
	return all
}

func reasonsOf(all []history.Violation, number int) (some []history.Violation) {
	for _, x := range all {
		if x.Alternative == number {
			some = append(some, x)
		}
	}
	return some
}
