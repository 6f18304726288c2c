package explain

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/admit"
	"github.com/quorate/quorate/quota/ledger/internal/read"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

const (
	// maxReleases bounds a set of releases: a larger one is not useful advice, and could not be tried.
	maxReleases = 64
	// maxSingles bounds the number of allocations that are tried alone.
	maxSingles = 20
)

// releaseSearch looks for releases that free what is missing of each violated limit.
type releaseSearch struct {
	*search
	violations []quota.Violation
	missing    []quota.Amount
	candidates []candidate
	// own is the fence of the allocation for which a resize waits; 0 for a request.
	own uint64
}

// releases are the ids of held allocations whose end would admit the request, by fence: the smallest single one that
// suffices, or else a set of which none can be left out or exchanged for a smaller one. It is not always the smallest
// possible set. It is nil if the newest records do not contain such a set.
func (s *search) releases(violations []quota.Violation) []string {
	r := &releaseSearch{search: s, violations: violations[:min(len(violations), state.MaxEventViolations)]}
	for _, v := range r.violations {
		r.missing = append(r.missing, v.Missing())
	}
	if t, refused := s.place(); refused == nil && t.Change != nil {
		r.own = t.Change.Previous.Fence()
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
		chosen = r.fewestOfNewest()
	}
	slices.SortFunc(chosen, byFence)
	var ids []string
	for _, a := range chosen {
		ids = append(ids, a.ID())
	}
	return ids
}

func byFence(a, b *state.Allocation) int { return cmp.Compare(a.Fence(), b.Fence()) }

func (r *releaseSearch) lacks(chosen []*state.Allocation) []quota.Amount {
	rest := slices.Clone(r.missing)
	for i, given := range r.gives(chosen) {
		rest[i] = max(0, rest[i]-given)
	}
	return rest
}

// enough returns the smallest first.
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

func (r *releaseSearch) single() []*state.Allocation {
	enough := r.enough(r.missing)
	for _, c := range enough[:min(len(enough), maxSingles)] {
		if r.admitsWithout(c.as) {
			return c.as
		}
	}
	return nil
}

// several chooses the candidate that frees most of what is missing until the request is admitted. It then leaves out
// unnecessary ones and exchanges others for smaller ones.
func (r *releaseSearch) several() []*state.Allocation {
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

// choose continues when no amount is missing and the request is denied nevertheless: capacity that a cohort does not
// lend, for example, becomes available to no other member.
func (r *releaseSearch) choose() []*state.Allocation {
	var chosen []*state.Allocation
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

// mostHelpful is the candidate that frees most of what is missing per allocation; -1 if none frees anything.
func mostHelpful(candidates []candidate, missing []quota.Amount) int {
	best, most := -1, 0.0
	for i, c := range candidates {
		if help := c.helps(missing) / float64(len(c.as)); help > most {
			best, most = i, help
		}
	}
	return best
}

// leave removes the newly chosen allocations from the candidates. The rest of an application then frees all of it.
func (r *releaseSearch) leave(next, chosen []*state.Allocation) {
	gone := func(a *state.Allocation) bool { return slices.Contains(next, a) }
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

// without is the rest of a candidate without the chosen allocations.
func (r *releaseSearch) without(c candidate, gone func(*state.Allocation) bool, chosen []*state.Allocation) candidate {
	left := slices.DeleteFunc(slices.Clone(c.as), gone)
	together := r.gives(slices.Concat(chosen, left))
	for i, given := range r.gives(chosen) {
		together[i] -= given
	}
	return candidate{left, together}
}

func (r *releaseSearch) leaveOut(chosen []*state.Allocation) []*state.Allocation {
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

// exchange replaces chosen allocations of which a part suffices by the smallest candidate that suffices beside the
// others.
func (r *releaseSearch) exchange(chosen []*state.Allocation) []*state.Allocation {
	for i, a := range chosen {
		others := slices.Delete(slices.Clone(chosen), i, i+1)
		size := r.size(candidate{gives: r.gives([]*state.Allocation{a})})
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

// fewestOfNewest tries the newest allocations together, whatever their amounts. Those of the request's own application
// are taken only if the others do not suffice. A request in several trees may be denied in all of them and name only
// the first one, so the last attempt is with allocations of all of its trees.
func (r *releaseSearch) fewestOfNewest() []*state.Allocation {
	request, refused := r.place()
	if refused != nil {
		return nil
	}
	violated, requested := map[string]bool{}, map[string]bool{}
	for _, v := range r.violations {
		violated[v.Tree] = true
	}
	for _, c := range request.Allocation.Claims {
		requested[c.At.TreeName] = true
	}
	foreign := func(a *state.Allocation) bool { return !sharesApplication(a, request.Allocation) }
	anyone := func(*state.Allocation) bool { return true }
	chosen := r.fewestOf(r.newestInTrees(violated, foreign))
	if chosen == nil {
		chosen = r.fewestOf(r.newestInTrees(violated, anyone))
	}
	if chosen == nil && len(requested) > len(violated) {
		chosen = r.fewestOf(r.newestInTrees(requested, anyone))
	}
	return chosen
}

// newestInTrees are the newest suitable allocations with a claim in one of some trees, at most maxReleases.
func (r *releaseSearch) newestInTrees(trees map[string]bool, suits func(*state.Allocation) bool) []*state.Allocation {
	var list []*state.Allocation
	seen := 0
	for _, a := range r.state.Allocations.Held.Backward() {
		if seen++; seen > read.Scanned || len(list) == maxReleases {
			break
		}
		if a.Fence() == r.own {
			continue
		}
		inside := slices.ContainsFunc(a.Claims, func(c state.PlacedClaim) bool { return trees[c.At.TreeName] })
		if inside && suits(a) {
			list = append(list, a)
		}
	}
	return list
}

// fewestOf are those of some allocations that must end for the request to be admitted, if it is admitted without all of
// them. It serves requests for which the amounts do not decide: where claims are counted away from their nodes, or only
// a part of the freed capacity is lent, the end of an allocation may free more or less than its amounts. It leaves out
// halves, quarters and so on, with its own budget of trials.
func (s *search) fewestOf(all []*state.Allocation) []*state.Allocation {
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

// admitsWithout reports whether the request would be admitted after the release of some held allocations, in the order
// of their fences: where claims borrow softly, each release lets others reclaim, so the order decides which.
func (s *search) admitsWithout(gone []*state.Allocation) bool {
	gone = slices.Clone(gone)
	slices.SortFunc(gone, byFence)
	var undo admit.UndoList
	lastSeq := s.state.Allocations.LastArrivalSeq
	undo.OnUndo(func() { s.state.Allocations.LastArrivalSeq = lastSeq })
	for _, a := range gone {
		s.tryRelease(a.Fence(), &undo)
	}
	admitted := s.ask().Granted
	undo.Rollback()
	return admitted
}

// tryRelease refunds an allocation and lets other claims reclaim the capacity. The steps are added to undo.
func (s *search) tryRelease(fence uint64, undo *admit.UndoList) {
	st := s.state
	a, _ := st.Allocations.Held.Get(fence) // other releases may have moved it
	st.Allocations.Held.Delete(fence)
	for i := range a.Claims {
		st.Allocations.RefundClaim(a, i)
	}
	undo.OnUndo(func() {
		st.Allocations.Held.Set(fence, a)
		for i := range slices.Backward(a.Claims) {
			st.Allocations.ChargeClaim(a, i)
		}
	})
	undo.Append(admit.ReturnItems(&st.Inventory, a, admit.Released))
	for i := range a.Claims {
		admit.ReclaimPath(&st.Allocations, a.Claims[i].At, func(ref state.ClaimRef, to *state.Node) {
			previous, updated := admit.MoveClaim(&st.Allocations, ref, to)
			undo.OnUndo(func() {
				st.Allocations.RefundNode(updated, ref.Claim)
				previous.Claims[ref.Claim].SameTrack(&updated.Claims[ref.Claim])
				st.Allocations.ReplaceRecord(previous)
				st.Allocations.ChargeNode(previous, ref.Claim)
			})
		})
	}
}
