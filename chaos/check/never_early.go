package check

import (
	"slices"

	"github.com/quorate/quorate/chaos/history"
)

// allowedDrift is by how much clocks may differ: a thousandth of the span, and some milliseconds of rounding for each
// leader.
func allowedDrift(span int64) int64 { return span/1000 + 20e6 }

// checkNeverEarly (P4): a lease that is renewed in time does not expire, neither by the ledger time in the log nor by
// the clock of its holder, who counts a TTL from when the renewal was sent. A declared end is kept to.
func (s *timeline) checkNeverEarly() *Verdict {
	v := &Verdict{Promise: "P4", Title: "never early: no lease ends before its time", Counts: map[string]int{}}
	times := s.ledgerTimes()
	for _, l := range s.allocations {
		if !l.endsByItself() || !l.wasGranted() {
			continue
		}
		v.Count("leases", 1)
		v.Count("renewals", len(l.renewCalls))
		l.checkExpiryByLedger(v)
		l.checkExpiryByClock(v)
		l.checkDeclaredEnd(v, times)
	}
	return v
}

// expiryDelay is by how much later than the first entry behind a declared end the allocation may still be held, in
// milliseconds of ledger time. The end is an entry of its own, which a leader proposes when the end is due; commands
// that came to it before stand before that entry, as do those of its batch.
const expiryDelay = 2000

// checkDeclaredEnd: nothing moves the end that an allocation has declared, and soon afterwards it is not held.
func (l *allocationHistory) checkDeclaredEnd(v *Verdict, times []int64) {
	if l.firstRequest().For == 0 {
		return
	}
	v.Count("declared ends", 1)
	var end, latest int64
	for _, s := range l.observations {
		if !s.isHeld() {
			continue
		}
		if end == 0 {
			end = s.expires
			latest = firstAfter(times, end) + expiryDelay
		}
		if s.expires != end {
			v.AddViolation("%s was to end at ledger time %d, but at index %d it ends at %d", l.id, end, s.index, s.expires)
		}
		if s.op != nil && s.op.Ledger > latest {
			v.AddViolation("%s was to end at ledger time %d and is held at %d (index %d)", l.id, end, s.op.Ledger, s.index)
		}
	}
}

// ledgerTimes are in ascending order.
func (s *timeline) ledgerTimes() []int64 {
	var times []int64
	for i := range s.ops {
		if s.ops[i].Ledger > 0 {
			times = append(times, s.ops[i].Ledger)
		}
	}
	slices.Sort(times)
	return slices.Compact(times)
}

// firstAfter returns the first of ascending times that is later than an end, or the end itself if none is.
func firstAfter(times []int64, end int64) int64 {
	i, _ := slices.BinarySearch(times, end+1)
	if i == len(times) {
		return end
	}
	return times[i]
}

// checkExpiryByLedger looks at expiries that a watch saw: no earlier answer may have promised a later ledger time.
func (l *allocationHistory) checkExpiryByLedger(v *Verdict) {
	for _, end := range l.observations {
		if end.op == nil || end.op.Change != "ENDED" || end.state != history.Expired {
			continue
		}
		v.Count("expiries", 1)
		if promised := l.promisedUntil(end.index); end.op.Ledger < promised {
			v.AddViolation("%s expired at ledger time %d (index %d), but was to last until %d", l.id, end.op.Ledger,
				end.index, promised)
		}
	}
}

// promisedUntil returns the ledger time that the last answer before an index promised. A confirmed reservation does
// not expire, so earlier answers promise nothing.
func (l *allocationHistory) promisedUntil(index uint64) int64 {
	var until int64
	var at uint64
	for _, s := range l.observations { // by index, but in any order within one index
		if !s.isHeld() || s.index >= index || s.expires == 0 {
			continue
		}
		if s.index > at || s.expires < until {
			at, until = s.index, s.expires
		}
	}
	return until
}

// guaranteedUntil returns until when the holder may rely on a lease: a TTL after it sent the last renewal that was
// answered. The answer to a waiting request may be of a grant that was made before the call, so its TTL guarantees
// nothing.
func (l *allocationHistory) guaranteedUntil() int64 {
	return l.guaranteedUntilBefore(never)
}

// guaranteedUntilBefore counts only answers before an instant.
func (l *allocationHistory) guaranteedUntilBefore(before int64) int64 {
	until := int64(0)
	for _, s := range l.observations {
		if s.op == nil || s.returned >= before || !s.isHeld() {
			continue
		}
		switch {
		case s.op.Kind == history.Renew && s.op.Outcome == history.OK:
			until = max(until, s.called+l.renewedTTL(s)*1e6)
		case s.op.Kind == history.Allocate && s.decisive:
			until = max(until, s.called+l.firstRequest().TTL*1e6)
		}
	}
	return until
}

// renewedTTL is in milliseconds.
func (l *allocationHistory) renewedTTL(s observation) int64 {
	if s.op.TTL > 0 {
		return s.op.TTL
	}
	return l.firstRequest().TTL
}

// longestTTL is in milliseconds.
func (l *allocationHistory) longestTTL() int64 {
	longest := l.firstRequest().TTL
	for _, o := range l.renewCalls {
		longest = max(longest, o.TTL)
	}
	return longest
}

// checkExpiryByClock looks at the first answer that says that a lease is over although no client ended it.
func (l *allocationHistory) checkExpiryByClock(v *Verdict) {
	if l.goneAt == never || l.endAskedAt < l.goneAt || l.firstRequest().Mode == history.Reserve {
		return
	}
	until := l.guaranteedUntilBefore(l.goneAt)
	v.Count("ended leases", 1)
	if l.goneAt+allowedDrift(l.longestTTL()*1e6) < until {
		v.AddViolation("%s was over at %d ms, but renewed until %d ms as its holder counts", l.id, l.goneAt/1e6,
			until/1e6)
	}
}
