package quota

// release ends an allocation and gives everything back; a request that waits leaves the queue.
func (l *Ledger) release(c Release) Outcome {
	out := l.releasable(c.ID)
	if out.Refused != nil || out.Repeated {
		return out
	}
	if a := out.Allocation; a.waits() {
		return Outcome{Allocation: l.drop(l.waiterOf(a), Cancelled, "")}
	}
	return Outcome{Allocation: l.end(out.Allocation, Released, "")}
}

// end ends a held allocation and gives everything back.
func (l *Ledger) end(a *Allocation, state State, by string) *Allocation {
	l.held.Delete(a.fence)
	for i := range a.claims {
		l.unbook(a, i)
	}
	for i := range a.claims {
		l.slideInto(a.claims[i].at)
	}
	return l.bury(a, state, by)
}

// releasable says what a release would end, or has ended before; it changes nothing.
func (l *Ledger) releasable(id string) Outcome {
	if err := checkID(id); err != nil {
		return Outcome{Refused: err}
	}
	a := l.lookup(id)
	if a == nil {
		return Outcome{Refused: refuse(NotFound, "id", "no allocation %q is held, waits or has ended lately; list what is held to find its id", clip(id))}
	}
	return Outcome{Allocation: a, Repeated: a.ended != nil}
}
