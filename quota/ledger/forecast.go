package ledger

import (
	"slices"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

const (
	// maxForecastSteps bounds the instants that a forecast visits.
	maxForecastSteps = 10_000
	// forever is the end of what has no known end.
	forever = quota.Instant(1) << 61
)

// Forecast returns, by id, the instant of ledger time at which each waiting request is granted if nothing else is asked
// of the ledger: what has a known end ends then, everything else is held for ever, the callers in the queue stay until
// the end of their time, and requests are granted in the order of the queue. A known end is a declared one, or that of
// a revoked lease; holds and scheduled limits end and begin at theirs. Requests that are then never granted, or not
// within maxForecastSteps instants, are absent.
//
// It needs a copy made by CopyForPlans, and uses it up. The refusal says that the ledger holds too much to be copied.
// The instants depend on all holders, so nothing is known for a caller who may not read them on the whole cluster.
func (s Sandbox) Forecast() (map[string]quota.Instant, *quota.Error) {
	if s.FiltersHolders() {
		return nil, nil
	}
	l, granted := s.ledger, map[string]quota.Instant{}
	if l.queue.all.Len() == 0 {
		return granted, nil
	}
	if !l.isCopy {
		return nil, quota.Errorf(quota.Full, "certain_by",
			"with more than %d allocations, waiting requests and items nothing is foretold; ask without it", maxCopied)
	}
	l.forgetUnknownEnds()
	system := Origin{Caller: &access.Caller{Kind: access.System}, Index: 1}
	for range maxForecastSteps {
		at, waits := s.NextDue()
		if !waits || at >= forever || l.queue.all.Len() == 0 {
			break
		}
		l.ApplyFrom(quota.Stamp{At: at, Wall: s.wallNow()}, system, quota.Expire{Most: quota.MaxExpire})
		for _, f := range l.TakeFacts() {
			if f.Since != 0 && (f.Kind == FactGranted || f.Kind == FactResized) {
				granted[f.Allocation.id] = l.now.At
				l.forgetUnknownEnd(f.Allocation.fence)
			}
		}
	}
	return granted, nil
}

// forgetUnknownEnds makes everything last for ever that would end unless it is renewed or confirmed.
func (l *Ledger) forgetUnknownEnds() {
	var fences []uint64
	for fence := range l.allocations.held.All() {
		fences = append(fences, fence)
	}
	for _, fence := range fences {
		l.forgetUnknownEnd(fence)
	}
	for _, w := range slices.Collect(l.queue.all.All()) {
		if w.resizes != 0 { // it waits without its caller
			continue
		}
		place := *w.record.more.waiting
		place.keepUntil = place.until
		l.queue.replaceWaiting(w, place)
		l.deadlines.set(dueKey{dueWaiter, place.arrival}, place.endsAt())
	}
}

// forgetUnknownEnd does so for one allocation, if it is held.
func (l *Ledger) forgetUnknownEnd(fence uint64) {
	a, isHeld := l.allocations.held.Get(fence)
	if !isHeld {
		return
	}
	is := a.lease()
	switch {
	case a.State() == quota.Reserved:
		reserved, more := *a, *a.more
		more.until = forever
		reserved.more = &more
		l.replaceLease(&reserved)
	case is.expires != 0 && is.revokedBy == "":
		is.expires, is.unclaimed = forever, false
		l.replaceLease(a.withLease(is))
	}
}
