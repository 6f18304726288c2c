package ledger

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/quota"
)

// drainBatch bounds how many records one step of a drain visits, so that it does not delay other commands.
const drainBatch = 10_000

// drainFrom revokes leases at a node and below it, by their fences, after a fence. If more are left, the next step is
// due in the next millisecond: not at once, because one Expire may fire many deadlines.
func (l *Ledger) drainFrom(n *node, after uint64) {
	hold, visited := *n.hold, 0
	hold.DrainAt, hold.DrainAfter = 0, 0
	var list []*Allocation
	for fence, a := range l.allocations.held.From(after + 1) {
		if visited++; visited > drainBatch {
			hold.DrainAt = l.now.At + 1
			break
		}
		hold.DrainAfter = fence
		if a.belongsWithin(n) {
			list = append(list, a)
		}
	}
	if hold.DrainAt == 0 {
		hold.DrainAfter = 0
	}
	l.setHold(n, &hold)
	reason := n.drainReason()
	for _, a := range list {
		l.revokeLease(a, quota.DrainedBy, hold.Grace, reason)
	}
	l.forest.drained = append(l.forest.drained, n)
}

// belongsWithin is true if a claim belongs to a node or to one below it.
func (a *Allocation) belongsWithin(n *node) bool {
	return slices.ContainsFunc(a.claims, func(c placedClaim) bool { return c.home().within(n) })
}

// revokeLease announces the end of a lease in favour of another allocation or of a drain, after a grace span at most.
// It reports false, and does nothing, to what is not a lease, and to a lease that is under revocation already. But a
// drain can bring the announced end forward; then the lease keeps the reason, unless that was a drain too.
func (l *Ledger) revokeLease(a *Allocation, by string, grace quota.Span, reason *quota.Reason) bool {
	is := a.lease()
	if !is.isRevocable() || is.revokedBy != "" && by != quota.DrainedBy {
		return false
	}
	isNew, end := is.revokedBy == "", min(is.expires, l.now.At+quota.Instant(grace))
	if !isNew && end == is.expires {
		return false
	}
	if isNew || is.revokedBy == quota.DrainedBy {
		is.revokedBy, is.reason = by, reason
	}
	is.expires = end
	revoked := l.replaceLease(a.withLease(is))
	if isNew {
		l.queue.countRevocation(revoked, 1)
	}
	l.journal.noteFact(FactRevoked, revoked)
	l.journal.noteEvent(quota.Event{Kind: quota.EventRevoked, ID: revoked.id, By: is.revokedBy, Reason: is.reason})
	return true
}

// continueDrains revokes the leases that the present command has begun at nodes that are being drained: of reservations
// that were confirmed, of parts that were split from others, and of what was restored.
func (l *Ledger) continueDrains() {
	for _, fact := range slices.Clone(l.journal.facts) {
		if fact.Allocation == nil {
			continue
		}
		a, isHeld := l.allocations.held.Get(fact.Allocation.fence)
		if !isHeld || a.lease().revokedBy != "" {
			continue
		}
		for i := range a.claims {
			if n := a.claims[i].home().draining(); n != nil {
				l.revokeLease(a, quota.DrainedBy, n.hold.Grace, n.drainReason())
				break
			}
		}
	}
}

// draining is the node itself, or the nearest above it, that is being drained; nil if there is none.
func (n *node) draining() *node {
	for ; n != nil; n = n.parent {
		if n.hold != nil && n.hold.Drain {
			return n
		}
	}
	return nil
}

// noteDrained records that a claim has come to a node or left it, for the drains at it and above it.
func (f *forest) noteDrained(n *node) {
	for ; len(f.onHold) > 0 && n != nil; n = n.parent {
		if n.hold != nil && n.hold.Drain {
			f.drained = append(f.drained, n)
		}
	}
}

// announceDrained tells of each drain that nothing is held any more. A cancelled reservation may restore what it has
// preempted there; then the drain goes on. It runs at the end of a command, when nothing can be reverted any more.
func (l *Ledger) announceDrained() {
	slices.SortFunc(l.forest.drained, func(a, b *node) int { return cmp.Compare(a.id, b.id) })
	for _, n := range l.forest.drained {
		if n.hold == nil || !n.hold.Drain || n.hold.DrainAt != 0 || n.hold.Drained == !n.isUsed() {
			continue
		}
		hold := *n.hold
		hold.Drained = !hold.Drained
		l.setHold(n, &hold)
		if hold.Drained {
			l.journal.noteNodeEvent(quota.Event{Kind: quota.EventDrained, Tree: n.treeName, Node: n.path})
		}
	}
	l.forest.drained = nil
}

// isUsed is true if a claim belongs to the node or to one below it, wherever it is counted.
func (n *node) isUsed() bool {
	if slices.ContainsFunc(n.subtree, func(used quota.Amount) bool { return used > 0 }) {
		return true
	}
	return !n.walk(func(at *node) bool { return at.claims+at.homes == 0 })
}
