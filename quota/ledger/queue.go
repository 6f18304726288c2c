package ledger

import (
	"slices"

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
	// spanning has the alternatives in queues that have claims in several trees: where claims borrow softly, a change in
	// one tree can let them preempt what is in their way in another.
	spanning rankqueue.Queue[*alternative]
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
	// record is the immutable record for readers, with the claims of the first alternative. A heartbeat or a moved node
	// replaces it.
	record *Allocation
	// request is the original request. The claims that it waits for are those of the alternatives.
	request quota.Allocate
	// resizes is the fence of the allocation for which the waiter is a resize, 0 for a request. The claims of its only
	// alternative are then the changes.
	resizes uint64
	turn    rankqueue.Rank
	// alternatives are the lists of claims that may be granted, in order, at least one. Most requests have one.
	alternatives []*alternative
	// sole has the memory of the only alternative, if there is one.
	sole *soleWaiter
}

func newWaiter(a *Allocation, request *quota.Allocate) *waiter {
	if len(request.AnyOf) > 0 {
		return &waiter{record: a, request: *request}
	}
	w := &soleWaiter{waiter: waiter{record: a, request: *request}}
	w.sole = w
	return &w.waiter
}

// waiting is the place of a record in the queue.
type waiting struct {
	arrival          uint64
	since            quota.Stamp
	until, keepUntil quota.Instant
}

// endsAt is when the request leaves the queue unless it is granted or touched.
func (w *waiting) endsAt() quota.Instant { return min(w.until, w.keepUntil) }

// queueTurn is the place of a request in the order of the queue, or of the resize that waits for an allocation. A new
// request is the last of its priority.
func (a *Allocation) queueTurn() rankqueue.Rank {
	t := rankqueue.Rank{Arrival: 1<<64 - 1}
	if a.more != nil {
		t.Priority = a.more.priority
		switch {
		case a.more.waiting != nil:
			t.Arrival = a.more.waiting.arrival
		case a.more.resize != nil:
			t.Arrival = a.more.resize.more.waiting.arrival
		}
	}
	return t
}

// waiterOf returns the waiter of a waiting record.
func (q *waitQueue) waiterOf(a *Allocation) *waiter { return q.byArrival[a.more.waiting.arrival] }

// addWaiter adds a request to the wait queue without assigning its alternatives to blocker queues.
func (q *waitQueue) addWaiter(w *waiter) {
	if q.byArrival == nil {
		q.byArrival = map[uint64]*waiter{}
	}
	place := w.record.more.waiting
	q.byArrival[place.arrival] = w
	q.bytes += q.sizeOf(w)
	q.countOwner(w.record.owner, 1)
	q.all.Insert(w.turn, 0, w)
	if !w.isResize() {
		q.allocations.byID.Put(w.record)
	}
	q.deadlines.set(dueKey{dueWaiter, place.arrival}, place.endsAt())
}

// sizeOf is the counted size of a waiter. That of a resize counts as a whole, so that there is room for what the
// allocation grows by when it is granted.
func (q *waitQueue) sizeOf(w *waiter) int64 {
	if w.isResize() {
		return w.size()
	}
	return q.countedSize(w)
}

// removeWaiter removes a request from its blocker queues and from the wait queue, and frees its id. The caller removes
// a resize from the record of its allocation.
func (q *waitQueue) removeWaiter(w *waiter) {
	for _, alt := range w.alternatives {
		q.forest.markQueue(alt)
		q.leaveQueue(alt)
	}
	q.all.Remove(w.turn)
	place := w.record.more.waiting
	delete(q.byArrival, place.arrival)
	q.bytes -= q.sizeOf(w)
	q.countOwner(w.record.owner, -1)
	if !w.isResize() {
		q.allocations.byID.Remove(w.record)
	}
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

// checkQueueShare refuses another waiter of an owner if as many wait as may.
func (l *Ledger) checkQueueShare(owner string) *quota.Error {
	if l.queue.all.Len() >= l.bounds.Waiting {
		return l.queue.tooManyWait()
	}
	share := max(1, l.bounds.Waiting/quota.WaitingPerUser)
	if n := l.queue.byOwner[owner]; n >= share && l.hasShare() {
		return quota.Errorf(quota.Full, "mode",
			"%d requests of %s wait, and the share of one user is %d of the %d that may; ask again when some of them have "+
				"ended, or do not wait", n, owner, share, l.bounds.Waiting)
	}
	return nil
}

func (q *waitQueue) tooManyWait() *quota.Error {
	return quota.Errorf(quota.Full, "mode", "%d requests wait, as many as may; ask again later, or do not wait",
		q.all.Len())
}

func waitingDecision(d quota.Decision) *quota.Decision {
	return &quota.Decision{Waiting: true, Violations: d.Violations, Preempted: d.Preempted}
}

func waitSpan(r *quota.Allocate) quota.Span {
	if r.WaitFor == 0 {
		return quota.MaxWait
	}
	return r.WaitFor
}

func keepSpan(r *quota.Allocate) quota.Span {
	if r.Keep == 0 {
		return quota.DefaultKeep
	}
	return r.Keep
}

// matchesQueueing is true if the record's request had the same queueing parameters. The priority of one that does not
// wait is not compared: the claims have it too.
func (e *environment) matchesQueueing(m *details, r *quota.Allocate) bool {
	isSamePriority := m.priority == r.Priority || r.Mode != quota.Wait
	return m.waitFor == r.WaitFor && m.keep == r.Keep && isSamePriority
}

// clearGrant turns a record into that of a request that holds nothing.
func (a *Allocation) clearGrant() {
	a.fence, a.granted, a.more.forced, a.more.endsAt = 0, quota.Stamp{}, false, 0
	if a.more.lease != nil {
		a.more.lease.expires = 0
	}
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
	if key.isAside {
		what = "a higher limit of " + what
	}
	if key.node == nil {
		return what + " " + key.state + key.item + " of " + key.tree.name
	}
	return key.holder.String() + what + " at " + key.node.place()
}

// place is the node of the blocker; of items, the tree alone.
func (key blocker) place() quota.Subtree {
	switch {
	case key.node != nil:
		return quota.Subtree{Tree: key.node.treeName, Node: key.node.path}
	case key.tree != nil:
		return quota.Subtree{Tree: key.tree.name}
	}
	return quota.Subtree{}
}

func (w *waiter) matchesQueueFilter(f quota.QueueFilter) bool {
	if f.Owner != "" && w.record.owner != f.Owner {
		return false
	}
	return f.Tree == "" || slices.ContainsFunc(w.alternatives, func(alt *alternative) bool { return alt.passes(f) })
}

func (alt *alternative) passes(f quota.QueueFilter) bool {
	for i := range alt.claims {
		c := &alt.claims[i]
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

// alternative is a list of claims that may be granted to a waiting request. It is in the queue of what blocks it.
type alternative struct {
	of *waiter
	// number is that of the list in the request, from 1; 0 if the request has no alternatives.
	number int
	// wanted are the claims with the current paths of their nodes, claims the nodes where they are.
	wanted []quota.Claim
	claims []placedClaim
	// unconfiguredPaths are the parts of the claims' paths below configured nodes; nil if all nodes are configured.
	unconfiguredPaths []string
	// resized and lease are those of the record if it has the claims of this alternative.
	resized *resized
	lease   *lease

	turn      rankqueue.Rank
	blockedIn *blockerQueue
	// need is the least amount of the blocked resource with which the alternative could fit.
	need quota.Amount
	// headSince is when the alternative first became the head of a queue; 0 if it has not.
	headSince quota.Instant
	// awaitsRevocation is true while leases revoked for the request are still held.
	awaitsRevocation bool
}

// soleWaiter is a request with one alternative in one piece of memory.
type soleWaiter struct {
	waiter
	alternative alternative
	list        [1]*alternative
}

// isSpanning is true for claims in several trees.
func (alt *alternative) isSpanning() bool {
	for i := range alt.claims {
		if alt.claims[i].at.tree != alt.claims[0].at.tree {
			return true
		}
	}
	return false
}

// claimsFrom is true if a claim is in the tree.
func (alt *alternative) claimsFrom(t *tree) bool {
	return slices.ContainsFunc(alt.claims, func(c placedClaim) bool { return c.at.tree == t })
}

func sameLists(lists, others [][]quota.Claim) bool {
	return slices.EqualFunc(lists, others, func(list, other []quota.Claim) bool {
		return slices.EqualFunc(list, other, sameClaim)
	})
}

// isResize is true for a resize that waits, as opposed to a request.
func (w *waiter) isResize() bool { return w.resizes != 0 }
