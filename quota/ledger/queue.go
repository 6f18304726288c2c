package ledger

import (
	"strings"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/heap"
	"github.com/quorate/quorate/quota/internal/rankqueue"
)

// waitQueue holds the waiting requests. Each is in the blocker queue of the first thing that blocks it (docs/adr/0028).
type waitQueue struct {
	*environment
	deadlines   *deadlines
	forest      *forest
	allocations *allocations

	arrival   uint64             // last assigned
	byArrival map[uint64]*waiter // for deadlines
	all       rankqueue.Queue[*waiter]
	// queuesForLedger holds the requests that are blocked only by a bound of the ledger. unassigned holds those that must
	// be assigned to a queue again within the present command.
	queuesForLedger []*blockerQueue
	unassigned      blockerQueue
	// dirty has the queues to retry at the end of the present command.
	dirty *heap.Heap[*blockerQueue]
	// revokedFor counts the leases under revocation by the id of the request that needs their capacity. It is derived from
	// the rest of the state.
	revokedFor map[string]int
	// byOwner counts the requests of each owner; it is derived from the rest of the state. It has none without an owner.
	byOwner map[string]int
	// bytes is the size of the requests, see Sizes.
	bytes int64
}

// waiter is a request in the queue.
type waiter struct {
	// record is the immutable record for readers. A heartbeat or a moved node replaces it.
	record *Allocation
	// request is the original request with the current paths of its nodes.
	request quota.Allocate
	// unconfiguredPaths are the parts of the claims' paths below configured nodes; nil if all nodes are configured.
	unconfiguredPaths []string
	turn              rankqueue.Rank
	blockedIn         *blockerQueue
	// need is the least amount of the blocked resource with which the request could fit.
	need quota.Amount
	// headSince is when the request first became the head of a queue; 0 if it has not.
	headSince quota.Instant
	// awaitsRevocation is true while leases revoked for the request are still held.
	awaitsRevocation bool
}

// waiting is the place of a record in the queue.
type waiting struct {
	arrival          uint64
	since            quota.Stamp
	until, keepUntil quota.Instant
}

// endsAt is when the request leaves the queue unless it is granted or touched.
func (w *waiting) endsAt() quota.Instant { return min(w.until, w.keepUntil) }

// queueTurn is the place of a request in the order of the queue. A new request is the last of its priority.
func (a *Allocation) queueTurn() rankqueue.Rank {
	t := rankqueue.Rank{Arrival: 1<<64 - 1}
	if a.more != nil {
		t.Priority = a.more.priority
		if a.more.waiting != nil {
			t.Arrival = a.more.waiting.arrival
		}
	}
	return t
}

// waiterOf returns the waiter of a waiting record.
func (q *waitQueue) waiterOf(a *Allocation) *waiter { return q.byArrival[a.more.waiting.arrival] }

// addWaiter adds a request to the wait queue without assigning it to a blocker queue.
func (q *waitQueue) addWaiter(w *waiter) {
	if q.byArrival == nil {
		q.byArrival = map[uint64]*waiter{}
	}
	place := w.record.more.waiting
	q.byArrival[place.arrival] = w
	q.bytes += q.countedSize(w)
	q.countOwner(w.record.owner, 1)
	q.all.Insert(w.turn, 0, w)
	q.allocations.byID.Put(w.record)
	q.deadlines.set(dueKey{dueWaiter, place.arrival}, place.endsAt())
}

// removeWaiter removes a request from its blocker queue and from the wait queue, and frees its id.
func (q *waitQueue) removeWaiter(w *waiter) {
	q.leaveQueue(w)
	q.all.Remove(w.turn)
	place := w.record.more.waiting
	delete(q.byArrival, place.arrival)
	q.bytes -= q.countedSize(w)
	q.countOwner(w.record.owner, -1)
	q.allocations.byID.Remove(w.record)
	q.deadlines.drop(dueKey{dueWaiter, place.arrival})
}

// countOwner adds to the number of requests of an owner.
func (q *waitQueue) countOwner(owner string, n int) {
	if owner == "" {
		return
	}
	if q.byOwner == nil {
		q.byOwner = map[string]int{}
	}
	if q.byOwner[owner] += n; q.byOwner[owner] == 0 {
		delete(q.byOwner, owner)
	}
}

// enqueue puts a denied request into the queue of its first blocker.
func (l *Ledger) enqueue(request quota.Allocate, t *tx, d quota.Decision, m mode) Outcome {
	a := t.allocation
	if l.queue.all.Len() >= l.bounds.Waiting {
		return Outcome{Refused: l.queue.tooManyWait()}
	}
	share := max(1, l.bounds.Waiting/quota.WaitingPerUser)
	if n := l.queue.byOwner[a.owner]; n >= share && l.guard().hasShare() {
		return Outcome{Refused: quota.Errorf(quota.Full, "mode",
			"%d requests of %s wait, and the share of one user is %d of the %d that may; ask again when some of them have "+
				"ended, or do not wait", n, a.owner, share, l.bounds.Waiting)}
	}
	w := &waiter{record: a, request: request}
	if err := l.checkRequestGrowth(l.countedSize(w)); err != nil {
		return Outcome{Refused: err}
	}
	if m == dryRun {
		return Outcome{Decision: waitingDecision(d)}
	}
	l.queue.arrival++
	a.more.waiting = &waiting{
		arrival: l.queue.arrival, since: l.now,
		until: l.now.At + quota.Instant(waitSpan(request)),
	}
	a.more.waiting.keepUntil = l.now.At + quota.Instant(keepSpan(request))
	w.turn = a.queueTurn()
	key := l.queue.blockerOf(a, d.Violations)
	need := key.amountNeeded(a)
	w.clearGrant()
	l.queue.addWaiter(w)
	l.queue.joinQueue(w, key, need)
	l.journal.noteFact(FactWaiting, a)
	l.inventory.createWanted(a, d.Violations)
	l.revokeFor(w, t)
	return Outcome{Decision: waitingDecision(d), Allocation: w.record}
}

func (q *waitQueue) tooManyWait() *quota.Error {
	return quota.Errorf(quota.Full, "mode", "%d requests wait, as many as may; ask again later, or do not wait",
		q.all.Len())
}

func waitingDecision(d quota.Decision) *quota.Decision {
	return &quota.Decision{Waiting: true, Violations: d.Violations, Preempted: d.Preempted}
}

// shouldQueue is true for a denied request that asked to wait and could be granted later.
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

// matchesQueueing is true if the record's request had the same queueing parameters.
func (m *details) matchesQueueing(r quota.Allocate) bool {
	return m.waitFor == r.WaitFor && m.keep == r.Keep && m.priority == r.Priority
}

// clearGrant turns the record into that of a request that holds nothing. Its claims refer to configured nodes, because
// dynamic ones may be removed before the request is granted.
func (w *waiter) clearGrant() {
	a := w.record
	a.fence, a.granted, a.more.forced = 0, quota.Stamp{}, false
	if a.more.lease != nil {
		a.more.lease.expires = 0
	}
	for i := range a.claims {
		c, path := &a.claims[i], w.request.Claims[i].Node
		for c.at.dynamic {
			c.at = c.at.parent
		}
		if c.placed = c.at.address; c.at.path != path {
			c.placed = &address{c.at.treeName, path}
			w.noteUnconfigured(i, strings.TrimPrefix(path[len(c.at.path):], "/"))
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
func (w *waiter) noteUnconfigured(i int, rest string) {
	if w.unconfiguredPaths == nil {
		w.unconfiguredPaths = make([]string, len(w.record.claims))
	}
	w.unconfiguredPaths[i] = rest
}

// touch records a heartbeat from a waiting caller and extends its place in the queue by the keep span.
func (q *waitQueue) touch(w *waiter) {
	place := *w.record.more.waiting
	place.keepUntil = max(place.keepUntil, q.now.At+quota.Instant(keepSpan(w.request)))
	if place == *w.record.more.waiting {
		return
	}
	q.replaceWaiting(w, w.record.claims, place)
	q.deadlines.set(dueKey{dueWaiter, place.arrival}, place.endsAt())
}

// replaceWaiting gives a waiting request another record.
func (q *waitQueue) replaceWaiting(w *waiter, claims []placedClaim, place waiting) {
	is, more := *w.record, *w.record.more
	more.waiting = &place
	is.more, is.claims = &more, claims
	q.replaceRecord(w, &is)
}

func (q *waitQueue) replaceRecord(w *waiter, is *Allocation) {
	q.bytes -= q.countedSize(w)
	w.record = is
	q.bytes += q.countedSize(w)
	q.allocations.byID.Put(is)
}

// dropWaiter ends a waiting request.
func (l *Ledger) dropWaiter(w *waiter, end ending) *Allocation {
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

// addQueueTo copies the queueing parameters of a record.
func (m *details) addQueueTo(info *quota.AllocationInfo) {
	info.Priority = m.priority
	if w := m.waiting; w != nil {
		info.Waiting = &quota.WaitingInfo{
			Since: w.since.At, SinceWall: w.since.Wall, Until: w.until,
			KeepUntil: w.keepUntil,
		}
	}
}

// currentInfo is the present state of a record, with its place in the queue if it waits.
func (l *Ledger) currentInfo(a *Allocation) quota.AllocationInfo {
	info := a.currentInfo()
	if a.isWaiting() {
		w := l.queue.waiterOf(a)
		info.Waiting.Position, info.Waiting.Line = w.blockedIn.waiters.CountBefore(w.turn)+1, w.blockedIn.String()
	}
	return info
}

// String describes the blocker for people.
func (key blocker) String() string {
	if key.tree == nil {
		return "the ledger"
	}
	what := "applications"
	switch {
	case key.isHold:
		what = "the end of the hold"
	case key.resource != nil:
		what = key.resource.Name
	case key.isSoft():
		what = "room"
	}
	if key.node == nil {
		return what + " " + key.state + key.item + " of " + key.tree.name
	}
	return key.holder.String() + what + " at " + key.node.place()
}

func matchesQueueFilter(f quota.QueueFilter, a *Allocation) bool {
	if f.Tree == "" {
		return true
	}
	for i := range a.claims {
		c := &a.claims[i]
		if c.at.treeName == f.Tree && quota.IsWithin(c.placed.path, f.Node) && c.asksFor(f.Resource) {
			return true
		}
	}
	return false
}

// asksFor is true if the claim names the resource, or if the given name is empty.
func (c *placedClaim) asksFor(resource string) bool {
	if resource == "" {
		return true
	}
	for _, p := range c.amounts {
		if p.resource.Name == resource {
			return true
		}
	}
	return false
}
