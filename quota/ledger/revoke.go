package ledger

import "github.com/quorate/quorate/quota"

// A lease in a tree with a span of grace is not preempted at once (docs/adr/0028): its holder is told, and whoever wants the
// room waits until the lease has ended.

// graciously answers what was found out by a trial that would end leases to which grace is due: then it has taken
// everything back, and the request is not granted.
func (t *staged) graciously(a *Allocation) (quota.Decision, bool) {
	for i, v := range t.victims {
		if t.ledger.forest.grace(v, t.preempted[i].Tree) > 0 {
			t.told = append(t.told, toBeTold{v.fence, t.preempted[i]})
		}
	}
	if len(t.told) == 0 {
		return quota.Decision{}, false
	}
	told := make([]quota.Preempted, len(t.told))
	for i, v := range t.told {
		told[i] = v.Preempted
	}
	t.rollback()
	return quota.Decision{Violations: t.ledger.withoutPreemption(a), Preempted: told}, true
}

// toBeTold is a lease that has to give way.
type toBeTold struct {
	fence uint64
	quota.Preempted
}

// grace is the span that is due to a victim that stands in the way in a tree; 0 if it is no lease, or none yet: whoever has
// only reserved goes at once, and learns it from the confirmation.
func (f *forest) grace(victim *Allocation, tree string) quota.Span {
	if victim.lease().expires == 0 {
		return 0
	}
	return f.trees[tree].settings.Leases.Grace
}

// withoutPreemption lists all that is in the way of a request that may end nobody.
func (l *Ledger) withoutPreemption(a *Allocation) []quota.Violation {
	violations := l.asker(a).decide(a.rest()).Violations
	for i := range a.claims {
		if c := &a.claims[i]; c.soft() {
			violations = append(violations, c.inTheWay()...)
		}
	}
	return violations
}

// tell revokes the leases that have to give way to a request that waits, unless it waits for others already. Whoever is later
// than it in its line may not take the room.
func (l *Ledger) tell(w *waiter, t *tx) {
	if t.staged == nil || w.pressing {
		return
	}
	for _, v := range t.staged.told {
		victim, _ := l.allocations.held.Get(v.fence)
		is := victim.lease()
		if is.revokedBy != "" {
			continue
		}
		is.revokedBy, is.expires = w.record.id, min(is.expires, l.now.At+quota.Instant(l.forest.grace(victim, v.Tree)))
		revoked := l.refile(victim.withLease(is))
		l.queue.countRevoked(revoked, 1)
		l.journal.fact(FactRevoked, revoked)
		l.journal.note(quota.Event{Kind: quota.EventRevoked, ID: revoked.id, By: is.revokedBy})
	}
}

// countRevoked notes that a lease that has to give way is held, or with -1 that it has ended. Whoever waits for that presses
// in its line until the last one has.
func (q *waitQueue) countRevoked(a *Allocation, sign int) {
	by := a.lease().revokedBy
	if by == "" {
		return
	}
	if q.revokedFor == nil {
		q.revokedFor = map[string]int{}
	}
	if q.revokedFor[by] += sign; q.revokedFor[by] == 0 {
		delete(q.revokedFor, by)
	}
	if preemptor := q.allocations.byID[by]; preemptor != nil && preemptor.waits() {
		q.press(q.waiterOf(preemptor))
	}
}

// press settles whether a request presses in its line; if it does no more, the others there have their turn.
func (q *waitQueue) press(w *waiter) {
	is := q.revokedFor[w.record.id] > 0
	switch {
	case is == w.pressing:
		return
	case w.line == &q.limbo:
	case is:
		w.line.pressing++
	default:
		w.line.pressing--
		q.stir(w.line)
	}
	w.pressing = is
}

// firstPressing is the first in the line for whom leases have been revoked; nil if there is none.
func (ln *line) firstPressing() *waiter {
	if ln.pressing == 0 {
		return nil
	}
	for w := range ln.ranks.from(firstTurn) {
		if w.pressing {
			return w
		}
	}
	return nil
}
