package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
)

// Sandbox is a ledger that nothing else uses meanwhile: besides reading it answers questions by changing the state and
// taking that back. Only exclusive access lends one, so that the compiler keeps readers that share the ledger from racing.
type Sandbox struct{ View }

// Sandbox lends the ledger to a caller that excludes all others.
func (l *Ledger) Sandbox() Sandbox { return Sandbox{l.View()} }

// DryRun decides a command on the present state, as Apply would without its commit, and leaves the state as it is. A
// command other than Allocate and a change of configuration is answered with what is there.
func (s Sandbox) DryRun(c quota.Command) Outcome { return s.ledger.execute(c, dryRun) }

// Explain decides a request as a dry run does, and looks for a remedy if it is denied. As for DryRun, nobody else may use
// the ledger meanwhile. It looks at no more than 10,000 held allocations and tries at most 400 changes.
func (s Sandbox) Explain(c quota.Allocate) Outcome {
	out := s.ledger.allocate(c, dryRun)
	if d := out.Decision; d != nil && !d.Granted && !out.Repeated {
		explained := *d
		explained.Remedy = s.ledger.remedy(func() (*Allocation, *quota.Error) { return s.ledger.place(c) }, explained)
		out.Decision = &explained
	}
	return out
}

// ExplainID tells how a request was decided. For an allocation that is held or has ended lately it is the grant, with its
// placements, and the allocation; for a request that waits it is what is in its way now. Otherwise it is the last denial of that id that is remembered, as it was decided then,
// with the time of that; its remedy is for the present, and nil if the request would be granted or refused by now.
// NotFound if the id is none of these. As for DryRun, nobody else may use the ledger meanwhile.
func (s Sandbox) ExplainID(id string) (quota.Decision, *quota.AllocationInfo, *quota.Stamp, *quota.Error) {
	if err := checkID(id); err != nil {
		return quota.Decision{}, nil, nil, err
	}
	if a := s.ledger.allocations.lookup(id); a != nil {
		if a.waits() {
			d, info := s.queued(s.ledger.queue.waiterOf(a), true)
			return d, &info, nil, nil
		}
		info := a.current()
		return quota.Decision{Granted: true, Preempted: info.Preempted, Placements: info.Claims}, &info, nil, nil
	}
	for _, e := range slices.Backward(s.ledger.journal.events) {
		if e.Kind == quota.EventDenied && e.ID == id {
			decision := *e.Decision
			if now := s.Explain(*e.Request).Decision; now != nil {
				decision.Remedy = now.Remedy
			}
			return decision, nil, &e.Stamp, nil
		}
	}
	return quota.Decision{}, nil, nil, quota.Errorf(quota.NotFound, "id", "no allocation %q is held, waits or has ended lately, and no request of that id was denied lately", id)
}

// judgedPerPage bounds how many requests one page shows: each is judged anew, and nobody else has the ledger meanwhile.
const judgedPerPage = 100

// Waiting shows up to max requests that wait and pass the filter, in the order of the queue, after a turn (nil: from the
// first), each with all that is in its way now. As for DryRun, nobody else may use the ledger meanwhile. A page looks at
// no more than 10,000 requests and shows no more than 100, so it may be short although more follow.
func (s Sandbox) Waiting(f quota.QueueFilter, after *quota.QueueTurn, max int) (quota.QueuePage, *quota.Error) {
	if (f.Node != "" || f.Resource != "") && f.Tree == "" {
		return quota.QueuePage{}, quota.Errorf(quota.Invalid, "tree", "a filter by node or resource needs a tree too")
	}
	from := firstTurn
	if after != nil {
		from = turnAfter(*after)
	}
	max = min(max, judgedPerPage)
	var page quota.QueuePage
	looked := 0
	for w := range s.ledger.queue.all.from(from) {
		if len(page.Requests) == max || looked == scanned {
			return page, nil
		}
		looked++
		turn := w.turn
		page.Next = &turn
		if matchesQueueFilter(f, w.record) {
			d, info := s.queued(w, false)
			page.Requests = append(page.Requests, quota.QueuedInfo{Allocation: info, Decision: d})
		}
	}
	page.Next = nil
	return page, nil
}

// queued is a request that waits with what is in its way.
func (s Sandbox) queued(w *waiter, remedy bool) (quota.Decision, quota.AllocationInfo) {
	l := s.ledger
	decision := *waitingDecision(l.previewWaiter(w))
	if remedy {
		decision.Remedy = l.remedy(func() (*Allocation, *quota.Error) { return l.placeWaiter(w) }, decision)
	}
	return decision, l.info(w.record)
}
