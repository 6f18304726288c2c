package check

import "github.com/quorate/quorate/chaos/history"

// A request with ranges is granted for as many steps as fit, and callers learn how many from the answer. In the model
// each number of steps is a version of what the allocation holds, and the grant takes the highest that fits. What was
// requested with ranges is not changed afterwards.

// maxSteps returns how many steps the request may get; 0 for other requests.
func (l *allocationHistory) maxSteps() int64 {
	if claims := l.firstRequest().Claims; len(claims) > 0 {
		return claims[0].Steps
	}
	return 0
}

// stepsGranted returns how many steps an answer shows as granted; -1 if none does.
func (l *allocationHistory) stepsGranted() int64 {
	for _, s := range l.observations {
		if s.fence == 0 || len(s.claims) == 0 {
			continue
		}
		for steps := range l.maxSteps() + 1 {
			if claimDifference(history.Widened(l.firstRequest().Claims, steps), s.claims) == "" {
				return steps
			}
		}
	}
	return -1
}

// grantedClaims returns what was granted, or the least that may have been.
func (l *allocationHistory) grantedClaims() []history.Claim {
	if l.maxSteps() == 0 {
		return l.firstRequest().Claims
	}
	return history.Widened(l.firstRequest().Claims, max(0, l.stepsGranted()))
}

// possibleClaims returns the claims of all versions of what the allocation may hold.
func (l *allocationHistory) possibleClaims() (all [][]history.Claim) {
	if l.maxSteps() > 0 {
		for steps := range l.maxSteps() + 1 {
			all = append(all, history.Widened(l.firstRequest().Claims, steps))
		}
		return all
	}
	for _, v := range l.versions {
		all = append(all, v.claims)
	}
	return all
}

// grantRange grants as many steps as fit, if these are as many as an answer shows.
func (g *modelContext) grantRange(to *modelState, s *modelStep) bool {
	options := g.versions[s.tracked-1]
	most := len(options) - 1
	for most > 0 && !g.hasRoom(*to, options[most]) {
		most--
	}
	if s.version >= 0 && s.version != most {
		return false
	}
	to.used = addAmounts(to.used, options[most], 1)
	to.setVersion(s.tracked, most)
	return true
}

// hasRoom reports whether amounts fit, one for each limit.
func (g *modelContext) hasRoom(of modelState, amounts []int64) bool {
	for i, more := range amounts {
		if more > 0 && of.limits[i] != history.Unlimited && of.used[i]+more > of.limits[i] {
			return false
		}
	}
	return true
}
