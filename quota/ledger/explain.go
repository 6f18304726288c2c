package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
)

// maxTrials bounds the decisions of each of the two searches for a remedy.
const maxTrials = 100

// search looks for a change that would admit a denied request: it changes the ledger, decides again, and reverts the
// change.
type search struct {
	ledger *Ledger
	// place finds the nodes of the request, or of the resize.
	place  func() (tx, *quota.Error)
	trials int // decisions so far
}

// placer finds the nodes of one list of claims of a request.
type placer struct {
	// number is that of the list among the alternatives of the request; 0 if it has none.
	number int
	place  func() (tx, *quota.Error)
}

// placersOf are the placers of the lists of a new request.
func placersOf(l *Ledger, c quota.Allocate) []placer {
	if len(c.AnyOf) == 0 {
		return []placer{{0, func() (tx, *quota.Error) { return l.placedTx(l.placeClaims(&c)) }}}
	}
	var list []placer
	for i := range c.AnyOf {
		list = append(list, placer{i + 1, func() (tx, *quota.Error) { return l.placedTx(l.placeList(&c, i+1, 0)) }})
	}
	return list
}

// placersOfWaiter are those of the alternatives that a request waits for.
func placersOfWaiter(w *waiter, l *Ledger) []placer {
	var list []placer
	for _, alt := range w.alternatives {
		list = append(list, placer{alt.number, func() (tx, *quota.Error) { return l.txOf(alt) }})
	}
	return list
}

// findRemedyOfAny finds the remedy of the first list that has one.
func findRemedyOfAny(l *Ledger, violations []quota.Violation, lists []placer) *quota.Remedy {
	for _, list := range lists {
		own := slices.DeleteFunc(slices.Clone(violations), func(v quota.Violation) bool {
			return v.Alternative != list.number
		})
		if len(own) == 0 {
			continue // only a bound of the ledger is in the way
		}
		if r := findRemedy(l, list.place, own); len(r.Raises)+len(r.Releases) > 0 {
			r.Alternative = list.number
			return r
		}
	}
	return &quota.Remedy{}
}

// findRemedy finds the smallest raises of limits, and a small set of releases, either of which would admit the request.
// A request that must not overtake others has no remedy, and neither has one that a hold is in the way of.
func findRemedy(
	l *Ledger, place func() (tx, *quota.Error), violations []quota.Violation,
) *quota.Remedy {
	if slices.ContainsFunc(violations, func(v quota.Violation) bool { return v.Kind == quota.OfHold }) {
		return &quota.Remedy{}
	}
	raises, releases := &search{ledger: l, place: place}, &search{ledger: l, place: place}
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
	if t.change != nil {
		d := t.change.decide()
		t.rollback()
		return d
	}
	t = s.ledger.beginTx(t.allocation)
	d := t.decide()
	if d.Granted && !t.hasRoom() {
		d = quota.Decision{}
	}
	t.rollback()
	return d
}

// candidate is a held allocation whose end would free some of what is missing, or all allocations of an application,
// which runs until the last of them ends.
type candidate struct {
	as []*Allocation
	// gives is the amount that their end would free of each violated limit.
	gives []quota.Amount
}

// findCandidates considers the newest held allocations, the newest first, and then the applications that have several
// of them.
func (r *releaseSearch) findCandidates() {
	var newest []*Allocation
	for _, a := range r.ledger.allocations.held.Backward() {
		if len(newest) == scanned {
			break
		}
		if a.fence == r.own {
			continue
		}
		newest = append(newest, a)
		r.add([]*Allocation{a})
	}
	for _, v := range r.violations {
		if v.Kind == quota.OfApplications {
			r.addApplications(v, newest)
		}
	}
}

func (r *releaseSearch) add(as []*Allocation) {
	if gives := r.gives(as); slices.Max(gives) > 0 {
		r.candidates = append(r.candidates, candidate{as, gives})
	}
}

func (r *releaseSearch) addApplications(v quota.Violation, newest []*Allocation) {
	var runs []*run
	members := map[*run][]*Allocation{}
	for _, a := range newest {
		if run, _ := runOf(&r.ledger.forest, a, v); run != nil {
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

// gives is the amount of each violated limit that the end of some allocations would free.
func (r *releaseSearch) gives(as []*Allocation) []quota.Amount {
	gives := make([]quota.Amount, len(r.violations))
	for i, v := range r.violations {
		if v.Kind == quota.OfApplications {
			gives[i] = endedApplications(&r.ledger.forest, as, v)
			continue
		}
		for _, a := range as {
			gives[i] += releasedAmount(a, v)
		}
	}
	return gives
}

// releasedAmount is the amount of a violated limit of a resource that the end of the allocation would free.
func releasedAmount(a *Allocation, v quota.Violation) quota.Amount {
	if v.Kind == quota.OfQueue {
		return 0
	}
	var sum quota.Amount
	for i := range a.claims {
		sum += releasedByClaim(a, &a.claims[i], v)
	}
	return sum
}

// releasedByClaim is the part of releasedAmount that one claim has.
func releasedByClaim(a *Allocation, c *placedClaim, v quota.Violation) quota.Amount {
	at := c.countedAt(v.Holder)
	switch {
	case at.treeName != v.Tree || !quota.IsWithin(at.path, v.Node) || !a.countsFor(c, v.Holder):
		return 0
	case v.Kind == quota.OfItems:
		return itemsGivenBy(c, v)
	}
	for _, p := range c.amounts {
		if p.resource.Name == v.Resource {
			return p.amount
		}
	}
	return 0
}

// itemsGivenBy is the number of wanted items that a release would make available.
func itemsGivenBy(c *placedClaim, v quota.Violation) quota.Amount {
	sum := quota.Amount(0)
	for _, h := range c.heldItems() {
		if h.resource == v.Resource && (h.name == v.Item || h.is.stock.resource.Items.ReleasedState() == v.Item) {
			sum++
		}
	}
	return sum
}

// runOf returns the run of an allocation's application where a number of applications is violated, and the number of
// its claims in it; nil if there is none.
func runOf(f *forest, a *Allocation, v quota.Violation) (r *run, claims int) {
	p, t := a.principal(), f.trees[v.Tree]
	n := t.byPath[v.Node]
	if p.Application == "" || n == nil {
		return nil, 0
	}
	for i := range a.claims {
		if c := &a.claims[i]; c.at.tree == t && quota.IsWithin(c.home().path, v.Node) && a.countsFor(c, v.Holder) {
			claims++
		}
	}
	if claims == 0 {
		return nil, 0
	}
	who := v.Holder
	if who.Kind == quota.TheNode {
		who = quota.Holder{Kind: quota.AUser, Name: p.User}
	}
	return t.accounts.find(who).at[n].runs[p.Application], claims
}

// endedApplications is the number of applications that would end with some allocations: those without other claims.
func endedApplications(f *forest, as []*Allocation, v quota.Violation) (ended quota.Amount) {
	left := map[*run]int{}
	for _, a := range as {
		r, claims := runOf(f, a, v)
		if r == nil {
			continue
		}
		if _, known := left[r]; !known {
			left[r] = r.claims
		}
		if left[r] -= claims; left[r] == 0 {
			ended++
		}
	}
	return ended
}

// covers is true if a candidate frees all that is missing.
func (c candidate) covers(missing []quota.Amount) bool {
	for i, lack := range missing {
		if c.gives[i] < lack {
			return false
		}
	}
	return true
}

// helps sums the fractions of each missing amount that a candidate frees, each at most 1.
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

// leaveOutOwn removes the allocations of the request's own application from the candidates: without them it would start
// anew, perhaps in another group or beyond the limit of applications. It returns false if there were none.
func (r *releaseSearch) leaveOutOwn() bool {
	request, refused := r.place()
	if refused != nil {
		return false
	}
	before := len(r.candidates)
	r.candidates = slices.DeleteFunc(r.candidates, func(c candidate) bool {
		return slices.ContainsFunc(c.as, func(a *Allocation) bool { return sharesApplication(a, request.allocation) })
	})
	return len(r.candidates) < before
}

// sharesApplication is true if two allocations have the same application and user.
func sharesApplication(a, other *Allocation) bool {
	is, was := a.principal(), other.principal()
	return is.Application != "" && is.User == was.User && is.Application == was.Application
}
