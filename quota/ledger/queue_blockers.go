package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// blocker identifies what blocks the requests of a queue: the capacity of a node for a resource, or of a user or group
// at it. Without a resource, it is the number of applications or, where claims borrow softly, capacity of any kind;
// without a node, items; without a tree, a bound of the ledger.
type blocker struct {
	tree     *tree
	node     *node
	resource *resource
	holder   quota.Holder
	// state or item identifies the items.
	state, item string
}

// blockerQueue is the requests with the same blocker.
type blockerQueue struct {
	blocker
	rankQueue
	// While the queue is dirty, from is the turn to retry next, and next is not later than the turn of the next waiter to
	// retry. at is the index in the dirty heap, from 1.
	from, next quota.QueueTurn
	at         int
	// retryAll retries all waiters, including those whose need exceeds the capacity.
	retryAll bool
	// revocationsPending is the number of waiters that await revocations.
	revocationsPending int
}

// queuesOf is the list that contains the queue of a blocker.
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

func findQueueIn(lines []*blockerQueue, key blocker) *blockerQueue {
	for _, ln := range lines {
		if ln.blocker == key {
			return ln
		}
	}
	return nil
}

// isStrict is true if requests in the queue must never be overtaken.
func (ln *blockerQueue) isStrict() bool {
	switch {
	case ln.node != nil:
		return ln.node.strict
	case ln.resource != nil:
		return ln.resource.Items == nil || ln.resource.Items.Queueing != quota.BestEffort
	}
	return false
}

// blockingHead returns the waiter that must not be overtaken now: the head of a strict queue, or a head that has waited
// for long enough; otherwise the first waiter that awaits revocations.
func (ln *blockerQueue) blockingHead(now quota.Instant) *waiter {
	head := ln.head()
	if head == nil || ln.tree == nil {
		return nil
	}
	if ln.isStrict() || now-head.headSince >= quota.Instant(overtakeSpan(ln.tree.settings)) {
		return head
	}
	return ln.firstAwaitingRevocation()
}

func overtakeSpan(s quota.TreeSettings) quota.Span {
	if s.Overtake == 0 {
		return quota.DefaultOvertake
	}
	return s.Overtake
}

// joinQueue adds a waiter to the queue of a blocker.
func (q *waitQueue) joinQueue(w *waiter, key blocker, need quota.Amount) {
	ln := q.findQueue(key)
	if ln == nil {
		ln = &blockerQueue{blocker: key}
		list := q.queuesOf(key)
		*list = append(*list, ln)
		if key.tree != nil {
			key.tree.queues = append(key.tree.queues, ln)
		}
	}
	wasFirm := ln.blockingHead(q.now.At) != nil
	w.blockedIn, w.need = ln, need
	ln.insert(w)
	if w.awaitsRevocation = q.revokedFor[w.record.id] > 0; w.awaitsRevocation {
		ln.revocationsPending++
	}
	q.noteHead(ln)
	if wasFirm && ln.blockingHead(q.now.At) == nil {
		q.markDirty(ln) // the new head may be overtaken, although the old one might not
	}
}

// noteHead records when the present head became the head.
func (q *waitQueue) noteHead(ln *blockerQueue) {
	if w := ln.head(); w != nil && w.headSince == 0 {
		w.headSince = max(1, q.now.At) // 0 means never
	}
}

// leaveQueue removes a waiter from its queue. If it blocked the queue, the other waiters are retried.
func (q *waitQueue) leaveQueue(w *waiter) {
	ln := w.blockedIn
	w.blockedIn = nil
	if ln == &q.unassigned {
		ln.remove(w)
		return
	}
	wasFirm := ln.blockingHead(q.now.At) == w
	ln.remove(w)
	if w.awaitsRevocation {
		ln.revocationsPending--
	}
	if ln.length == 0 {
		q.removeQueue(ln)
		return
	}
	q.noteHead(ln)
	if wasFirm {
		q.markDirty(ln)
	}
}

func (q *waitQueue) removeQueue(ln *blockerQueue) {
	without := func(list []*blockerQueue) []*blockerQueue {
		if len(list) == 1 {
			return nil
		}
		i := slices.Index(list, ln)
		return slices.Delete(list, i, i+1)
	}
	list := q.queuesOf(ln.blocker)
	*list = without(*list)
	if ln.tree != nil {
		ln.tree.queues = without(ln.tree.queues)
	}
	if ln.node != nil {
		q.forest.noteIdle(ln.node)
	}
	q.clearDirty(ln)
}

// capacity is an upper bound of the free capacity of the blocker, as far as it is known without a full decision. A
// waiter that needs more cannot be granted.
func (ln *blockerQueue) capacity() quota.Amount {
	switch {
	case ln.resource != nil && ln.node == nil:
		return ln.resource.stock.capacityFor(ln.blocker)
	case ln.node == nil:
		return quota.MaxAmount
	case ln.holder.Kind != quota.TheNode:
		return ln.holderCapacity(ln.node.tree.accounts.find(ln.holder))
	case ln.resource == nil:
		return ln.node.applicationCapacity()
	}
	return ln.node.capacityFor(ln.resource.index)
}

// holderCapacity is the capacity of a user or group, which is nil if it holds nothing.
func (ln *blockerQueue) holderCapacity(h *holder) quota.Amount {
	var at *holding
	if h != nil {
		at = h.at[ln.node]
	}
	rule := at.ruleAt(ln.node, ln.holder)
	switch {
	case rule == nil:
		return quota.MaxAmount
	case ln.resource != nil:
		return rule.most[ln.resource.index] - at.uses(ln.resource.index)
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

// capacityFor is the remainder of a limit. In a cohort it is known only for nodes that borrow nothing and have no
// lending children.
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

// amountNeeded is the amount that an allocation asks of the blocker.
func (key blocker) amountNeeded(a *Allocation) quota.Amount {
	if key.node == nil && key.resource != nil {
		return key.itemsNeeded(a)
	}
	if key.node == nil || key.resource == nil {
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

// itemsNeeded is the number of items that an allocation asks of the blocker.
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

// capacityFor is the number of available items of a blocker.
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
	if q.all.length == 0 || a.fence == 0 {
		return
	}
	if len(q.queuesForLedger) > 0 {
		q.markDirty(q.queuesForLedger[0])
	}
	for i := range a.claims {
		if c := &a.claims[i]; len(c.at.tree.queues) > 0 {
			q.unblockAbove(a, c)
		}
	}
}

// unblockGranted marks the queues dirty whose requests a new allocation may unblock: where claims borrow softly it is a
// new candidate for preemption, and further claims of its application do not count against the limit of applications.
func (q *waitQueue) unblockGranted(a *Allocation) {
	if q.all.length == 0 {
		return
	}
	for i := range a.claims {
		c := &a.claims[i]
		switch {
		case len(c.at.tree.queues) == 0:
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
		for _, ln := range n.queues {
			if ln.isAbout(a, c) {
				q.markDirty(ln)
			}
		}
	}
}

// isAbout is true if a claim of an allocation counts against the blocker.
func (ln *blockerQueue) isAbout(a *Allocation, c *placedClaim) bool {
	if !a.countsFor(c, ln.holder) {
		return false
	}
	if ln.resource == nil {
		return true
	}
	for _, p := range c.amounts {
		if p.resource == ln.resource {
			return true
		}
	}
	return false
}

// unblockTree marks all queues of the tree dirty and retries all their waiters.
func (q *waitQueue) unblockTree(t *tree) {
	for _, ln := range t.queues {
		q.unblockAll(ln)
	}
}

// unblockMembers marks the queues dirty whose blocker may have changed for waiters with an application or a group.
func (q *waitQueue) unblockMembers(t *tree) {
	for _, ln := range t.queues {
		if ln.node != nil && (ln.resource == nil || ln.holder.Kind == quota.AGroup) {
			q.unblockAll(ln)
		}
	}
}

func (q *waitQueue) unblockAll(ln *blockerQueue) {
	q.markDirty(ln)
	ln.retryAll = true
}

// unblockRaised marks the queues dirty that wait for capacity at a node whose limits have changed, or further up in its
// cohort.
func (q *waitQueue) unblockRaised(n *node) {
	if n.tree.soft {
		q.unblockTree(n.tree)
		return
	}
	for at := n; at != nil && (at == n || at.pools != nil); at = at.parent {
		for _, ln := range at.queues {
			if ln.resource != nil && ln.holder.Kind == quota.TheNode {
				q.markDirty(ln)
			}
		}
	}
}

// unblockItems marks the queues dirty that wait for items of a resource in a state, or for a named item.
func (q *waitQueue) unblockItems(r *resource, state, item string) {
	for _, ln := range r.queues {
		if state != "" && ln.state == state || item != "" && ln.item == item {
			q.markDirty(ln)
		}
	}
}
