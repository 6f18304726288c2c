package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
)

// maxTrials bounds how often each of the two searches for a remedy asks again.
const maxTrials = 100

// search looks for what would admit a denied request: it changes the ledger, asks again, and takes the change back.
type search struct {
	ledger *Ledger
	// place finds the nodes of the request.
	place  func() (*Allocation, *quota.Error)
	trials int // that were made
}

// findRemedy finds the smallest raises of limits, and a small set of releases, either of which would admit the request. There is none for
// a request that must not overtake others.
func (s Sandbox) findRemedy(place func() (*Allocation, *quota.Error), denied quota.Decision) *quota.Remedy {
	raises, releases := &search{ledger: s.ledger, place: place}, &search{ledger: s.ledger, place: place}
	return &quota.Remedy{Raises: raises.raises(denied), Releases: releases.releases(denied.Violations)}
}

// ask decides the request on the ledger as it is changed now. Once too much was tried, the answer is a denial without a
// reason, as it is if the request is refused.
func (s *search) ask() quota.Decision {
	if s.trials++; s.trials > maxTrials {
		return quota.Decision{}
	}
	a, refused := s.place()
	if refused != nil {
		return quota.Decision{}
	}
	t := s.ledger.beginTx(a)
	d := t.decide()
	if d.Granted && !t.hasRoom() {
		d = quota.Decision{}
	}
	t.rollback()
	return d
}

// candidate is a held allocation whose end would give back some of what is missing, or all of an application, which runs
// until the last of them ends.
type candidate struct {
	as []*Allocation
	// gives has what their end gives back of each violated limit.
	gives []quota.Amount
}

// findCandidates looks at the newest held allocations, the newest first, and then at the applications that have several
// of them.
func (r *releaseSearch) findCandidates() {
	var newest []*Allocation
	for _, a := range r.ledger.allocations.held.Backward() {
		if len(newest) == scanned {
			break
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
		if run, _ := r.ledger.forest.runOf(a, v); run != nil {
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

// gives is how much of each violated limit the end of some allocations would give back.
func (r *releaseSearch) gives(as []*Allocation) []quota.Amount {
	gives := make([]quota.Amount, len(r.violations))
	for i, v := range r.violations {
		if v.Kind == quota.OfApplications {
			gives[i] = r.ledger.forest.endedApplications(as, v)
			continue
		}
		for _, a := range as {
			gives[i] += a.releasedAmount(v)
		}
	}
	return gives
}

// releasedAmount is how much of a violated limit of a resource the end of the allocation would give back.
func (a *Allocation) releasedAmount(v quota.Violation) quota.Amount {
	if v.Kind == quota.OfQueue {
		return 0
	}
	var sum quota.Amount
	for i := range a.claims {
		c := &a.claims[i]
		at := c.countedAt(v.Holder)
		if at.treeName != v.Tree || !quota.IsWithin(at.path, v.Node) || !a.countsFor(c, v.Holder) {
			continue
		}
		if v.Kind == quota.OfItems {
			sum += c.givesItems(v)
			continue
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
func (c *placedClaim) givesItems(v quota.Violation) quota.Amount {
	sum := quota.Amount(0)
	for _, h := range c.heldItems() {
		if h.resource == v.Resource && (h.name == v.Item || h.is.stock.resource.Items.ReleasedState() == v.Item) {
			sum++
		}
	}
	return sum
}

// countedAt is the node where a claim is counted for a holder: principals are counted where the claim belongs.
func (c *placedClaim) countedAt(h quota.Holder) *node {
	if h.Kind == quota.TheNode {
		return c.at
	}
	return c.home()
}

func (a *Allocation) countsFor(c *placedClaim, h quota.Holder) bool {
	switch h.Kind {
	case quota.AUser:
		return a.principal().User == h.Name
	case quota.AGroup:
		return c.more != nil && c.more.group == h.Name
	case quota.TheNode:
	}
	return true
}

// runOf finds what an allocation has to do with a violated number of applications: the run there of its application, and
// how many claims it has in it; nil if none.
func (f *forest) runOf(a *Allocation, v quota.Violation) (r *run, claims int) {
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

// endedApplications is how many applications of a violated number some allocations would end: those that have no other claims.
func (f *forest) endedApplications(as []*Allocation, v quota.Violation) (ended quota.Amount) {
	left := map[*run]int{}
	for _, a := range as {
		r, claims := f.runOf(a, v)
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

// covers is true if a candidate gives all that is missing.
func (c candidate) covers(missing []quota.Amount) bool {
	for i, lack := range missing {
		if c.gives[i] < lack {
			return false
		}
	}
	return true
}

// helps adds up the parts that a candidate gives of what is missing, of each at most the whole.
func (c candidate) helps(missing []quota.Amount) float64 {
	help := 0.0
	for i, lack := range missing {
		if lack > 0 {
			help += float64(min(lack, c.gives[i])) / float64(lack)
		}
	}
	return help
}

// size is how much a candidate gives back, measured by what is missing.
func (r *releaseSearch) size(c candidate) float64 {
	size := 0.0
	for i, lack := range r.missing {
		size += float64(c.gives[i]) / float64(lack)
	}
	return size
}

// leaveOutOwn takes the allocations of the request's own application out of the candidates: without them it would have to
// begin anew, perhaps in another group or as one too many. False if there were none.
func (r *releaseSearch) leaveOutOwn() bool {
	request, refused := r.place()
	if refused != nil {
		return false
	}
	before := len(r.candidates)
	r.candidates = slices.DeleteFunc(r.candidates, func(c candidate) bool {
		return slices.ContainsFunc(c.as, func(a *Allocation) bool { return a.sharesApplication(request) })
	})
	return len(r.candidates) < before
}

// sharesApplication is true if two allocations are of one application of one user.
func (a *Allocation) sharesApplication(other *Allocation) bool {
	is, was := a.principal(), other.principal()
	return is.Application != "" && is.User == was.User && is.Application == was.Application
}
