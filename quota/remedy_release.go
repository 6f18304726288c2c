package quota

import (
	"cmp"
	"slices"
)

const (
	// maxReleases bounds a set of releases: more is no advice, and could not be tried.
	maxReleases = 64
	// maxSingles bounds how many allocations are tried alone.
	maxSingles = 20
)

// candidate is a held allocation whose end would give back some of what is missing.
type candidate struct {
	a *Allocation
	// gives has what its end gives back of each violated limit.
	gives []Amount
}

// releases are the ids of held allocations whose end would admit the request, by fence: a single one if that is enough,
// the smallest, or else a set of which none can be left out. It is not always the smallest set there is. Nil if the
// newest records do not have one.
func (s *search) releases(violations []Violation) []string {
	violations = violations[:min(len(violations), maxEventViolations)]
	missing := make([]Amount, len(violations))
	for i, v := range violations {
		missing[i] = v.Missing()
	}
	candidates := s.candidates(violations)
	chosen := s.single(candidates, missing)
	if chosen == nil {
		chosen = s.several(candidates, missing)
	}
	slices.SortFunc(chosen, func(a, b *Allocation) int { return cmp.Compare(a.fence, b.fence) })
	var ids []string
	for _, a := range chosen {
		ids = append(ids, a.id)
	}
	return ids
}

// candidates are found among the newest held allocations, the newest first.
func (s *search) candidates(violations []Violation) []candidate {
	var list []candidate
	looked := 0
	for _, a := range s.ledger.held.Backward() {
		if looked == scanned {
			break
		}
		looked++
		c := candidate{a: a, gives: make([]Amount, len(violations))}
		for i, v := range violations {
			c.gives[i] = a.gives(v)
		}
		if slices.Max(c.gives) > 0 {
			list = append(list, c)
		}
	}
	return list
}

// gives is how much of a violated limit the end of the allocation would give back.
func (a *Allocation) gives(v Violation) Amount {
	if v.Kind == OfQueue {
		return 0
	}
	var sum Amount
	for i := range a.claims {
		c := &a.claims[i]
		if c.at.treeName != v.Tree || !within(c.countedAt(v.Holder).path, v.Node) || !a.countsFor(c, v.Holder) {
			continue
		}
		switch v.Kind {
		case OfApplications:
			return 1 // if it is the last of its application
		case OfItems:
			sum += c.givesItems(v)
			continue
		case OfResource, OfBorrowing, OfQueue:
		}
		for _, p := range c.amounts {
			if p.resource.Name == v.Resource {
				sum += p.amount
			}
		}
	}
	return sum
}

// givesItems is how many items a release would make to be had as they are wanted.
func (c *placedClaim) givesItems(v Violation) Amount {
	sum := Amount(0)
	for _, h := range c.held() {
		if h.resource == v.Resource && (h.name == v.Item || h.is.stock.resource.Items.releasedState() == v.Item) {
			sum++
		}
	}
	return sum
}

// countedAt is the node where a claim is counted for a holder: principals are counted where the claim belongs.
func (c *placedClaim) countedAt(h Holder) *node {
	if h.Kind == TheNode {
		return c.at
	}
	return c.home()
}

func (a *Allocation) countsFor(c *placedClaim, h Holder) bool {
	switch h.Kind {
	case AUser:
		return a.principal().User == h.Name
	case AGroup:
		return c.more != nil && c.more.group == h.Name
	case TheNode:
	}
	return true
}

// single is the smallest allocation that is enough alone.
func (s *search) single(candidates []candidate, missing []Amount) []*Allocation {
	var enough []candidate
	for _, c := range candidates {
		if !slices.ContainsFunc(shortfalls(missing, c.gives), func(lack Amount) bool { return lack > 0 }) {
			enough = append(enough, c)
		}
	}
	slices.SortStableFunc(enough, func(x, y candidate) int { return slices.Compare(x.gives, y.gives) })
	for _, c := range enough[:min(len(enough), maxSingles)] {
		if s.admitsWithout([]*Allocation{c.a}) {
			return []*Allocation{c.a}
		}
	}
	return nil
}

// shortfalls are what is still missing beside what is given.
func shortfalls(missing, gives []Amount) []Amount {
	rest := make([]Amount, len(missing))
	for i := range missing {
		rest[i] = max(0, missing[i]-gives[i])
	}
	return rest
}

// several chooses whoever gives most of what is still missing, until nothing is, and then leaves out whom it can.
func (s *search) several(candidates []candidate, missing []Amount) []*Allocation {
	var chosen []*Allocation
	rest := missing
	for slices.Max(rest) > 0 {
		i := mostHelpful(candidates, rest)
		if i < 0 || len(chosen) == maxReleases {
			return nil
		}
		chosen, rest = append(chosen, candidates[i].a), shortfalls(rest, candidates[i].gives)
		candidates = slices.Delete(candidates, i, i+1)
	}
	if !s.admitsWithout(chosen) {
		return nil
	}
	for i := 0; i < len(chosen); {
		fewer := slices.Delete(slices.Clone(chosen), i, i+1)
		if s.admitsWithout(fewer) {
			chosen = fewer
		} else {
			i++
		}
	}
	return chosen
}

// mostHelpful is the candidate that gives the largest parts of what is missing, added up; -1 if none gives anything.
func mostHelpful(candidates []candidate, missing []Amount) int {
	best, most := -1, 0.0
	for i, c := range candidates {
		help := 0.0
		for j, lack := range missing {
			if lack > 0 {
				help += float64(min(lack, c.gives[j])) / float64(lack)
			}
		}
		if help > most {
			best, most = i, help
		}
	}
	return best
}

// admitsWithout asks whether the request would be admitted after the release of some held allocations.
func (s *search) admitsWithout(gone []*Allocation) bool {
	seat := s.ledger.seat
	var undo []func()
	for _, a := range gone {
		undo = append(undo, s.tryRelease(a.fence)...)
	}
	admitted := s.ask().Granted
	for _, step := range slices.Backward(undo) {
		step()
	}
	s.ledger.seat = seat
	return admitted
}

// tryRelease gives back what an allocation holds and lets others slide into the room. It answers the steps back.
func (s *search) tryRelease(fence uint64) (undo []func()) {
	l := s.ledger
	a, _ := l.held.Get(fence) // perhaps others' releases have moved it
	l.held.Delete(fence)
	for i := range a.claims {
		l.unbook(a, i)
	}
	undo = append(undo, func() {
		l.held.Set(fence, a)
		for i := range slices.Backward(a.claims) {
			l.book(a, i)
		}
	})
	undo = append(undo, l.giveAll(a, released)...)
	for i := range a.claims {
		l.slide(a.claims[i].at, func(who sitter, to *node) {
			was, is := l.move(who, to)
			undo = append(undo, func() {
				l.depart(is, who.claim)
				l.put(was)
				l.arrive(was, who.claim)
			})
		})
	}
	return undo
}
