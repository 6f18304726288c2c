package explain

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/admit"
	"github.com/quorate/quorate/quota/ledger/internal/read"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// maxTrials bounds the decisions of each of the two searches for a remedy.
const maxTrials = 100

// search looks for a change that would admit a denied request: it changes the ledger, decides again, and reverts the
// change.
type search struct {
	state *state.State
	// place finds the nodes of the request, or of the resize.
	place  func() (admit.Admission, *quota.Error)
	trials int // decisions so far
}

// placer finds the nodes of one list of claims of a request.
type placer struct {
	// number is that of the list among the alternatives of the request; 0 if it has none.
	number int
	place  func() (admit.Admission, *quota.Error)
}

// PlacersOf are the placers of the lists of a new request.
func PlacersOf(s *state.State, c quota.Allocate) []placer {
	if len(c.AnyOf) == 0 {
		return []placer{{0, func() (admit.Admission, *quota.Error) {
			a, refused := admit.PlaceClaims(s, &c)
			return admit.Admission{State: s, Allocation: a}, refused
		}}}
	}
	var list []placer
	for i := range c.AnyOf {
		list = append(list, placer{i + 1, func() (admit.Admission, *quota.Error) {
			a, refused := admit.PlaceList(s, &c, i+1, 0)
			return admit.Admission{State: s, Allocation: a}, refused
		}})
	}
	return list
}

// PlacersOfWaiter are those of the alternatives that a request waits for.
func PlacersOfWaiter(w *state.Waiter, s *state.State) []placer {
	var list []placer
	for _, alt := range w.Alternatives {
		list = append(list, placer{alt.Number, func() (admit.Admission, *quota.Error) { return admit.AdmissionOf(s, alt) }})
	}
	return list
}

// FindRemedyOfAny finds the remedy of the first list that has one.
func FindRemedyOfAny(s *state.State, violations []quota.Violation, lists []placer) *quota.Remedy {
	for _, list := range lists {
		own := slices.DeleteFunc(slices.Clone(violations), func(v quota.Violation) bool {
			return v.Alternative != list.number
		})
		if len(own) == 0 {
			continue // only a bound of the ledger is in the way
		}
		if r := findRemedy(s, list.place, own); len(r.Raises)+len(r.Releases) > 0 {
			r.Alternative = list.number
			return r
		}
	}
	return &quota.Remedy{}
}

// findRemedy finds the smallest raises of limits, and a small set of releases, either of which would admit the request.
// A request that must not overtake others has no remedy, and neither has one that a hold is in the way of.
func findRemedy(
	s *state.State, place func() (admit.Admission, *quota.Error), violations []quota.Violation,
) *quota.Remedy {
	if slices.ContainsFunc(violations, func(v quota.Violation) bool { return v.Kind == quota.OfHold }) {
		return &quota.Remedy{}
	}
	raises, releases := &search{state: s, place: place}, &search{state: s, place: place}
	return &quota.Remedy{
		Raises: raises.raises(quota.Decision{Violations: violations}), Releases: releases.releases(violations),
	}
}

// ask decides the request on the ledger as changed now. After too many trials, or if the request is refused, it returns
// a denial without violations.
func (s *search) ask() quota.Decision {
	if s.trials++; s.trials > maxTrials {
		return quota.Decision{}
	}
	t, refused := s.place()
	if refused != nil {
		return quota.Decision{}
	}
	if t.Change != nil {
		d := t.Change.Decide()
		t.Rollback()
		return d
	}
	t = admit.Begin(s.state, t.Allocation)
	d := t.Decide()
	if d.Granted && !t.HasRoom() {
		d = quota.Decision{}
	}
	t.Rollback()
	return d
}

// candidate is a held allocation whose end would free some of what is missing, or all allocations of an application,
// which runs until the last of them ends.
type candidate struct {
	as []*state.Allocation
	// gives is the amount that their end would free of each violated limit.
	gives []quota.Amount
}

// findCandidates considers the newest held allocations, the newest first, and then the applications that have several
// of them.
func (r *releaseSearch) findCandidates() {
	var newest []*state.Allocation
	for _, a := range r.state.Allocations.Held.Backward() {
		if len(newest) == read.Scanned {
			break
		}
		if a.Fence() == r.own {
			continue
		}
		newest = append(newest, a)
		r.add([]*state.Allocation{a})
	}
	for _, v := range r.violations {
		if v.Kind == quota.OfApplications {
			r.addApplications(v, newest)
		}
	}
}

func (r *releaseSearch) add(as []*state.Allocation) {
	if gives := r.gives(as); slices.Max(gives) > 0 {
		r.candidates = append(r.candidates, candidate{as, gives})
	}
}

func (r *releaseSearch) addApplications(v quota.Violation, newest []*state.Allocation) {
	var runs []*state.Run
	members := map[*state.Run][]*state.Allocation{}
	for _, a := range newest {
		if run, _ := runOf(&r.state.Forest, a, v); run != nil {
			if members[run] == nil {
				runs = append(runs, run)
			}
			members[run] = append(members[run], a)
		}
	}
	for _, run := range runs {
		if n := len(members[run]); n > 1 && n <= maxReleases {
			r.add(members[run])
		}
	}
}

// gives is the amount of each violated limit that the end of the allocations would free.
func (r *releaseSearch) gives(as []*state.Allocation) []quota.Amount {
	gives := make([]quota.Amount, len(r.violations))
	for i, v := range r.violations {
		if v.Kind == quota.OfApplications {
			gives[i] = endedApplications(&r.state.Forest, as, v)
			continue
		}
		for _, a := range as {
			gives[i] += releasedAmount(a, v)
		}
	}
	return gives
}

// releasedAmount is the amount of a violated limit of a resource that the end of the allocation would free.
func releasedAmount(a *state.Allocation, v quota.Violation) quota.Amount {
	if v.Kind == quota.OfQueue {
		return 0
	}
	var sum quota.Amount
	for i := range a.Claims {
		sum += releasedByClaim(a, &a.Claims[i], v)
	}
	return sum
}

func releasedByClaim(a *state.Allocation, c *state.PlacedClaim, v quota.Violation) quota.Amount {
	at := c.CountedAt(v.Holder)
	switch {
	case at.TreeName != v.Tree || !quota.IsWithin(at.Path, v.Node) || !a.CountsFor(c, v.Holder):
		return 0
	case v.Kind == quota.OfItems:
		return itemsGivenBy(c, v)
	}
	for _, p := range c.Amounts {
		if p.Resource.Name == v.Resource {
			return p.Amount
		}
	}
	return 0
}

// itemsGivenBy is the number of wanted items that a release would make available.
func itemsGivenBy(c *state.PlacedClaim, v quota.Violation) quota.Amount {
	sum := quota.Amount(0)
	for _, h := range c.HeldItems() {
		if h.Resource == v.Resource && (h.Name == v.Item || h.Is.Stock.Resource.Items.ReleasedState() == v.Item) {
			sum++
		}
	}
	return sum
}

// runOf returns the run of an allocation's application where a number of applications is violated, and the number of
// its claims in it; nil if there is none.
func runOf(f *state.Forest, a *state.Allocation, v quota.Violation) (r *state.Run, claims int) {
	p, t := a.Principal(), f.Trees[v.Tree]
	n := t.ByPath[v.Node]
	if p.Application == "" || n == nil {
		return nil, 0
	}
	for i := range a.Claims {
		if c := &a.Claims[i]; c.At.Tree == t && quota.IsWithin(c.Home().Path, v.Node) && a.CountsFor(c, v.Holder) {
			claims++
		}
	}
	if claims == 0 {
		return nil, 0
	}
	holder := v.Holder
	if holder.Kind == quota.TheNode {
		holder = quota.Holder{Kind: quota.AUser, Name: p.User}
	}
	return t.Accounts.Find(holder).At[n].Runs[p.Application], claims
}

// endedApplications is the number of applications that would end with some allocations: those without other claims.
func endedApplications(f *state.Forest, as []*state.Allocation, v quota.Violation) (ended quota.Amount) {
	left := map[*state.Run]int{}
	for _, a := range as {
		r, claims := runOf(f, a, v)
		if r == nil {
			continue
		}
		if _, known := left[r]; !known {
			left[r] = r.Claims
		}
		if left[r] -= claims; left[r] == 0 {
			ended++
		}
	}
	return ended
}

func (c candidate) covers(missing []quota.Amount) bool {
	for i, lack := range missing {
		if c.gives[i] < lack {
			return false
		}
	}
	return true
}

// helps sums the fractions of each missing amount that the candidate frees, each at most 1.
func (c candidate) helps(missing []quota.Amount) float64 {
	help := 0.0
	for i, lack := range missing {
		if lack > 0 {
			help += float64(min(lack, c.gives[i])) / float64(lack)
		}
	}
	return help
}

// size is the amount that a candidate frees, relative to what is missing.
func (r *releaseSearch) size(c candidate) float64 {
	size := 0.0
	for i, lack := range r.missing {
		size += float64(c.gives[i]) / float64(lack)
	}
	return size
}

// leaveOutOwn returns false if there were none: without its allocations the request's own application would start anew,
// perhaps in another group or beyond the limit of applications.
func (r *releaseSearch) leaveOutOwn() bool {
	request, refused := r.place()
	if refused != nil {
		return false
	}
	before := len(r.candidates)
	r.candidates = slices.DeleteFunc(r.candidates, func(c candidate) bool {
		return slices.ContainsFunc(c.as, func(a *state.Allocation) bool { return sharesApplication(a, request.Allocation) })
	})
	return len(r.candidates) < before
}

func sharesApplication(a, other *state.Allocation) bool {
	own, others := a.Principal(), other.Principal()
	return own.Application != "" && own.User == others.User && own.Application == others.Application
}
