package state

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/heap"
	"github.com/quorate/quorate/quota/internal/rankqueue"
)

// WaitQueue has the waiting requests. Each is in the blocker queue of the first thing that blocks it (docs/adr/0028).
type WaitQueue struct {
	*Environment
	Deadlines   *deadlines
	Forest      *Forest
	Allocations *Allocations

	Arrival   uint64             // last assigned
	ByArrival map[uint64]*Waiter // for deadlines
	All       rankqueue.Queue[*Waiter]
	// QueuesForLedger has the requests that are blocked only by a bound of the ledger. Unassigned has those that must
	// be assigned to a queue again within the present command.
	QueuesForLedger []*BlockerQueue
	Unassigned      BlockerQueue
	// Spanning has the alternatives in queues that have claims in several trees: where claims borrow softly, a change in
	// one tree can let them preempt what is in their way in another.
	Spanning rankqueue.Queue[*Alternative]
	// Dirty has the queues to retry at the end of the present command.
	Dirty *heap.Heap[*BlockerQueue]
	// RevokedFor counts the leases under revocation by the id of the request that needs their capacity. It is derived from
	// the rest of the state.
	RevokedFor map[string]int
	// ByOwner counts the requests of each owner; it is derived from the rest of the state. It has none without an owner.
	ByOwner map[string]int
	// Bytes is the size of the requests, see Sizes.
	Bytes int64
}

// Waiter is a request in the queue.
type Waiter struct {
	// Record is the immutable record for readers, with the claims of the first alternative. A heartbeat or a moved node
	// replaces it.
	Record *Allocation
	// Request is the original request. The claims that it waits for are those of the alternatives.
	Request quota.Allocate
	// Resizes is the fence of the allocation for which the waiter is a resize, 0 for a request. The claims of its only
	// alternative are then the changes.
	Resizes uint64
	Turn    rankqueue.Rank
	// Alternatives are the lists of claims that may be granted, in order, at least one. Most requests have one.
	Alternatives []*Alternative
	// Sole has the memory of the only alternative, if there is one.
	Sole *soleWaiter
}

func NewWaiter(a *Allocation, request *quota.Allocate) *Waiter {
	if len(request.AnyOf) > 0 {
		return &Waiter{Record: a, Request: *request}
	}
	w := &soleWaiter{Waiter: Waiter{Record: a, Request: *request}}
	w.Sole = w
	return &w.Waiter
}

// Waiting is the place of a record in the queue.
type Waiting struct {
	Arrival          uint64
	Since            quota.Stamp
	Until, KeepUntil quota.Instant
}

// EndsAt is when the request leaves the queue unless it is granted or touched.
func (w *Waiting) EndsAt() quota.Instant { return min(w.Until, w.KeepUntil) }

// QueueTurn is the place of a request in the order of the queue, or of the resize that waits for an allocation. A new
// request is the last of its priority.
func (a *Allocation) QueueTurn() rankqueue.Rank {
	t := rankqueue.Rank{Arrival: 1<<64 - 1}
	if a.More != nil {
		t.Priority = a.More.Priority
		switch {
		case a.More.Waiting != nil:
			t.Arrival = a.More.Waiting.Arrival
		case a.More.Resize != nil:
			t.Arrival = a.More.Resize.More.Waiting.Arrival
		}
	}
	return t
}

// WaiterOf returns the waiter of a waiting record.
func (q *WaitQueue) WaiterOf(a *Allocation) *Waiter { return q.ByArrival[a.More.Waiting.Arrival] }

// AddWaiter adds a request to the wait queue without assigning its alternatives to blocker queues.
func (q *WaitQueue) AddWaiter(w *Waiter) {
	if q.ByArrival == nil {
		q.ByArrival = map[uint64]*Waiter{}
	}
	place := w.Record.More.Waiting
	q.ByArrival[place.Arrival] = w
	q.Bytes += q.SizeOf(w)
	q.CountOwner(w.Record.Owner, 1)
	q.All.Insert(w.Turn, 0, w)
	if !w.IsResize() {
		q.Allocations.ByID.Put(w.Record)
	}
	q.Deadlines.Set(DueKey{DueWaiter, place.Arrival}, place.EndsAt())
}

// SizeOf is the counted size of a waiter. That of a resize counts as a whole, so that there is room for what the
// allocation grows by when it is granted.
func (q *WaitQueue) SizeOf(w *Waiter) int64 {
	if w.IsResize() {
		return w.Size()
	}
	return q.CountedSize(w)
}

// RemoveWaiter removes a request from its blocker queues and from the wait queue, and frees its id. The caller removes
// a resize from the record of its allocation.
func (q *WaitQueue) RemoveWaiter(w *Waiter) {
	for _, alt := range w.Alternatives {
		q.Forest.markQueue(alt)
		q.LeaveQueue(alt)
	}
	q.All.Remove(w.Turn)
	place := w.Record.More.Waiting
	delete(q.ByArrival, place.Arrival)
	q.Bytes -= q.SizeOf(w)
	q.CountOwner(w.Record.Owner, -1)
	if !w.IsResize() {
		q.Allocations.ByID.Remove(w.Record)
	}
	q.Deadlines.Drop(DueKey{DueWaiter, place.Arrival})
}

// CountOwner adds to the number of requests of an owner.
func (q *WaitQueue) CountOwner(owner string, n int) {
	if owner == "" {
		return
	}
	if q.ByOwner == nil {
		q.ByOwner = map[string]int{}
	}
	if q.ByOwner[owner] += n; q.ByOwner[owner] == 0 {
		delete(q.ByOwner, owner)
	}
}

// CheckQueueShare refuses another waiter of an owner if as many wait as may.
func (s *State) CheckQueueShare(owner string) *quota.Error {
	if s.Queue.All.Len() >= s.Bounds.Waiting {
		return s.Queue.tooManyWait()
	}
	share := max(1, s.Bounds.Waiting/quota.WaitingPerUser)
	if n := s.Queue.ByOwner[owner]; n >= share && s.HasShare() {
		return quota.Errorf(quota.Full, "mode",
			"%d requests of %s wait, and the share of one user is %d of the %d that may; ask again when some of them have "+
				"ended, or do not wait", n, owner, share, s.Bounds.Waiting)
	}
	return nil
}

func (q *WaitQueue) tooManyWait() *quota.Error {
	return quota.Errorf(quota.Full, "mode", "%d requests wait, as many as may; ask again later, or do not wait",
		q.All.Len())
}

func WaitingDecision(d quota.Decision) *quota.Decision {
	return &quota.Decision{Waiting: true, Violations: d.Violations, Preempted: d.Preempted}
}

func WaitSpan(r *quota.Allocate) quota.Span {
	if r.WaitFor == 0 {
		return quota.MaxWait
	}
	return r.WaitFor
}

func KeepSpan(r *quota.Allocate) quota.Span {
	if r.Keep == 0 {
		return quota.DefaultKeep
	}
	return r.Keep
}

// matchesQueueing is true if the record's request had the same queueing parameters. The priority of one that does not
// wait is not compared: the claims have it too.
func (e *Environment) matchesQueueing(m *Details, r *quota.Allocate) bool {
	isSamePriority := m.Priority == r.Priority || r.Mode != quota.Wait
	return m.WaitFor == r.WaitFor && m.Keep == r.Keep && isSamePriority
}

// ClearGrant turns a record into that of a request that holds nothing.
func (a *Allocation) ClearGrant() {
	a.fence, a.Granted, a.More.Forced, a.More.EndsAt = 0, quota.Stamp{}, false, 0
	if a.More.Lease != nil {
		a.More.Lease.Expires = 0
	}
}

// addQueueTo copies the queueing parameters of a record.
func (m *Details) addQueueTo(info *quota.AllocationInfo) {
	info.Priority = m.Priority
	if w := m.Waiting; w != nil {
		info.Waiting = &quota.WaitingInfo{
			Since: w.Since.At, SinceWall: w.Since.Wall, Until: w.Until,
			KeepUntil: w.KeepUntil,
		}
	}
}

// String describes the blocker for people.
func (key Blocker) String() string {
	if key.Tree == nil {
		return "the ledger"
	}
	what := "applications"
	switch {
	case key.IsHold:
		what = "the end of the hold"
	case key.Resource != nil:
		what = key.Resource.Name
	case key.IsSoft():
		what = "room"
	}
	if key.IsAside {
		what = "a higher limit of " + what
	}
	if key.Node == nil {
		return what + " " + key.State + key.Item + " of " + key.Tree.Name
	}
	return key.Holder.String() + what + " at " + key.Node.Place()
}

// Place is the node of the blocker; of items, the tree alone.
func (key Blocker) Place() quota.Subtree {
	switch {
	case key.Node != nil:
		return quota.Subtree{Tree: key.Node.TreeName, Node: key.Node.Path}
	case key.Tree != nil:
		return quota.Subtree{Tree: key.Tree.Name}
	}
	return quota.Subtree{}
}

func (w *Waiter) MatchesQueueFilter(f quota.QueueFilter) bool {
	if f.Owner != "" && w.Record.Owner != f.Owner {
		return false
	}
	if f.Namespace != "" && quota.NamespaceOf(w.Record.ID()) != f.Namespace {
		return false
	}
	return f.Tree == "" || slices.ContainsFunc(w.Alternatives, func(alt *Alternative) bool { return alt.passes(f) })
}

func (alt *Alternative) passes(f quota.QueueFilter) bool {
	for i := range alt.Claims {
		c := &alt.Claims[i]
		if c.At.TreeName == f.Tree && quota.IsWithin(c.Placed.Path, f.Node) && c.asksFor(f.Resource) {
			return true
		}
	}
	return false
}

// asksFor is true if the claim names the resource, or if the given name is empty.
func (c *PlacedClaim) asksFor(resource string) bool {
	if resource == "" {
		return true
	}
	for _, p := range c.Amounts {
		if p.Resource.Name == resource {
			return true
		}
	}
	return false
}

// Alternative is a list of claims that may be granted to a waiting request. It is in the queue of what blocks it.
type Alternative struct {
	Of *Waiter
	// Number is that of the list in the request, from 1; 0 if the request has no alternatives.
	Number int
	// Wanted are the claims with the current paths of their nodes, claims the nodes where they are.
	Wanted []quota.Claim
	Claims []PlacedClaim
	// UnconfiguredPaths are the parts of the claims' paths below configured nodes; nil if all nodes are configured.
	UnconfiguredPaths []string
	// Resized and lease are those of the record if it has the claims of this alternative.
	Resized *Resized
	Lease   *Lease

	Turn      rankqueue.Rank
	BlockedIn *BlockerQueue
	// Need is the least amount of the blocked resource with which the alternative could fit.
	Need quota.Amount
	// HeadSince is when the alternative first became the head of a queue; 0 if it has not.
	HeadSince quota.Instant
	// AwaitsRevocation is true while leases revoked for the request are still held.
	AwaitsRevocation bool
}

// soleWaiter is a request with one alternative in one piece of memory.
type soleWaiter struct {
	Waiter
	Alternative Alternative
	List        [1]*Alternative
}

// IsSpanning is true for claims in several trees.
func (alt *Alternative) IsSpanning() bool {
	for i := range alt.Claims {
		if alt.Claims[i].At.Tree != alt.Claims[0].At.Tree {
			return true
		}
	}
	return false
}

func (alt *Alternative) claimsFrom(t *Tree) bool {
	return slices.ContainsFunc(alt.Claims, func(c PlacedClaim) bool { return c.At.Tree == t })
}

func sameLists(lists, others [][]quota.Claim) bool {
	return slices.EqualFunc(lists, others, func(list, other []quota.Claim) bool {
		return slices.EqualFunc(list, other, sameClaim)
	})
}

// IsResize is true for a resize that waits, as opposed to a request.
func (w *Waiter) IsResize() bool { return w.Resizes != 0 }
