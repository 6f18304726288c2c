package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
)

// releaseAllocation ends an allocation and refunds it, or returns only some items and keeps the rest. A waiting request
// leaves the queue.
func (l *Ledger) releaseAllocation(c quota.Release, m mode) Outcome {
	out := l.allocations.checkRelease(c)
	if out.Refused != nil || out.Repeated || m == dryRun {
		return out
	}
	end := ending{state: quota.Released, reason: l.releaseByOther(out.Allocation)}
	if a := out.Allocation; a.isWaiting() && len(c.Items) == 0 {
		end.state = quota.Cancelled
		return Outcome{Allocation: l.dropWaiter(l.queue.waiterOf(a), end)}
	}
	if len(c.Items) > 0 {
		return Outcome{Allocation: l.takeAway(out.Allocation, out.Allocation.itemsNamed(c.Items), c.ItemState, end)}
	}
	if c.ItemState != "" {
		l.inventory.returnItems(out.Allocation, func(*placedClaim, *item) string { return c.ItemState })
	}
	return Outcome{Allocation: l.endAllocation(out.Allocation, end)}
}

// itemsNamed are the items of the allocation that a list names.
func (a *Allocation) itemsNamed(names []quota.ItemName) itemSet {
	named := map[quota.ItemName]bool{}
	for _, n := range names {
		named[n] = true
	}
	list := itemSet{}
	for _, it := range a.heldItems() {
		if named[quota.ItemName{Tree: it.stock.tree, Resource: it.stock.resource.Name, Name: it.name}] {
			list[it.stateSeq] = true
		}
	}
	return list
}

// endAllocation ends a held allocation and refunds it.
func (l *Ledger) endAllocation(a *Allocation, end ending) *Allocation {
	l.allocations.held.Delete(a.fence)
	for i := range a.claims {
		l.allocations.refundClaim(a, i)
	}
	for i := range a.claims {
		l.allocations.reclaimAt(a.claims[i].at)
	}
	l.forest.markChangedBy(a)
	if !a.wantsItems() {
		return l.keepEnded(a, end)
	}
	l.inventory.returnItems(a, itemsAfter(end.state))
	ended := l.keepEnded(a, end)
	l.inventory.announceReturned(a)
	return ended
}

// checkRelease is findToRelease for a Release; it also refuses an invalid state or list of items.
func (s *allocations) checkRelease(c quota.Release) Outcome {
	if err := checkStates("item_state", c.ItemState); err != nil {
		return Outcome{Refused: err}
	}
	if n := len(c.Items); n > s.bounds.Picks {
		return Outcome{Refused: quota.Errorf(quota.Invalid, "items",
			"%d items are given back; at most %d are allowed at once, or all of them without naming any", n,
			s.bounds.Picks)}
	}
	out := s.findToRelease(c.ID)
	if a := out.Allocation; a != nil && !out.Repeated && len(c.Items) > 0 && len(a.itemsNamed(c.Items)) == 0 {
		return Outcome{Allocation: a.withCurrentPlaces(), Repeated: true}
	}
	return out
}

// findToRelease returns the allocation to release, or one that has ended already; it changes nothing.
func (s *allocations) findToRelease(id string) Outcome {
	if err := checkID(id); err != nil {
		return Outcome{Refused: err}
	}
	a := s.findByID(id)
	if a == nil {
		return Outcome{Refused: s.noAllocation(id)}
	}
	return Outcome{Allocation: a, Repeated: a.ended != nil}
}

// noAllocation is the refusal of an id that is not known, or that the caller may not know.
func (s *allocations) noAllocation(id string) *quota.Error {
	return quota.Errorf(quota.NotFound, "id",
		"no allocation %q is held, waits or has ended lately; list what is held to find its id", quota.Clip(id))
}

// nextDue is what is due first, in ledger time or in civil time; false if nothing is.
func (l *Ledger) nextDue() (deadline, bool) {
	next, waits := l.deadlines.next()
	waits = waits && next.at <= l.now.At
	scheduled, isDue := l.calendar.nextDue()
	if !isDue {
		return next, waits
	}
	scheduled.at -= quota.Instant(l.civil.offset)
	if waits && next.at <= scheduled.at {
		return next, true
	}
	return scheduled, true
}

// takesAway is true for a deadline at which requests may lose their place, items or a limit.
func (d *deadline) takesAway() bool {
	return d.kind == dueWaiter || d.kind == dueItem || d.kind == dueSchedule
}

func checkMost(most int) *quota.Error {
	if most < 1 || most > quota.MaxExpire {
		return quota.Errorf(quota.Invalid, "most", "an expiry ends 1 to %d reservations, leases and the like, not %d",
			quota.MaxExpire, most)
	}
	return nil
}

// expireAllocation ends an allocation that was not confirmed or renewed in time. A reservation restores what it
// displaced, like a cancellation; a lease under revocation counts as preempted.
func (l *Ledger) expireAllocation(a *Allocation) (restored []string) {
	if a.State() == quota.Reserved {
		_, restored = cancellation{l}.undoReservation(a, ending{state: quota.Expired})
		return restored
	}
	if a.endsAsDeclared() {
		l.endAllocation(a, ending{state: quota.Expired})
		l.journal.noteEvent(quota.Event{Kind: quota.EventDeclaredEnd, ID: a.id})
		return nil
	}
	if is := a.lease(); is.revokedBy != "" {
		l.endAllocation(a, ending{state: quota.WasPreempted, by: is.revokedBy})
		l.journal.noteEvent(quota.Event{Kind: quota.EventPreempted, ID: a.id, By: is.revokedBy, Reason: is.reason})
		return nil
	}
	l.endAllocation(a, ending{state: quota.Expired})
	l.journal.noteEvent(quota.Event{Kind: quota.EventExpired, ID: a.id})
	return nil
}

// tombstone is an ended allocation and its end in one piece of memory.
type tombstone struct {
	Allocation
	end ending
}

// largeTombstone has the claims too, which otherwise would keep the whole record of the held allocation in memory.
type largeTombstone struct {
	tombstone
	inlineClaim
}

// newTombstone copies the record of an allocation that has just ended.
func newTombstone(a *Allocation, end ending) *Allocation {
	if a.isShareable() {
		t := &tombstone{*a, end}
		t.ended = &t.end
		return &t.Allocation
	}
	t := &largeTombstone{tombstone: tombstone{*a, end}}
	t.ended = &t.end
	t.copyClaims(&t.Allocation)
	return &t.Allocation
}

// keepEnded makes the tombstone of an allocation that ends now.
func (l *Ledger) keepEnded(a *Allocation, end ending) *Allocation {
	end.Stamp = l.now
	t := newTombstone(a, end)
	t.forgetData()
	t.forgetItems()
	t.forgetUndo()
	if resize := a.waitingResize(); resize != nil {
		l.queue.removeWaiter(l.queue.waiterOf(resize))
		t.more = t.withResize(nil, resize.generation()).more
	}
	t.updateAddresses()
	l.deadlines.drop(dueKey{dueAllocation, a.fence})
	if a.State() == quota.Reserved {
		l.allocations.noLongerReserved(a)
	}
	l.allocations.keepTombstone(t)
	l.journal.noteFact(FactEnded, t)
	l.queue.unblockFreed(a)
	l.queue.countRevocation(a, -1)
	return t
}

// withCurrentPlaces is the record itself or, if nodes have moved since it was made, a copy with their present paths.
func (a *Allocation) withCurrentPlaces() *Allocation {
	for i := range a.claims {
		if c := &a.claims[i]; c.placed != c.at.address {
			is := *a
			is.updateAddresses()
			return &is
		}
	}
	return a
}

// withoutData is the allocation for a caller that does not own it.
func (a *Allocation) withoutData() *Allocation {
	if a.more == nil || a.more.lease == nil || a.more.lease.data == nil && a.more.lease.askedData == nil {
		return a
	}
	is, more, lease := *a, *a.more, *a.more.lease
	lease.data, lease.askedData = nil, nil
	more.lease, is.more = &lease, &more
	return &is
}

// updateAddresses records the final paths of the nodes where the claims were counted.
func (a *Allocation) updateAddresses() {
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

// forgetData drops the user data of an ended allocation, unless it may yet be restored.
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

// describeEnd describes how an allocation ended, other than by a release.
func (a *Allocation) describeEnd() string {
	switch a.ended.state {
	case quota.WasPreempted:
		return " (preempted by " + a.ended.by + ")"
	case quota.Expired:
		if a.ended.by != "" {
			return " (" + a.ended.by + ")"
		}
		if a.endsAsDeclared() {
			return " (its declared time was over)"
		}
		switch is := a.lease(); {
		case is.unclaimed && is.ttl == 0:
			return " (granted from the queue, and not collected in time)"
		case is.expires > 0:
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

// keepTombstone keeps the record of an ended allocation, which reserves its id for a while. Beyond the bounds the
// oldest tombstone is dropped early.
func (s *allocations) keepTombstone(a *Allocation) {
	s.endings++
	s.ended.Set(s.endings, a)
	s.byID.Put(a)
	for s.tooManyEnded() {
		number, oldest, _ := s.ended.Min()
		s.removeTombstone(number, oldest)
	}
}

// tooManyEnded is true if the tombstones exceed a bound. The newest is always kept.
func (s *allocations) tooManyEnded() bool {
	return s.ended.Len() > s.bounds.Ended || s.boundsBytes() && s.ended.bytes > s.bounds.EndedBytes && s.ended.Len() > 1
}

// forgetOldestTombstone drops the oldest tombstone that is not needed any more, if its span is over.
func (s *allocations) forgetOldestTombstone() {
	for number, oldest := range s.ended.From(s.neededUpTo + 1) {
		if s.tombstoneOver(oldest) {
			s.removeTombstone(number, oldest)
			return
		}
		if !s.spanOver(oldest) {
			return
		}
		s.neededUpTo = number
	}
}

// tombstoneOver is true if the id may be used again.
func (s *allocations) tombstoneOver(a *Allocation) bool { return s.spanOver(a) && !s.mayHoldAgain(a) }

func (e *environment) spanOver(a *Allocation) bool {
	return e.now.At-a.ended.At >= quota.Instant(e.bounds.TombstoneSpan)
}

// mayHoldAgain is true for a victim of a reservation that is neither confirmed nor ended.
func (s *allocations) mayHoldAgain(a *Allocation) bool {
	if a.ended.state != quota.WasPreempted {
		return false
	}
	by := s.byID.Find(a.ended.by)
	return by != nil && by.ended == nil && by.State() == quota.Reserved && by.granted.At == a.ended.At
}

// noLongerReserved releases the tombstones of victims that cannot be restored any more.
func (s *allocations) noLongerReserved(a *Allocation) {
	if len(a.more.preempted) > 0 {
		s.neededUpTo = 0
	}
}

// removeTombstone drops one tombstone. Its id may belong to a later allocation by now.
func (s *allocations) removeTombstone(number uint64, a *Allocation) {
	s.ended.Delete(number)
	s.byID.Remove(a)
}
