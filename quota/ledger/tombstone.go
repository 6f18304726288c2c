package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
)

// tombstone is an ended allocation in one piece of memory with its end.
type tombstone struct {
	Allocation
	end ending
}

// bury makes the tombstone of an allocation that has ended now.
func (l *Ledger) bury(a *Allocation, state quota.State, by string) *Allocation {
	t := &tombstone{Allocation: *a, end: ending{Stamp: l.now, state: state, by: by}}
	t.ended = &t.end
	t.forgetData()
	t.forgetItems()
	t.forgetUndo()
	t.settleAddresses()
	l.due.drop(dueKey{dueAllocation, a.fence})
	if a.state() == quota.Reserved {
		l.noLongerReserved(a)
	}
	l.inter(&t.Allocation)
	l.fact(FactEnded, &t.Allocation)
	l.freed(a)
	l.countRevoked(a, -1)
	return &t.Allocation
}

// relocated is the record, or if nodes have moved since it was made, a copy that says where its claims are counted now.
func (a *Allocation) relocated() *Allocation {
	for i := range a.claims {
		if c := &a.claims[i]; c.placed != c.at.address {
			is := *a
			is.settleAddresses()
			return &is
		}
	}
	return a
}

// settleAddresses makes the record say where its claims were counted in the end.
func (a *Allocation) settleAddresses() {
	for i := range a.claims {
		if c := &a.claims[i]; c.placed != c.at.address {
			a.claims = slices.Clone(a.claims)
			break
		}
	}
	for i := range a.claims {
		if c := &a.claims[i]; c.placed != c.at.address {
			c.placed = c.at.address
		}
	}
}

// forgetData drops the user data of what has ended, but of what may yet be put back.
func (a *Allocation) forgetData() {
	if a.more == nil || a.more.lease == nil || a.ended.state == quota.WasPreempted {
		return
	}
	more, without := *a.more, *a.more.lease
	if len(without.askedData)+len(without.data) == 0 {
		return
	}
	without.askedData, without.data = nil, nil
	more.lease, a.more = &without, &more
}

// how says in words how an allocation ended, beyond a plain release.
func (a *Allocation) how() string {
	switch a.ended.state {
	case quota.WasPreempted:
		return " (preempted by " + a.ended.by + ")"
	case quota.Expired:
		if a.ended.by != "" {
			return " (" + a.ended.by + ")"
		}
		if a.lease().expires > 0 {
			return " (not renewed in time)"
		}
		return " (not confirmed in time)"
	case quota.Cancelled:
		if a.ended.by != "" {
			return " (cancelled by " + a.ended.by + ")"
		}
		return " (cancelled)"
	case quota.TimedOut:
		return " (not granted in time)"
	case quota.Abandoned:
		return " (its caller did not come back)"
	case quota.Held, quota.Reserved, quota.Released, quota.Waiting:
	}
	return ""
}

// inter keeps the record of an ended allocation, so that its id is not used again for a while. Beyond the bound the
// oldest tombstone goes early.
func (l *Ledger) inter(a *Allocation) {
	l.endings++
	l.ended.Set(l.endings, a)
	l.byID[a.id] = a
	for l.tooManyEnded() {
		number, oldest, _ := l.ended.Min()
		l.unbury(number, oldest)
	}
}

// tooManyEnded is true if the tombstones pass a bound of theirs. The newest always stays.
func (l *Ledger) tooManyEnded() bool {
	return l.ended.Len() > l.bounds.Ended || l.boundsBytes() && l.ended.bytes > l.bounds.EndedBytes && l.ended.Len() > 1
}

// forgetOldest drops the oldest tombstone that is not needed any more, if its span is over.
func (l *Ledger) forgetOldest() {
	for number, oldest := range l.ended.From(l.neededUpTo + 1) {
		if l.tombstoneOver(oldest) {
			l.unbury(number, oldest)
			return
		}
		if !l.spanOver(oldest) {
			return
		}
		l.neededUpTo = number
	}
}

// tombstoneOver is true if an id is free again.
func (l *Ledger) tombstoneOver(a *Allocation) bool { return l.spanOver(a) && !l.mayHoldAgain(a) }

func (l *Ledger) spanOver(a *Allocation) bool {
	return l.now.At-a.ended.At >= quota.Instant(l.bounds.TombstoneSpan)
}

// mayHoldAgain is true for a victim of a reservation that is neither confirmed nor ended, since LevelFive.
func (l *Ledger) mayHoldAgain(a *Allocation) bool {
	if l.level < quota.LevelFive || a.ended.state != quota.WasPreempted {
		return false
	}
	by := l.byID[a.ended.by]
	return by != nil && by.ended == nil && by.state() == quota.Reserved && by.granted.At == a.ended.At
}

// noLongerReserved lets the tombstones of victims be forgotten of which nobody can hold again.
func (l *Ledger) noLongerReserved(a *Allocation) {
	if len(a.more.preempted) > 0 {
		l.neededUpTo = 0
	}
}

// unbury drops one tombstone; its id may stand for a younger allocation by now.
func (l *Ledger) unbury(number uint64, a *Allocation) {
	l.ended.Delete(number)
	if l.byID[a.id] == a {
		delete(l.byID, a.id)
	}
}
