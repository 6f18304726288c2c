package quota

// release ends an allocation and gives everything back.
func (l *Ledger) release(c Release) Outcome {
	out := l.releasable(c)
	if out.Refused != nil || out.Repeated {
		return out
	}
	a := out.Allocation
	l.giveBack(a)
	t := &tombstone{Allocation: *a, end: l.now}
	t.ended = &t.end
	l.bury(&t.Allocation)
	return Outcome{Allocation: &t.Allocation}
}

// releasable says what a release would end, or has ended before; it changes nothing.
func (l *Ledger) releasable(c Release) Outcome {
	if err := checkID(c.ID); err != nil {
		return Outcome{Refused: err}
	}
	a := l.lookup(c.ID)
	if a == nil {
		return Outcome{Refused: refuse(NotFound, "id", "no allocation %q is held or has ended lately; list what is held to find its id", c.ID)}
	}
	return Outcome{Allocation: a, Repeated: a.ended != nil}
}

func (l *Ledger) giveBack(a *Allocation) {
	l.held.Delete(a.fence)
	for _, c := range a.claims {
		c.at.claims--
		c.at.tree.claims--
		for _, p := range c.amounts {
			p.resource.holds--
			c.at.add(p.resource.index, -p.amount)
		}
	}
}
