package quota

// allocate decides a request and books it if it is granted.
func (l *Ledger) allocate(request Allocate) Outcome {
	if out, known := l.repeatOf(request); known {
		return out
	}
	out, a := l.judge(request)
	if out.Refused != nil || !out.Decision.Granted {
		return out
	}
	l.fence++
	a.id, a.labels, a.fence, a.granted = request.ID, request.Labels, l.fence, l.now
	l.hold(a)
	out.Allocation = a
	return out
}

// judge says what would become of a new request, with its claims where they would stand; it changes nothing.
func (l *Ledger) judge(request Allocate) (Outcome, *Allocation) {
	a, refused := l.place(request)
	if refused != nil {
		return Outcome{Refused: refused}, nil
	}
	decision := l.decide(a.claims)
	if decision.Granted && l.held.Len() >= l.bounds.Held {
		return Outcome{Refused: refuse(Full, "", "the ledger holds %d allocations, as many as it may; release some", l.bounds.Held)}, nil
	}
	return Outcome{Decision: &decision}, a
}

// repeatOf answers a request whose id is known: the first grant again, or a refusal.
func (l *Ledger) repeatOf(request Allocate) (Outcome, bool) {
	a := l.lookup(request.ID)
	switch {
	case a == nil:
		return Outcome{}, false
	case !a.is(request):
		return Outcome{Refused: refuse(IDTaken, "id", "allocation %q exists with other content; use another id, or repeat the request unchanged", a.id)}, true
	case a.ended != nil:
		return Outcome{Refused: refuse(Ended, "id", "allocation %q was granted once and has ended; nothing was charged again; use another id", a.id)}, true
	}
	return Outcome{Decision: &Decision{Granted: true}, Allocation: a, Repeated: true}, true
}

// lookup finds a held allocation, or an ended one whose tombstone still stands.
func (l *Ledger) lookup(id string) *Allocation {
	a := l.byID[id]
	if a != nil && a.ended != nil && l.tombstoneOver(a) {
		return nil
	}
	return a
}

// hold books the claims of a granted allocation.
func (l *Ledger) hold(a *Allocation) {
	l.byID[a.id] = a
	l.held.Set(a.fence, a)
	for _, c := range a.claims {
		c.at.claims++
		c.at.tree.claims++
		for _, p := range c.amounts {
			p.resource.holds++
			c.at.add(p.resource.index, p.amount)
		}
	}
}
