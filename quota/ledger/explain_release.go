package ledger

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/quota"
)

const (
	// maxReleases bounds a set of releases: more is no advice, and could not be tried.
	maxReleases = 64
	// maxSingles bounds how many allocations are tried alone.
	maxSingles = 20
)

// releaseSearch looks for releases that give back what is missing of each violated limit.
type releaseSearch struct {
	*search
	violations []quota.Violation
	missing    []quota.Amount
	candidates []candidate
}

// releases are the ids of held allocations whose end would admit the request, by fence: a single one if that is enough,
// the smallest, or else a set of which none can be left out or exchanged for a smaller one. It is not always the smallest
// set there is. Nil if the newest records do not have one.
func (s *search) releases(violations []quota.Violation) []string {
	r := &releaseSearch{search: s, violations: violations[:min(len(violations), maxEventViolations)]}
	for _, v := range r.violations {
		r.missing = append(r.missing, v.Missing())
	}
	r.findCandidates()
	chosen := r.single()
	if chosen == nil {
		chosen = r.several()
	}
	if chosen == nil && r.leaveOutOwn() {
		chosen = r.several()
	}
	if chosen == nil {
		chosen = s.fewestOf(r.newestInTrees(false))
	}
	if chosen == nil {
		chosen = s.fewestOf(r.newestInTrees(true))
	}
	slices.SortFunc(chosen, func(a, b *Allocation) int { return cmp.Compare(a.fence, b.fence) })
	var ids []string
	for _, a := range chosen {
		ids = append(ids, a.id)
	}
	return ids
}

// lacks are what is still missing beside what some allocations give.
func (r *releaseSearch) lacks(chosen []*Allocation) []quota.Amount {
	rest := slices.Clone(r.missing)
	for i, given := range r.gives(chosen) {
		rest[i] = max(0, rest[i]-given)
	}
	return rest
}

// enough are the allocations that each give what is missing, the smallest first.
func (r *releaseSearch) enough(missing []quota.Amount) []candidate {
	var list []candidate
	for _, c := range r.candidates {
		if len(c.as) == 1 && c.covers(missing) {
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(x, y candidate) int { return cmp.Compare(r.size(x), r.size(y)) })
	return list
}

// single is the smallest allocation that is enough alone.
func (r *releaseSearch) single() []*Allocation {
	enough := r.enough(r.missing)
	for _, c := range enough[:min(len(enough), maxSingles)] {
		if r.admitsWithout(c.as) {
			return c.as
		}
	}
	return nil
}

// several chooses whoever gives most of what is still missing, until the request is admitted, and then leaves out whom it
// can, and exchanges others for smaller ones.
func (r *releaseSearch) several() []*Allocation {
	all := r.candidates
	defer func() { r.candidates = all }()
	chosen := r.choose()
	if chosen == nil {
		return nil
	}
	r.candidates = all
	chosen = r.leaveOut(chosen)
	return r.leaveOut(r.exchange(chosen))
}

// choose goes on when nothing is missing any more by the numbers and the request is denied all the same: what a cohort
// does not lend, for example, is given back to nobody else.
func (r *releaseSearch) choose() []*Allocation {
	var chosen []*Allocation
	for rest := r.missing; ; rest = r.lacks(chosen) {
		if slices.Max(rest) <= 0 {
			if r.admitsWithout(chosen) {
				return chosen
			}
			rest = r.missing
		}
		i := mostHelpful(r.candidates, rest)
		if i < 0 || len(chosen)+len(r.candidates[i].as) > maxReleases {
			return nil
		}
		next := r.candidates[i].as
		chosen = append(chosen, next...)
		r.leave(next, chosen)
	}
}

// mostHelpful is the candidate that gives most of what is missing for each allocation of it; -1 if none gives anything.
func mostHelpful(candidates []candidate, missing []quota.Amount) int {
	best, most := -1, 0.0
	for i, c := range candidates {
		if help := c.helps(missing) / float64(len(c.as)); help > most {
			best, most = i, help
		}
	}
	return best
}

// leave takes those who are chosen next out of the candidates. What is left of an application then gives all of it.
func (r *releaseSearch) leave(next, chosen []*Allocation) {
	gone := func(a *Allocation) bool { return slices.Contains(next, a) }
	var list []candidate
	for _, c := range r.candidates {
		if slices.ContainsFunc(c.as, gone) {
			c = r.without(c, gone, chosen)
		}
		if len(c.as) > 0 {
			list = append(list, c)
		}
	}
	r.candidates = list
}

// without is what is left of a candidate beside those who are chosen.
func (r *releaseSearch) without(c candidate, gone func(*Allocation) bool, chosen []*Allocation) candidate {
	left := slices.DeleteFunc(slices.Clone(c.as), gone)
	together := r.gives(slices.Concat(chosen, left))
	for i, given := range r.gives(chosen) {
		together[i] -= given
	}
	return candidate{left, together}
}

func (r *releaseSearch) leaveOut(chosen []*Allocation) []*Allocation {
	for i := 0; i < len(chosen); {
		fewer := slices.Delete(slices.Clone(chosen), i, i+1)
		if r.admitsWithout(fewer) {
			chosen = fewer
		} else {
			i++
		}
	}
	return chosen
}

// exchange replaces those of whom a smaller part would do by the smallest that is enough beside the others.
func (r *releaseSearch) exchange(chosen []*Allocation) []*Allocation {
	for i, a := range chosen {
		others := slices.Delete(slices.Clone(chosen), i, i+1)
		size := r.size(candidate{gives: r.gives([]*Allocation{a})})
		for _, c := range r.enough(r.lacks(others)) {
			if r.size(c) >= size {
				break
			}
			if !slices.Contains(others, c.as[0]) {
				if swapped := append(others, c.as[0]); r.admitsWithout(swapped) {
					chosen = slices.Insert(others, i, c.as[0])
				}
				break
			}
		}
	}
	return chosen
}

// newestInTrees are the newest held allocations with a claim in a tree where a limit is violated, at most maxReleases, with
// or without those of the request's own application.
func (r *releaseSearch) newestInTrees(own bool) []*Allocation {
	request, refused := r.place()
	if refused != nil {
		return nil
	}
	involved := map[string]bool{}
	for _, v := range r.violations {
		involved[v.Tree] = true
	}
	var list []*Allocation
	seen := 0
	for _, a := range r.ledger.allocations.held.Backward() {
		if seen++; seen > scanned || len(list) == maxReleases {
			break
		}
		inside := slices.ContainsFunc(a.claims, func(c placedClaim) bool { return involved[c.at.treeName] })
		if inside && (own || !a.sharesApplication(request)) {
			list = append(list, a)
		}
	}
	return list
}

// fewestOf are those of some allocations that must end for the request to be admitted, if it is admitted without all of them.
// It is for requests that no choice by the numbers admits: where claims are counted away from their nodes, or a part of what
// is given back is not lent on, the end of an allocation may give more or less than its amounts. It leaves out halves,
// quarters and so on, and has a number of trials of its own.
func (s *search) fewestOf(all []*Allocation) []*Allocation {
	s.trials = 0
	if len(all) == 0 || !s.admitsWithout(all) {
		return nil
	}
	for size := max(1, len(all)/2); ; {
		before := len(all)
		for i := 0; i < len(all); {
			fewer := slices.Delete(slices.Clone(all), i, min(i+size, len(all)))
			if len(fewer) > 0 && s.admitsWithout(fewer) {
				all = fewer
			} else {
				i += size
			}
		}
		if size == 1 && len(all) == before {
			return all
		}
		size = max(1, size/2)
	}
}

// admitsWithout asks whether the request would be admitted after the release of some held allocations.
func (s *search) admitsWithout(gone []*Allocation) bool {
	var undo undoList
	seat := s.ledger.allocations.lastArrivalSeq
	undo.onUndo(func() { s.ledger.allocations.lastArrivalSeq = seat })
	for _, a := range gone {
		s.tryRelease(a.fence, &undo)
	}
	admitted := s.ask().Granted
	undo.rollback()
	return admitted
}

// tryRelease gives back what an allocation holds and lets others slide into the room. undo gets the steps back.
func (s *search) tryRelease(fence uint64, undo *undoList) {
	l := s.ledger
	a, _ := l.allocations.held.Get(fence) // perhaps others' releases have moved it
	l.allocations.held.Delete(fence)
	for i := range a.claims {
		l.allocations.refundClaim(a, i)
	}
	undo.onUndo(func() {
		l.allocations.held.Set(fence, a)
		for i := range slices.Backward(a.claims) {
			l.allocations.chargeClaim(a, i)
		}
	})
	undo.append(l.inventory.returnItems(a, released))
	for i := range a.claims {
		l.allocations.reclaimPath(a.claims[i].at, func(who claimRef, to *node) {
			was, is := l.allocations.moveClaim(who, to)
			undo.onUndo(func() {
				l.allocations.refundNode(is, who.claim)
				l.allocations.replaceRecord(was)
				l.allocations.chargeNode(was, who.claim)
			})
		})
	}
}
