package ledger

import "github.com/quorate/quorate/quota"

// mode says whether a command is carried out.
type mode uint8

const (
	// carryOut decides a command and commits it.
	carryOut mode = iota
	// dryRun decides a command and leaves the ledger as it is.
	dryRun
)

// allocate decides a request and charges it if it is granted.
func (l *Ledger) allocate(request quota.Allocate, m mode) Outcome {
	if out, known := l.repeatOf(request); known {
		if m == carryOut && out.Allocation != nil {
			out.Allocation = l.heardFrom(out.Allocation)
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
	if m == carryOut {
		l.traceItems(request)
		defer l.inventory.endTrace()
	}
	t := l.begin(a)
	decision := t.decide()
	switch {
	case shouldQueue(request, decision):
		return l.enqueue(request, &t, decision, m)
	case decision.Granted && !t.hasRoom():
		t.rollback()
		return Outcome{Refused: l.full()}
	case m == dryRun:
		return t.preview(decision)
	case !decision.Granted:
		l.inventory.makeWanted(a, decision.Violations)
		l.journal.noteDenial(request, decision)
		return Outcome{Decision: &decision}
	}
	return Outcome{Decision: &decision, Allocation: t.commit(0)}
}

// preview ends a transaction without its commit, and says where the claims of a granted one would be counted.
func (t *tx) preview(d quota.Decision) Outcome {
	if d.Granted {
		d.Placements = t.placements()
		t.rollback()
	}
	return Outcome{Decision: &d}
}

// heardFrom notes that the caller of a known request has asked again: that keeps it in the queue, or takes over a lease
// that came from there.
func (l *Ledger) heardFrom(a *Allocation) *Allocation {
	if !a.waits() {
		return l.claim(a)
	}
	w := l.queue.waiterOf(a)
	l.queue.sign(w)
	return w.record
}

func (e *environment) full() *quota.Error {
	return quota.Errorf(quota.Full, "", "the ledger holds %d allocations, as many as it may; release some", e.bounds.Held)
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
		return Outcome{Decision: waitingDecision(l.previewWaiter(l.queue.waiterOf(a))), Allocation: a, Repeated: true}, true
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
