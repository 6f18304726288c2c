package check

import "slices"

// track returns the number of an allocation whose holding changes.
func (g *modelContext) track(l *allocationHistory) int {
	if g.tracked[l] > 0 {
		return g.tracked[l]
	}
	var versions [][]int64
	for _, claims := range l.possibleClaims() {
		versions = append(versions, g.addClaims(make([]int64, len(g.limitKeys)), claims, 1))
	}
	g.versions = append(g.versions, versions)
	g.tracked[l] = len(g.versions)
	return g.tracked[l]
}

// versionOf returns -1 if the allocation of the step is not held.
func (m *modelState) versionOf(s *modelStep) int {
	for _, h := range m.held {
		if h.tracked == s.tracked {
			return h.version
		}
	}
	return -1
}

// setVersion takes -1 for an allocation that is not held any more.
func (m *modelState) setVersion(tracked, version int) {
	if tracked == 0 {
		return
	}
	i, found := slices.BinarySearchFunc(m.held, tracked, func(h heldVersion, t int) int { return h.tracked - t })
	m.held = slices.Clone(m.held)
	switch {
	case found && version < 0:
		m.held = slices.Delete(m.held, i, i+1)
	case found:
		m.held[i].version = version
	case version >= 0:
		m.held = slices.Insert(m.held, i, heldVersion{tracked, version})
	}
}

func (g *modelContext) endHolding(to *modelState, s *modelStep) {
	if s.tracked == 0 {
		to.used = g.addClaims(to.used, s.claims, -1)
		return
	}
	to.used = addAmounts(to.used, g.versions[s.tracked-1][to.versionOf(s)], -1)
	to.setVersion(s.tracked, -1)
}

// addAmounts returns what is used with amounts added or taken away, one for each limit.
func addAmounts(used, amounts []int64, sign int64) []int64 {
	used = slices.Clone(used)
	for i, amount := range amounts {
		used[i] += sign * amount
	}
	return used
}

// applyChange replaces what an allocation holds. Only levels whose use rises are compared with their limits.
func (g *modelContext) applyChange(to *modelState, s *modelStep) bool {
	version := to.versionOf(s)
	if version < 0 || version >= s.version || len(g.exceededLimits(*to, s)) > 0 {
		return false
	}
	used := g.addClaims(to.used, s.claims, 1)
	for i := range used {
		used[i] -= g.amountReplaced(*to, s, i)
	}
	to.used = used
	to.setVersion(s.tracked, s.version)
	for _, part := range s.parts {
		to.setVersion(part, 0)
	}
	return true
}

func (g *modelContext) amountReplaced(state modelState, s *modelStep, limit int) int64 {
	if s.kind != opChange && s.kind != opDenyChange {
		return 0
	}
	return g.versions[s.tracked-1][state.versionOf(s)][limit]
}
