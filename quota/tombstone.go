package quota

// tombstone is an ended allocation in one piece of memory with its end.
type tombstone struct {
	Allocation
	end Stamp
}

// bury keeps the record of an ended allocation, so that its id is not used again for a while. Beyond the bound the
// oldest tombstone goes early.
func (l *Ledger) bury(a *Allocation) {
	l.endings++
	l.ended.Set(l.endings, a)
	l.byID[a.id] = a
	if l.ended.Len() > l.bounds.Ended {
		number, oldest, _ := l.ended.Min()
		l.unbury(number, oldest)
	}
}

// forgetOldest drops the oldest tombstone if its span is over.
func (l *Ledger) forgetOldest() {
	if number, oldest, ok := l.ended.Min(); ok && l.tombstoneOver(oldest) {
		l.unbury(number, oldest)
	}
}

func (l *Ledger) tombstoneOver(a *Allocation) bool {
	return l.now.At-a.ended.At >= Instant(l.bounds.TombstoneSpan)
}

// unbury drops one tombstone; its id may stand for a younger allocation by now.
func (l *Ledger) unbury(number uint64, a *Allocation) {
	l.ended.Delete(number)
	if l.byID[a.id] == a {
		delete(l.byID, a.id)
	}
}
