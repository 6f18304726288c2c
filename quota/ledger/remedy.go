package ledger

import "github.com/quorate/quorate/quota"

// maxTrials bounds how often each of the two searches for a remedy asks again.
const maxTrials = 100

// search looks for what would admit a denied request: it changes the ledger, asks again, and takes the change back.
type search struct {
	ledger *Ledger
	// place finds the nodes of the request.
	place  func() (*Allocation, *quota.Error)
	trials int // that were made
}

// remedy finds the smallest raises of limits, and a small set of releases, either of which would admit the request. There is none for
// a request that must not overtake others.
func (l *Ledger) remedy(place func() (*Allocation, *quota.Error), denied quota.Decision) *quota.Remedy {
	raises, releases := &search{ledger: l, place: place}, &search{ledger: l, place: place}
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
	t := s.ledger.begin(a)
	d := t.decide()
	if d.Granted && !t.hasRoom() {
		d = quota.Decision{}
	}
	t.rollback()
	return d
}
