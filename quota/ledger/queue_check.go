package ledger

import (
	"fmt"
	"maps"
	"slices"

	"github.com/quorate/quorate/quota"
)

// checkQueue verifies I7: every request that waits stands in one line, what that waits for is in its way, or somebody who
// must not be overtaken there; and nobody waits who could be granted.
func (v verifier) checkQueue() error {
	if len(v.queue.stirred) > 0 || v.queue.limbo.length > 0 {
		return fmt.Errorf("%d lines are stirred and %d requests in no line between two commands", len(v.queue.stirred), v.queue.limbo.length)
	}
	lines, pressing, revoked := map[*line]int{}, map[*line]int{}, map[string]int{}
	for _, a := range v.allocations.held.All() {
		if by := a.lease().revokedBy; by != "" {
			revoked[by]++
		}
	}
	if !maps.Equal(revoked, v.queue.revokedFor) {
		return fmt.Errorf("leases are revoked for %v, but %v are counted", revoked, v.queue.revokedFor)
	}
	last := quota.QueueTurn{Priority: 1<<63 - 1}
	for w := range v.queue.all.from(firstTurn) {
		if err := v.checkWaiter(w, last); err != nil {
			return err
		}
		last = w.turn
		lines[w.line]++
		if w.pressing {
			pressing[w.line]++
		}
	}
	if n := v.queue.all.length; n != len(v.queue.byArrival) {
		return fmt.Errorf("%d requests wait, but %d are known by their arrival", n, len(v.queue.byArrival))
	}
	for ln := range lines {
		if ln.pressing != pressing[ln] {
			return fmt.Errorf("%d press in the line for %s, but it says %d", pressing[ln], ln, ln.pressing)
		}
	}
	return v.checkLines(lines)
}

func (v verifier) checkWaiter(w *waiter, last quota.QueueTurn) error {
	a, place := w.record, w.record.more.waiting
	switch {
	case !turnBefore(last, w.turn) || place.arrival != w.turn.Arrival || place.arrival > v.queue.arrival || a.more.priority != w.turn.Priority:
		return fmt.Errorf("request %q is not in its place in the queue", a.id)
	case v.allocations.byID[a.id] != a || v.queue.byArrival[place.arrival] != w || a.ended != nil || a.fence != 0:
		return fmt.Errorf("request %q cannot be found by its id or arrival, or holds something", a.id)
	case w.line == nil || v.queue.line(w.line.lineKey) != w.line || w.line.within(quota.MaxAmount, w.turn) != w:
		return fmt.Errorf("I7: request %q stands in no line", a.id)
	case place.since.At > v.now.At || w.headSince > max(1, v.now.At) || w.line.head() == w && w.headSince == 0:
		return fmt.Errorf("I9: request %q waits, or is at the head of a line, since a time to come", a.id)
	}
	if w.pressing != (v.queue.revokedFor[a.id] > 0) {
		return fmt.Errorf("%d leases are revoked for %q, but it says that it presses: %v", v.queue.revokedFor[a.id], a.id, w.pressing)
	}
	t, d, full := v.judgeWaiter(w)
	t.rollback()
	b := t.allocation
	switch {
	case w.line.tree == nil && (full || v.queue.stays(w, b, d.Violations)):
	case full || d.Granted:
		return fmt.Errorf("I7: request %q waits for %s, but could be granted", a.id, w.line)
	case !v.queue.stays(w, b, d.Violations) && !w.heldUp(d.Violations) && !v.blockedThere(w):
		return fmt.Errorf("I7: request %q waits for %s, but that is not in its way", a.id, w.line)
	case w.line.needs(b) != w.need:
		return fmt.Errorf("request %q needs %d of %s, but its line says %d", a.id, w.line.needs(b), w.line, w.need)
	}
	return nil
}

// heldUp is true if a request must not overtake somebody in the tree of its line, which borrows softly: then it is not even
// tried there, and its decision does not name what else is in its way. Whatever changes in such a tree stirs all its lines.
func (w *waiter) heldUp(violations []quota.Violation) bool {
	return w.line.tree != nil && w.line.tree.soft && slices.ContainsFunc(violations, func(v quota.Violation) bool {
		return v.Kind == quota.OfQueue && v.Tree == w.line.tree.name
	})
}

// blockedThere is true if what a line waits for is in the way of those claims that are in its tree: of several that borrow
// softly a decision names only the first that finds no place.
func (v verifier) blockedThere(w *waiter) bool {
	if w.line.tree == nil {
		return false
	}
	request := w.request
	request.Claims = slices.DeleteFunc(slices.Clone(request.Claims), func(c quota.Claim) bool { return c.Tree != w.line.tree.name })
	a, refused := v.place(request)
	if refused != nil {
		return false
	}
	a.more.waiting = w.record.more.waiting
	t := v.begin(a)
	d := t.decide()
	t.rollback()
	return !d.Granted && v.queue.stays(w, a, d.Violations)
}

// checkLines verifies that there are exactly the lines in which somebody stands, and that everybody knows of them who should.
func (v verifier) checkLines(lines map[*line]int) error {
	kept := len(v.queue.full)
	for _, t := range v.forest.trees {
		kept += len(t.lines)
		here := 0
		for _, r := range t.resources {
			here += len(r.lines)
		}
		for _, n := range t.byPath {
			here += len(n.lines)
		}
		if here != len(t.lines) {
			return fmt.Errorf("tree %s knows %d lines, but its nodes and resources %d", t.name, len(t.lines), here)
		}
	}
	if kept != len(lines) {
		return fmt.Errorf("there are %d lines, but requests stand in %d", kept, len(lines))
	}
	for ln, length := range lines {
		if ln.length != length || ln.at != 0 {
			return fmt.Errorf("the line for %s says that %d requests stand there, but %d do", ln, ln.length, length)
		}
		for _, p := range ln.pieces {
			settled := p
			settled.settle()
			if settled.least != p.least {
				return fmt.Errorf("a piece of the line for %s says that at least %d is needed, but it is %d", ln, p.least, settled.least)
			}
		}
	}
	return nil
}
