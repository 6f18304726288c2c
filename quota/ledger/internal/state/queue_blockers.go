package state

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/rankqueue"
	"github.com/quorate/quorate/quota/policy"
)

// Blocker identifies what blocks the requests of a queue: the hold of a node, its capacity for a resource, or that of
// a user or group at it. Without a resource, it is the number of applications or, where claims borrow softly, capacity
// of any kind; without a node, items; without a tree, a bound of the ledger.
type Blocker struct {
	Tree     *Tree
	Node     *Node
	Resource *Resource
	Holder   quota.Holder
	// State or item identifies the items.
	State, Item string
	// IsHold is true for the hold of the node.
	IsHold bool
	// IsAside is true for requests that are larger than the whole limit, see admit.NeverFits. They block no other
	// request, and keep their turn until the limit is raised.
	IsAside bool
}

// BlockerQueue is the alternatives of requests with the same blocker.
type BlockerQueue struct {
	Blocker
	Waiters rankqueue.Queue[*Alternative]
	// While the queue is dirty, From is the turn to retry next, and Next is not later than the turn of the next waiter to
	// retry. At is the index in the dirty heap, from 1.
	From, Next rankqueue.Rank
	At         int
	// RetryAll retries all waiters, including those whose need exceeds the capacity.
	RetryAll bool
	// RevocationsPending is the number of waiters that await revocations.
	RevocationsPending int
}

// Insert adds an alternative, which keeps its need as long as it is in the queue.
func (bq *BlockerQueue) Insert(alt *Alternative) { bq.Waiters.Insert(alt.Turn, int64(alt.Need), alt) }

// Head is the first waiter; nil if there is none.
func (bq *BlockerQueue) Head() *Alternative {
	head, _ := bq.Waiters.Head()
	return head
}

// Within returns the first waiter, from a rank on, that needs at most room; nil if there is none.
func (bq *BlockerQueue) Within(room quota.Amount, from rankqueue.Rank) *Alternative {
	alt, _ := bq.Waiters.FirstWithin(int64(room), from)
	return alt
}

// queuesOf returns the list where the queue is, or would be.
func (q *WaitQueue) queuesOf(key Blocker) *[]*BlockerQueue {
	switch {
	case key.Node != nil:
		return &key.Node.Queues
	case key.Resource != nil:
		return &key.Resource.Queues
	}
	return &q.QueuesForLedger
}

// FindQueue returns the queue of a blocker; nil if it has no waiters.
func (q *WaitQueue) FindQueue(key Blocker) *BlockerQueue { return findQueueIn(*q.queuesOf(key), key) }

func findQueueIn(list []*BlockerQueue, key Blocker) *BlockerQueue {
	for _, bq := range list {
		if bq.Blocker == key {
			return bq
		}
	}
	return nil
}

// isStrict is true if requests in the queue must never be overtaken.
func (bq *BlockerQueue) isStrict() bool {
	switch {
	case bq.Node != nil:
		return bq.Node.Strict
	case bq.Resource != nil:
		return bq.Resource.Items == nil || bq.Resource.Items.Queueing != quota.BestEffort
	}
	return false
}

// BlockingHead returns the waiter that must not be overtaken now: the head of a strict queue, or a head that has waited
// for long enough; otherwise the first waiter that awaits revocations.
func (bq *BlockerQueue) BlockingHead(now quota.Instant) *Alternative {
	head := bq.Head()
	if head == nil || bq.Tree == nil || bq.IsHold || bq.IsAside {
		return nil
	}
	if bq.isStrict() || now-head.HeadSince >= quota.Instant(overtakeSpan(bq.Tree.Settings)) {
		return head
	}
	return bq.firstAwaitingRevocation()
}

func overtakeSpan(s quota.TreeSettings) quota.Span {
	if s.Overtake == 0 {
		return quota.DefaultOvertake
	}
	return s.Overtake
}

// JoinQueue adds an alternative to the queue of a blocker.
func (q *WaitQueue) JoinQueue(alt *Alternative, key Blocker, need quota.Amount) {
	bq := q.FindQueue(key)
	if bq == nil {
		bq = &BlockerQueue{Blocker: key}
		list := q.queuesOf(key)
		*list = append(*list, bq)
		if key.Tree != nil {
			key.Tree.Queues = append(key.Tree.Queues, bq)
		}
	}
	wasFirm := bq.BlockingHead(q.Now.At) != nil
	alt.BlockedIn, alt.Need = bq, need
	bq.Insert(alt)
	q.Forest.markQueue(alt)
	if alt.IsSpanning() {
		q.Spanning.Insert(alt.Turn, 0, alt)
	}
	if alt.AwaitsRevocation = q.RevokedFor[alt.Of.Record.id] > 0; alt.AwaitsRevocation {
		bq.RevocationsPending++
	}
	q.noteHead(bq)
	if wasFirm && bq.BlockingHead(q.Now.At) == nil {
		q.MarkDirty(bq) // the new head may be overtaken, although the old one might not
	}
}

// noteHead records when the present head became the head.
func (q *WaitQueue) noteHead(bq *BlockerQueue) {
	if alt := bq.Head(); alt != nil && alt.HeadSince == 0 && !bq.IsAside {
		alt.HeadSince = max(1, q.Now.At) // 0 means never
	}
}

// LeaveQueue removes an alternative from its queue. If it blocked the queue, the other waiters are retried.
func (q *WaitQueue) LeaveQueue(alt *Alternative) {
	bq := alt.BlockedIn
	alt.BlockedIn = nil
	if bq == &q.Unassigned {
		bq.Waiters.Remove(alt.Turn)
		return
	}
	wasFirm := bq.BlockingHead(q.Now.At) == alt
	bq.Waiters.Remove(alt.Turn)
	q.Spanning.Remove(alt.Turn)
	if alt.AwaitsRevocation {
		bq.RevocationsPending--
	}
	if bq.Waiters.Len() == 0 {
		q.RemoveQueue(bq)
		return
	}
	q.noteHead(bq)
	if wasFirm {
		q.MarkDirty(bq)
	}
}

func (q *WaitQueue) RemoveQueue(bq *BlockerQueue) {
	without := func(list []*BlockerQueue) []*BlockerQueue {
		if len(list) == 1 {
			return nil
		}
		i := slices.Index(list, bq)
		return slices.Delete(list, i, i+1)
	}
	list := q.queuesOf(bq.Blocker)
	*list = without(*list)
	if bq.Tree != nil {
		bq.Tree.Queues = without(bq.Tree.Queues)
	}
	if bq.Node != nil {
		q.Forest.NoteIdle(bq.Node)
	}
	q.ClearDirty(bq)
}

// Capacity returns an upper bound of the free capacity of the blocker that is cheap to compute. A waiter that needs
// more cannot be granted; one that needs less may still be blocked elsewhere.
func (bq *BlockerQueue) Capacity() quota.Amount {
	switch {
	case bq.IsAside:
		return quota.MaxAmount // what is free does not matter, and a changed limit concerns all
	case bq.Resource != nil && bq.Node == nil:
		return bq.Resource.Stock.capacityFor(bq.Blocker)
	case bq.Node == nil || bq.IsHold:
		return quota.MaxAmount
	case bq.Holder.Kind != quota.TheNode:
		return bq.holderCapacity(bq.Node.Tree.Accounts.Find(bq.Holder))
	case bq.Resource == nil:
		return bq.Node.applicationCapacity()
	}
	return bq.Node.capacityFor(bq.Resource.Index)
}

// holderCapacity takes nil for a holder that holds nothing.
func (bq *BlockerQueue) holderCapacity(h *Holder) quota.Amount {
	var at *Holding
	if h != nil {
		at = h.At[bq.Node]
	}
	rule := at.RuleAt(bq.Node, bq.Holder)
	switch {
	case rule == nil:
		return quota.MaxAmount
	case bq.Resource != nil:
		return rule.Most[bq.Resource.Index] - at.Uses(bq.Resource.Index)
	case !rule.Applications.HasAmount():
		return quota.MaxAmount
	}
	return rule.Applications.Amount - at.Running()
}

func (n *Node) applicationCapacity() quota.Amount {
	if n.Borrows == policy.BorrowSoft || !n.Spec.Applications.HasAmount() {
		return quota.MaxAmount
	}
	return n.Spec.Applications.Amount - quota.Amount(n.Applications)
}

// capacityFor returns an upper bound of what claims at or below the node can still get of a resource: the remainder of
// the limit or, in a cohort, the room plus what the node may borrow. It is MaxAmount for a node with children in the
// cohort, because claims below it may use room that its children do not lend.
func (n *Node) capacityFor(r int) quota.Amount {
	if n.Pools == nil {
		return n.Ceilings[r] - n.Subtree[r]
	}
	for _, child := range n.Children {
		if child.Pooled() {
			return quota.MaxAmount
		}
	}
	return n.Pools[r].Room().Plus(n.MayOwe(r))
}

// AmountNeeded returns the amount that an allocation needs from the blocker, for comparison with capacity; 0 if the
// blocker has no measurable capacity.
func (key Blocker) AmountNeeded(a *Allocation) quota.Amount {
	if key.Node == nil && key.Resource != nil {
		return key.itemsNeeded(a)
	}
	if key.Node == nil || key.Resource == nil {
		if key.IsHold {
			return 0
		}
		if key.Node != nil && (key.Holder.Kind != quota.TheNode || key.Node.Borrows != policy.BorrowSoft) {
			return 1 // one application
		}
		return 0
	}
	var sum quota.Amount
	for i := range a.Claims {
		c := &a.Claims[i]
		if !c.CountedAt(key.Holder).Within(key.Node) {
			continue
		}
		for _, p := range c.Amounts {
			if p.Resource == key.Resource {
				sum = sum.Plus(p.Amount)
			}
		}
	}
	return sum
}

func (key Blocker) itemsNeeded(a *Allocation) quota.Amount {
	if key.Item != "" {
		return 1
	}
	sum := quota.Amount(0)
	for i := range a.Claims {
		if c := &a.Claims[i]; c.At.Tree == key.Tree {
			if p := c.PickOf(key.Resource.Name); len(p.Names) == 0 && p.WantedState() == key.State {
				sum += quota.Amount(p.Count)
			}
		}
	}
	return sum
}

// capacityFor counts, for a named item, 1 if it is idle; otherwise idle items in the state and those that can be
// created.
func (s *Stock) capacityFor(key Blocker) quota.Amount {
	if key.Item == "" {
		return quota.Amount(s.IdleIn(key.State) + s.CreatableIn(key.State))
	}
	if it := s.ByName[key.Item]; it == nil || it.Owner != 0 {
		return 0
	}
	return 1
}

// UnblockFreed marks the queues dirty that may gain capacity from the end of an allocation.
func (q *WaitQueue) UnblockFreed(a *Allocation) {
	if q.All.Len() == 0 || a.fence == 0 {
		return
	}
	if len(q.QueuesForLedger) > 0 {
		q.MarkDirty(q.QueuesForLedger[0])
	}
	for i := range a.Claims {
		if c := &a.Claims[i]; c.At.Tree.Soft || len(c.At.Tree.Queues) > 0 {
			q.unblockAbove(a, c)
		}
	}
}

// UnblockGranted marks the queues dirty whose requests a new allocation may unblock: where claims borrow softly it is a
// new candidate for preemption, and further claims of its application do not count against the limit of applications.
func (q *WaitQueue) UnblockGranted(a *Allocation) {
	if q.All.Len() == 0 {
		return
	}
	for i := range a.Claims {
		c := &a.Claims[i]
		switch {
		case c.At.Tree.Soft:
			q.UnblockTree(c.At.Tree)
		case a.Principal().Application != "":
			q.unblockMembers(c.At.Tree)
		}
	}
}

// unblockAbove marks the queues dirty for all that a claim counts against, from its node up.
func (q *WaitQueue) unblockAbove(a *Allocation, c *PlacedClaim) {
	if c.At.Tree.Soft {
		q.UnblockTree(c.At.Tree)
		return
	}
	if a.Principal().Application != "" {
		q.unblockMembers(c.At.Tree)
	}
	for n := c.At; n != nil; n = n.Parent {
		for _, bq := range n.Queues {
			if bq.isAbout(a, c) {
				q.MarkDirty(bq)
			}
		}
	}
}

func (bq *BlockerQueue) isAbout(a *Allocation, c *PlacedClaim) bool {
	if bq.IsAside || !a.CountsFor(c, bq.Holder) {
		return false
	}
	if bq.Resource == nil {
		return true
	}
	for _, p := range c.Amounts {
		if p.Resource == bq.Resource {
			return true
		}
	}
	return false
}

// UnblockTree marks all queues dirty that have waiters with a claim in the tree, and retries all of these queues.
func (q *WaitQueue) UnblockTree(t *Tree) {
	for _, bq := range t.Queues {
		q.UnblockAll(bq)
	}
	for alt := range q.Spanning.All() {
		if alt.BlockedIn.Tree != t && alt.claimsFrom(t) {
			q.UnblockAll(alt.BlockedIn)
		}
	}
}

// unblockMembers marks the queues dirty whose blocker may have changed for waiters with an application or a group.
func (q *WaitQueue) unblockMembers(t *Tree) {
	for _, bq := range t.Queues {
		if bq.Node != nil && (bq.Resource == nil || bq.Holder.Kind == quota.AGroup) {
			q.UnblockAll(bq)
		}
	}
}

func (q *WaitQueue) UnblockAll(bq *BlockerQueue) {
	q.MarkDirty(bq)
	bq.RetryAll = true
}

// UnblockItems marks the queues dirty that wait for items of a resource in a state, or for a named item.
func (q *WaitQueue) UnblockItems(r *Resource, itemState, item string) {
	for _, bq := range r.Queues {
		if !bq.IsAside && (itemState != "" && bq.State == itemState || item != "" && bq.Item == item) {
			q.MarkDirty(bq)
		}
	}
}

// MarkDirty schedules all waiters of a queue for a retry, from the head on.
func (q *WaitQueue) MarkDirty(bq *BlockerQueue) {
	bq.From, bq.Next = rankqueue.First(), rankqueue.First()
	q.Dirty.Push(bq)
}

func (q *WaitQueue) ClearDirty(bq *BlockerQueue) {
	q.Dirty.Remove(bq)
	bq.RetryAll = false
}

// IsSoft is true for the queue of requests that found no node by soft borrowing.
func (key Blocker) IsSoft() bool {
	return key.Node != nil && key.Resource == nil && !key.IsHold && key.Holder.Kind == quota.TheNode &&
		key.Node.Borrows == policy.BorrowSoft
}

// firstAwaitingRevocation is nil if there is none.
func (bq *BlockerQueue) firstAwaitingRevocation() *Alternative {
	if bq.RevocationsPending == 0 {
		return nil
	}
	for alt := range bq.Waiters.All() {
		if alt.AwaitsRevocation {
			return alt
		}
	}
	return nil
}
