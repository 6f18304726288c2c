package quota

// soft is true if the claim finds its place by borrowing softly.
func (c *placedClaim) soft() bool { return c.at.borrows == BorrowSoftly && !c.forced() }

// forced is true if the claim is held at its node whatever the limits say.
func (c *placedClaim) forced() bool { return c.more != nil && c.more.forced }

// settle finds the place of a claim and books it there, or says what is in the way.
func (t *trial) settle(int) []Violation { return nil }

// sit takes a seat at the claim's node; stand gives it up.
func (l *Ledger) sit(*Allocation, int) {}

func (l *Ledger) stand(*Allocation, int) {}

// slideInto lets claims that are counted above a node and belong below it slide down into freed room.
func (l *Ledger) slideInto(*node) {}
