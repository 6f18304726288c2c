package check

import (
	"github.com/quorate/quorate/chaos/history"
)

// allowedDrift is what clocks may differ by: a part of a thousand, and some milliseconds of rounding, one for each leader.
func allowedDrift(span int64) int64 { return span/1000 + 20e6 }

// checkNeverEarly (P4): a lease that was renewed in time does not end, by ledger time as the log says it, and by the clock of its
// holder: a TTL after the renewal was sent at the earliest.
func (s *timeline) checkNeverEarly() *Verdict {
	v := &Verdict{Promise: "P4", Title: "never early: no lease ends before its time", Counts: map[string]int{}}
	for _, l := range s.allocations {
		if !l.isLeased() || !l.wasGranted() {
			continue
		}
		v.count("leases", 1)
		v.count("renewals", len(l.renewCalls))
		l.checkExpiryByLedger(v)
		l.checkExpiryByClock(v)
	}
	return v
}

// checkExpiryByLedger looks at ends that a watch saw: at that ledger time every promise that was made before was over.
func (l *allocationHistory) checkExpiryByLedger(v *Verdict) {
	for _, end := range l.observations {
		if end.op == nil || end.op.Change != "ENDED" || end.state != history.Expired {
			continue
		}
		v.count("expiries", 1)
		if promised := l.promisedUntil(end.index); end.op.Ledger < promised {
			v.addViolation("%s expired at ledger time %d (index %d), but was to last until %d", l.id, end.op.Ledger, end.index, promised)
		}
	}
}

// promisedUntil is the ledger time until which it was to last, as its last answer before an index said. A confirmed reservation
// lasts, so nothing is promised by what was said before.
func (l *allocationHistory) promisedUntil(index uint64) int64 {
	var until int64
	var at uint64
	for _, s := range l.observations { // in the order of the log, but in any order within one index
		if !s.isHeld() || s.index >= index || s.expires == 0 {
			continue
		}
		if s.index > at || s.expires < until {
			at, until = s.index, s.expires
		}
	}
	return until
}

// guaranteedUntil is until when a lease lasts as its holder counts: its TTL from when the last renewal was sent that was
// answered. The answer to a request that waited may be of a grant from before it was asked for, so its TTL says nothing.
func (l *allocationHistory) guaranteedUntil() int64 {
	return l.guaranteedUntilBefore(never)
}

// guaranteedUntilBefore only counts what was answered before an instant.
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

// renewedTTL is what a renewal extended by.
func (l *allocationHistory) renewedTTL(s observation) int64 {
	if s.op.TTL > 0 {
		return s.op.TTL
	}
	return l.firstRequest().TTL
}

// longestTTL is the longest TTL that it ever had, in milliseconds.
func (l *allocationHistory) longestTTL() int64 {
	longest := l.firstRequest().TTL
	for _, o := range l.renewCalls {
		longest = max(longest, o.TTL)
	}
	return longest
}

// checkExpiryByClock looks for the first answer that says that it is over, although nobody ended it.
func (l *allocationHistory) checkExpiryByClock(v *Verdict) {
	if l.goneAt == never || l.endAskedAt < l.goneAt || l.firstRequest().Mode == history.Reserve {
		return
	}
	until := l.guaranteedUntilBefore(l.goneAt)
	v.count("ended leases", 1)
	if l.goneAt+allowedDrift(l.longestTTL()*1e6) < until {
		v.addViolation("%s was over at %d ms, but renewed until %d ms as its holder counts", l.id, l.goneAt/1e6, until/1e6)
	}
}
