package state

import "github.com/quorate/quorate/quota"

// tombstoneOver is true if the id may be used again.
func (s *Allocations) tombstoneOver(a *Allocation) bool { return s.spanOver(a) && !s.mayHoldAgain(a) }

func (e *Environment) spanOver(a *Allocation) bool {
	return e.Now.At-a.Ended.At >= quota.Instant(e.Bounds.TombstoneSpan)
}

// mayHoldAgain is true for a victim of a reservation that is neither confirmed nor ended.
func (s *Allocations) mayHoldAgain(a *Allocation) bool {
	if a.Ended.State != quota.WasPreempted {
		return false
	}
	cause := s.ByID.Find(a.Ended.By)
	return cause != nil && cause.Ended == nil && cause.State() == quota.Reserved && cause.Granted.At == a.Ended.At
}

// RemoveTombstone drops one tombstone. Its id may belong to a later allocation by now.
func (s *Allocations) RemoveTombstone(number uint64, a *Allocation) {
	s.Ended.Delete(number)
	s.ByID.Remove(a)
}

// ForgetOldestTombstone drops the oldest tombstone that is not needed any more, if its span is over.
func (s *Allocations) ForgetOldestTombstone() {
	for number, oldest := range s.Ended.From(s.neededUpTo + 1) {
		if s.tombstoneOver(oldest) {
			s.RemoveTombstone(number, oldest)
			return
		}
		if !s.spanOver(oldest) {
			return
		}
		s.neededUpTo = number
	}
}

// NoLongerReserved releases the tombstones of victims that cannot be restored any more.
func (s *Allocations) NoLongerReserved(a *Allocation) {
	if len(a.More.Preempted) > 0 {
		s.neededUpTo = 0
	}
}

// KeepTombstone keeps the record of an ended allocation, which reserves its id for a while. Beyond the bounds the
// oldest tombstone is dropped early.
func (s *Allocations) KeepTombstone(a *Allocation) {
	s.Endings++
	s.Ended.Set(s.Endings, a)
	s.ByID.Put(a)
	for s.tooManyEnded() {
		number, oldest, _ := s.Ended.Min()
		s.RemoveTombstone(number, oldest)
	}
}

// tooManyEnded is true if the tombstones exceed a bound. The newest is always kept.
func (s *Allocations) tooManyEnded() bool {
	return s.Ended.Len() > s.Bounds.Ended || s.BoundsBytes() && s.Ended.bytes > s.Bounds.EndedBytes && s.Ended.Len() > 1
}

// ForgetData drops the user data of an ended allocation, unless it may yet be restored.
func (a *Allocation) ForgetData() {
	if a.More == nil || a.More.Lease == nil || a.Ended.State == quota.WasPreempted {
		return
	}
	more, without := *a.More, *a.More.Lease
	if len(without.AskedData)+len(without.Data) == 0 {
		return
	}
	without.AskedData, without.Data = nil, nil
	more.Lease, a.More = &without, &more
}

// WithoutData is the allocation for a caller that does not own it.
func (a *Allocation) WithoutData() *Allocation {
	if a.More == nil || a.More.Lease == nil || a.More.Lease.Data == nil && a.More.Lease.AskedData == nil {
		return a
	}
	updated, more, lease := *a, *a.More, *a.More.Lease
	lease.Data, lease.AskedData = nil, nil
	more.Lease, updated.More = &lease, &more
	return &updated
}
