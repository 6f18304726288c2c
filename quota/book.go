package quota

// book counts one claim of an allocation at its node and above.
func (l *Ledger) book(a *Allocation, i int) {
	c := &a.claims[i]
	c.at.claims++
	c.at.tree.claims++
	if c.more != nil && c.more.home != nil {
		c.more.home.homes++
	}
	for _, p := range c.amounts {
		p.resource.holds++
		c.at.add(p.resource.index, p.amount)
	}
	if c.at.borrows == BorrowSoftly {
		l.sit(a, i)
	}
	if c.more != nil && c.more.track != nil {
		c.more.track.add(c, 1)
	}
}

// unbook is the inverse of book.
func (l *Ledger) unbook(a *Allocation, i int) {
	c := &a.claims[i]
	c.at.claims--
	c.at.tree.claims--
	l.vacate(c.at)
	if c.more != nil && c.more.home != nil {
		c.more.home.homes--
		l.vacate(c.more.home)
	}
	for _, p := range c.amounts {
		p.resource.holds--
		c.at.add(p.resource.index, -p.amount)
	}
	if c.at.borrows == BorrowSoftly {
		l.stand(a, i)
	}
	if c.more != nil && c.more.track != nil {
		c.more.track.add(c, -1)
	}
}
