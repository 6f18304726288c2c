package ledger

import (
	"slices"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/admit"
	"github.com/quorate/quorate/quota/ledger/internal/read"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

const (
	// maxForecastSteps bounds the instants that a forecast visits.
	maxForecastSteps = 10_000
	// noEnd is later than every known end.
	noEnd = quota.Instant(1) << 61
)

// Forecast returns, by id, the instant of ledger time at which each waiting request is granted if nothing else is asked
// of the ledger: what has a known end ends then, everything else is held without an end, the callers in the queue stay
// until the end of their time, and requests are granted in the order of the queue. A known end is a declared one, or
// that of a revoked lease; holds and scheduled limits end and begin at theirs. Requests that are then never granted, or
// not within maxForecastSteps instants, are absent.
//
// It needs a copy made by CopyForPlans, and uses it up. The refusal says that the ledger holds too much to be copied.
// The instants depend on all holders, so nothing is known for a caller who may not read them on the whole cluster.
func (s Sandbox) Forecast() (map[string]quota.Instant, *quota.Error) {
	if s.FiltersHolders() {
		return nil, nil
	}
	granted := map[string]quota.Instant{}
	if s.state.Queue.All.Len() == 0 {
		return granted, nil
	}
	if !s.state.IsCopy {
		return nil, quota.Errorf(quota.Full, "certain_by",
			"with more than %d allocations, waiting requests and items there is no forecast; ask without it", read.MaxCopied)
	}
	forgetUnknownEnds(s.state)
	system := state.Origin{Caller: &access.Caller{Kind: access.System}, Index: 1}
	for range maxForecastSteps {
		at, waits := s.NextDue()
		if !waits || at >= noEnd || s.state.Queue.All.Len() == 0 {
			break
		}
		applyFrom(s.state, quota.Stamp{At: at, Wall: s.WallNow()}, system, quota.Expire{Most: quota.MaxExpire})
		for _, f := range s.state.TakeFacts() {
			if f.Since != 0 && (f.Kind == state.FactGranted || f.Kind == state.FactResized) {
				granted[f.Allocation.ID()] = s.state.Now.At
				forgetUnknownEnd(s.state, f.Allocation.Fence())
			}
		}
	}
	return granted, nil
}

// forgetUnknownEnds removes the end of everything that would end unless it is renewed or confirmed.
func forgetUnknownEnds(s *state.State) {
	var fences []uint64
	for fence := range s.Allocations.Held.All() {
		fences = append(fences, fence)
	}
	for _, fence := range fences {
		forgetUnknownEnd(s, fence)
	}
	for _, w := range slices.Collect(s.Queue.All.All()) {
		if w.Resizes != 0 { // it waits without its caller
			continue
		}
		place := *w.Record.More.Waiting
		place.KeepUntil = place.Until
		admit.ReplaceWaiting(&s.Queue, w, place)
		s.Deadlines.Set(state.DueKey{Kind: state.DueWaiter, Number: place.Arrival}, place.EndsAt())
	}
}

// forgetUnknownEnd does so for one allocation, if it is held.
func forgetUnknownEnd(s *state.State, fence uint64) {
	a, isHeld := s.Allocations.Held.Get(fence)
	if !isHeld {
		return
	}
	lease := a.Lease()
	switch {
	case a.State() == quota.Reserved:
		reserved, more := *a, *a.More
		more.Until = noEnd
		reserved.More = &more
		admit.ReplaceLease(s, &reserved)
	case lease.Expires != 0 && lease.RevokedBy == "":
		lease.Expires, lease.Unclaimed = noEnd, false
		admit.ReplaceLease(s, a.WithLease(lease))
	}
}
