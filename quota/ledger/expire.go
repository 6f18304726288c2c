package ledger

import "github.com/quorate/quorate/quota"

// expire ends or changes what is due, in the order of the instants, and within one by kind and number.
func (l *Ledger) expire(c quota.Expire, m mode) Outcome {
	if err := checkMost(c.Most); err != nil || m == dryRun {
		return Outcome{Refused: err}
	}
	var out Outcome
	for out.Expired < c.Most {
		next, waits := l.deadlines.next()
		if !waits || next.at > l.now.At {
			break
		}
		out.Restored = append(out.Restored, l.happen(next.dueKey)...)
		out.Expired++
	}
	return out
}

func checkMost(most int) *quota.Error {
	if most < 1 || most > quota.MaxExpire {
		return quota.Errorf(quota.Invalid, "most", "an expiry ends 1 to %d reservations, leases and the like, not %d", quota.MaxExpire, most)
	}
	return nil
}

// happen does what is due. It answers the ids of those that hold again by it.
func (l *Ledger) happen(k dueKey) (restored []string) {
	switch k.kind {
	case dueAllocation:
		a, _ := l.allocations.held.Get(k.number)
		return l.lapse(a)
	case dueWaiter:
		l.giveUp(l.queue.byArrival[k.number])
	case dueItem:
		l.inventory.turnItem(k.number)
	}
	return nil
}

// lapse ends what was not confirmed or renewed in time. A reservation puts back what it displaced, just as a cancellation
// does; a lease that had to give way counts as preempted.
func (l *Ledger) lapse(a *Allocation) (restored []string) {
	if a.state() == quota.Reserved {
		_, restored = l.undo(a, quota.Expired)
		return restored
	}
	if by := a.lease().revokedBy; by != "" {
		l.end(a, quota.WasPreempted, by)
		l.journal.note(quota.Event{Kind: quota.EventPreempted, ID: a.id, By: by})
		return nil
	}
	l.end(a, quota.Expired, "")
	l.journal.note(quota.Event{Kind: quota.EventExpired, ID: a.id})
	return nil
}
