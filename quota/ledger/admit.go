package ledger

import (
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// plain is true if nothing but limits of nodes and of principals decides.
func (a *Allocation) plain() bool {
	if a.more != nil && a.more.forced {
		return false
	}
	for i := range a.claims {
		if a.claims[i].at.special {
			return false
		}
	}
	return true
}

// fitsAtHome is true if every claim has room at its node and everything above, so that nobody has to be moved for it: what
// most claims that may borrow find.
func (a *Allocation) fitsAtHome() bool {
	if a.forced() || a.principal().User != "" || !sharesNoNode(a.claims) || a.anyWaits() {
		return false
	}
	for i := range a.claims {
		c := &a.claims[i]
		if c.forced() || c.at.special && !c.soft() || len(c.above(nil)) > 0 {
			return false
		}
		for n := c.at; n != nil && n.borrows == policy.BorrowSoft; n = n.parent {
			if !n.takes(c.amounts) {
				return false
			}
		}
	}
	return true
}

// settleSoft finds places for the claims that may borrow softly, in the order of the request, and books them there. It
// stops at the first that finds none, and answers it.
func (t *staged) settleSoft() *placedClaim {
	for i := range t.newcomer().claims {
		if c := &t.newcomer().claims[i]; c.soft() && !t.settle(i) {
			return c
		}
	}
	return nil
}

// check looks at every limit that settleSoft has not looked at.
func (t *staged) check() []quota.Violation {
	a := t.newcomer()
	violations := t.ledger.asker(a).decide(a.rest()).Violations
	violations = append(violations, a.uncountable()...)
	violations = append(violations, t.ledger.checkBounded(a)...)
	violations = append(violations, t.checkPrincipals(a)...)
	return append(violations, t.ledger.inventory.checkItems(a)...)
}

// checkPrincipals looks at the ledger as it is without those claims that settleSoft has booked already.
func (t *staged) checkPrincipals(a *Allocation) []quota.Violation {
	a.countSoft(-1)
	defer a.countSoft(1)
	return t.ledger.checkPrincipals(a)
}

// countSoft takes the claims that borrow softly off the accounts of their principal, or puts them back.
func (a *Allocation) countSoft(sign quota.Amount) {
	for i := range a.claims {
		if c := &a.claims[i]; c.soft() && c.more != nil && c.more.track != nil {
			c.more.track.add(c, sign)
		}
	}
}

// bookRest books what settleSoft has not booked.
func (t *staged) bookRest() {
	for i := range t.newcomer().claims {
		if !t.newcomer().claims[i].soft() {
			t.book(i)
		}
	}
}

// everyViolation lists all that stands in the way of a denied request, as the ledger is without it: lost is the claim that
// found no place, if that is why. Only if nothing does then, those of the trial count: what other claims would have moved
// was in the way.
func (l *Ledger) everyViolation(a *Allocation, lost *placedClaim, tried []quota.Violation) []quota.Violation {
	all := l.asker(a).decide(a.rest()).Violations
	if lost != nil {
		all = append(all, lost.inTheWay()...)
	}
	all = append(all, l.behindSoftly(a)...)
	all = append(all, a.uncountable()...)
	all = append(all, l.checkBounded(a)...)
	all = append(all, l.checkPrincipals(a)...)
	all = append(all, l.inventory.checkItems(a)...)
	if len(all) == 0 {
		return tried
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
