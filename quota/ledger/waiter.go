package ledger

import "github.com/quorate/quorate/quota"

// waitQueue has the requests that wait. Each stands in one line: that of the first thing in its way (docs/adr/0028).
type waitQueue struct {
	*environment
	deadlines   *deadlines
	forest      *forest
	allocations *allocations

	arrival   uint64             // last given
	byArrival map[uint64]*waiter // for those that are due
	all       ranks
	// full are those who wait for nothing but a bound of the ledger; limbo those who have to line up anew within the present
	// command.
	full  []*line
	limbo line
	// stirred are the lines that are to be tried at the end of the present command.
	stirred stirredLines
	// revokedFor counts the leases that have to give way, by the id for which they were revoked. It follows from the rest.
	revokedFor map[string]int
	// bytes is what the requests take, see Sizes.
	bytes int64
}

// waiter is a request in the queue.
type waiter struct {
	// record is what readers see: replaced, never changed, when the caller gives a sign or nodes move.
	record *Allocation
	// request is what was asked for, with the paths that its nodes have now.
	request quota.Allocate
	// rests are what the paths of its claims have below configured nodes; nil if nothing.
	rests []string
	turn  quota.QueueTurn
	line  *line
	// need is what it wants of the thing that its line waits for; less than that is surely not enough.
	need quota.Amount
	// headSince is when it came to the head of a line for the first time; 0 if it has not.
	headSince quota.Instant
	// pressing is true while leases are held that were revoked for it.
	pressing bool
}

// waiting is the place of a record in the queue.
type waiting struct {
	arrival          uint64
	since            quota.Stamp
	until, keepUntil quota.Instant
}

// endsAt is when the request leaves the queue by itself.
func (w *waiting) endsAt() quota.Instant { return min(w.until, w.keepUntil) }

// turn is the place of a request in the order of the queue: a newcomer's is the last of its priority.
func (a *Allocation) turn() quota.QueueTurn {
	t := quota.QueueTurn{Arrival: 1<<64 - 1}
	if a.more != nil {
		t.Priority = a.more.priority
		if a.more.waiting != nil {
			t.Arrival = a.more.waiting.arrival
		}
	}
	return t
}

// waits is true for the record of a request in the queue.
func (a *Allocation) waits() bool { return a.ended == nil && a.more != nil && a.more.waiting != nil }

// waiterOf finds the request of a record that waits.
func (q *waitQueue) waiterOf(a *Allocation) *waiter { return q.byArrival[a.more.waiting.arrival] }

// addWaiter puts a request into the queue, but into no line yet.
func (q *waitQueue) addWaiter(w *waiter) {
	if q.byArrival == nil {
		q.byArrival = map[uint64]*waiter{}
	}
	place := w.record.more.waiting
	q.byArrival[place.arrival] = w
	q.bytes += q.counted(w)
	q.all.insert(w)
	q.allocations.byID[w.record.id] = w.record
	q.deadlines.set(dueKey{dueWaiter, place.arrival}, place.endsAt())
}

// removeWaiter takes a request out of its line and the queue; its id is free.
func (q *waitQueue) removeWaiter(w *waiter) {
	q.leaveLine(w)
	q.all.remove(w)
	place := w.record.more.waiting
	delete(q.byArrival, place.arrival)
	q.bytes -= q.counted(w)
	delete(q.allocations.byID, w.record.id)
	q.deadlines.drop(dueKey{dueWaiter, place.arrival})
}
