package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// lineKey says what a line waits for: room at a node for a resource, of the node itself or of a user or group; without a
// resource, for applications, or where claims borrow softly for room of any kind; without a node, for items; without a
// tree, for the ledger to hold less.
type lineKey struct {
	tree     *tree
	node     *node
	resource *resource
	holder   quota.Holder
	// state or item is that of the items.
	state, item string
}

// line is requests that wait for the same.
type line struct {
	lineKey
	ranks
	// While the line is stirred: from is the turn to be tried next, and next is not later than that of the waiter to be tried
	// next; at is the place among the stirred lines, from 1.
	from, next quota.QueueTurn
	at         int
	// all waiters are to be tried, also those who seem to be in vain.
	thorough bool
	// pressing is how many stand there for whom leases have been revoked.
	pressing int
}

// lines is the list in which a line of the key is kept.
func (q *waitQueue) lines(key lineKey) *[]*line {
	switch {
	case key.node != nil:
		return &key.node.lines
	case key.resource != nil:
		return &key.resource.lines
	}
	return &q.full
}

// line finds a line; nil if nobody stands there.
func (q *waitQueue) line(key lineKey) *line { return findLine(*q.lines(key), key) }

func findLine(lines []*line, key lineKey) *line {
	for _, ln := range lines {
		if ln.lineKey == key {
			return ln
		}
	}
	return nil
}

// strict is true if nobody may ever overtake in the line.
func (ln *line) strict() bool {
	switch {
	case ln.node != nil:
		return ln.node.strict
	case ln.resource != nil:
		return ln.resource.Items == nil || ln.resource.Items.Queueing != quota.BestEffort
	}
	return false
}

// firm answers whom nobody may overtake now: the head in a strict line, or once it has been there for long enough; or else
// the first for whom leases have been revoked.
func (ln *line) firm(now quota.Instant) *waiter {
	head := ln.head()
	if head == nil || ln.tree == nil {
		return nil
	}
	if ln.strict() || now-head.headSince >= quota.Instant(overtakeSpan(ln.tree.settings)) {
		return head
	}
	return ln.firstPressing()
}

func overtakeSpan(s quota.TreeSettings) quota.Span {
	if s.Overtake == 0 {
		return quota.DefaultOvertake
	}
	return s.Overtake
}

// joinLine makes a waiter stand in a line.
func (q *waitQueue) joinLine(w *waiter, key lineKey, need quota.Amount) {
	ln := q.line(key)
	if ln == nil {
		ln = &line{lineKey: key}
		list := q.lines(key)
		*list = append(*list, ln)
		if key.tree != nil {
			key.tree.lines = append(key.tree.lines, ln)
		}
	}
	wasFirm := ln.firm(q.now.At) != nil
	w.line, w.need = ln, need
	ln.insert(w)
	if w.pressing = q.revokedFor[w.record.id] > 0; w.pressing {
		ln.pressing++
	}
	q.head(ln)
	if wasFirm && ln.firm(q.now.At) == nil {
		q.stir(ln) // its new head may be overtaken, where the old one might not
	}
}

// head notes who is at the head of the line now.
func (q *waitQueue) head(ln *line) {
	if w := ln.head(); w != nil && w.headSince == 0 {
		w.headSince = max(1, q.now.At) // 0 is never
	}
}

// leaveLine takes a waiter out of its line. If nobody might overtake it, the others have their turn now.
func (q *waitQueue) leaveLine(w *waiter) {
	ln := w.line
	w.line = nil
	if ln == &q.limbo {
		ln.remove(w)
		return
	}
	wasFirm := ln.firm(q.now.At) == w
	ln.remove(w)
	if w.pressing {
		ln.pressing--
	}
	if ln.length == 0 {
		q.dropLine(ln)
		return
	}
	q.head(ln)
	if wasFirm {
		q.stir(ln)
	}
}

func (q *waitQueue) dropLine(ln *line) {
	without := func(list []*line) []*line {
		if len(list) == 1 {
			return nil
		}
		i := slices.Index(list, ln)
		return slices.Delete(list, i, i+1)
	}
	list := q.lines(ln.lineKey)
	*list = without(*list)
	if ln.tree != nil {
		ln.tree.lines = without(ln.tree.lines)
	}
	if ln.node != nil {
		q.forest.vacate(ln.node)
	}
	q.unstir(ln)
}

// room is how much there is of what the line waits for, as far as that can be said beforehand: whoever needs more would
// wait on.
func (ln *line) room() quota.Amount {
	switch {
	case ln.resource != nil && ln.node == nil:
		return ln.resource.stock.roomFor(ln.lineKey)
	case ln.node == nil:
		return quota.MaxAmount
	case ln.holder.Kind != quota.TheNode:
		return ln.roomOf(ln.node.tree.accounts.find(ln.holder))
	case ln.resource == nil:
		return ln.node.roomForApplications()
	}
	return ln.node.roomFor(ln.resource.index)
}

// roomOf is that of a user or group, who may hold nothing.
func (ln *line) roomOf(h *holder) quota.Amount {
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

func (n *node) roomForApplications() quota.Amount {
	if n.borrows == policy.BorrowSoft || n.spec.Applications == 0 {
		return quota.MaxAmount
	}
	return n.spec.Applications - quota.Amount(n.applications)
}

// roomFor is what is left of a limit. In a cohort that says nothing, but for nodes that nobody lends to from below.
func (n *node) roomFor(r int) quota.Amount {
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

// needs is what an allocation wants of the thing that a line waits for.
func (key lineKey) needs(a *Allocation) quota.Amount {
	if key.node == nil && key.resource != nil {
		return key.needsItems(a)
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

// needsItems is how many items an allocation wants of those that a line waits for.
func (key lineKey) needsItems(a *Allocation) quota.Amount {
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

// roomFor is how many items of a line there are to be had.
func (s *stock) roomFor(key lineKey) quota.Amount {
	if key.item == "" {
		return quota.Amount(s.idleIn(key.state) + s.makeable(key.state))
	}
	if it := s.byName[key.item]; it == nil || it.owner != 0 {
		return 0
	}
	return 1
}
