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
	l.deadlines.drop(dueKey{dueAllocation, a.fence})
	if a.state() == quota.Reserved {
		l.allocations.noLongerReserved(a)
	}
	l.allocations.inter(&t.Allocation)
	l.journal.fact(FactEnded, &t.Allocation)
	l.queue.freed(a)
	l.queue.countRevoked(a, -1)
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
func (s *allocations) inter(a *Allocation) {
	s.endings++
	s.ended.Set(s.endings, a)
	s.byID[a.id] = a
	for s.tooManyEnded() {
		number, oldest, _ := s.ended.Min()
		s.unbury(number, oldest)
	}
}

// tooManyEnded is true if the tombstones pass a bound of theirs. The newest always stays.
func (s *allocations) tooManyEnded() bool {
	return s.ended.Len() > s.bounds.Ended || s.boundsBytes() && s.ended.bytes > s.bounds.EndedBytes && s.ended.Len() > 1
}

// forgetOldest drops the oldest tombstone that is not needed any more, if its span is over.
func (s *allocations) forgetOldest() {
	for number, oldest := range s.ended.From(s.neededUpTo + 1) {
		if s.tombstoneOver(oldest) {
			s.unbury(number, oldest)
			return
		}
		if !s.spanOver(oldest) {
			return
		}
		s.neededUpTo = number
	}
}

// tombstoneOver is true if an id is free again.
func (s *allocations) tombstoneOver(a *Allocation) bool { return s.spanOver(a) && !s.mayHoldAgain(a) }

func (e *environment) spanOver(a *Allocation) bool {
	return e.now.At-a.ended.At >= quota.Instant(e.bounds.TombstoneSpan)
}

// mayHoldAgain is true for a victim of a reservation that is neither confirmed nor ended, since LevelFive.
func (s *allocations) mayHoldAgain(a *Allocation) bool {
	if s.level < quota.LevelFive || a.ended.state != quota.WasPreempted {
		return false
	}
	by := s.byID[a.ended.by]
	return by != nil && by.ended == nil && by.state() == quota.Reserved && by.granted.At == a.ended.At
}

// noLongerReserved lets the tombstones of victims be forgotten of which nobody can hold again.
func (s *allocations) noLongerReserved(a *Allocation) {
	if len(a.more.preempted) > 0 {
		s.neededUpTo = 0
	}
}

// unbury drops one tombstone; its id may stand for a younger allocation by now.
func (s *allocations) unbury(number uint64, a *Allocation) {
	s.ended.Delete(number)
	if s.byID[a.id] == a {
		delete(s.byID, a.id)
	}
}
