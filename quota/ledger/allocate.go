package ledger

import "github.com/quorate/quorate/quota"

// allocate decides a request and books it if it is granted.
func (l *Ledger) allocate(request quota.Allocate) Outcome {
	if out, known := l.repeatOf(request); known {
		switch a := out.Allocation; {
		case a == nil:
		case a.waits():
			w := l.queue.waiterOf(a)
			l.queue.sign(w)
			out.Allocation = w.record
		default:
			out.Allocation = l.claim(a)
		}
		return out
	}
	a, refused := l.place(request)
	if refused != nil {
		return Outcome{Refused: refused}
	}
	if refused = l.checkRequestGrowth(l.counted(a)); refused != nil {
		return Outcome{Refused: refused}
	}
	l.traceItems(request)
	defer func() { l.inventory.trace = nil }()
	decision, t := l.admit(a)
	switch {
	case shouldQueue(request, decision):
		return l.enqueue(request, a, decision, t)
	case !decision.Granted:
		l.inventory.makeWanted(a, decision.Violations)
		l.journal.noteDenial(request, decision)
		return Outcome{Decision: &decision}
	case l.allocations.tooMany(t):
		t.rollback()
		return Outcome{Refused: l.full()}
	}
	return Outcome{Decision: &decision, Allocation: l.grant(a, t, 0)}
}

// tooMany is true if the ledger already holds as many allocations as it may, but for those that give way.
func (s *allocations) tooMany(t *trial) bool {
	held := s.held.Len()
	if t != nil {
		held -= 1 + len(t.victims) // the newcomer is in already
	}
	return held >= s.bounds.Held
}

func (e *environment) full() *quota.Error {
	return quota.Errorf(quota.Full, "", "the ledger holds %d allocations, as many as it may; release some", e.bounds.Held)
}

// grant makes an admitted allocation held, and ends those that gave way; since is when it came into the queue, 0 if it did not.
func (l *Ledger) grant(a *Allocation, t *trial, since quota.Instant) *Allocation {
	l.allocations.fence++
	if t == nil {
		l.forest.attach(a)
		l.allocations.byID[a.id] = a
		l.allocations.held.Set(a.fence, a)
		for i := range a.claims {
			l.book(a, i)
		}
	} else {
		a = t.commit()
	}
	l.inventory.take(a)
	l.rememberUndo(a, t)
	if t != nil {
		for _, v := range t.victims {
			l.inventory.announce(v)
		}
	}
	l.deadlines.add(a)
	l.journal.facts = append(l.journal.facts, Fact{Kind: FactGranted, Allocation: a, Since: since})
	l.queue.took(a)
	return a
}

// repeatOf answers a request whose id is known: the first grant again, its place in the queue, or a refusal.
func (l *Ledger) repeatOf(request quota.Allocate) (Outcome, bool) {
	a := l.allocations.lookup(request.ID)
	switch {
	case a == nil:
		return Outcome{}, false
	case !a.is(request):
		return Outcome{Refused: quota.Errorf(quota.IDTaken, "id", "allocation %q exists with other content; use another id, or repeat the request unchanged", a.id)}, true
	case a.ended != nil:
		return Outcome{Refused: quota.Errorf(quota.Ended, "id", "allocation %q %s has ended%s; nothing was charged again; use another id", a.id, a.was(), a.how())}, true
	case a.waits():
		_, d, t, _ := l.judgeWaiter(l.queue.waiterOf(a))
		t.rollback()
		return Outcome{Decision: waitingDecision(d), Allocation: a, Repeated: true}, true
	}
	decision := quota.Decision{Granted: true}
	if a.more != nil {
		decision.Preempted = a.more.preempted
	}
	return Outcome{Decision: &decision, Allocation: a.relocated(), Repeated: true}, true
}

// was says in words what an ended allocation had been.
func (a *Allocation) was() string {
	if a.fence == 0 {
		return "waited once and"
	}
	return "was granted once and"
}

// lookup finds a held allocation, a request that waits, or an ended one whose tombstone still stands.
func (s *allocations) lookup(id string) *Allocation {
	a := s.byID[id]
	if a != nil && a.ended != nil && s.tombstoneOver(a) {
		return nil
	}
	return a
}
