package state

import (
	"slices"

	"github.com/quorate/quorate/quota"
)

// reason is why the allocation ended or is revoked; nil if nothing but its holder or its time was the cause.
func (a *Allocation) reason() *quota.Reason {
	if a.Ended != nil && a.Ended.Reason != nil {
		return a.Ended.Reason
	}
	return a.Lease().Reason
}

// AmountsMissing are the resources of which the node lacks capacity for a claim, with what another claim gives.
func (n *Node) AmountsMissing(claim, gives *PlacedClaim) []quota.ReasonAmount {
	var list []quota.ReasonAmount
	for i, limit := range n.Ceilings {
		requested := AmountOf(claim.Amounts, i)
		if missing := n.Subtree[i] + requested - limit; missing > 0 && len(list) < quota.MaxReasonAmounts {
			list = append(list, quota.ReasonAmount{
				Resource: n.Tree.Resources[i].Name, Requested: requested, Missing: missing, Given: AmountOf(gives.Amounts, i),
			})
		}
	}
	return list
}

// DrainReason is the reason of the leases that the drain of the node revokes.
func (n *Node) DrainReason() *quota.Reason {
	return &quota.Reason{
		Kind: quota.ByDrain, Tree: n.TreeName, Node: n.Path, Actor: n.Hold.Actor, Text: n.Hold.Reason, Grace: n.Hold.Grace,
	}
}

// ReleaseByOther is the reason of an end that a caller brings about who does not own the allocation; nil if the owner
// does it, or if one of them is not known.
func (s *State) ReleaseByOther(a *Allocation) *quota.Reason {
	user := s.Caller.User()
	if user == "" || a.Owner == "" || user == a.Owner {
		return nil
	}
	return &quota.Reason{Kind: quota.ByRelease, Actor: user}
}

// NoteVictims adds those who ended for the allocation, or whose leases were revoked for it.
func (m *Details) NoteVictims(list []quota.Preempted) {
	m.Preempted = slices.Concat(m.Preempted, list)
	if len(list) == 0 || list[0].Reason == nil {
		return
	}
	room := quota.MadeRoom{}
	if m.Room != nil {
		room = quota.MadeRoom{Count: m.Room.Count, Totals: slices.Clone(m.Room.Totals)}
	}
	for _, p := range list {
		room.Add(p.Reason)
	}
	m.Room = &room
	m.ForgetExcessVictims()
}

// ForgetExcessVictims keeps the first victims only. A reservation may have to restore all of them.
func (m *Details) ForgetExcessVictims() {
	if m.Room != nil && m.Until == 0 && len(m.Preempted) > quota.MaxPreempted {
		m.Preempted = slices.Clone(m.Preempted[:quota.MaxPreempted])
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
