package ledger

import "github.com/quorate/quorate/quota/policy"

// book counts one claim of an allocation at its node and above.
func (l *Ledger) book(a *Allocation, i int) {
	c := &a.claims[i]
	c.at.tree.claims++
	for _, p := range c.amounts {
		p.resource.holds++
	}
	l.arrive(a, i)
	if c.more != nil && c.more.track != nil {
		c.more.track.add(c, 1)
	}
}

// unbook is the inverse of book.
func (l *Ledger) unbook(a *Allocation, i int) {
	c := &a.claims[i]
	c.at.tree.claims--
	for _, p := range c.amounts {
		p.resource.holds--
	}
	l.depart(a, i)
	if c.more != nil && c.more.track != nil {
		c.more.track.add(c, -1)
	}
}

// arrive counts what depends on the node where the claim is counted; a claim that is moved departs and arrives.
func (l *Ledger) arrive(a *Allocation, i int) {
	c := &a.claims[i]
	c.at.claims++
	if c.more != nil && c.more.home != nil {
		c.more.home.homes++
	}
	for _, p := range c.amounts {
		c.at.add(p.resource.index, p.amount)
	}
	if c.at.borrows == policy.BorrowSoft {
		l.allocations.sit(a, i)
	}
}

// depart is the inverse of arrive.
func (l *Ledger) depart(a *Allocation, i int) {
	c := &a.claims[i]
	c.at.claims--
	l.forest.vacate(c.at)
	if c.more != nil && c.more.home != nil {
		c.more.home.homes--
		l.forest.vacate(c.more.home)
	}
	for _, p := range c.amounts {
		c.at.add(p.resource.index, -p.amount)
	}
	if c.at.borrows == policy.BorrowSoft {
		l.allocations.stand(a, i)
	}
}
