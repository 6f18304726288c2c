package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
)

// reason is why the allocation ended or is revoked; nil if nothing but its holder or its time was the cause.
func (a *Allocation) reason() *quota.Reason {
	if a.ended != nil && a.ended.reason != nil {
		return a.ended.reason
	}
	return a.lease().reason
}

// amountsMissing are the resources of which the node lacks capacity for a claim, with what another claim gives.
func (n *node) amountsMissing(claim, gives *placedClaim) []quota.ReasonAmount {
	var list []quota.ReasonAmount
	for i, limit := range n.ceilings {
		requested := amountOf(claim.amounts, i)
		if missing := n.subtree[i] + requested - limit; missing > 0 && len(list) < quota.MaxReasonAmounts {
			list = append(list, quota.ReasonAmount{
				Resource: n.tree.resources[i].Name, Requested: requested, Missing: missing, Given: amountOf(gives.amounts, i),
			})
		}
	}
	return list
}

// drainReason is the reason of the leases that the drain of the node revokes.
func (n *node) drainReason() *quota.Reason {
	return &quota.Reason{
		Kind: quota.ByDrain, Tree: n.treeName, Node: n.path, Actor: n.hold.Actor, Text: n.hold.Reason, Grace: n.hold.Grace,
	}
}

// releaseByOther is the reason of an end that a caller brings about who does not own the allocation; nil if the owner
// does it, or if one of them is not known.
func (l *Ledger) releaseByOther(a *Allocation) *quota.Reason {
	user := l.caller.user()
	if user == "" || a.owner == "" || user == a.owner {
		return nil
	}
	return &quota.Reason{Kind: quota.ByRelease, Actor: user}
}

// noteVictims adds those who ended for the allocation, or whose leases were revoked for it.
func (m *details) noteVictims(list []quota.Preempted) {
	m.preempted = slices.Concat(m.preempted, list)
	if len(list) == 0 || list[0].Reason == nil {
		return
	}
	room := quota.MadeRoom{}
	if m.room != nil {
		room = quota.MadeRoom{Count: m.room.Count, Totals: slices.Clone(m.room.Totals)}
	}
	for _, p := range list {
		room.Add(p.Reason)
	}
	m.room = &room
	m.forgetExcessVictims()
}

// forgetExcessVictims keeps the first victims only. A reservation may have to restore all of them.
func (m *details) forgetExcessVictims() {
	if m.room != nil && m.until == 0 && len(m.preempted) > quota.MaxPreempted {
		m.preempted = slices.Clone(m.preempted[:quota.MaxPreempted])
	}
}

func reasonSize(r *quota.Reason) int64 {
	if r == nil {
		return 0
	}
	n := int64(reasonBytes + len(r.Tree) + len(r.Node) + len(r.Share) + len(r.Borrower) + len(r.Actor) + len(r.Text))
	for _, a := range r.Amounts {
		n += int64(reasonAmountBytes + len(a.Resource))
	}
	return n
}
