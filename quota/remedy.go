package quota

// maxTrials bounds how often each of the two searches for a remedy asks again.
const maxTrials = 100

// search looks for what would admit a denied request: it changes the ledger, asks again, and takes the change back.
type search struct {
	ledger  *Ledger
	request Allocate
	trials  int // that were made
}

// remedy finds the smallest raises of limits, and a small set of releases, either of which would admit the request.
func (l *Ledger) remedy(request Allocate, denied Decision) *Remedy {
	raises, releases := &search{ledger: l, request: request}, &search{ledger: l, request: request}
	return &Remedy{Raises: raises.raises(denied), Releases: releases.releases(denied.Violations)}
}

// ask decides the request on the ledger as it is changed now. Once too much was tried, the answer is a denial without a
// reason, as it is if the request is refused.
func (s *search) ask() Decision {
	if s.trials++; s.trials > maxTrials {
		return Decision{}
	}
	if d := s.ledger.View().dryAllocate(s.request).Decision; d != nil {
		return *d
	}
	return Decision{}
}
