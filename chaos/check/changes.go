package check

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/chaos/history"
)

// holdingChange is a change of what an allocation holds that was certainly made.
type holdingChange struct {
	*holdingVersion

	allocation *allocationHistory
	// before are the versions that the change may have replaced.
	before []*holdingVersion
}

// certainChanges are sorted by the lowest index that they may have.
func (s *timeline) certainChanges() []holdingChange {
	var all []holdingChange
	for _, l := range s.byFence {
		for i, v := range l.versions {
			if i == 0 || !v.certain {
				continue
			}
			c := holdingChange{holdingVersion: v, allocation: l}
			for _, earlier := range slices.Backward(l.versions[:i]) {
				if c.before = append(c.before, earlier); earlier.certain {
					break
				}
			}
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b holdingChange) int { return cmp.Compare(a.minIndex, b.minIndex) })
	return all
}

// checkChangesInLimits: a change that raises use at a node leaves it within the limit there.
func (s *timeline) checkChangesInLimits(v *Verdict) {
	granted := 0
	var held []*allocationHistory
	for _, c := range s.certainChanges() {
		for ; granted < len(s.byFence) && s.byFence[granted].maxGrantIndex < c.minIndex; granted++ {
			if l := s.byFence[granted]; !l.restored {
				held = append(held, l)
			}
		}
		held = slices.DeleteFunc(held, func(l *allocationHistory) bool { return l.heldIndex <= c.minIndex })
		s.checkChangeInLimits(v, c, held)
	}
}

// checkChangeInLimits takes the allocations in held that were granted before the change.
func (s *timeline) checkChangeInLimits(v *Verdict, c holdingChange, held []*allocationHistory) {
	v.Count("changes of what is held", 1)
	for _, at := range levelsOf(c.after()) {
		limit, known := s.limits.highestBetween(at, c.minIndex, c.maxIndex)
		if !known || limit == history.Unlimited || !c.raises(at) {
			continue
		}
		v.Count("limits", 1)
		used := amountAt(c.after(), at)
		for _, other := range held {
			if other != c.allocation && other.heldIndex > c.maxIndex {
				used += other.leastHeld(at, c.minIndex, c.maxIndex)
			}
		}
		if used > limit {
			v.AddViolation("with change %d of %s (index %d to %d) %s", c.generation, c.allocation.id, c.minIndex, c.maxIndex,
				at.describeExcess(used, limit))
		}
	}
}

// after includes the parts that the change makes.
func (v *holdingVersion) after() []history.Claim { return claimsWith(v.claims, v.parts) }

func claimsWith(claims []history.Claim, parts []history.Part) []history.Claim {
	all := slices.Clone(claims)
	for _, p := range parts {
		all = append(all, p.Claims...)
	}
	return all
}

// raises is true only if the change certainly raises the use at a node.
func (c *holdingChange) raises(at limitKey) bool {
	after := amountAt(c.after(), at)
	return !slices.ContainsFunc(c.before, func(b *holdingVersion) bool { return amountAt(b.claims, at) >= after })
}

// checkHeldClaims: each answer that shows an allocation held shows what was granted, or what the change with the shown
// generation asked for, and no change shows itself before it was asked for or after a later one.
func (s *timeline) checkHeldClaims(v *Verdict, l *allocationHistory) {
	for _, seen := range l.observations {
		if !seen.isHeld() || seen.claims == nil {
			continue
		}
		v.Count("claims", len(seen.claims))
		possible := l.versionsBetween(seen.index, seen.index)
		i := slices.IndexFunc(possible, func(p *holdingVersion) bool { return p.generation == seen.generation })
		if i < 0 {
			v.AddViolation("%s at index %d has generation %d, but no change with that can be the last one there", l.id,
				seen.index, seen.generation)
			continue
		}
		if seen.generation > 0 {
			v.Count("changed claims", len(seen.claims))
		}
		l.checkChoice(v, seen)
		if why := claimDifference(possible[i].claims, seen.claims); why != "" {
			v.AddViolation("%s at index %d, generation %d: %s", l.id, seen.index, seen.generation, why)
		}
	}
}

// checkChoice: an answer shows the number of the alternative that was granted.
func (l *allocationHistory) checkChoice(v *Verdict, seen observation) {
	if l.maxSteps() > 0 {
		v.Count("ranges", 1)
	}
	if len(l.firstRequest().AnyOf) == 0 {
		return
	}
	v.Count("alternatives", 1)
	if given := l.choiceGranted() + 1; given > 0 && seen.alternative != given {
		v.AddViolation("%s at index %d shows alternative %d, but was granted %d", l.id, seen.index, seen.alternative, given)
	}
}

// checkRefusedChanges: a change is not refused as outdated unless a later one was asked for, nor as one of another
// grant, and a repeated split not as another one.
func (l *allocationHistory) checkRefusedChanges(v *Verdict) {
	for i, o := range l.changeCalls { // by generation
		if o.Outcome != history.Refused || o.ResizeWaits() { // an earlier attempt may have waited without a grant
			continue
		}
		v.Count("refused changes", 1)
		later := slices.ContainsFunc(l.changeCalls[i+1:], func(later *history.Op) bool {
			return later.Generation > o.Generation && later.Call < o.Return
		})
		if o.Reason == "FENCE_MISMATCH" || o.Reason == "ID_TAKEN" || o.Reason == "GENERATION_MISMATCH" && !later {
			v.AddViolation("change %d of %s was the last one, of the only grant and with new ids, but was refused: %s",
				o.Generation, l.id, o.Reason)
		}
	}
}
