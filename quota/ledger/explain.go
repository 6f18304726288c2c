package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
)

// Explain decides a request as a dry run does, and looks for a remedy if it is denied. As for DryRun, nobody else may use
// the ledger meanwhile. It looks at no more than 10,000 held allocations and tries at most 400 changes.
func (v View) Explain(c quota.Allocate) Outcome {
	out := v.dryAllocate(c)
	if d := out.Decision; d != nil && !d.Granted && !out.Repeated {
		explained := *d
		explained.Remedy = v.ledger.remedy(func() (*Allocation, *quota.Error) { return v.ledger.place(c) }, explained)
		out.Decision = &explained
	}
	return out
}

// ExplainID tells how a request was decided. For an allocation that is held or has ended lately it is the grant, with its
// placements, and the allocation; for a request that waits it is what is in its way now. Otherwise it is the last denial of that id that is remembered, as it was decided then,
// with the time of that; its remedy is for the present, and nil if the request would be granted or refused by now.
// NotFound if the id is none of these. As for DryRun, nobody else may use the ledger meanwhile.
func (v View) ExplainID(id string) (quota.Decision, *quota.AllocationInfo, *quota.Stamp, *quota.Error) {
	if err := checkID(id); err != nil {
		return quota.Decision{}, nil, nil, err
	}
	if a := v.ledger.allocations.lookup(id); a != nil {
		if a.waits() {
			d, info := v.queued(v.ledger.queue.waiterOf(a), true)
			return d, &info, nil, nil
		}
		info := a.current()
		return quota.Decision{Granted: true, Preempted: info.Preempted, Placements: info.Claims}, &info, nil, nil
	}
	for _, e := range slices.Backward(v.ledger.journal.events) {
		if e.Kind == quota.EventDenied && e.ID == id {
			decision := *e.Decision
			if now := v.Explain(*e.Request).Decision; now != nil {
				decision.Remedy = now.Remedy
			}
			return decision, nil, &e.Stamp, nil
		}
	}
	return quota.Decision{}, nil, nil, quota.Errorf(quota.NotFound, "id", "no allocation %q is held, waits or has ended lately, and no request of that id was denied lately", id)
}
