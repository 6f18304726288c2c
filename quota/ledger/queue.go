package ledger

import (
	"slices"
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

// checkQueueShare refuses another waiter of an owner if as many wait as may.
func (l *Ledger) checkQueueShare(owner string) *quota.Error {
	if l.queue.all.Len() >= l.bounds.Waiting {
		return l.queue.tooManyWait()
	}
	share := max(1, l.bounds.Waiting/quota.WaitingPerUser)
	if n := l.queue.byOwner[owner]; n >= share && l.guard().hasShare() {
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

// matchesQueueing is true if the record's request had the same queueing parameters. Since LevelTen the priority of one
// that does not wait is not compared: servers of earlier versions leave it out, and the claims have it too.
func (e *environment) matchesQueueing(m *details, r *quota.Allocate) bool {
	isSamePriority := m.priority == r.Priority || e.level >= quota.LevelTen && r.Mode != quota.Wait
	return m.waitFor == r.WaitFor && m.keep == r.Keep && isSamePriority
}

// clearGrant turns a record into that of a request that holds nothing.
func (a *Allocation) clearGrant() {
	a.fence, a.granted, a.more.forced, a.more.endsAt = 0, quota.Stamp{}, false, 0
	if a.more.lease != nil {
		a.more.lease.expires = 0
	}
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
	switch resize := a.waitingResize(); {
	case a.isWaiting():
		l.queue.waiterOf(a).addPlacesTo(info.Waiting)
	case resize != nil:
		l.queue.waiterOf(resize).addPlacesTo(&info.Resize.Waiting)
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
