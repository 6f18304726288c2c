package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/rankqueue"
	"github.com/quorate/quorate/quota/policy"
)

// blocker identifies what blocks the requests of a queue: the hold of a node, its capacity for a resource, or that of
// a user or group at it. Without a resource, it is the number of applications or, where claims borrow softly, capacity
// of any kind; without a node, items; without a tree, a bound of the ledger.
type blocker struct {
	tree     *tree
	node     *node
	resource *resource
	holder   quota.Holder
	// state or item identifies the items.
	state, item string
	// isHold is true for the hold of the node.
	isHold bool
	// isAside is true for requests that are larger than the whole limit, see [neverFits]. They block no other request,
	// and keep their turn until the limit is raised.
	isAside bool
}

// blockerQueue is the alternatives of requests with the same blocker.
type blockerQueue struct {
	blocker
	waiters rankqueue.Queue[*alternative]
	// While the queue is dirty, from is the turn to retry next, and next is not later than the turn of the next waiter to
	// retry. at is the index in the dirty heap, from 1.
	from, next rankqueue.Rank
	at         int
	// retryAll retries all waiters, including those whose need exceeds the capacity.
	retryAll bool
	// revocationsPending is the number of waiters that await revocations.
	revocationsPending int
}

// insert adds an alternative, which keeps its need as long as it is in the queue.
func (bq *blockerQueue) insert(alt *alternative) { bq.waiters.Insert(alt.turn, int64(alt.need), alt) }

// head is the first waiter; nil if there is none.
func (bq *blockerQueue) head() *alternative {
	head, _ := bq.waiters.Head()
	return head
}

// within returns the first waiter, from a rank on, that needs at most room; nil if there is none.
func (bq *blockerQueue) within(room quota.Amount, from rankqueue.Rank) *alternative {
	alt, _ := bq.waiters.FirstWithin(int64(room), from)
	return alt
}

// queuesOf returns the list that contains the queue of a blocker, or would contain it.
func (q *waitQueue) queuesOf(key blocker) *[]*blockerQueue {
	switch {
	case key.node != nil:
		return &key.node.queues
	case key.resource != nil:
		return &key.resource.queues
	}
	return &q.queuesForLedger
}

// findQueue returns the queue of a blocker; nil if it has no waiters.
func (q *waitQueue) findQueue(key blocker) *blockerQueue { return findQueueIn(*q.queuesOf(key), key) }

func findQueueIn(list []*blockerQueue, key blocker) *blockerQueue {
	for _, bq := range list {
		if bq.blocker == key {
			return bq
		}
	}
	return nil
}

// isStrict is true if requests in the queue must never be overtaken.
func (bq *blockerQueue) isStrict() bool {
	switch {
	case bq.node != nil:
		return bq.node.strict
	case bq.resource != nil:
		return bq.resource.Items == nil || bq.resource.Items.Queueing != quota.BestEffort
	}
	return false
}

// blockingHead returns the waiter that must not be overtaken now: the head of a strict queue, or a head that has waited
// for long enough; otherwise the first waiter that awaits revocations.
func (bq *blockerQueue) blockingHead(now quota.Instant) *alternative {
	head := bq.head()
	if head == nil || bq.tree == nil || bq.isHold || bq.isAside {
		return nil
	}
	if bq.isStrict() || now-head.headSince >= quota.Instant(overtakeSpan(bq.tree.settings)) {
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

// joinQueue adds an alternative to the queue of a blocker.
func (q *waitQueue) joinQueue(alt *alternative, key blocker, need quota.Amount) {
	bq := q.findQueue(key)
	if bq == nil {
		bq = &blockerQueue{blocker: key}
		list := q.queuesOf(key)
		*list = append(*list, bq)
		if key.tree != nil {
			key.tree.queues = append(key.tree.queues, bq)
		}
	}
	wasFirm := bq.blockingHead(q.now.At) != nil
	alt.blockedIn, alt.need = bq, need
	bq.insert(alt)
	q.forest.markQueue(alt)
	if alt.isSpanning() {
		q.spanning.Insert(alt.turn, 0, alt)
	}
	if alt.awaitsRevocation = q.revokedFor[alt.of.record.id] > 0; alt.awaitsRevocation {
		bq.revocationsPending++
	}
	q.noteHead(bq)
	if wasFirm && bq.blockingHead(q.now.At) == nil {
		q.markDirty(bq) // the new head may be overtaken, although the old one might not
	}
}

// noteHead records when the present head became the head.
func (q *waitQueue) noteHead(bq *blockerQueue) {
	if alt := bq.head(); alt != nil && alt.headSince == 0 && !bq.isAside {
		alt.headSince = max(1, q.now.At) // 0 means never
	}
}

// leaveQueue removes an alternative from its queue. If it blocked the queue, the other waiters are retried.
func (q *waitQueue) leaveQueue(alt *alternative) {
	bq := alt.blockedIn
	alt.blockedIn = nil
	if bq == &q.unassigned {
		bq.waiters.Remove(alt.turn)
		return
	}
	wasFirm := bq.blockingHead(q.now.At) == alt
	bq.waiters.Remove(alt.turn)
	q.spanning.Remove(alt.turn)
	if alt.awaitsRevocation {
		bq.revocationsPending--
	}
	if bq.waiters.Len() == 0 {
		q.removeQueue(bq)
		return
	}
	q.noteHead(bq)
	if wasFirm {
		q.markDirty(bq)
	}
}

func (q *waitQueue) removeQueue(bq *blockerQueue) {
	without := func(list []*blockerQueue) []*blockerQueue {
		if len(list) == 1 {
			return nil
		}
		i := slices.Index(list, bq)
		return slices.Delete(list, i, i+1)
	}
	list := q.queuesOf(bq.blocker)
	*list = without(*list)
	if bq.tree != nil {
		bq.tree.queues = without(bq.tree.queues)
	}
	if bq.node != nil {
		q.forest.noteIdle(bq.node)
	}
	q.clearDirty(bq)
}

// capacity returns an upper bound of the free capacity of the blocker that is cheap to compute. A waiter that needs
// more cannot be granted; one that needs less may still be blocked elsewhere.
func (bq *blockerQueue) capacity() quota.Amount {
	switch {
	case bq.isAside:
		return quota.MaxAmount // what is free does not matter, and a changed limit concerns all
	case bq.resource != nil && bq.node == nil:
		return bq.resource.stock.capacityFor(bq.blocker)
	case bq.node == nil || bq.isHold:
		return quota.MaxAmount
	case bq.holder.Kind != quota.TheNode:
		return bq.holderCapacity(bq.node.tree.accounts.find(bq.holder))
	case bq.resource == nil:
		return bq.node.applicationCapacity()
	}
	return bq.node.capacityFor(bq.resource.index)
}

// ignoresLimits is true in a tree under maintenance, where waiters need less than a sum that can be counted, and the
// limits that the capacity is computed from do not apply.
func (bq *blockerQueue) ignoresLimits() bool { return bq.tree != nil && bq.tree.settings.Maintenance }

// holderCapacity returns what a user or group can still get at the node; h is nil if it holds nothing.
func (bq *blockerQueue) holderCapacity(h *holder) quota.Amount {
	var at *holding
	if h != nil {
		at = h.at[bq.node]
	}
	rule := at.ruleAt(bq.node, bq.holder)
	switch {
	case rule == nil:
		return quota.MaxAmount
	case bq.resource != nil:
		return rule.most[bq.resource.index] - at.uses(bq.resource.index)
	case rule.Applications == 0:
		return quota.MaxAmount
	}
	return rule.Applications - at.running()
}

func (n *node) applicationCapacity() quota.Amount {
	if n.borrows == policy.BorrowSoft || n.spec.Applications == 0 {
		return quota.MaxAmount
	}
	return n.spec.Applications - quota.Amount(n.applications)
}

// capacityFor returns an upper bound of what claims at or below the node can still get of a resource: the remainder of
// the limit or, in a cohort, the room plus what the node may borrow. It is MaxAmount for a node with children in the
// cohort, because claims below it may use room that its children do not lend.
func (n *node) capacityFor(r int) quota.Amount {
	if n.pools == nil {
		return n.ceilings[r] - n.subtree[r]
	}
	for _, child := range n.children {
		if child.pooled() {
			return quota.MaxAmount
		}
	}
	return n.pools[r].room().Plus(n.mayOwe(r))
}

// amountNeeded returns the amount that an allocation needs from the blocker, for comparison with capacity; 0 if the
// blocker has no measurable capacity.
func (key blocker) amountNeeded(a *Allocation) quota.Amount {
	if key.node == nil && key.resource != nil {
		return key.itemsNeeded(a)
	}
	if key.node == nil || key.resource == nil {
		if key.isHold {
			return 0
		}
		if key.node != nil && (key.holder.Kind != quota.TheNode || key.node.borrows != policy.BorrowSoft) {
			return 1 // one application
		}
		return 0
	}
	var sum quota.Amount
	for i := range a.claims {
		c := &a.claims[i]
		if !c.countedAt(key.holder).within(key.node) {
			continue
		}
		for _, p := range c.amounts {
			if p.resource == key.resource {
				sum = sum.Plus(p.amount)
			}
		}
	}
	return sum
}

// itemsNeeded returns the number of items that an allocation needs from the blocker.
func (key blocker) itemsNeeded(a *Allocation) quota.Amount {
	if key.item != "" {
		return 1
	}
	sum := quota.Amount(0)
	for i := range a.claims {
		if c := &a.claims[i]; c.at.tree == key.tree {
			if p := c.pickOf(key.resource.Name); len(p.Names) == 0 && p.WantedState() == key.state {
				sum += quota.Amount(p.Count)
			}
		}
	}
	return sum
}

// capacityFor returns the number of items that a request blocked by key could get now: idle ones in the state and those
// that can be created, or 1 for an idle named item.
func (s *stock) capacityFor(key blocker) quota.Amount {
	if key.item == "" {
		return quota.Amount(s.idleIn(key.state) + s.creatableIn(key.state))
	}
	if it := s.byName[key.item]; it == nil || it.owner != 0 {
		return 0
	}
	return 1
}

// unblockFreed marks the queues dirty that may gain capacity from the end of an allocation.
func (q *waitQueue) unblockFreed(a *Allocation) {
	if q.all.Len() == 0 || a.fence == 0 {
		return
	}
	if len(q.queuesForLedger) > 0 {
		q.markDirty(q.queuesForLedger[0])
	}
	for i := range a.claims {
		if c := &a.claims[i]; c.at.tree.soft || len(c.at.tree.queues) > 0 {
			q.unblockAbove(a, c)
		}
	}
}

// unblockGranted marks the queues dirty whose requests a new allocation may unblock: where claims borrow softly it is a
// new candidate for preemption, and further claims of its application do not count against the limit of applications.
func (q *waitQueue) unblockGranted(a *Allocation) {
	if q.all.Len() == 0 {
		return
	}
	for i := range a.claims {
		c := &a.claims[i]
		switch {
		case c.at.tree.soft:
			q.unblockTree(c.at.tree)
		case a.principal().Application != "":
			q.unblockMembers(c.at.tree)
		}
	}
}

// unblockAbove marks the queues dirty for all that a claim counts against, from its node up.
func (q *waitQueue) unblockAbove(a *Allocation, c *placedClaim) {
	if c.at.tree.soft {
		q.unblockTree(c.at.tree)
		return
	}
	if a.principal().Application != "" {
		q.unblockMembers(c.at.tree)
	}
	for n := c.at; n != nil; n = n.parent {
		for _, bq := range n.queues {
			if bq.isAbout(a, c) {
				q.markDirty(bq)
			}
		}
	}
}

// isAbout is true if a claim of an allocation counts against the blocker.
func (bq *blockerQueue) isAbout(a *Allocation, c *placedClaim) bool {
	if bq.isAside || !a.countsFor(c, bq.holder) {
		return false
	}
	if bq.resource == nil {
		return true
	}
	for _, p := range c.amounts {
		if p.resource == bq.resource {
			return true
		}
	}
	return false
}

// unblockTree marks all queues dirty that have waiters with a claim in the tree, and retries all of these queues.
func (q *waitQueue) unblockTree(t *tree) {
	for _, bq := range t.queues {
		q.unblockAll(bq)
	}
	for alt := range q.spanning.All() {
		if alt.blockedIn.tree != t && alt.claimsFrom(t) {
			q.unblockAll(alt.blockedIn)
		}
	}
}

// unblockMembers marks the queues dirty whose blocker may have changed for waiters with an application or a group.
func (q *waitQueue) unblockMembers(t *tree) {
	for _, bq := range t.queues {
		if bq.node != nil && (bq.resource == nil || bq.holder.Kind == quota.AGroup) {
			q.unblockAll(bq)
		}
	}
}

func (q *waitQueue) unblockAll(bq *blockerQueue) {
	q.markDirty(bq)
	bq.retryAll = true
}

// unblockItems marks the queues dirty that wait for items of a resource in a state, or for a named item.
func (q *waitQueue) unblockItems(r *resource, state, item string) {
	for _, bq := range r.queues {
		if !bq.isAside && (state != "" && bq.state == state || item != "" && bq.item == item) {
			q.markDirty(bq)
		}
	}
}

// markDirty schedules all waiters of a queue for a retry, from the head on.
func (q *waitQueue) markDirty(bq *blockerQueue) {
	bq.from, bq.next = rankqueue.First(), rankqueue.First()
	q.dirty.Push(bq)
}

func (q *waitQueue) clearDirty(bq *blockerQueue) {
	q.dirty.Remove(bq)
	bq.retryAll = false
}

// isSoft is true for the queue of requests that found no node by soft borrowing.
func (key blocker) isSoft() bool {
	return key.node != nil && key.resource == nil && !key.isHold && key.holder.Kind == quota.TheNode &&
		key.node.borrows == policy.BorrowSoft
}

// firstAwaitingRevocation is the first waiter in the queue that awaits revocations; nil if there is none.
func (bq *blockerQueue) firstAwaitingRevocation() *alternative {
	if bq.revocationsPending == 0 {
		return nil
	}
	for alt := range bq.waiters.All() {
		if alt.awaitsRevocation {
			return alt
		}
	}
	return nil
}
