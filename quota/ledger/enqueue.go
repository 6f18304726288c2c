package ledger

import (
	"strings"

	"github.com/quorate/quorate/quota"
)

// enqueue puts a request that was not granted into the queue, in the line of the first thing in its way.
func (l *Ledger) enqueue(request quota.Allocate, t *tx, d quota.Decision, m mode) Outcome {
	a := t.allocation
	if l.queue.all.length >= l.bounds.Waiting {
		return Outcome{Refused: l.queue.tooManyWait()}
	}
	w := &waiter{record: a, request: request}
	if err := l.checkRequestGrowth(l.counted(w)); err != nil {
		return Outcome{Refused: err}
	}
	if m == dryRun {
		return Outcome{Decision: waitingDecision(d)}
	}
	l.queue.arrival++
	a.more.waiting = &waiting{arrival: l.queue.arrival, since: l.now, until: l.now.At + quota.Instant(waitSpan(request))}
	a.more.waiting.keepUntil = l.now.At + quota.Instant(keepSpan(request))
	w.turn = a.turn()
	key := l.queue.lineOf(a, d.Violations)
	need := key.needs(a)
	w.anchor()
	l.queue.addWaiter(w)
	l.queue.joinLine(w, key, need)
	l.journal.fact(FactWaiting, a)
	l.inventory.makeWanted(a, d.Violations)
	l.tell(w, t)
	return Outcome{Decision: waitingDecision(d), Allocation: a}
}

func (q *waitQueue) tooManyWait() *quota.Error {
	return quota.Errorf(quota.Full, "mode", "%d requests wait, as many as may; ask again later, or do not wait", q.all.length)
}

func waitingDecision(d quota.Decision) *quota.Decision {
	return &quota.Decision{Waiting: true, Violations: d.Violations, Preempted: d.Preempted}
}

// shouldQueue is true for a denied request that wants to wait and could be granted some day.
func shouldQueue(r quota.Allocate, d quota.Decision) bool {
	return r.Mode == quota.Wait && !d.Granted && !d.NeverFits()
}

func waitSpan(r quota.Allocate) quota.Span {
	if r.WaitFor == 0 {
		return quota.MaxWait
	}
	return r.WaitFor
}

func keepSpan(r quota.Allocate) quota.Span {
	if r.Keep == 0 {
		return quota.DefaultKeep
	}
	return r.Keep
}

// queues is true if the record was asked for with the same words about the queue.
func (m *particulars) queues(r quota.Allocate) bool {
	return m.waitFor == r.WaitFor && m.keep == r.Keep && m.priority == r.Priority
}

// anchor makes the record one of a request that holds nothing. Its claims stand at nodes that are configured: those that
// are made on demand may be gone when its turn comes.
func (w *waiter) anchor() {
	a := w.record
	a.fence, a.granted, a.more.forced = 0, quota.Stamp{}, false
	if a.more.lease != nil {
		a.more.lease.expires = 0
	}
	for i := range a.claims {
		c, path := &a.claims[i], w.request.Claims[i].Node
		for c.at.made {
			c.at = c.at.parent
		}
		if c.placed = c.at.address; c.at.path != path {
			c.placed = &address{c.at.treeName, path}
			w.below(i, strings.TrimPrefix(path[len(c.at.path):], "/"))
		}
		standing, picks := c.standing(), c.picks()
		if c.more = nil; standing != (quota.Standing{}) {
			c.more = &claimParticulars{Standing: standing}
		}
		if len(picks) > 0 {
			c.setItems(picks, nil)
		}
	}
}

// below notes that a claim asks for a node that is not configured.
func (w *waiter) below(i int, rest string) {
	if w.rests == nil {
		w.rests = make([]string, len(w.record.claims))
	}
	w.rests[i] = rest
}

// sign is that the caller of a request that waits is still there: it stays in the queue for as long again.
func (q *waitQueue) sign(w *waiter) {
	place := *w.record.more.waiting
	place.keepUntil = max(place.keepUntil, q.now.At+quota.Instant(keepSpan(w.request)))
	if place == *w.record.more.waiting {
		return
	}
	q.replaceWaiting(w, w.record.claims, place)
	q.deadlines.set(dueKey{dueWaiter, place.arrival}, place.endsAt())
}

// replaceWaiting gives a request in the queue another record.
func (q *waitQueue) replaceWaiting(w *waiter, claims []placedClaim, place waiting) {
	is, more := *w.record, *w.record.more
	more.waiting = &place
	is.more, is.claims = &more, claims
	q.bytes -= q.counted(w)
	w.record = &is
	q.bytes += q.counted(w)
	q.allocations.byID[is.id] = &is
}

// drop ends a request that waits.
func (l *Ledger) drop(w *waiter, state quota.State, by string) *Allocation {
	l.queue.removeWaiter(w)
	is, more := *w.record, *w.record.more
	more.waiting = nil
	is.more = &more
	ended := l.bury(&is, state, by)
	if state != quota.Cancelled || by != "" {
		l.journal.note(quota.Event{Kind: quota.EventDropped, ID: is.id, By: by})
	}
	return ended
}

// giveUp ends a request whose deadline has come, or whose caller has given no sign.
func (l *Ledger) giveUp(w *waiter) {
	state := quota.TimedOut
	if place := w.record.more.waiting; place.keepUntil < place.until {
		state = quota.Abandoned
	}
	l.drop(w, state, "")
}
