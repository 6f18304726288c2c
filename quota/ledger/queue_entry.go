package ledger

import (
	"strings"

	"github.com/quorate/quorate/quota"
)

// enqueue lets a denied request wait for some of its lists of claims, each in the queue of its first blocker.
func (l *Ledger) enqueue(request *quota.Allocate, lists []deniedList, d quota.Decision, m mode) Outcome {
	a := lists[0].tx.allocation
	if refused := l.checkQueueShare(a.owner); refused != nil {
		return Outcome{Refused: refused}
	}
	w := newWaiter(a, request)
	if err := l.checkRequestGrowth(l.countedSize(w)); err != nil {
		return Outcome{Refused: err}
	}
	if m == dryRun {
		return Outcome{Decision: waitingDecision(d)}
	}
	a.more.waiting = &waiting{
		arrival: l.queue.arrival + 1, since: l.now,
		until:     l.now.At + quota.Instant(waitSpan(request)),
		keepUntil: l.now.At + quota.Instant(keepSpan(request)),
	}
	l.queue.arrival += uint64(request.ListCount()) // each list has a turn of its own
	w.turn = a.queueTurn()
	l.queue.addAlternatives(w, lists)
	l.queue.addWaiter(w)
	for i, alt := range w.alternatives {
		l.queue.joinQueue(alt, lists[i].blocker, alt.need)
	}
	l.journal.noteFact(FactWaiting, a)
	for i := range lists {
		l.inventory.createWanted(lists[i].tx.allocation, lists[i].violations)
		l.revokeFor(w, &lists[i].tx)
	}
	return Outcome{Decision: waitingDecision(d), Allocation: w.record}
}

// touch records a heartbeat from a waiting caller and extends its place in the queue by the keep span.
func (q *waitQueue) touch(w *waiter) {
	place := *w.record.more.waiting
	place.keepUntil = max(place.keepUntil, q.now.At+quota.Instant(keepSpan(&w.request)))
	if place == *w.record.more.waiting {
		return
	}
	q.replaceWaiting(w, place)
	q.deadlines.set(dueKey{dueWaiter, place.arrival}, place.endsAt())
}

// replaceWaiting gives a waiting request another record, with the claims of its first alternative.
func (q *waitQueue) replaceWaiting(w *waiter, place waiting) {
	is, more, first := *w.record, *w.record.more, w.alternatives[0]
	more.waiting, more.resized = &place, first.resized
	is.more, is.claims = &more, first.claims
	q.replaceRecord(w, &is)
}

func (q *waitQueue) replaceRecord(w *waiter, is *Allocation) {
	q.bytes -= q.sizeOf(w)
	w.record = is
	q.bytes += q.sizeOf(w)
	if !w.isResize() {
		q.allocations.byID.Put(is)
		return
	}
	a, _ := q.allocations.held.Get(w.resizes)
	q.allocations.replaceRecord(a.withResize(is, 0))
}

// dropWaiter ends a waiting request, or a waiting resize.
func (l *Ledger) dropWaiter(w *waiter, end ending) *Allocation {
	if w.isResize() {
		a, _ := l.allocations.held.Get(w.resizes)
		return l.dropResize(a)
	}
	l.queue.removeWaiter(w)
	is, more := *w.record, *w.record.more
	more.waiting = nil
	is.more = &more
	ended := l.keepEnded(&is, end)
	if end.state != quota.Cancelled || end.by != "" {
		l.journal.noteEvent(quota.Event{Kind: quota.EventDropped, ID: is.id, By: end.by})
	}
	return ended
}

// dropOverdue ends a request whose deadline has passed, or whose caller has stopped sending heartbeats.
func (l *Ledger) dropOverdue(w *waiter) {
	state := quota.TimedOut
	if place := w.record.more.waiting; place.keepUntil < place.until {
		state = quota.Abandoned
	}
	l.dropWaiter(w, ending{state: state})
}

// currentInfo is the present state of a record, with its place in the queue if it waits.
func (l *Ledger) currentInfo(a *Allocation) quota.AllocationInfo {
	info := a.currentInfo()
	switch resize := a.waitingResize(); {
	case a.isWaiting():
		l.queue.waiterOf(a).addPlacesTo(info.Waiting)
	case resize != nil:
		l.queue.waiterOf(resize).addPlacesTo(&info.Resize.Waiting)
	}
	return info
}

// useConfiguredNodes lets the claims refer to configured nodes, because dynamic ones may be removed before they are
// granted.
func (alt *alternative) useConfiguredNodes() {
	for i := range alt.claims {
		c, path := &alt.claims[i], alt.wanted[i].Node
		for c.at.dynamic {
			c.at = c.at.parent
		}
		if c.placed = c.at.address; c.at.path != path {
			c.placed = &address{c.at.treeName, path}
			alt.noteUnconfigured(i, strings.TrimPrefix(path[len(c.at.path):], "/"))
		}
		standing, picks := c.standing(), c.picks()
		if c.more = nil; standing != (quota.Standing{}) {
			c.more = &claimDetails{Standing: standing}
		}
		if len(picks) > 0 {
			c.setItems(picks, nil)
		}
	}
}

// noteUnconfigured notes the part of a claim's path that is not configured.
func (alt *alternative) noteUnconfigured(i int, rest string) {
	if alt.unconfiguredPaths == nil {
		alt.unconfiguredPaths = make([]string, len(alt.claims))
	}
	alt.unconfiguredPaths[i] = rest
}
