package quota

// track is where the principal of a claim is counted.
type track struct{}

// add counts a claim, or with -1 gives it back.
func (t *track) add(*placedClaim, Amount) {}

// checkPrincipals says which limits of users, groups and applications the allocation would break.
func (l *Ledger) checkPrincipals(*Allocation) []Violation { return nil }
