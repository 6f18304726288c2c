package ledger

import "github.com/quorate/quorate/quota"

// expireDue ends or changes what is due, in the order of the instants; at one instant, what is due in ledger time by
// kind and number, then what is due in civil time. Before something is taken away, the queue is retried with what
// became free at an earlier instant, so that several instants in one command do as much as one command for each.
func (l *Ledger) expireDue(c quota.Expire, m mode) Outcome {
	if err := checkMost(c.Most); err != nil || m == dryRun {
		return Outcome{Refused: err}
	}
	var out Outcome
	freed := quota.Instant(0) // when the first dirty queue became so
	for out.Expired < c.Most {
		next, isDue := l.nextDue()
		if !isDue {
			break
		}
		isClean := l.queue.dirty.Len() == 0
		if !isClean && freed < next.at && next.takesAway() {
			l.drainQueue()
			continue
		}
		if next.kind == dueSchedule {
			l.calendar.fire(next.number)
		} else {
			out.Restored = append(out.Restored, l.fireDeadline(next.dueKey)...)
		}
		if isClean {
			freed = next.at
		}
		out.Expired++
	}
	return out
}

// fireDeadline carries out one deadline. It returns the ids of the allocations that are restored by it.
func (l *Ledger) fireDeadline(k dueKey) (restored []string) {
	switch k.kind {
	case dueAllocation:
		a, _ := l.allocations.held.Get(k.number)
		return l.expireAllocation(a)
	case dueWaiter:
		l.dropOverdue(l.queue.byArrival[k.number])
	case dueItem:
		l.inventory.advanceItem(k.number)
	case dueHold:
		l.endHold(l.forest.onHold[k.number])
	case dueDrain:
		n := l.forest.onHold[k.number]
		l.drainFrom(n, n.hold.DrainAfter)
	case dueRequest:
		open := l.requests.find(k.number)
		closed := l.requests.close(open, quota.RequestExpired, "", "it was not decided in time")
		l.journal.changes = append(l.journal.changes, requestChange(open, closed))
	case dueSchedule: // in the heap of the calendar
	}
	return nil
}
