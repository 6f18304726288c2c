package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// blocker says what a line waits for: room at a node for a resource, of the node itself or of a user or group; without a
// resource, for applications, or where claims borrow softly for room of any kind; without a node, for items; without a
// tree, for the ledger to hold less.
type blocker struct {
	tree     *tree
	node     *node
	resource *resource
	holder   quota.Holder
	// state or item is that of the items.
	state, item string
}

// blockerQueue is requests that wait for the same.
type blockerQueue struct {
	blocker
	rankQueue
	// While the line is stirred: from is the turn to be tried next, and next is not later than that of the waiter to be tried
	// next; at is the place among the stirred lines, from 1.
	from, next quota.QueueTurn
	at         int
	// all waiters are to be tried, also those who seem to be in vain.
	retryAll bool
	// revocationsPending is how many stand there for whom leases have been revoked.
	revocationsPending int
}

// queuesOf is the list in which a line of the key is kept.
func (q *waitQueue) queuesOf(key blocker) *[]*blockerQueue {
	switch {
	case key.node != nil:
		return &key.node.queues
	case key.resource != nil:
		return &key.resource.queues
	}
	return &q.queuesForLedger
}

// findQueue finds a line; nil if nobody stands there.
func (q *waitQueue) findQueue(key blocker) *blockerQueue { return findQueueIn(*q.queuesOf(key), key) }

func findQueueIn(lines []*blockerQueue, key blocker) *blockerQueue {
	for _, ln := range lines {
		if ln.blocker == key {
			return ln
		}
	}
	return nil
}

// isStrict is true if nobody may ever overtake in the line.
func (ln *blockerQueue) isStrict() bool {
	switch {
	case ln.node != nil:
		return ln.node.strict
	case ln.resource != nil:
		return ln.resource.Items == nil || ln.resource.Items.Queueing != quota.BestEffort
	}
	return false
}

// blockingHead answers whom nobody may overtake now: the head in a strict line, or once it has been there for long enough; or else
// the first for whom leases have been revoked.
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

// joinQueue makes a waiter stand in a line.
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
		q.markDirty(ln) // its new head may be overtaken, where the old one might not
	}
}

// noteHead notes who is at the head of the line now.
func (q *waitQueue) noteHead(ln *blockerQueue) {
	if w := ln.head(); w != nil && w.headSince == 0 {
		w.headSince = max(1, q.now.At) // 0 is never
	}
}

// leaveQueue takes a waiter out of its line. If nobody might overtake it, the others have their turn now.
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

// capacity is how much there is of what the line waits for, as far as that can be said beforehand: whoever needs more would
// wait on.
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

// holderCapacity is that of a user or group, who may hold nothing.
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

// capacityFor is what is left of a limit. In a cohort that says nothing, but for nodes that nobody lends to from below.
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

// amountNeeded is what an allocation wants of the thing that a line waits for.
func (key blocker) amountNeeded(a *Allocation) quota.Amount {
	if key.node == nil && key.resource != nil {
		return key.itemsNeeded(a)
	}
	if key.node == nil || key.resource == nil {
		if key.node != nil && (key.holder.Kind != quota.TheNode || key.node.borrows != policy.BorrowSoft) {
			return 1 // application
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

// itemsNeeded is how many items an allocation wants of those that a line waits for.
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

// capacityFor is how many items of a line there are to be had.
func (s *stock) capacityFor(key blocker) quota.Amount {
	if key.item == "" {
		return quota.Amount(s.idleIn(key.state) + s.creatableIn(key.state))
	}
	if it := s.byName[key.item]; it == nil || it.owner != 0 {
		return 0
	}
	return 1
}

// unblockFreed stirs whoever may have room now that an allocation holds nothing any more.
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

// unblockGranted stirs whoever may be granted because an allocation holds something now: where claims borrow softly somebody can be
// preempted who could not before, and of an application that runs more may run.
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

// unblockAbove stirs the lines of everything that a claim held, from its node up.
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

// isAbout is true if a claim of an allocation counts against what the line waits for.
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

// unblockTree makes everybody be tried who waits in the tree.
func (q *waitQueue) unblockTree(t *tree) {
	for _, ln := range t.queues {
		q.unblockAll(ln)
	}
}

// unblockMembers makes everybody be tried whose own application or group may have changed what is in his way.
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

// unblockRaised stirs whoever waits for room at a node whose limits have changed, or further up in its cohort.
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

// unblockItems stirs those who wait for items of a resource in a state, or for one of a name.
func (q *waitQueue) unblockItems(r *resource, state, item string) {
	for _, ln := range r.queues {
		if state != "" && ln.state == state || item != "" && ln.item == item {
			q.markDirty(ln)
		}
	}
}
