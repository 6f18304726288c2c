package ledger

import (
	"iter"
	"slices"
	"sort"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// firstTurn is before all others.
var firstTurn = quota.QueueTurn{Priority: 1<<63 - 1}

// turnBefore is the order of the queue: higher priority first, then earlier arrival.
func turnBefore(t, other quota.QueueTurn) bool {
	if t.Priority != other.Priority {
		return t.Priority > other.Priority
	}
	return t.Arrival < other.Arrival
}

// turnAfter is the turn directly after t.
func turnAfter(t quota.QueueTurn) quota.QueueTurn {
	return quota.QueueTurn{Priority: t.Priority, Arrival: t.Arrival + 1}
}

// maxChunk is the largest number of waiters in a chunk.
const maxChunk = 128

// rankQueue has waiters in the order of the queue. They are divided into chunks, each with the least need in it, so
// that the next waiter that fits is found without visiting all, and adding or removing a waiter does not cost the whole
// length.
type rankQueue struct {
	pieces []chunk
	length int
}

type chunk struct {
	waiters []*waiter
	least   quota.Amount
}

// find returns the position of the first waiter that is not before a turn, or the end.
func (r *rankQueue) find(t quota.QueueTurn) (p, i int) {
	p = sort.Search(len(r.pieces), func(p int) bool {
		list := r.pieces[p].waiters
		return !turnBefore(list[len(list)-1].turn, t)
	})
	if p == len(r.pieces) {
		return p, 0
	}
	list := r.pieces[p].waiters
	return p, sort.Search(len(list), func(i int) bool { return !turnBefore(list[i].turn, t) })
}

func (r *rankQueue) insert(w *waiter) {
	r.length++
	p, i := r.find(w.turn)
	if p == len(r.pieces) {
		if p == 0 {
			r.pieces = []chunk{{waiters: []*waiter{w}, least: w.need}}
			return
		}
		p--
		i = len(r.pieces[p].waiters)
	}
	at := &r.pieces[p]
	at.waiters = slices.Insert(at.waiters, i, w)
	at.least = min(at.least, w.need)
	if len(at.waiters) > maxChunk {
		upper := chunk{waiters: slices.Clone(at.waiters[maxChunk/2:])}
		at.waiters = slices.Delete(at.waiters, maxChunk/2, len(at.waiters))
		at.recompute()
		upper.recompute()
		r.pieces = slices.Insert(r.pieces, p+1, upper)
	}
}

func (r *rankQueue) remove(w *waiter) {
	r.length--
	p, i := r.find(w.turn)
	at := &r.pieces[p]
	at.waiters = slices.Delete(at.waiters, i, i+1)
	switch {
	case len(at.waiters) == 0:
		r.pieces = slices.Delete(r.pieces, p, p+1)
		return
	case p+1 < len(r.pieces) && len(at.waiters)+len(r.pieces[p+1].waiters) <= maxChunk/2:
		at.waiters = append(at.waiters, r.pieces[p+1].waiters...)
		r.pieces = slices.Delete(r.pieces, p+1, p+2)
	}
	at.recompute()
}

// recompute finds the least need in the chunk.
func (p *chunk) recompute() {
	p.least = p.waiters[0].need
	for _, w := range p.waiters[1:] {
		p.least = min(p.least, w.need)
	}
}

// head is the first; nil if there is none.
func (r *rankQueue) head() *waiter {
	if r.length == 0 {
		return nil
	}
	return r.pieces[0].waiters[0]
}

// within returns the first waiter, from a turn on, that needs at most room; nil if there is none.
func (r *rankQueue) within(room quota.Amount, from quota.QueueTurn) *waiter {
	p, i := r.find(from)
	for ; p < len(r.pieces); p, i = p+1, 0 {
		if r.pieces[p].least > room {
			continue
		}
		for _, w := range r.pieces[p].waiters[i:] {
			if w.need <= room {
				return w
			}
		}
	}
	return nil
}

// before is the number of waiters before a turn.
func (r *rankQueue) before(t quota.QueueTurn) int {
	p, i := r.find(t)
	for _, earlier := range r.pieces[:p] {
		i += len(earlier.waiters)
	}
	return i
}

// from yields all waiters from a turn on. The queue must not change meanwhile.
func (r *rankQueue) from(t quota.QueueTurn) iter.Seq[*waiter] {
	return func(yield func(*waiter) bool) {
		p, i := r.find(t)
		for ; p < len(r.pieces); p, i = p+1, 0 {
			for _, w := range r.pieces[p].waiters[i:] {
				if !yield(w) {
					return
				}
			}
		}
	}
}

// list returns a copy, for callers that add or remove waiters during a loop.
func (r *rankQueue) list() []*waiter {
	all := make([]*waiter, 0, r.length)
	for _, p := range r.pieces {
		all = append(all, p.waiters...)
	}
	return all
}

// asker is the turn of a request that must not overtake others, with the present time.
type asker struct {
	quota.QueueTurn
	now quota.Instant
}

func (e *environment) askerFor(a *Allocation) asker { return asker{a.queueTurn(), e.now.At} }

// overtakeViolations appends a violation if the asker must not overtake requests in the queue.
func (who asker) overtakeViolations(violations []quota.Violation, lines []*blockerQueue, key blocker) []quota.Violation {
	ln := findQueueIn(lines, key)
	if ln == nil {
		return violations
	}
	head := ln.blockingHead(who.now)
	if head == nil || !turnBefore(head.turn, who.QueueTurn) {
		return violations
	}
	return append(violations, ln.overtakeViolation(ln.before(who.QueueTurn)))
}

// overtakeViolation is the violation of a request with earlier requests ahead of it in the queue.
func (ln *blockerQueue) overtakeViolation(earlier int) quota.Violation {
	v := quota.Violation{Kind: quota.OfQueue, Tree: ln.tree.name, Holder: ln.holder, Item: ln.state + ln.item, Used: quota.Amount(earlier)}
	if ln.node != nil {
		v.Node = ln.node.path
	}
	if ln.resource != nil {
		v.Resource = ln.resource.Name
	}
	return v
}

// appendOvertaking is overtakeViolations at a node for a resource.
func (who asker) appendOvertaking(violations []quota.Violation, n *node, r *resource) []quota.Violation {
	if n.queues == nil {
		return violations
	}
	return who.overtakeViolations(violations, n.queues, blocker{tree: n.tree, node: n, resource: r})
}

// softOvertakeViolations returns, for every claim with soft borrowing, the requests that it must not overtake on its
// path.
func (e *environment) softOvertakeViolations(a *Allocation) []quota.Violation {
	var violations []quota.Violation
	who := e.askerFor(a)
	for i := range a.claims {
		c := &a.claims[i]
		if !c.isSoft() || len(c.at.tree.queues) == 0 {
			continue
		}
		for n := c.home(); n != nil; n = n.parent {
			if n.queues == nil {
				continue
			}
			if n.borrows == policy.BorrowSoft {
				violations = who.overtakeViolations(violations, n.queues, blocker{tree: n.tree, node: n})
				continue
			}
			for _, p := range c.amounts {
				violations = who.appendOvertaking(violations, n, p.resource)
			}
		}
	}
	return violations
}

// overtakeByName is overtakeViolations for each named item.
func (who asker) overtakeByName(violations []quota.Violation, t *tree, p quota.Pick) []quota.Violation {
	r := t.resource(p.Resource)
	for _, name := range p.Names {
		violations = who.overtakeViolations(violations, r.queues, blocker{tree: t, resource: r, item: name})
	}
	return violations
}

// anyQueued is true if requests wait in a tree of the allocation.
func (a *Allocation) anyQueued() bool {
	for i := range a.claims {
		if len(a.claims[i].at.tree.queues) > 0 {
			return true
		}
	}
	return false
}
