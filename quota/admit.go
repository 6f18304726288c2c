package quota

import "slices"

// admit decides whether an allocation that has its claims may be held. If so, and if more than plain limits had to be
// looked at, its claims are booked already, and the trial can take that back; otherwise the trial is nil and nothing has
// changed.
func (l *Ledger) admit(a *Allocation) (Decision, *trial) {
	a.fence, a.granted = l.fence+1, l.now
	if a.more != nil && a.more.mode == Reserve {
		a.more.until = l.now.At + Instant(a.more.reserveFor)
	}
	if a.plain() {
		return l.decide(a.claims), nil
	}
	t := l.try(a)
	t.attach()
	violations := t.settleSoft()
	if len(violations) == 0 {
		violations = t.check()
	}
	if len(violations) == 0 {
		t.bookRest()
		return Decision{Granted: true, Preempted: t.preempted}, t
	}
	t.rollback()
	return Decision{Violations: l.everyViolation(a, violations)}, nil
}

// plain is true if nothing but limits of nodes decides.
func (a *Allocation) plain() bool {
	if a.more != nil && (a.more.forced || a.more.principal.User != "") {
		return false
	}
	for i := range a.claims {
		if a.claims[i].at.special {
			return false
		}
	}
	return true
}

// settleSoft finds places for the claims that may borrow softly, in the order of the request, and books them there. It
// stops at the first that finds none.
func (t *trial) settleSoft() []Violation {
	for i := range t.newcomer().claims {
		if c := &t.newcomer().claims[i]; c.soft() {
			if violations := t.settle(i); len(violations) > 0 {
				return violations
			}
		}
	}
	return nil
}

// check looks at every limit that settleSoft has not looked at.
func (t *trial) check() []Violation {
	a := t.newcomer()
	violations := t.ledger.decide(a.rest()).Violations
	violations = append(violations, a.uncountable()...)
	violations = append(violations, t.ledger.checkBounded(a)...)
	return append(violations, t.ledger.checkPrincipals(a)...)
}

// bookRest books what settleSoft has not booked.
func (t *trial) bookRest() {
	for i := range t.newcomer().claims {
		if !t.newcomer().claims[i].soft() {
			t.book(i)
		}
	}
}

// everyViolation lists all that stands in the way of a denied request, as the ledger is without it: soft are those of the
// claim that found no place.
func (l *Ledger) everyViolation(a *Allocation, soft []Violation) []Violation {
	all := l.decide(a.rest()).Violations
	all = append(all, l.checkBounded(a)...)
	all = append(all, l.checkPrincipals(a)...)
	for _, v := range soft {
		if !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	return all
}

// rest are the claims that are held to the plain limits of their paths. Forced ones are held to none.
func (a *Allocation) rest() []placedClaim {
	var list []placedClaim
	for i := range a.claims {
		if c := &a.claims[i]; !c.forced() && !c.soft() {
			list = append(list, *c)
		}
	}
	return list
}
