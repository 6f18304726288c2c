package check

import (
	"github.com/quorate/quorate/chaos/history"
)

// drift is what clocks may differ by: a part of a thousand, and some milliseconds of rounding, one for each leader.
func drift(span int64) int64 { return span/1000 + 20e6 }

// neverEarly (P4): a lease that was renewed in time does not end, by ledger time as the log says it, and by the clock of its
// holder: a TTL after the renewal was sent at the earliest.
func (s *story) neverEarly() *Verdict {
	v := &Verdict{Promise: "P4", Title: "never early: no lease ends before its time", Saw: map[string]int{}}
	for _, l := range s.lives {
		if !l.leased() || !l.happened() {
			continue
		}
		v.saw("leases", 1)
		v.saw("renewals", len(l.renews))
		l.notEarlyByLedger(v)
		l.notEarlyByClock(v)
	}
	return v
}

// notEarlyByLedger looks at ends that a watch saw: at that ledger time every promise that was made before was over.
func (l *life) notEarlyByLedger(v *Verdict) {
	for _, end := range l.sightings {
		if end.op == nil || end.op.Change != "ENDED" || end.state != history.Expired {
			continue
		}
		v.saw("expiries", 1)
		if promised := l.promised(end.index); end.op.Ledger < promised {
			v.broken("%s expired at ledger time %d (index %d), but was to last until %d", l.id, end.op.Ledger, end.index, promised)
		}
	}
}

// promised is the ledger time until which it was to last, as its last answer before an index said. A confirmed reservation
// lasts, so nothing is promised by what was said before.
func (l *life) promised(index uint64) int64 {
	var until int64
	var at uint64
	for _, s := range l.sightings { // in the order of the log, but in any order within one index
		if !s.holds() || s.index >= index || s.expires == 0 {
			continue
		}
		if s.index > at || s.expires < until {
			at, until = s.index, s.expires
		}
	}
	return until
}

// surelyUntil is until when a lease lasts as its holder counts: its TTL from when the last renewal was sent that was
// answered. The answer to a request that waited may be of a grant from before it was asked for, so its TTL says nothing.
func (l *life) surelyUntil() int64 {
	return l.surelyUntilAsked(never)
}

// surelyUntilAsked only counts what was answered before an instant.
func (l *life) surelyUntilAsked(before int64) int64 {
	until := int64(0)
	for _, s := range l.sightings {
		if s.op == nil || s.back >= before || !s.holds() {
			continue
		}
		switch {
		case s.op.Kind == history.Renew && s.op.Outcome == history.OK:
			until = max(until, s.call+l.ttlOf(s)*1e6)
		case s.op.Kind == history.Allocate && s.first:
			until = max(until, s.call+l.ask().TTL*1e6)
		}
	}
	return until
}

// ttlOf is what a renewal extended by.
func (l *life) ttlOf(s sighting) int64 {
	if s.op.TTL > 0 {
		return s.op.TTL
	}
	return l.ask().TTL
}

// longest is the longest TTL that it ever had, in milliseconds.
func (l *life) longest() int64 {
	longest := l.ask().TTL
	for _, o := range l.renews {
		longest = max(longest, o.TTL)
	}
	return longest
}

// notEarlyByClock looks for the first answer that says that it is over, although nobody ended it.
func (l *life) notEarlyByClock(v *Verdict) {
	if l.gone == never || l.given < l.gone || l.ask().Mode == history.Reserve {
		return
	}
	until := l.surelyUntilAsked(l.gone)
	v.saw("ended leases", 1)
	if l.gone+drift(l.longest()*1e6) < until {
		v.broken("%s was over at %d ms, but renewed until %d ms as its holder counts", l.id, l.gone/1e6, until/1e6)
	}
}
