package admit

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// drainBatch bounds how many records one step of a drain visits, so that it does not delay other commands.
const drainBatch = 10_000

// DrainFrom revokes leases at a node and below it, by their fences, after a fence. If more are left, the next step is
// due in the next millisecond: not at once, because one Expire may fire many deadlines.
func DrainFrom(s *state.State, n *state.Node, after uint64) {
	hold, visited := *n.Hold, 0
	hold.DrainAt, hold.DrainAfter = 0, 0
	var list []*state.Allocation
	for fence, a := range s.Allocations.Held.From(after + 1) {
		if visited++; visited > drainBatch {
			hold.DrainAt = s.Now.At + 1
			break
		}
		hold.DrainAfter = fence
		if belongsWithin(a, n) {
			list = append(list, a)
		}
	}
	if hold.DrainAt == 0 {
		hold.DrainAfter = 0
	}
	SetHold(s, n, &hold)
	reason := n.DrainReason()
	for _, a := range list {
		revokeLease(s, a, quota.DrainedBy, hold.Grace, reason)
	}
	s.Forest.Drained = append(s.Forest.Drained, n)
}

// belongsWithin is true if a claim belongs to a node or to one below it.
func belongsWithin(a *state.Allocation, n *state.Node) bool {
	return slices.ContainsFunc(a.Claims, func(c state.PlacedClaim) bool { return c.Home().Within(n) })
}

// revokeLease announces the end of a lease in favour of another allocation or of a drain, after a grace span at most.
// It reports false, and does nothing, to what is not a lease, and to a lease that is under revocation already. But a
// drain can bring the announced end forward; then the lease keeps the reason, unless that was a drain too.
func revokeLease(s *state.State, a *state.Allocation, revoker string, grace quota.Span, reason *quota.Reason) bool {
	lease := a.Lease()
	if !lease.IsRevocable() || lease.RevokedBy != "" && revoker != quota.DrainedBy {
		return false
	}
	isNew, end := lease.RevokedBy == "", min(lease.Expires, s.Now.At+quota.Instant(grace))
	if !isNew && end == lease.Expires {
		return false
	}
	if isNew || lease.RevokedBy == quota.DrainedBy {
		lease.RevokedBy, lease.Reason = revoker, reason
	}
	lease.Expires = end
	revoked := ReplaceLease(s, a.WithLease(lease))
	if isNew {
		CountRevocation(&s.Queue, revoked, 1)
	}
	s.Journal.NoteFact(state.FactRevoked, revoked)
	s.Journal.NoteEvent(quota.Event{
		Kind: quota.EventRevoked, ID: revoked.ID(),
		By: lease.RevokedBy, Reason: lease.Reason,
	})
	return true
}

// continueDrains revokes the leases that the present command has begun at nodes that are being drained: of reservations
// that were confirmed, of parts that were split from others, and of what was restored.
func continueDrains(s *state.State) {
	for _, fact := range slices.Clone(s.Journal.Facts) {
		if fact.Allocation == nil {
			continue
		}
		a, isHeld := s.Allocations.Held.Get(fact.Allocation.Fence())
		if !isHeld || a.Lease().RevokedBy != "" {
			continue
		}
		for i := range a.Claims {
			if n := IsDraining(a.Claims[i].Home()); n != nil {
				revokeLease(s, a, quota.DrainedBy, n.Hold.Grace, n.DrainReason())
				break
			}
		}
	}
}

// IsDraining is the node itself, or the nearest above it, that is being drained; nil if there is none.
func IsDraining(n *state.Node) *state.Node {
	for ; n != nil; n = n.Parent {
		if n.Hold != nil && n.Hold.Drain {
			return n
		}
	}
	return nil
}

// AnnounceDrained tells of each drain that nothing is held any more. A cancelled reservation may restore what it has
// preempted there; then the drain goes on. It runs at the end of a command, when nothing can be reverted any more.
func AnnounceDrained(s *state.State) {
	slices.SortFunc(s.Forest.Drained, func(a, b *state.Node) int { return cmp.Compare(a.ID, b.ID) })
	for _, n := range s.Forest.Drained {
		if n.Hold == nil || !n.Hold.Drain || n.Hold.DrainAt != 0 || n.Hold.Drained == !IsUsed(n) {
			continue
		}
		hold := *n.Hold
		hold.Drained = !hold.Drained
		SetHold(s, n, &hold)
		if hold.Drained {
			s.Journal.NoteNodeEvent(quota.Event{Kind: quota.EventDrained, Tree: n.TreeName, Node: n.Path})
		}
	}
	s.Forest.Drained = nil
}

// IsUsed is true if a claim belongs to the node or to one below it, wherever it is counted.
func IsUsed(n *state.Node) bool {
	if slices.ContainsFunc(n.Subtree, func(used quota.Amount) bool { return used > 0 }) {
		return true
	}
	return !n.Walk(func(at *state.Node) bool { return at.Claims+at.Homes == 0 })
}
