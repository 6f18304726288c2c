package ledger

import (
	"container/heap"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// stirredLines are the lines that are to be tried, as a heap by who is next.
type stirredLines []*line

// Len, Less, Swap, Push and Pop make it a heap.
func (s stirredLines) Len() int           { return len(s) }
func (s stirredLines) Less(i, j int) bool { return turnBefore(s[i].next, s[j].next) }
func (s stirredLines) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].at, s[j].at = i+1, j+1
}

// Push is for the heap only.
func (s *stirredLines) Push(x any) {
	ln, _ := x.(*line)
	*s = append(*s, ln)
	ln.at = len(*s)
}

// Pop is for the heap only.
func (s *stirredLines) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	last.at, last.thorough = 0, false
	return last
}

// stir makes everybody in a line be tried from the head on.
func (q *waitQueue) stir(ln *line) {
	ln.from, ln.next = firstTurn, firstTurn
	if ln.at == 0 {
		heap.Push(&q.stirred, ln)
	} else {
		heap.Fix(&q.stirred, ln.at-1)
	}
}

func (q *waitQueue) unstir(ln *line) {
	if ln.at != 0 {
		heap.Remove(&q.stirred, ln.at-1)
	}
}

// finish grants what can be granted now to those who wait, in the order of the queue, and lets nodes made on demand vanish
// that nothing is held at. It runs at the end of every command: nobody who could be granted is left waiting (I7).
func (l *Ledger) finish() {
	l.wake()
	for l.forest.sweep() && len(l.queue.full) > 0 {
		l.queue.stir(l.queue.full[0])
		l.wake()
	}
}

// wake tries the stirred lines, always whoever is first in the queue of those who are next in one of them. It costs those
// who have a chance, not those who wait.
func (l *Ledger) wake() {
	for len(l.queue.stirred) > 0 {
		ln := l.queue.stirred[0]
		w := l.queue.nextIn(ln)
		switch {
		case w == nil:
			l.queue.unstir(ln)
		case w.turn != ln.next:
			ln.next = w.turn
			heap.Fix(&l.queue.stirred, 0)
		default:
			ln.from = turnAfter(w.turn)
			l.attempt(w)
		}
	}
}

// nextIn is the next one in a stirred line who may have a chance; nil if nobody has.
func (q *waitQueue) nextIn(ln *line) *waiter {
	if ln.tree == nil && ln != &q.limbo && q.allocations.held.Len() >= q.bounds.Held {
		return nil
	}
	if ln.thorough {
		return ln.within(quota.MaxAmount, ln.from)
	}
	next := ln.within(ln.room(), ln.from)
	if firm := ln.firm(q.now.At); next != nil && firm != nil && turnBefore(firm.turn, next.turn) {
		return nil
	}
	return next
}

// attempt grants a request from the queue if that can be. Otherwise it goes on waiting: where it is, if what it waits for
// there is still in its way, or else in the line of what is now.
func (l *Ledger) attempt(w *waiter) {
	t, d, full := l.judgeWaiter(w)
	switch {
	case full:
		t.rollback()
		l.queue.changeLine(w, lineKey{}, 0)
	case d.Granted:
		l.serve(w, &t)
	case !l.queue.stays(w, t.allocation, d.Violations):
		key := l.queue.lineOf(t.allocation, d.Violations)
		l.queue.changeLine(w, key, key.needs(t.allocation))
		l.tell(w, &t)
	default:
		l.tell(w, &t)
	}
}

// judgeWaiter decides a request that waits as if it came now, but in its turn; full is true if nothing but a bound of the
// ledger is in its way. As after decide, commit or rollback must follow if it is granted.
func (l *Ledger) judgeWaiter(w *waiter) (t tx, d quota.Decision, full bool) {
	a, refused := l.placeWaiter(w)
	if refused != nil {
		return tx{ledger: l}, quota.Decision{}, true
	}
	t = l.begin(a)
	d = t.decide()
	return t, d, d.Granted && !t.hasRoom()
}

// previewWaiter decides a request that waits and changes nothing.
func (l *Ledger) previewWaiter(w *waiter) quota.Decision {
	t, d, _ := l.judgeWaiter(w)
	t.rollback()
	return d
}

// placeWaiter finds the nodes for a request that waits. A configuration that refuses it has ended it, so all that can be
// refused now is that there are too many nodes.
func (l *Ledger) placeWaiter(w *waiter) (*Allocation, *quota.Error) {
	a, refused := l.place(w.request)
	if refused != nil {
		return nil, refused
	}
	a.more.waiting = w.record.more.waiting
	for i := range a.claims {
		a.claims[i].asked = w.record.claims[i].asked
	}
	return a, nil
}

func (q *waitQueue) changeLine(w *waiter, key lineKey, need quota.Amount) {
	if w.line.lineKey == key && w.line != &q.limbo {
		return
	}
	q.leaveLine(w)
	q.joinLine(w, key, need)
}

// serve grants a request from the queue.
func (l *Ledger) serve(w *waiter, t *tx) {
	a := t.allocation
	since := max(1, w.record.more.waiting.since.At) // 0 is never
	l.queue.removeWaiter(w)
	a.more.waiting = nil
	a.unclaimed(l.now, keepSpan(w.request))
	t.commit(since)
}

// unclaimed makes a lease end soon unless its caller comes for it.
func (a *Allocation) unclaimed(now quota.Stamp, keep quota.Span) {
	if b := a.more.lease; b != nil && b.ttl > 0 {
		b.unclaimed = true
		b.expires = now.At + quota.Instant(min(b.ttl, keep))
	}
}

// lineOf is the line of the first thing in the way.
func (q *waitQueue) lineOf(a *Allocation, violations []quota.Violation) lineKey {
	if len(violations) == 0 {
		root := a.claims[0].at.tree.root
		return lineKey{tree: root.tree, node: root}
	}
	key := q.keyOf(a, violations[0])
	if key.isSoft() {
		key.node = q.stopOf(a, key.node, violations)
	}
	return key
}

// stopOf is the node where a claim that may borrow softly is stopped: the first hard one that is in the way from a node
// up, or else the last of all.
func (q *waitQueue) stopOf(a *Allocation, n *node, violations []quota.Violation) *node {
	for _, v := range violations {
		key := q.keyOf(a, v)
		if !key.isSoft() || !n.borrowsFrom(key.node) {
			break
		}
		if n = key.node; n.spec.Hard {
			break
		}
	}
	return n
}

// isSoft is true for a line of those who found no place by borrowing softly.
func (key lineKey) isSoft() bool {
	return key.node != nil && key.resource == nil && key.holder.Kind == quota.TheNode && key.node.borrows == policy.BorrowSoft
}

// keyOf is the line of those who wait for a violated limit. At a node that the request itself would make it is that of the
// nearest node that exists.
func (q *waitQueue) keyOf(a *Allocation, v quota.Violation) lineKey {
	t := q.forest.trees[v.Tree]
	if v.Kind == quota.OfItems || v.Kind == quota.OfQueue && v.Item != "" {
		return a.itemKey(t, v)
	}
	key := lineKey{tree: t, node: t.nearest(v.Node), holder: v.Holder}
	if v.Resource != "" && (key.node.borrows != policy.BorrowSoft || v.Holder.Kind != quota.TheNode) {
		key.resource = t.resource(v.Resource)
	}
	return key
}

// itemKey is the line of those who wait for items: for one that the request names, or for any in a state.
func (a *Allocation) itemKey(t *tree, v quota.Violation) lineKey {
	key := lineKey{tree: t, resource: t.resource(v.Resource)}
	for i := range a.claims {
		c := &a.claims[i]
		if c.at.tree == t && slices.Contains(c.pickOf(v.Resource).Names, v.Item) {
			key.item = v.Item
			return key
		}
	}
	key.state = v.Item
	return key
}

// stays is true if what a waiter's line waits for is still in its way.
func (q *waitQueue) stays(w *waiter, a *Allocation, violations []quota.Violation) bool {
	if w.line == &q.limbo {
		return false
	}
	key := w.line.lineKey
	if key.tree == nil && q.allocations.held.Len() >= q.bounds.Held {
		return true
	}
	for _, v := range violations {
		if q.keyOf(a, v) == key {
			return true
		}
	}
	return key == q.lineOf(a, violations)
}

// calm forgets which lines are stirred: those of a ledger that is loaded have all been tried.
func (q *waitQueue) calm() {
	for len(q.stirred) > 0 {
		q.unstir(q.stirred[0])
	}
}
