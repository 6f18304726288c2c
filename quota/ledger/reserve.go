package ledger

import "github.com/quorate/quorate/quota"

// confirm makes a reservation held for good. What it moved or preempted stays as it is.
func (l *Ledger) confirm(c quota.Confirm, m mode) Outcome {
	out := l.allocations.confirmable(c.ID)
	if out.Refused != nil || out.Repeated || m == dryRun {
		return out
	}
	confirmed, more := *out.Allocation, *out.Allocation.more
	more.until, more.displaced, more.undo = 0, nil, nil
	if more.lease != nil {
		begun := *more.lease
		begun.begin(l.now)
		more.lease = &begun
	}
	confirmed.more = &more
	confirmed.settleAddresses()
	l.refile(&confirmed)
	l.allocations.noLongerReserved(&confirmed)
	l.journal.fact(FactConfirmed, &confirmed)
	return Outcome{Allocation: &confirmed}
}

// confirmable says what a confirmation would make held, or what is so already; it changes nothing. A reservation whose
// time is over is refused even if no Expire has come for it yet: whoever reads the clock of the log is never surprised.
func (s *allocations) confirmable(id string) Outcome {
	out := s.releasable(id)
	a := out.Allocation
	switch {
	case out.Refused != nil:
		return out
	case a.ended != nil:
		return Outcome{Refused: quota.Errorf(quota.Ended, "id", "allocation %q has ended%s and holds nothing any more; ask again under another id", a.id, a.how())}
	case a.waits():
		return Outcome{Refused: quota.Errorf(quota.InUse, "id", "request %q waits and holds nothing that could be confirmed; wait until it is granted, or cancel it", a.id)}
	case a.state() == quota.Held:
		return Outcome{Allocation: a.relocated(), Repeated: true}
	case a.more.until <= s.now.At:
		return Outcome{Refused: quota.Errorf(quota.Ended, "id", "reservation %q lapsed at %d ms of ledger time, and now it is %d; ask again under another id", a.id, a.more.until, s.now.At)}
	}
	return Outcome{Allocation: a}
}

// cancel ends a reservation and puts back what it displaced; a request that waits leaves the queue.
func (l *Ledger) cancel(c quota.Cancel, m mode) Outcome {
	out := l.allocations.cancellable(c.ID)
	if out.Refused != nil || out.Repeated || m == dryRun {
		return out
	}
	if a := out.Allocation; a.waits() {
		return Outcome{Allocation: l.drop(l.queue.waiterOf(a), quota.Cancelled, "")}
	}
	ended, restored := l.undo(out.Allocation, quota.Cancelled)
	return Outcome{Allocation: ended, Restored: restored}
}

// cancellable says what a cancellation would end, or what has ended before, in whatever way; it changes nothing.
func (s *allocations) cancellable(id string) Outcome {
	out := s.releasable(id)
	if out.Refused == nil && out.Allocation.state() == quota.Held {
		return Outcome{Refused: quota.Errorf(quota.InUse, "id", "allocation %q is not a reservation, or confirmed already; release it", out.Allocation.id)}
	}
	return out
}

// undo ends a reservation that was not confirmed, and puts back what it displaced if all of that is still possible.
// If nothing came in between, everything is as it was before the reservation (docs/adr/0059).
func (l *Ledger) undo(a *Allocation, state quota.State) (ended *Allocation, restored []string) {
	unchanged := l.unchangedSince(a)
	l.allocations.held.Delete(a.fence)
	for i := range a.claims {
		l.unbook(a, i)
	}
	if !unchanged {
		l.inventory.giveAll(a, a.asFound())
	}
	ended = l.bury(a, state, "")
	if state == quota.Expired {
		l.journal.note(quota.Event{Kind: quota.EventExpired, ID: a.id})
	}
	if unchanged {
		if restored, ok := l.restoreExactly(a); ok {
			return ended, restored
		}
		l.inventory.giveAll(a, a.asFound())
	}
	restored = l.putBack(a)
	l.forest.markChangedBy(a)
	l.inventory.announce(a)
	return ended, restored
}
